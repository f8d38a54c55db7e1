"""`kafka-consumer-groups`: list groups, show their lag, reset and delete their offsets."""

import argparse
from collections.abc import Awaitable, Callable, Mapping, Sequence

from ottla.broker.coordination.patterns import compile_pattern
from ottla.cli.admin import consumer_group_reset, consumer_group_views
from ottla.cli.admin.consumer_group_scope import CONSUMER_PROTOCOL_TYPES, group_ids, partitions_of
from ottla.cli.common.admin_session import run_admin
from ottla.cli.common.options import ToolParser, add_connection_options
from ottla.cli.common.output import CommandError, complain, print_columns, print_json
from ottla.client import groups
from ottla.client.cluster import Cluster
from ottla.model.error_words import in_words
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import TopicPartition

ACTIONS = ("list", "describe", "delete", "reset_offsets", "delete_offsets")
STATES = ("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty", "Assigning", "Reconciling")
TYPES = ("Classic", "Consumer")

EXAMPLES = """
  %(prog)s --list --state
  %(prog)s --describe --group billing
  %(prog)s --describe --all-groups --members --verbose
  %(prog)s --reset-offsets --group billing --topic news --to-earliest --dry-run
  %(prog)s --reset-offsets --group billing --topic news:0,1 --shift-by -100 --execute
  %(prog)s --reset-offsets --group billing --all-topics --by-duration PT2H --execute
  %(prog)s --reset-offsets --group billing --topic news --to-current --export > plan.csv
  %(prog)s --reset-offsets --group billing --from-file plan.csv --execute
  %(prog)s --delete-offsets --group billing --topic news
  %(prog)s --delete --group billing
"""


def main(argv: Sequence[str] | None = None, prog: str = "ottla consumer-groups") -> int:
    parser = _parser(prog)
    args = parser.parse(argv)
    if args.validate_regex is not None:
        return _validate_regex(args.validate_regex)
    chosen = [action for action in ACTIONS if getattr(args, action)]
    if len(chosen) != 1:
        parser.error("give exactly one action: --list, --describe, --delete, --reset-offsets or --delete-offsets")
    _check(parser, args, chosen[0])
    work: Mapping[str, Callable[[Cluster, argparse.Namespace], Awaitable[int]]] = {
        "list": _list,
        "describe": consumer_group_views.describe,
        "delete": _delete,
        "reset_offsets": consumer_group_reset.reset,
        "delete_offsets": _delete_offsets,
    }
    return run_admin(args, lambda cluster: work[chosen[0]](cluster, args), total_timeout_s=args.timeout / 1000)


def _parser(prog: str) -> ToolParser:
    parser = ToolParser(prog, "List consumer groups, show their lag, reset and delete their offsets.", EXAMPLES)
    actions = parser.add_argument_group("actions (exactly one)")
    actions.add_argument("--list", action="store_true", help="print the names of groups")
    actions.add_argument("--describe", action="store_true", help="show offsets and lag, members or state")
    actions.add_argument("--delete", action="store_true", help="delete groups that have no members")
    actions.add_argument("--reset-offsets", action="store_true", help="move the offsets of a group without members")
    actions.add_argument("--delete-offsets", action="store_true", help="forget the offsets of topics")
    scope = parser.add_argument_group("which groups and topics")
    scope.add_argument("--group", action="append", metavar="GROUP", help="the group; may be repeated")
    scope.add_argument("--all-groups", action="store_true", help="every group")
    scope.add_argument(
        "--topic", action="append", metavar="TOPIC[:P,P]", help="a topic, or some of its partitions; may be repeated"
    )
    scope.add_argument("--all-topics", action="store_true", help="every topic the group has offsets for")
    showing = parser.add_argument_group("with --describe and --list")
    showing.add_argument("--offsets", action="store_true", help="offsets and lag of each partition (the default)")
    showing.add_argument("--members", action="store_true", help="who is in the group")
    showing.add_argument(
        "--state", nargs="?", const="", metavar="STATES", help="state; with --list also a filter: --state stable,empty"
    )
    showing.add_argument("--type", nargs="?", const="", metavar="TYPES", help="with --list: type, or only these types")
    showing.add_argument("--verbose", action="store_true", help="more columns")
    consumer_group_reset.add_options(parser)
    parser.add_argument(
        "--timeout", type=int, default=30_000, metavar="MS", help="how long to go on trying (default: 30000)"
    )
    parser.add_argument("--validate-regex", metavar="REGEX", help="check that brokers understand a pattern for topics")
    # From the time when there were two kinds of consumers; the other kind has gone.
    parser.add_argument("--new-consumer", action="store_true", help=argparse.SUPPRESS)
    add_connection_options(parser)
    return parser


def _validate_regex(pattern: str) -> int:
    try:
        compile_pattern(pattern)
    except ApiError as error:
        complain(str(error.message))
        return 1
    print(f"The regular expression `{pattern}` is valid.")
    return 0


