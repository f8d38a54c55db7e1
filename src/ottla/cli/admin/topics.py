"""`kafka-topics`: create, list, describe, alter and delete topics."""

import argparse
import uuid
from collections.abc import Mapping, Sequence

from ottla.cli.admin import topic_description
from ottla.cli.common.admin_session import run_admin
from ottla.cli.common.options import ToolParser, add_connection_options, parse_pairs
from ottla.cli.common.output import CommandError, note, print_json, warn
from ottla.cli.common.topic_filter import choose_topics
from ottla.client import admin, replicas
from ottla.client.cluster import Cluster
from ottla.client.errors import UnsupportedByBroker
from ottla.model.error_words import in_words
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import NO_TOPIC_ID, TopicPartition, format_topic_id, parse_topic_id

ACTIONS = ("create", "list", "describe", "alter", "delete")
REPLICATION_FACTOR_MAX = 32_767

# Options that make sense with some actions only.
_OPTION_ACTIONS: Mapping[str, tuple[str, ...]] = {
    "config": ("create", "alter"),
    "partitions": ("create", "alter"),
    "replication_factor": ("create",),
    "replica_assignment": ("create", "alter"),
    "under_replicated_partitions": ("describe",),
    "unavailable_partitions": ("describe",),
    "under_min_isr_partitions": ("describe",),
    "at_min_isr_partitions": ("describe",),
    "topics_with_overrides": ("describe",),
    "topic_id": ("describe",),
    "partition_size_limit_per_response": ("describe",),
    "if_exists": ("alter", "delete", "describe"),
    "if_not_exists": ("create",),
    "exclude_internal": ("list", "describe"),
}

EXAMPLES = """
  %(prog)s --create --topic news --partitions 3 --config retention.ms=86400000
  %(prog)s --list
  %(prog)s --describe --topic 'news|mail.*'
  %(prog)s --describe --under-replicated-partitions
  %(prog)s --alter --topic news --partitions 6
  %(prog)s --delete --topic news --if-exists
"""


def main(argv: Sequence[str] | None = None, prog: str = "ottla topics") -> int:
    parser = _parser(prog)
    args = parser.parse(argv)
    chosen = [action for action in ACTIONS if getattr(args, action)]
    if len(chosen) != 1:
        parser.error("give exactly one action: --list, --describe, --create, --alter or --delete")
    _check(parser, args, chosen[0])
    if args.force:
        note("--force has nothing to suppress: this tool never asks questions")
    work = {"create": _create, "list": _list, "describe": _describe, "alter": _alter, "delete": _delete}[chosen[0]]
    try:
        return run_admin(args, lambda cluster: work(cluster, args))
    except ApiError as error:
        raise CommandError(_explain(error, args)) from error


