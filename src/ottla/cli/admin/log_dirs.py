"""`kafka-log-dirs`: how much disk the partitions of each broker use."""

import argparse
from collections.abc import Sequence

from ottla.cli.common.admin_session import run_admin
from ottla.cli.common.options import ToolParser, add_connection_options
from ottla.cli.common.output import CommandError, print_json
from ottla.client import admin
from ottla.client.cluster import Cluster, error_code
from ottla.model.error_words import in_words
from ottla.model.names import TopicPartition
from ottla.protocol.messages.describe_log_dirs import DescribeLogDirsResult

FORMAT_VERSION = 1

EXAMPLES = """
  %(prog)s --describe
  %(prog)s --describe --topic-list news,mail --broker-list 1
  %(prog)s --describe --json | python -m json.tool
"""


def main(argv: Sequence[str] | None = None, prog: str = "ottla log-dirs") -> int:
    parser = ToolParser(prog, "Show how much disk the partitions of each broker use, as JSON.", EXAMPLES)
    parser.add_argument("--describe", action="store_true", help="the one action there is")
    parser.add_argument("--topic-list", default="", metavar="TOPIC,...", help="only these topics")
    add_connection_options(parser, broker_list="ids")
    args = parser.parse(argv)
    if not args.describe:
        parser.error("--describe is missing")
    try:
        brokers = [int(number) for number in (args.broker_ids or "").split(",") if number.strip()]
    except ValueError:
        parser.error(f"--broker-list wants broker ids such as 1,2,3; not `{args.broker_ids}`")
    topics = frozenset(topic.strip() for topic in args.topic_list.split(",") if topic.strip())
    return run_admin(args, lambda cluster: _describe(cluster, args, brokers, topics))


async def _describe(cluster: Cluster, args: argparse.Namespace, wanted: list[int], topics: frozenset[str]) -> int:
    await cluster.metadata([])
    unknown = sorted(set(wanted) - set(cluster.brokers))
    if unknown:
        there = ", ".join(str(node) for node in sorted(cluster.brokers))
        raise CommandError(f"--broker-list: there is no broker {unknown[0]}; the brokers are {there}")
    nodes = sorted(set(wanted)) or sorted(cluster.brokers)
    if not args.json:
        print("Querying brokers for log directories information")
    found = {node: await admin.describe_log_dirs(cluster, node) for node in nodes}
    if not args.json:
        print(f"Received log directory information from brokers {','.join(str(node) for node in nodes)}")
    # The answer is JSON in any case, in the shape that scripts know.
    print_json(
        {
            "brokers": [
                {"broker": node, "logDirs": [_directory(directory, topics) for directory in directories]}
                for node, directories in found.items()
            ],
            "version": FORMAT_VERSION,
        }
    )
    return 0


def _directory(directory: DescribeLogDirsResult, topics: frozenset[str]) -> dict[str, object]:
    return {
        "logDir": directory.log_dir,
        "error": in_words(error_code(directory.error_code)) if directory.error_code else None,
        "totalBytes": directory.total_bytes if directory.total_bytes >= 0 else None,
        "usableBytes": directory.usable_bytes if directory.usable_bytes >= 0 else None,
        "partitions": [
            {
                "partition": str(TopicPartition(topic.name, partition.partition_index)),
                "size": partition.partition_size,
                "offsetLag": partition.offset_lag,
                "isFuture": partition.is_future_key,
            }
            for topic in sorted(directory.topics, key=lambda topic: topic.name)
            if not topics or topic.name in topics
            for partition in sorted(topic.partitions, key=lambda partition: partition.partition_index)
        ],
    }
