"""`kafka-reassign-partitions`: move partitions to other brokers or directories, see how far it is, give it up."""

import argparse
import asyncio
import json
from collections.abc import Mapping, Sequence

from ottla.cli.admin import reassignment_plans as plans
from ottla.cli.admin import reassignment_progress as progress
from ottla.cli.common.admin_session import run_admin
from ottla.cli.common.options import ToolParser, add_connection_options, read_text
from ottla.cli.common.output import CommandError, print_json
from ottla.client import admin, replicas
from ottla.client import replication_throttles as throttles
from ottla.client.cluster import Cluster
from ottla.model.error_words import in_words
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import TopicPartition

ACTIONS = ("generate", "execute", "verify", "cancel", "list")
UNLIMITED = -1
TIMEOUT_MS = 10_000
RETRY_SECONDS = 0.1
NOT_YET = (ErrorCode.REPLICA_NOT_AVAILABLE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
"""What a broker says of a replica that it is yet to have."""

# Options that make sense with some actions only, and those that an action cannot do without.
_OPTION_ACTIONS: Mapping[str, tuple[str, ...]] = {
    "reassignment_json_file": ("execute", "verify", "cancel"),
    "topics_to_move_json_file": ("generate",),
    "broker_ids": ("generate",),
    "disable_rack_aware": ("generate",),
    "throttle": ("execute",),
    "replica_alter_log_dirs_throttle": ("execute",),
    "timeout": ("execute",),
    "additional": ("execute",),
    "disallow_replication_factor_change": ("execute",),
    "preserve_throttles": ("verify", "cancel"),
}
_REQUIRED: Mapping[str, tuple[str, ...]] = {
    "generate": ("topics_to_move_json_file", "broker_ids"),
    "execute": ("reassignment_json_file",),
    "verify": ("reassignment_json_file",),
    "cancel": ("reassignment_json_file",),
    "list": (),
}

EXAMPLES = """
  %(prog)s --generate --topics-to-move-json-file topics.json --broker-list 1,2,3   propose a plan, change nothing
  %(prog)s --execute --reassignment-json-file plan.json --throttle 50000000        begin to move, 50 MB/s at most
  %(prog)s --verify --reassignment-json-file plan.json    how far it is; takes the throttle away when it is done
  %(prog)s --cancel --reassignment-json-file plan.json    back to where the partitions came from
  %(prog)s --list                                         all moves under way

  topics.json: {"version": 1, "topics": [{"topic": "news"}]}
  plan.json:   {"version": 1, "partitions": [{"topic": "news", "partition": 0, "replicas": [3, 1]}]}
               the first replica is the preferred leader; "log_dirs": ["/disk2", "any"] also chooses directories
"""


def main(argv: Sequence[str] | None = None, prog: str = "ottla reassign-partitions") -> int:
    parser = _parser(prog)
    args = parser.parse(argv)
    chosen = [action for action in ACTIONS if getattr(args, action)]
    if len(chosen) != 1:
        parser.error("give exactly one action: --generate, --execute, --verify, --cancel or --list")
    _check(parser, args, chosen[0])
    work = {"generate": _generate, "execute": _execute, "verify": _verify, "cancel": _cancel, "list": _list}[chosen[0]]
    try:
        return run_admin(args, lambda cluster: work(cluster, args))
    except ApiError as error:
        raise CommandError(in_words(error)) from error


def _parser(prog: str) -> ToolParser:
    parser = ToolParser(prog, "Move partitions to other brokers or directories.", EXAMPLES)
    actions = parser.add_argument_group("actions (exactly one)")
    actions.add_argument("--generate", action="store_true", help="propose a plan that spreads topics over brokers")
    actions.add_argument("--execute", action="store_true", help="begin to move as a plan says")
    actions.add_argument(
        "--verify", action="store_true", help="tell how far a plan is; clear throttles when it is done"
    )
    actions.add_argument("--cancel", action="store_true", help="give up the moves of a plan")
    actions.add_argument("--list", action="store_true", help="show all moves under way")
    parser.add_argument("--reassignment-json-file", metavar="FILE", help="the plan")
    generating = parser.add_argument_group("with --generate")
    generating.add_argument("--topics-to-move-json-file", metavar="FILE", help="the topics to make a plan for")
    generating.add_argument("--disable-rack-aware", action="store_true", help="do not spread replicas over racks")
    executing = parser.add_argument_group("with --execute")
    executing.add_argument("--throttle", type=int, metavar="BYTES/S", help="limit what moves between brokers")
    executing.add_argument(
        "--replica-alter-log-dirs-throttle", type=int, metavar="BYTES/S", help="limit what moves between directories"
    )
    executing.add_argument(
        "--timeout", type=int, metavar="MS", help=f"how long moves between directories may take to begin ({TIMEOUT_MS})"
    )
    executing.add_argument(
        "--additional", action="store_true", help="allow it although other moves are under way, or to change throttles"
    )
    executing.add_argument(
        "--disallow-replication-factor-change", action="store_true", help="refuse to change the number of replicas"
    )
    parser.add_argument(
        "--preserve-throttles", action="store_true", help="with --verify and --cancel: leave throttles as they are"
    )
    add_connection_options(parser, broker_list="ids")
    return parser


def _check(parser: ToolParser, args: argparse.Namespace, action: str) -> None:
    for option, actions in _OPTION_ACTIONS.items():
        if getattr(args, option) not in (None, False) and action not in actions:
            parser.error(f"{_flag(option)} goes with {' or '.join(f'--{each}' for each in actions)}, not --{action}")
    for option in _REQUIRED[action]:
        if not getattr(args, option):
            parser.error(f"--{action} needs {_flag(option)}")
    for option in ("throttle", "replica_alter_log_dirs_throttle"):
        limit: int | None = getattr(args, option)
        if limit is not None and limit != UNLIMITED and limit < 1:
            parser.error(f"{_flag(option)} wants bytes per second, at least 1, or {UNLIMITED} for no limit")


def _flag(option: str) -> str:
    return "--broker-list" if option == "broker_ids" else "--" + option.replace("_", "-")


async def _generate(cluster: Cluster, args: argparse.Namespace) -> int:
    names = plans.parse_topics(read_text(args.topics_to_move_json_file))
    topics = await admin.describe_topics(cluster, names)
    wanted = plans.parse_broker_list(args.broker_ids)
    await cluster.metadata([])
    _check_brokers(cluster, wanted)
    racks = {broker: None if args.disable_rack_aware else cluster.brokers[broker].rack for broker in wanted}
    current, proposed = plans.current_plan(topics), plans.propose(topics, racks)
    if args.json:
        print_json({"current": plans.as_document(current), "proposed": plans.as_document(proposed)})
        return 0
    print(f"Current partition replica assignment\n{_compact(current)}\n")
    print(f"Proposed partition reassignment configuration\n{_compact(proposed)}")
    return 0


async def _execute(cluster: Cluster, args: argparse.Namespace) -> int:
    plan = plans.parse_plan(read_text(args.reassignment_json_file))
    moving = await replicas.list_reassignments(cluster)
    if moving and not args.additional:
        raise CommandError(
            f"{len(moving)} partitions are being moved already; --additional adds to that, or changes the throttle "
            "when the same plan is given again"
        )
    await cluster.metadata([])
    _check_brokers(cluster, sorted({broker for placed in plan.values() for broker in placed.replicas}))
    held = await _held(cluster, plan)
    missing = [partition for partition in plan if partition not in held]
    if missing:
        raise CommandError(f"there is no partition {missing[0]}")
    before: plans.Plan = {partition: plans.anywhere(held[partition]) for partition in plan}
    if not args.json:
        print(f"Current partition replica assignment\n\n{_compact(before)}\n")
        print("Save this to use as the --reassignment-json-file option during rollback")
    await _throttle(cluster, args, plan, held)
    await _choose_directories(cluster, plan)
    refused = await replicas.alter_reassignments(
        cluster,
        {partition: placed.replicas for partition, placed in plan.items()},
        allow_factor_change=not args.disallow_replication_factor_change,
    )
    if refused:
        words = "\n".join(f"  {partition}: {in_words(error)}" for partition, error in sorted(refused.items()))
        raise CommandError(f"not all partitions can be moved:\n{words}")
    started = await _move_directories(cluster, plan, (args.timeout or TIMEOUT_MS) / 1000)
    if args.json:
        print_json({"current": plans.as_document(before), "started": _names(plan), "log_dir_moves": started})
        return 0
    print(f"Successfully started partition reassignment{'s' if len(plan) > 1 else ''} for {','.join(_names(plan))}")
    if started:
        print(f"Successfully started log directory moves for: {','.join(started)}")
    return 0


async def _throttle(cluster: Cluster, args: argparse.Namespace, plan: plans.Plan, held: throttles.Replicas) -> None:
    between_brokers: int | None = args.throttle
    between_directories: int | None = args.replica_alter_log_dirs_throttle
    limits = [limit for limit in (between_brokers, between_directories) if limit not in (None, UNLIMITED)]
    if limits and not args.json:
        print("Warning: run --verify until the reassignment is done: it takes the throttle away.")
    if between_brokers is not None and between_brokers != UNLIMITED:
        await throttles.throttle_moves(cluster, plans.brokers_of(plan), held, between_brokers)
        if not args.json:
            print(f"The inter-broker throttle limit was set to {between_brokers} B/s")
    if between_directories is not None and between_directories != UNLIMITED:
        brokers = sorted(progress.wanted_directories(plan))
        await throttles.throttle_directories(cluster, brokers, between_directories)
        if not args.json:
            print(f"The replica-alter-dir throttle limit was set to {between_directories} B/s")


async def _choose_directories(cluster: Cluster, plan: plans.Plan) -> None:
    """Tell brokers where replicas are to be, before they get them: then they are made there. Raises if it cannot be."""
    for broker, wanted in sorted(progress.wanted_directories(plan).items()):
        refused = await replicas.alter_replica_log_dirs(cluster, broker, wanted)
        for partition, error in sorted(refused.items()):
            if error.code not in NOT_YET:
                raise _cannot_move(partition, broker, wanted[partition], error)


async def _move_directories(cluster: Cluster, plan: plans.Plan, timeout_s: float) -> list[str]:
    """See that the moves between directories have begun; a replica that is only just being added may take a moment."""
    started: list[str] = []
    deadline = asyncio.get_running_loop().time() + timeout_s
    for broker, wanted in sorted(progress.wanted_directories(plan).items()):
        left = dict(wanted)
        while left:
            refused = await replicas.alter_replica_log_dirs(cluster, broker, left)
            started += [f"{partition}-{broker}" for partition in sorted(left) if partition not in refused]
            overdue = asyncio.get_running_loop().time() > deadline
            for partition, error in sorted(refused.items()):
                if overdue or error.code not in NOT_YET:
                    raise _cannot_move(partition, broker, wanted[partition], error)
            left = {partition: path for partition, path in left.items() if partition in refused}
            if left:
                await asyncio.sleep(RETRY_SECONDS)
    return started


def _cannot_move(partition: TopicPartition, broker: int, path: str, error: ApiError) -> CommandError:
    return CommandError(f"{partition} on broker {broker} cannot move to {path}: {in_words(error)}")


async def _verify(cluster: Cluster, args: argparse.Namespace) -> int:
    plan = plans.parse_plan(read_text(args.reassignment_json_file))
    moving = await replicas.list_reassignments(cluster)
    partitions = progress.partition_progress(plan, await _held(cluster, plan), moving)
    directories: list[progress.DirectoryProgress] = []
    for broker, wanted in sorted(progress.wanted_directories(plan).items()):
        directories += progress.directory_progress(broker, wanted, await admin.describe_log_dirs(cluster, broker))
    active = bool(moving) or any(each.in_progress for each in directories)
    if args.json:
        print_json(
            {
                "partitions": [each.as_json() for each in partitions],
                "log_dir_moves": [each.as_json() for each in directories],
                "active": active,
            }
        )
    else:
        print("Status of partition reassignment:", *partitions, *directories, sep="\n")
    if not active and not args.preserve_throttles:
        await _clear_throttles(cluster, plan, quiet=args.json)
    return 0


async def _cancel(cluster: Cluster, args: argparse.Namespace) -> int:
    plan = plans.parse_plan(read_text(args.reassignment_json_file))
    moving = [partition for partition in await replicas.list_reassignments(cluster, plan) if partition in plan]
    refused = await replicas.alter_reassignments(cluster, dict.fromkeys(moving)) if moving else {}
    failed = {p: error for p, error in refused.items() if error.code != ErrorCode.NO_REASSIGNMENT_IN_PROGRESS}
    if failed:
        words = "\n".join(f"  {partition}: {in_words(error)}" for partition, error in sorted(failed.items()))
        raise CommandError(f"not all moves can be given up:\n{words}")
    if args.json:
        print_json({"cancelled": _names(moving)})
    elif moving:
        plural = "s" if len(moving) > 1 else ""
        print(f"Successfully cancelled partition reassignment{plural} for: {','.join(_names(moving))}")
    else:
        print("None of the specified partition reassignments are active.")
    if not args.preserve_throttles:
        await _clear_throttles(cluster, plan, quiet=args.json)
    return 0


async def _list(cluster: Cluster, args: argparse.Namespace) -> int:
    moving = await replicas.list_reassignments(cluster)
    if args.json:
        print_json([{**partition._asdict(), **move._asdict()} for partition, move in sorted(moving.items())])
        return 0
    if not moving:
        print("No partition reassignments found.")
        return 0
    print("Current partition reassignments:")
    for partition, move in sorted(moving.items()):
        parts = [f"replicas: {_numbers(move.replicas)}."]
        parts += [f"adding: {_numbers(move.adding)}."] if move.adding else []
        parts += [f"removing: {_numbers(move.removing)}."] if move.removing else []
        print(f"{partition}: {' '.join(parts)}")
    return 0


async def _held(cluster: Cluster, plan: plans.Plan) -> dict[TopicPartition, list[int]]:
    """Who holds the partitions of a plan now; those that do not exist are not in it."""
    known = {topic.name for topic in await admin.list_topics(cluster)}
    topics = sorted({partition.topic for partition in plan} & known)
    current = plans.current_plan(await admin.describe_topics(cluster, topics))
    return {partition: current[partition].replicas for partition in plan if partition in current}


async def _clear_throttles(cluster: Cluster, plan: plans.Plan, *, quiet: bool) -> None:
    brokers = sorted(cluster.brokers)
    topics = sorted(
        {partition.topic for partition in plan} & {topic.name for topic in await admin.list_topics(cluster)}
    )
    if not quiet:
        print(f"\nClearing broker-level throttles on broker{'s' if len(brokers) > 1 else ''} {_numbers(brokers)}")
        print(f"Clearing topic-level throttles on topic{'s' if len(topics) > 1 else ''} {','.join(topics)}")
    await throttles.clear(cluster, brokers, topics)


def _check_brokers(cluster: Cluster, wanted: Sequence[int]) -> None:
    unknown = [broker for broker in wanted if broker not in cluster.brokers]
    if unknown:
        raise CommandError(f"there is no broker {unknown[0]} now; the brokers are: {_numbers(sorted(cluster.brokers))}")


def _compact(plan: plans.Plan) -> str:
    return json.dumps(plans.as_document(plan), separators=(",", ":"))


def _names(partitions: Sequence[TopicPartition] | plans.Plan) -> list[str]:
    return [str(partition) for partition in sorted(partitions)]


def _numbers(brokers: Sequence[int]) -> str:
    return ",".join(str(broker) for broker in brokers)
