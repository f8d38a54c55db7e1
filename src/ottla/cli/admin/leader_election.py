"""`kafka-leader-election`: give leadership to the preferred replicas, or to any that is left."""

import argparse
import json
from collections.abc import Mapping, Sequence

from ottla.cli.common.admin_session import run_admin
from ottla.cli.common.options import ToolParser, add_connection_options, read_text
from ottla.cli.common.output import CommandError, complain, print_json
from ottla.client import replicas
from ottla.client.cluster import Cluster
from ottla.client.replicas import ElectionType
from ottla.model.error_words import in_words
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import TopicPartition

SHAPE = '{"partitions": [{"topic": "news", "partition": 0}]}'

EXAMPLES = """
  %(prog)s --election-type preferred --all-topic-partitions       first replicas that are in sync lead again
  %(prog)s --election-type preferred --topic news --partition 0
  %(prog)s --election-type preferred --path-to-json-file partitions.json
  %(prog)s --election-type unclean --topic news --partition 0     a partition lost all replicas that were in sync:
                                                                  one that is behind leads, and what it lacks is lost

  partitions.json: {"partitions": [{"topic": "news", "partition": 0}, {"topic": "news", "partition": 1}]}
"""


def main(argv: Sequence[str] | None = None, prog: str = "ottla leader-election") -> int:
    parser = ToolParser(prog, "Elect the leaders of partitions.", EXAMPLES)
    parser.add_argument(
        "--election-type",
        required=True,
        metavar="TYPE",
        help="preferred: the first replica, if it is in sync; unclean: any replica, where none in sync is left",
    )
    which = parser.add_argument_group("partitions (exactly one way)")
    which.add_argument("--all-topic-partitions", action="store_true", help="all partitions of all topics")
    which.add_argument("--topic", metavar="NAME", help="a topic, with --partition")
    which.add_argument("--path-to-json-file", metavar="FILE", help="a file with partitions")
    parser.add_argument("--partition", type=int, metavar="N", help="the partition of --topic")
    parser.add_argument("--admin.config", dest="admin_config", metavar="FILE", help=argparse.SUPPRESS)
    add_connection_options(parser)
    args = parser.parse(argv)
    if args.admin_config:
        args.command_config = args.command_config or args.admin_config
    kind = _kind(parser, args.election_type)
    partitions = _partitions(parser, args)
    try:
        return run_admin(args, lambda cluster: _elect(cluster, kind, partitions, as_json=args.json))
    except ApiError as error:
        raise CommandError(in_words(error)) from error


def _kind(parser: ToolParser, text: str) -> ElectionType:
    try:
        return ElectionType[text.upper()]
    except KeyError:
        parser.error(f"--election-type is preferred or unclean, not `{text}`")


def _partitions(parser: ToolParser, args: argparse.Namespace) -> list[TopicPartition] | None:
    ways = [args.all_topic_partitions, args.topic is not None, args.path_to_json_file is not None]
    if sum(ways) != 1:
        parser.error("give exactly one of --all-topic-partitions, --topic and --path-to-json-file")
    if (args.topic is None) != (args.partition is None):
        parser.error("--topic and --partition go together")
    if args.topic is not None:
        return [TopicPartition(args.topic, args.partition)]
    return parse_partitions(read_text(args.path_to_json_file)) if args.path_to_json_file else None


def parse_partitions(text: str) -> list[TopicPartition]:
    """The partitions in a --path-to-json-file."""
    try:
        named = [TopicPartition(str(each["topic"]), int(each["partition"])) for each in json.loads(text)["partitions"]]
    except (ValueError, KeyError, TypeError) as error:
        raise CommandError(f"the file must read like {SHAPE} ({type(error).__name__}: {error})") from None
    twice = sorted({str(partition) for partition in named if named.count(partition) > 1})
    if twice:
        raise CommandError(f"the file names partitions twice: {', '.join(twice)}")
    if not named:
        raise CommandError("the file names no partition")
    return named


async def _elect(
    cluster: Cluster, kind: ElectionType, partitions: list[TopicPartition] | None, *, as_json: bool
) -> int:
    results = await replicas.elect_leaders(cluster, kind, partitions)
    unneeded = [p for p, error in results.items() if error and error.code == ErrorCode.ELECTION_NOT_NEEDED]
    failed = {p: error for p, error in results.items() if error is not None and p not in unneeded}
    if as_json:
        print_json([{**p._asdict(), **_as_json(error)} for p, error in sorted(results.items())])
        return 1 if failed else 0
    _print(kind, [p for p, error in results.items() if error is None], unneeded, failed)
    return 1 if failed else 0


def _as_json(error: ApiError | None) -> dict[str, object]:
    needed = error is None or error.code != ErrorCode.ELECTION_NOT_NEEDED
    return {"elected": error is None, "error": in_words(error) if error is not None and needed else None}


def _print(
    kind: ElectionType,
    elected: list[TopicPartition],
    unneeded: list[TopicPartition],
    failed: Mapping[TopicPartition, ApiError],
) -> None:
    if elected:
        print(f"Successfully completed leader election ({kind.name}) for partitions {_names(elected)}")
    if unneeded:
        print(f"Valid replica already elected for partitions {_names(unneeded)}")
    for partition, error in sorted(failed.items()):
        complain(f"no leader election ({kind.name}) for partition {partition}: {in_words(error)}")
    if not (elected or unneeded or failed):
        print("Every partition is led as it should be: there was nothing to elect.")


def _names(partitions: list[TopicPartition]) -> str:
    return ", ".join(str(partition) for partition in sorted(partitions))