def _check(parser: ToolParser, args: argparse.Namespace, action: str) -> None:
    if args.timeout < 1:
        parser.error("--timeout is a number of milliseconds, 1 or more")
    if args.group and args.all_groups:
        parser.error("give --group or --all-groups, not both")
    if action == "list" and (args.group or args.topic):
        parser.error("--list takes neither --group nor --topic; --describe --group GROUP shows one")
    if action in ("describe", "delete", "reset_offsets") and not (args.group or args.all_groups):
        parser.error(f"--{action.replace('_', '-')} needs --group GROUP or --all-groups")
    if action in ("describe", "delete") and args.topic:
        parser.error(f"--topic does not go with --{action}; --delete-offsets forgets single topics")
    if action == "delete_offsets" and (not args.group or not args.topic or len(args.group) != 1):
        parser.error("--delete-offsets needs one --group GROUP and --topic TOPIC")
    if action != "describe" and (args.members or args.offsets or args.verbose):
        parser.error("--members, --offsets and --verbose go with --describe")
    if action != "list" and args.type is not None:
        parser.error("--type goes with --list")
    if action not in ("list", "describe") and args.state is not None:
        parser.error("--state goes with --list and --describe")
    if action == "describe":
        if sum((args.members, args.offsets, args.state is not None)) > 1:
            parser.error("give one of --members, --offsets and --state")
        if args.state:
            parser.error("--state takes no value with --describe")
    consumer_group_reset.check_options(parser, args)


async def _list(cluster: Cluster, args: argparse.Namespace) -> int:
    states = _known_words("state", args.state, STATES)
    types = _known_words("type", args.type, TYPES)
    listed = [
        group
        for group in await groups.list_groups(cluster, states=states, types=types)
        if group.protocol_type in CONSUMER_PROTOCOL_TYPES
    ]
    if args.json:
        print_json(
            [
                {
                    "group": group.group_id,
                    "type": group.group_type.capitalize(),
                    "state": group.group_state,
                    "protocol_type": group.protocol_type,
                }
                for group in listed
            ]
        )
        return 0
    columns = [("GROUP", [group.group_id for group in listed], 25)]
    if args.type is not None:
        columns.append(("TYPE", [group.group_type.capitalize() for group in listed], 20))
    if args.state is not None:
        columns.append(("STATE", [group.group_state for group in listed], 20))
    if len(columns) == 1:
        for group in listed:
            print(group.group_id)
        return 0
    print_columns(
        [[title for title, _, _ in columns], *zip(*(cells for _, cells, _ in columns), strict=True)],
        minimum=[width for _, _, width in columns],
    )
    return 0


def _known_words(option: str, text: str | None, known: Sequence[str]) -> list[str]:
    """`stable,empty` as the words the protocol uses."""
    by_lower = {word.lower(): word for word in known}
    found: list[str] = []
    for word in filter(None, ((part.strip().lower()) for part in (text or "").split(","))):
        if word not in by_lower:
            raise CommandError(f"--{option}: `{word}` is not one of {', '.join(known)}")
        found.append(by_lower[word])
    return found


async def _delete(cluster: Cluster, args: argparse.Namespace) -> int:
    deleted: list[str] = []
    failed: dict[str, str] = {}
    for group in await group_ids(cluster, args):
        try:
            await groups.delete_group(cluster, group)
            deleted.append(group)
        except ApiError as error:
            failed[group] = in_words(error)
    if args.json:
        print_json(
            [{"group": g, "deleted": True} for g in deleted]
            + [{"group": g, "deleted": False, "error": reason} for g, reason in failed.items()]
        )
        return 1 if failed else 0
    names = ", ".join(f"'{group}'" for group in deleted)
    if not failed:
        print(f"Deletion of requested consumer groups ({names}) was successful.")
        return 0
    print("\nError: Deletion of some consumer groups failed:")
    for group, reason in failed.items():
        print(f"* Group '{group}' could not be deleted due to: {reason}")
    if deleted:
        print(f"\nThese consumer groups were deleted successfully: {names}")
    return 1


async def _delete_offsets(cluster: Cluster, args: argparse.Namespace) -> int:
    group: str = args.group[0]
    partitions, unknown = await partitions_of(cluster, args.topic)
    results: dict[TopicPartition, ErrorCode] = {}
    try:
        if partitions:
            results = await groups.delete_offsets(cluster, group, partitions)
    except ApiError as error:
        raise CommandError(f"group `{group}`: {in_words(error)}") from error
    rows: list[tuple[str, object, str | None]] = [
        (partition.topic, partition.partition, in_words(code) if code else None)
        for partition, code in sorted(results.items())
    ]
    rows += [(topic, "-", in_words(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)) for topic in unknown]
    failed = any(reason for _, _, reason in rows)
    if args.json:
        print_json([{"topic": t, "partition": p, "deleted": not reason, "error": reason} for t, p, reason in rows])
        return 1 if failed else 0
    if failed:
        complain(f"group `{group}`: not every offset could be deleted, see below")
    else:
        print(f"Request succeeded for deleting offsets from group {group}.")
    print()
    shown = [(topic, partition, f"Error: {reason}" if reason else "Successful") for topic, partition, reason in rows]
    print_columns([("TOPIC", "PARTITION", "STATUS"), *shown], minimum=(15, 10, 15))
    return 1 if failed else 0
