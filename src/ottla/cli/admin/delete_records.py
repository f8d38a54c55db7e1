"""`kafka-delete-records`: drop the records of partitions below an offset."""

import argparse
import json
from collections.abc import Sequence

from ottla.cli.common.admin_session import run_admin
from ottla.cli.common.options import ToolParser, add_connection_options, read_text
from ottla.cli.common.output import CommandError, print_json
from ottla.client import offsets
from ottla.client.cluster import Cluster
from ottla.model.error_words import in_words
from ottla.model.errors import ErrorCode
from ottla.model.names import TopicPartition

FORMAT_VERSION = 1

EXAMPLES = """
  %(prog)s --offset-json-file offsets.json

  where offsets.json says which records go: those before offset 100 of news-0, and all that news-1 has now
  {"partitions": [{"topic": "news", "partition": 0, "offset": 100},
                  {"topic": "news", "partition": 1, "offset": -1}], "version": 1}
"""


def main(argv: Sequence[str] | None = None, prog: str = "ottla delete-records") -> int:
    parser = ToolParser(prog, "Drop the records of partitions below an offset. They do not come back.", EXAMPLES)
    parser.add_argument(
        "--offset-json-file", required=True, metavar="FILE", help="JSON file with an offset per partition"
    )
    add_connection_options(parser)
    args = parser.parse(argv)
    before = parse_offsets(read_text(args.offset_json_file))
    return run_admin(args, lambda cluster: _delete(cluster, before, args))


async def _delete(cluster: Cluster, before: dict[TopicPartition, int], args: argparse.Namespace) -> int:
    if not args.json:
        print("Executing records delete operation")
    results = await offsets.delete_records(cluster, before)
    failed = any(isinstance(result, ErrorCode) for result in results.values())
    if args.json:
        print_json(
            [
                {**partition._asdict(), "error": in_words(result)}
                if isinstance(result, ErrorCode)
                else {**partition._asdict(), "low_watermark": result.offset}
                for partition, result in sorted(results.items())
            ]
        )
        return 1 if failed else 0
    print("Records delete operation completed:")
    for partition, result in sorted(results.items()):
        if isinstance(result, ErrorCode):
            print(f"partition: {partition}\terror: {in_words(result)}")
        else:
            print(f"partition: {partition}\tlow_watermark: {result.offset}")
    return 1 if failed else 0


def parse_offsets(text: str) -> dict[TopicPartition, int]:
    """The offset per partition that the file asks for."""
    shape = '{"partitions": [{"topic": "news", "partition": 0, "offset": 100}], "version": 1}'
    before: dict[TopicPartition, int] = {}
    try:
        document = json.loads(text)
        version = document.get("version", FORMAT_VERSION)
        entries = [
            (TopicPartition(str(entry["topic"]), int(entry["partition"])), int(entry["offset"]))
            for entry in document["partitions"]
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CommandError(f"the file must read like {shape} ({type(error).__name__}: {error})") from None
    if version != FORMAT_VERSION:
        raise CommandError(f"the file has version {version}, and {FORMAT_VERSION} is the one there is")
    for partition, offset in entries:
        if partition in before:
            raise CommandError(f"the file names {partition} twice")
        before[partition] = offset
    return before
