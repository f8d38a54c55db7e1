"""`kafka-get-offsets`: offsets of partitions at their ends or at a time, one `topic:partition:offset` a line."""

import argparse
import re
from collections.abc import Callable, Sequence

from ottla.cli.common.admin_session import run_admin
from ottla.cli.common.offset_times import TIMES, parse_time
from ottla.cli.common.options import ToolParser, add_connection_options
from ottla.cli.common.output import CommandError, print_json, warn
from ottla.cli.common.topic_filter import TopicPattern, choose_topics
from ottla.client import admin, offsets
from ottla.client.cluster import Cluster
from ottla.client.offsets import FoundOffset
from ottla.model.error_words import in_words
from ottla.model.errors import ErrorCode
from ottla.model.names import TopicPartition

EXAMPLES = """
  %(prog)s --topic news
  %(prog)s --topic news --time earliest
  %(prog)s --topic news --time 1767225600000
  %(prog)s --topic-partitions 'news:0-3,mail.*:2'
"""

Choice = Callable[[TopicPartition], bool]


def main(argv: Sequence[str] | None = None, prog: str = "ottla get-offsets") -> int:
    parser = ToolParser(prog, "Print offsets of partitions, as topic:partition:offset.", EXAMPLES)
    parser.add_argument("--topic", metavar="TOPIC", help="a topic, or a regular expression (default: all)")
    parser.add_argument("--partitions", metavar="P,P", help="only these partitions")
    parser.add_argument(
        "--topic-partitions",
        metavar="TOPIC:P,...",
        help="topics with partitions: a number, 2-5 (without 5), 2- or -5; in place of --topic and --partitions",
    )
    parser.add_argument(
        "--time",
        default="latest",
        metavar="TIME",
        help=f"a timestamp in ms, or {', '.join(f'{name} ({n})' for name, n in TIMES.items())} (default: latest)",
    )
    parser.add_argument("--exclude-internal-topics", action="store_true", help="leave out internal topics")
    parser.add_argument("--offsets", metavar="N", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--max-wait-ms", metavar="MS", type=int, help=argparse.SUPPRESS)
    add_connection_options(parser)
    args = parser.parse(argv)
    if args.topic_partitions and (args.topic or args.partitions):
        parser.error("--topic-partitions takes the place of --topic and --partitions")
    if args.offsets not in (None, 1) or args.max_wait_ms is not None:
        parser.error("--offsets and --max-wait-ms belonged to another request; one offset per partition is printed")
    timestamp = parse_time(args.time)
    choice = parse_rules(args.topic_partitions) if args.topic_partitions else _choice(args.topic, args.partitions)
    return run_admin(args, lambda cluster: _print_offsets(cluster, args, choice, timestamp))


async def _print_offsets(cluster: Cluster, args: argparse.Namespace, choice: Choice, timestamp: int) -> int:
    topics = choose_topics(await admin.list_topics(cluster), None, exclude_internal=args.exclude_internal_topics)
    chosen = [
        partition
        for topic in topics
        for partition in (TopicPartition(topic.name, number) for number in topic.partitions)
        if choice(partition)
    ]
    if not chosen:
        raise CommandError("no partition matches; `ottla topics --describe` shows what there is")
    found = await offsets.list_offsets(cluster, dict.fromkeys(chosen, timestamp))
    failed = False
    documents: list[dict[str, object]] = []
    for partition, result in sorted(found.items()):
        if isinstance(result, ErrorCode):
            warn(f"{partition} is left out: {in_words(result)}")
            failed = True
        elif result.offset is not None:
            documents.append(_document(partition, result))
            if not args.json:
                print(f"{partition.topic}:{partition.partition}:{result.offset}")
    if args.json:
        print_json(documents)
    return 1 if failed and not documents else 0


def _document(partition: TopicPartition, found: FoundOffset) -> dict[str, object]:
    return {
        **partition._asdict(),
        "offset": found.offset,
        "timestamp": found.timestamp if found.timestamp >= 0 else None,
    }


def _choice(topic: str | None, partitions: str | None) -> Choice:
    pattern = TopicPattern(topic) if topic else None
    try:
        numbers = {int(number) for number in partitions.split(",")} if partitions else None
    except ValueError:
        raise CommandError(f"--partitions wants numbers such as 0,1,2; not `{partitions}`") from None
    return lambda tp: (pattern is None or pattern.matches(tp.topic)) and (numbers is None or tp.partition in numbers)


_RULE = re.compile(r"(?P<topic>[^:,]*)(?::(?:(?P<one>\d+)|(?P<low>\d*)-(?P<high>\d*))?)?")


def parse_rules(text: str) -> Choice:
    """`news:0,mail.*:2-5,:7-`: a partition is wanted if any rule takes it."""
    rules = [_rule(rule) for rule in text.split(",")]
    return lambda tp: any(rule(tp) for rule in rules)


def _rule(text: str) -> Choice:
    match = _RULE.fullmatch(text.strip())
    if match is None:
        raise CommandError(
            f"--topic-partitions: `{text}` does not read topic:partition, topic:2-5, topic:2- or topic:-5"
        )
    pattern = TopicPattern(match["topic"] or ".*")
    if match["one"]:
        low, high = int(match["one"]), int(match["one"]) + 1
    else:
        low = int(match["low"] or 0)
        high = int(match["high"]) if match["high"] else 1 << 31
    return lambda tp: pattern.matches(tp.topic) and low <= tp.partition < high
