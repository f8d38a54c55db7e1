"""`consumer-perf-test`: how fast records can be consumed."""

import argparse
import random
import sys
import time
from collections.abc import Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, TopicPartition

from ottla.cli.common.options import ToolParser, add_connection_options, bootstrap_of
from ottla.cli.common.output import CommandError, print_json
from ottla.cli.data.broker_presence import Patience, await_broker
from ottla.cli.data.client_metrics import Metrics
from ottla.cli.data.client_properties import consumer_settings, load_properties
from ottla.cli.data.java_dates import DEFAULT_PATTERN, DatePattern
from ottla.cli.data.kafka_clients import (
    POLL_S,
    ErrorReporter,
    StopRequest,
    hiding_internal_topics,
    in_words,
    open_consumer,
    stop_on_signals,
    subscribe,
)
from ottla.cli.data.latency_stats import MB

EXAMPLES = """\
  ottla consumer-perf-test --topic load --num-records 1000000
  ottla consumer-perf-test --include 'load.*' --num-records 100000 --group perf --timeout 5000 --hide-header
  ottla consumer-perf-test --topic load --num-records 1000000 --show-detailed-stats --reporting-interval 1000
"""
CHUNK = 10_000
"""Records taken from librdkafka in one call. It waits for so many, or for a poll's time."""
_FIELDS = "data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec"
_MORE_FIELDS = "rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"


def main(argv: Sequence[str] | None = None, prog: str = "ottla consumer-perf-test") -> int:
    args = _parser(prog).parse(argv)
    _check(args)
    pattern = DatePattern(args.date_format)
    properties = _properties(args)
    settings = consumer_settings(properties)
    if args.include is not None:
        settings = hiding_internal_topics(settings)
    metrics = Metrics("consumer") if args.print_metrics else None
    if not args.hide_header and not args.json:
        first = "time, threadId" if args.show_detailed_stats else "start.time, end.time"
        print(f"{first}, {_FIELDS}, {_MORE_FIELDS}", flush=True)
    with stop_on_signals() as stop:
        if not await_broker(properties, Patience(args.timeout / 1000, "--timeout"), lambda: stop):
            return stop.exit_code
        consumer, reporter = open_consumer(settings, **(metrics.settings if metrics else {}))
        test = _Test(consumer, reporter, args, pattern, stop)
        try:
            test.run()
            if metrics is not None:
                metrics.wait_for_last(consumer.poll)
        finally:
            consumer.close()
        test.print_totals()
        if metrics is not None:
            print("\n".join(metrics.lines()))
        return stop.exit_code


def _parser(prog: str) -> ToolParser:
    parser = ToolParser(prog, "Measures how fast records can be consumed.", EXAMPLES)
    parser.add_argument("--topic", help="the topic to read")
    parser.add_argument("--include", metavar="REGEX", help="read every topic whose name matches")
    parser.add_argument("--num-records", "--messages", type=int, metavar="N", help="how many records to read")
    parser.add_argument("--group", metavar="ID", help="the consumer group (default: perf-consumer-NNNNN)")
    parser.add_argument("--fetch-size", type=int, default=1024 * 1024, metavar="BYTES",
                        help="most bytes of a partition in one answer (default: 1048576)")  # fmt: skip
    parser.add_argument("--socket-buffer-size", type=int, default=2 * 1024 * 1024, metavar="BYTES",
                        help="size of the socket's receive buffer (default: 2097152)")  # fmt: skip
    parser.add_argument("--from-latest", action="store_true",
                        help="where the group has no offset, start at the end, not at the beginning")  # fmt: skip
    parser.add_argument("--timeout", type=int, nargs="?", const=10_000, default=10_000, metavar="MS",
                        help="end when no record came for so long (default: 10000)")  # fmt: skip
    parser.add_argument("--show-detailed-stats", action="store_true", help="a line for each interval")
    parser.add_argument("--reporting-interval", type=int, default=5000, metavar="MS",
                        help="length of an interval (default: 5000)")  # fmt: skip
    parser.add_argument("--date-format", default=DEFAULT_PATTERN, metavar="PATTERN",
                        help="how times are written, as Java's SimpleDateFormat says")  # fmt: skip
    parser.add_argument("--hide-header", action="store_true", help="leave the first line out")
    parser.add_argument("--print-metrics", action="store_true", help="print the client's own figures at the end")
    parser.add_argument("--command-property", action="append", default=[], metavar="KEY=VALUE",
                        help="a setting of the consumer, such as fetch.min.bytes=100000")  # fmt: skip
    parser.add_argument("--consumer.config", dest="consumer_config", metavar="FILE",
                        help="older name of --command-config")  # fmt: skip
    parser.add_argument("--threads", "--num-fetch-threads", type=int, metavar="N",
                        help="from old command lines; there is one consumer, as in Kafka since 2.0")  # fmt: skip
    add_connection_options(parser)
    return parser


def _check(args: argparse.Namespace) -> None:
    if (args.topic is None) == (args.include is None):
        raise CommandError("give either --topic or --include")
    if args.num_records is None:
        raise CommandError("--num-records says how many records to read; it is missing")
    if args.reporting_interval <= 0:
        raise CommandError("the reporting interval must be greater than 0")