def _parser(prog: str) -> ToolParser:
    parser = ToolParser(prog, "Create, list, describe, alter and delete topics.", EXAMPLES)
    actions = parser.add_argument_group("actions (exactly one)")
    actions.add_argument("--create", action="store_true", help="create a topic")
    actions.add_argument("--list", action="store_true", help="print the names of topics")
    actions.add_argument("--describe", action="store_true", help="show partitions, leaders, replicas and settings")
    actions.add_argument("--alter", action="store_true", help="add partitions to topics")
    actions.add_argument("--delete", action="store_true", help="delete topics")
    parser.add_argument(
        "--topic", metavar="NAME", help="the topic; a regular expression for whole names except with --create"
    )
    parser.add_argument("--topic-id", metavar="ID", help="describe the topic with this id")
    making = parser.add_argument_group("with --create and --alter")
    making.add_argument("--partitions", type=int, metavar="N", help="number of partitions (default: the broker's)")
    making.add_argument("--replication-factor", type=int, metavar="N", help="replicas of each partition")
    making.add_argument(
        "--replica-assignment", metavar="A:B,C:D", help="brokers of each partition, in place of the two numbers"
    )
    making.add_argument(
        "--config", action="append", default=[], metavar="KEY=VALUE", help="a setting of the new topic; may be repeated"
    )
    making.add_argument("--if-not-exists", action="store_true", help="do nothing if the topic is there already")
    showing = parser.add_argument_group("with --describe and --list")
    showing.add_argument("--under-replicated-partitions", action="store_true", help="only partitions lacking a replica")
    showing.add_argument("--unavailable-partitions", action="store_true", help="only partitions without a leader")
    showing.add_argument(
        "--under-min-isr-partitions", action="store_true", help="only partitions below min.insync.replicas"
    )
    showing.add_argument(
        "--at-min-isr-partitions", action="store_true", help="only partitions just at min.insync.replicas"
    )
    showing.add_argument("--topics-with-overrides", action="store_true", help="only topics with settings of their own")
    showing.add_argument("--exclude-internal", action="store_true", help="leave out internal topics")
    showing.add_argument(
        "--partition-size-limit-per-response",
        type=int,
        metavar="N",
        help="partitions asked for at a time (default: 2000)",
    )
    parser.add_argument("--if-exists", action="store_true", help="no error if no topic matches")
    parser.add_argument("--delete-config", action="append", metavar="KEY", help=argparse.SUPPRESS)
    parser.add_argument("--disable-rack-aware", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--force", action="store_true", help=argparse.SUPPRESS)
    add_connection_options(parser)
    return parser


def _check(parser: ToolParser, args: argparse.Namespace, action: str) -> None:
    for option, actions in _OPTION_ACTIONS.items():
        given: object = getattr(args, option)
        if given not in (None, False, []) and action not in actions:
            parser.error(f"--{option.replace('_', '-')} goes with {_flags(actions)}, not with --{action}")
    if args.delete_config or (args.config and action == "alter"):
        parser.error("settings of a topic are changed with kafka-configs --alter --topic NAME --add-config KEY=VALUE")
    if args.disable_rack_aware:
        parser.error("--disable-rack-aware belonged to ZooKeeper; give --replica-assignment to place replicas by hand")
    if action in ("create", "alter", "delete") and not args.topic:
        parser.error(f"--{action} needs --topic NAME")
    if action == "alter" and args.partitions is None:
        parser.error("--alter needs --partitions N")
    if action == "create" and args.replica_assignment and (args.partitions or args.replication_factor):
        parser.error("--replica-assignment says how many partitions and replicas there are: leave the numbers out")
    if args.topics_with_overrides and topic_description.partition_filters(args):
        parser.error("--topics-with-overrides is about topics: leave out the options about partitions")
    if action == "describe" and args.if_exists and not (args.topic or args.topic_id):
        parser.error("--describe --if-exists needs --topic or --topic-id")


def _flags(actions: Sequence[str]) -> str:
    return " or ".join(f"--{action}" for action in actions)


async def _create(cluster: Cluster, args: argparse.Namespace) -> int:
    if args.partitions is not None and args.partitions < 1:
        raise CommandError("--partitions must be at least 1")
    if args.replication_factor is not None and not 1 <= args.replication_factor <= REPLICATION_FACTOR_MAX:
        raise CommandError(f"--replication-factor must be from 1 to {REPLICATION_FACTOR_MAX}")
    name: str = args.topic
    if "." in name or "_" in name:
        warn(f"{name}: metrics cannot tell '.' from '_' in topic names; keep to one of them")
    try:
        created = await admin.create_topic(
            cluster,
            name,
            partitions=admin.BROKER_DEFAULT if args.partitions is None else args.partitions,
            replication_factor=admin.BROKER_DEFAULT if args.replication_factor is None else args.replication_factor,
            assignment=dict(enumerate(parse_assignment(args.replica_assignment))) if args.replica_assignment else None,
            configs=parse_pairs(args.config, "--config"),
        )
    except ApiError as error:
        if error.code != ErrorCode.TOPIC_ALREADY_EXISTS or not args.if_not_exists:
            raise
        if args.json:
            print_json({"topic": name, "created": False})
        return 0
    if args.json:
        numbers = {"partitions": created.num_partitions, "replication_factor": created.replication_factor}
        print_json({"topic": name, "created": True, "topic_id": format_topic_id(created.topic_id), **numbers})
    else:
        print(f"Created topic {name}.")
    return 0


def parse_assignment(text: str) -> list[list[int]]:
    """`1:2,2:3`: brokers 1 and 2 for the first partition, 2 and 3 for the second."""
    try:
        assignment = [[int(broker) for broker in entry.split(":")] for entry in text.split(",")]
    except ValueError:
        raise CommandError(f"--replica-assignment wants broker:broker,broker:broker, not `{text}`") from None
    for partition, brokers in enumerate(assignment):
        if len(set(brokers)) != len(brokers):
            raise CommandError(f"--replica-assignment: partition {partition} names a broker twice")
        if len(brokers) != len(assignment[0]):
            raise CommandError(
                f"--replica-assignment: partition {partition} has {len(brokers)} replicas and partition 0 has "
                f"{len(assignment[0])}; they must be equal"
            )
    return assignment


async def _list(cluster: Cluster, args: argparse.Namespace) -> int:
    topics = choose_topics(await admin.list_topics(cluster), args.topic, exclude_internal=args.exclude_internal)
    if args.json:
        print_json(
            [
                {
                    "topic": topic.name,
                    "topic_id": format_topic_id(topic.topic_id),
                    "partitions": len(topic.partitions),
                    "internal": topic.internal,
                }
                for topic in topics
            ]
        )
    for topic in [] if args.json else topics:
        print(topic.name)
    return 0


async def _describe(cluster: Cluster, args: argparse.Namespace) -> int:
    topics = await admin.list_topics(cluster)
    wanted_id = _topic_id(args.topic_id)
    if wanted_id != NO_TOPIC_ID:
        chosen = [topic for topic in topics if topic.topic_id == wanted_id]
        sought = f"with id `{args.topic_id}`"
    else:
        chosen = choose_topics(topics, args.topic, exclude_internal=args.exclude_internal)
        sought = f"`{args.topic}`"
    if not chosen and not args.if_exists and (args.topic or wanted_id != NO_TOPIC_ID):
        raise CommandError(f"no topic {sought} exists")
    limit = args.partition_size_limit_per_response or admin.PARTITIONS_PER_ANSWER
    described = await admin.describe_topics(cluster, [topic.name for topic in chosen], partitions_per_answer=limit)
    moves = await _moves(cluster)
    described = [topic_description.with_moves(topic, moves) for topic in described]
    resources = [admin.Resource(admin.ResourceType.TOPIC, topic.name) for topic in described]
    found = await admin.describe_configs(cluster, resources) if resources else {}
    configs = {resource.name: settings for resource, settings in found.items()}
    views = topic_description.select(described, configs, frozenset(cluster.brokers), args)
    if args.json:
        print_json([view.as_json() for view in views])
    for view in [] if args.json else views:
        view.print()
    return 0


async def _moves(cluster: Cluster) -> dict[TopicPartition, replicas.Reassignment]:
    """Moves under way; none where the broker cannot tell, or may not tell us."""
    try:
        return await replicas.list_reassignments(cluster)
    except UnsupportedByBroker:
        return {}
    except ApiError as error:
        if error.code != ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            raise
        return {}


def _topic_id(text: str | None) -> uuid.UUID:
    if text is None:
        return NO_TOPIC_ID
    try:
        return parse_topic_id(text)
    except ValueError:
        raise CommandError(
            f"`{text}` is not a topic id: they look like {format_topic_id(uuid.UUID(int=1 << 120))}"
        ) from None


async def _matching(cluster: Cluster, args: argparse.Namespace) -> list[admin.TopicListing]:
    chosen = choose_topics(await admin.list_topics(cluster), args.topic)
    if not chosen and not args.if_exists:
        raise CommandError(f"no topic `{args.topic}` exists")
    return chosen


async def _alter(cluster: Cluster, args: argparse.Namespace) -> int:
    assignment = parse_assignment(args.replica_assignment) if args.replica_assignment else None
    topics = await _matching(cluster, args)
    for topic in topics:
        added = None if assignment is None else assignment[len(topic.partitions) :]
        await admin.create_partitions(cluster, topic.name, args.partitions, added)
    if args.json:
        print_json([{"topic": topic.name, "partitions": args.partitions} for topic in topics])
    return 0


async def _delete(cluster: Cluster, args: argparse.Namespace) -> int:
    topics = await _matching(cluster, args)
    for topic in topics:
        await admin.delete_topic(cluster, topic.name)
    if args.json:
        print_json([{"topic": topic.name, "deleted": True} for topic in topics])
    return 0


def _explain(error: ApiError, args: argparse.Namespace) -> str:
    hints = {
        ErrorCode.TOPIC_ALREADY_EXISTS: "use --if-not-exists to accept that",
        ErrorCode.INVALID_REPLICATION_FACTOR: "there cannot be more replicas than brokers",
        ErrorCode.INVALID_PARTITIONS: "partitions can be added, never taken away",
    }
    hint = hints.get(error.code)
    text = f"{args.topic or 'topics'}: {in_words(error)}"
    return f"{text} ({hint})" if hint else text
