"""`kafka-replica-verification`: read all copies of partitions and compare them."""

import argparse
import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ottla.cli.admin.replica_comparison import Batch, batches_in, compare
from ottla.cli.common.admin_session import run_admin
from ottla.cli.common.offset_times import parse_time
from ottla.cli.common.options import ToolParser, add_connection_options
from ottla.cli.common.output import CommandError, print_json
from ottla.cli.common.topic_filter import choose_topics
from ottla.client import admin, offsets
from ottla.client.cluster import Cluster, error_code
from ottla.client.errors import ClientError
from ottla.client.offsets import FoundOffset
from ottla.model.error_words import in_words
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import TopicPartition, by_topic
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic

FETCH_BYTES = 1024 * 1024
WAIT_MS = 1_000
REPORT_MS = 30_000
_FOLLOWERS_ANSWER_FROM = 11
_BY_NAME_UP_TO = 12

EXAMPLES = """
  %(prog)s --topics-include 'news|mail' --time -2 --once     compare all that is there now, then stop
  %(prog)s --topics-include '.*'                             go on comparing what comes, report every 30 s

  Compacted topics may differ between replicas without harm: each broker compacts by itself.
"""


def main(argv: Sequence[str] | None = None, prog: str = "ottla replica-verification") -> int:
    parser = ToolParser(prog, "Read all copies of partitions and tell where they differ.", EXAMPLES)
    parser.add_argument("--topics-include", default=".*", metavar="REGEX", help="topics to look at (default: all)")
    parser.add_argument("--topic-white-list", dest="topics_include", metavar="REGEX", help=argparse.SUPPRESS)
    parser.add_argument(
        "--time", default="-1", metavar="TIME", help="where to begin: -1 at the end, -2 at the start, or a time in ms"
    )
    parser.add_argument("--fetch-size", type=int, default=FETCH_BYTES, metavar="BYTES", help="bytes of each fetch")
    parser.add_argument("--max-wait-ms", type=int, default=WAIT_MS, metavar="MS", help="longest wait of each fetch")
    parser.add_argument(
        "--report-interval-ms", type=int, default=REPORT_MS, metavar="MS", help=f"how often to report ({REPORT_MS})"
    )
    parser.add_argument(
        "--once", action="store_true", help="stop when what was there at the start is compared; exit 1 if copies differ"
    )
    add_connection_options(parser)
    args = parser.parse(argv)
    if args.fetch_size < 1 or args.max_wait_ms < 0 or args.report_interval_ms < 1:
        parser.error("--fetch-size and --report-interval-ms must be at least 1, --max-wait-ms at least 0")
    try:
        return run_admin(args, lambda cluster: _verify(cluster, args, parse_time(args.time)))
    except ApiError as error:
        raise CommandError(in_words(error)) from error


class _Copy(NamedTuple):
    """What one broker said about its copy of a partition."""

    batches: list[Batch]
    high_watermark: int
    error: ErrorCode | None = None


class _Verification:
    """How far each partition is compared, and what differed."""

    def __init__(
        self, replicas: Mapping[TopicPartition, list[int]], start: Mapping[TopicPartition, int], as_json: bool
    ) -> None:
        self.replicas = replicas
        self.offsets = dict(start)
        self.lags = dict.fromkeys(replicas, 0)
        self.differences = 0
        self._as_json = as_json
        self._unreadable: set[tuple[TopicPartition, int]] = set()

    @property
    def equal(self) -> bool:
        """Whether every copy could be read and none differed."""
        return not self.differences and not self._unreadable

    def take(self, partition: TopicPartition, copies: Mapping[int, _Copy]) -> None:
        for broker, copy in copies.items():
            if copy.error is None:
                self._unreadable.discard((partition, broker))
            elif (partition, broker) not in self._unreadable:
                self._unreadable.add((partition, broker))
                self._tell(partition, f"broker {broker} cannot be read: {in_words(copy.error)}")
        readable = {broker: copy for broker, copy in copies.items() if copy.error is None}
        if not readable:
            return
        marks = [copy.high_watermark for copy in readable.values()]
        self.lags[partition] = max(marks) - min(marks)
        common = min(marks)
        result = compare(
            self.offsets[partition],
            {broker: [b for b in copy.batches if b.last < common] for broker, copy in readable.items()},
        )
        self.offsets[partition] = result.next_offset
        for problem in result.problems:
            self.differences += 1
            self._tell(partition, problem)

    def report(self) -> None:
        worst = max(self.lags, key=lambda partition: self.lags[partition])
        if self._as_json:
            print_json({"max_lag": self.lags[worst], "partition": str(worst), "differences": self.differences})
        else:
            print(
                f"{_now()}: max lag is {self.lags[worst]} for partition {worst} at offset {self.offsets[worst]} among "
                f"{len(self.lags)} partitions",
                flush=True,
            )

    def _tell(self, partition: TopicPartition, problem: str) -> None:
        if self._as_json:
            print_json({**partition._asdict(), "problem": problem})
        else:
            print(f"{_now()}: partition {partition}: {problem}", flush=True)