def _properties(args: argparse.Namespace) -> dict[str, str]:
    properties = load_properties(args, ["command-config", "consumer.config"], [])
    number = random.randrange(100_000)  # noqa: S311 - a name, not a secret
    properties |= {
        "bootstrap.servers": bootstrap_of(args),
        "group.id": args.group or f"perf-consumer-{number}",
        "receive.buffer.bytes": str(args.socket_buffer_size),
        "max.partition.fetch.bytes": str(args.fetch_size),
        "auto.offset.reset": "latest" if args.from_latest else "earliest",
    }
    properties.setdefault("check.crcs", "false")
    properties.setdefault("client.id", "perf-consumer-client")
    return properties | load_properties(args, [], ["command-property"])


class _Rebalances:
    """Time spent without any partition: from the start or the loss of the last one to the next assignment."""

    def __init__(self, started: float) -> None:
        self._waiting_since: float | None = started
        self._held: set[tuple[str, int]] = set()
        self.total_s = 0.0
        self.in_window_s = 0.0

    def assigned(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if self._waiting_since is not None:
            waited = time.time() - self._waiting_since
            self.total_s += waited
            self.in_window_s += waited
            self._waiting_since = None
        self._held |= {(partition.topic, partition.partition) for partition in partitions}

    def revoked(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._held -= {(partition.topic, partition.partition) for partition in partitions}
        if not self._held:
            self._waiting_since = time.time()


class _Test:
    def __init__(
        self,
        consumer: Consumer,
        reporter: ErrorReporter,
        args: argparse.Namespace,
        pattern: DatePattern,
        stop: StopRequest,
    ) -> None:
        self._consumer = consumer
        self._reporter = reporter
        self._args = args
        self._date = pattern
        self._stop = stop
        self._started = time.time()
        self._ended = self._started
        self._rebalances = _Rebalances(self._started)
        self._records = 0
        self._bytes = 0
        self._window = (self._started, 0, 0)

    def run(self) -> None:
        args, goal = self._args, self._args.num_records
        subscribe(
            self._consumer, topic=args.topic, include=args.include,
            on_assign=self._rebalances.assigned, on_revoke=self._rebalances.revoked,
        )  # fmt: skip
        now = last_record = time.time()
        while self._records < goal and (now - last_record) * 1000 <= args.timeout and not self._stop:
            records = self._consumer.consume(min(CHUNK, goal - self._records), timeout=POLL_S)
            now = time.time()
            if self._count(records):
                last_record = now
            if (now - self._window[0]) * 1000 >= args.reporting_interval:
                self._report(now)
        self._ended = now
        if self._records < goal and not self._stop:
            print(
                "WARNING: Exiting before consuming the expected number of records: timeout "
                f"({args.timeout} ms) exceeded. You can use the --timeout option to increase the timeout.",
                file=sys.stderr if args.json else sys.stdout,
            )

    def _count(self, records: list[Any]) -> int:
        good = 0
        for record in records:
            error = record.error()
            if error is not None:
                self._failure(error)
                continue
            good += 1
            key = record.key()
            # The length of a record is its value's.
            self._bytes += len(record) if key is None else len(record) + len(key)
        self._records += good
        if self._reporter.fatal is not None:
            raise CommandError(in_words(self._reporter.fatal))
        return good

    def _failure(self, error: KafkaError) -> None:
        passing = error.retriable() or error.code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC)
        if error.fatal() or not passing:
            raise CommandError(in_words(error))
        self._reporter(error)

    def _report(self, now: float) -> None:
        began, records_before, bytes_before = self._window
        if self._args.show_detailed_stats and not self._args.json:
            rebalance_ms = int(self._rebalances.in_window_s * 1000)
            row = _row(self._bytes - bytes_before, self._records - records_before, now - began, rebalance_ms)
            total_mb = self._bytes / MB
            print(
                f"{self._date.format(now)}, 0, {total_mb:.4f}, {row['MB.sec']:.4f}, {self._records}, "
                f"{row['nMsg.sec']:.4f}, {_tail(row)}",
                flush=True,
            )
        self._rebalances.in_window_s = 0.0
        self._window = (now, self._records, self._bytes)

    def print_totals(self) -> None:
        rebalance_ms = int(self._rebalances.total_s * 1000)
        row = _row(self._bytes, self._records, self._ended - self._started, rebalance_ms)
        start, end = self._date.format(self._started), self._date.format(self._ended)
        if self._args.json:
            print_json({"start.time": start, "end.time": end} | row)
        elif not self._args.show_detailed_stats:
            print(
                f"{start}, {end}, {row['data.consumed.in.MB']:.4f}, {row['MB.sec']:.4f}, {self._records}, "
                f"{row['nMsg.sec']:.4f}, {_tail(row)}"
            )


def _row(size: int, records: int, seconds: float, rebalance_ms: int) -> dict[str, float]:
    """The figures of a span of time; those of fetching leave out the time without partitions."""
    fetch_ms = int(seconds * 1000) - rebalance_ms
    per_second = 1 / seconds if seconds > 0 else 0.0
    per_fetch_second = 1000 / fetch_ms if fetch_ms > 0 else 0.0
    megabytes = size / MB
    return {
        "data.consumed.in.MB": megabytes,
        "MB.sec": megabytes * per_second,
        "data.consumed.in.nMsg": records,
        "nMsg.sec": records * per_second,
        "rebalance.time.ms": rebalance_ms,
        "fetch.time.ms": fetch_ms,
        "fetch.MB.sec": megabytes * per_fetch_second,
        "fetch.nMsg.sec": records * per_fetch_second,
    }


def _tail(row: dict[str, float]) -> str:
    return (
        f"{row['rebalance.time.ms']:.0f}, {row['fetch.time.ms']:.0f}, {row['fetch.MB.sec']:.4f}, "
        f"{row['fetch.nMsg.sec']:.4f}"
    )