async def _verify(cluster: Cluster, args: argparse.Namespace, timestamp: int) -> int:
    topics = choose_topics(await admin.list_topics(cluster), args.topics_include)
    described = await admin.describe_topics(cluster, [topic.name for topic in topics])
    replicas = {
        TopicPartition(topic.name, found.partition): found.replicas for topic in described for found in topic.partitions
    }
    if not replicas:
        raise CommandError(f"no topic matches `{args.topics_include}`")
    start = await _offsets(cluster, replicas, timestamp)
    ends = await _offsets(cluster, replicas, offsets.LATEST)
    verification = _Verification({p: replicas[p] for p in start}, start, args.json)
    if not args.json:
        print(f"{_now()}: verification process is started.", flush=True)
    reported = time.monotonic()
    while True:
        await _round(cluster, verification, args)
        done = args.once and all(verification.offsets[partition] >= ends[partition] for partition in start)
        if done or time.monotonic() - reported >= args.report_interval_ms / 1000:
            verification.report()
            reported = time.monotonic()
        if done:
            return 0 if verification.equal else 1


async def _offsets(
    cluster: Cluster, partitions: Mapping[TopicPartition, object], timestamp: int
) -> dict[TopicPartition, int]:
    found = await offsets.list_offsets(cluster, dict.fromkeys(partitions, timestamp))
    failed = [(partition, result) for partition, result in found.items() if isinstance(result, ErrorCode)]
    if failed:
        raise CommandError(f"{failed[0][0]}: {in_words(failed[0][1])}")
    known = {p: r.offset for p, r in found.items() if isinstance(r, FoundOffset) and r.offset is not None}
    beyond = [partition for partition in partitions if partition not in known]  # no record is as young as that
    if beyond:
        known |= await _offsets(cluster, dict.fromkeys(beyond), offsets.LATEST)
    return known


async def _round(cluster: Cluster, verification: _Verification, args: argparse.Namespace) -> None:
    """Read every copy once from where its partition is."""
    by_broker: dict[int, list[TopicPartition]] = {}
    for partition, brokers in verification.replicas.items():
        for broker in brokers:
            by_broker.setdefault(broker, []).append(partition)
    answers = await asyncio.gather(
        *(_read(cluster, broker, group, verification.offsets, args) for broker, group in sorted(by_broker.items()))
    )
    copies: dict[TopicPartition, dict[int, _Copy]] = {}
    for broker, answer in zip(sorted(by_broker), answers, strict=True):
        for partition, copy in answer.items():
            copies.setdefault(partition, {})[broker] = copy
    for partition, found in sorted(copies.items()):
        verification.take(partition, found)


async def _read(
    cluster: Cluster,
    broker: int,
    partitions: Sequence[TopicPartition],
    positions: Mapping[TopicPartition, int],
    args: argparse.Namespace,
) -> dict[TopicPartition, _Copy]:
    request = FetchRequest(
        max_wait_ms=args.max_wait_ms,
        min_bytes=1,
        max_bytes=max(args.fetch_size * len(partitions), args.fetch_size),
        session_epoch=-1,
        topics=[
            FetchTopic(
                topic=topic,
                partitions=[
                    FetchPartition(
                        partition=number,
                        fetch_offset=positions[TopicPartition(topic, number)],
                        partition_max_bytes=args.fetch_size,
                    )
                    for number in numbers
                ],
            )
            for topic, numbers in by_topic(partitions).items()
        ],
    )
    try:
        response = await cluster.call(
            request, FetchResponse, node=broker, min_version=_FOLLOWERS_ANSWER_FROM, max_version=_BY_NAME_UP_TO
        )
    except (ClientError, ApiError):
        await asyncio.sleep(args.max_wait_ms / 1000)
        return {partition: _Copy([], 0, ErrorCode.BROKER_NOT_AVAILABLE) for partition in partitions}
    copies: dict[TopicPartition, _Copy] = {}
    for topic in response.responses:
        for found in topic.partitions:
            error = error_code(found.error_code) if found.error_code else None
            copies[TopicPartition(topic.topic, found.partition_index)] = _Copy(
                batches_in(found.records or b""), found.high_watermark, error
            )
    return copies


def _now() -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S")
