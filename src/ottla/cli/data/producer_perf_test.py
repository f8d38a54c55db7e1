"""`producer-perf-test`: how fast records can be produced, and how long each takes to be acknowledged."""

import argparse
import random
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from ottla.cli.common.options import ToolParser, add_connection_options, bootstrap_of
from ottla.cli.common.output import CommandError, complain, print_json, warn
from ottla.cli.data import perf_transactions
from ottla.cli.data.broker_presence import Patience, await_broker
from ottla.cli.data.client_metrics import Metrics
from ottla.cli.data.client_properties import load_properties, producer_settings
from ottla.cli.data.kafka_clients import (
    POLL_S,
    StopRequest,
    error_of,
    flush_all,
    in_words,
    open_producer,
    stop_on_signals,
)
from ottla.cli.data.latency_stats import LatencyStats, Summary
from ottla.cli.data.perf_transactions import Transactions
from ottla.cli.data.throttle import Throttle

EXAMPLES = """\
  ottla producer-perf-test --topic load --num-records 1000000 --record-size 100 --throughput -1
  ottla producer-perf-test --topic load --num-records 60000 --record-size 1000 --throughput 1000 \\
      --command-property acks=all linger.ms=10 batch.size=65536 --warmup-records 5000
  ottla producer-perf-test --topic load --num-records 1000 --payload-file lines.txt --throughput -1 --print-metrics
  kafka-run-class.sh org.apache.kafka.tools.ProducerPerformance --topic=load --num-records=1000 \\
      --throughput=100 --record-size=100 --producer-props bootstrap.servers=localhost:9092 acks=all
"""
CHUNK = 500
"""Records handed to librdkafka in one call: enough to make the call cheap, few enough to keep its timing honest."""
RANDOM_BLOCK_BYTES = 4 * 1024 * 1024
_LETTERS = bytes(65 + value % 26 for value in range(256))

Payloads = Iterator[bytes]


def main(argv: Sequence[str] | None = None, prog: str = "ottla producer-perf-test") -> int:
    args = _parser(prog).parse(argv)
    _check(args)
    properties = load_properties(args, ["command-config", "producer.config"], ["command-property", "producer-props"])
    if args.bootstrap_server or args.broker_list or args.zookeeper or "bootstrap.servers" not in properties:
        properties["bootstrap.servers"] = bootstrap_of(args)
    properties.setdefault("client.id", "perf-producer-client")
    transactions = perf_transactions.plan(args, properties)
    settings = producer_settings(properties)
    if transactions is not None:
        transactions.apply(settings.librdkafka)
    payloads = _payloads(args)
    metrics = Metrics("producer") if args.print_metrics else None
    with stop_on_signals() as stop:
        if not await_broker(properties, Patience(settings.max_block_s, "max.block.ms"), lambda: stop):
            return stop.exit_code
        producer, _reporter = open_producer(settings, **(metrics.settings if metrics else {}))
        test = _Test(producer, args, settings.max_block_s, stop)
        if transactions is not None:
            test.transactions = Transactions(producer, transactions.duration_s)
        test.run(payloads)
        test.print_totals()
        if metrics is not None:
            metrics.wait_for_last(producer.poll)
            print("\n".join(metrics.lines()))
        if test.failed:
            complain(f"{test.failed} records were not acknowledged")
            return 1
        return stop.exit_code


def _parser(prog: str) -> ToolParser:
    parser = ToolParser(prog, "Measures how fast records can be produced.", EXAMPLES)
    parser.add_argument("--topic", required=True, help="the topic to send to")
    parser.add_argument("--num-records", required=True, type=int, metavar="N", help="how many records to send")
    payload = parser.add_mutually_exclusive_group(required=True)
    payload.add_argument("--record-size", type=int, metavar="BYTES", help="size of each record, filled with letters")
    payload.add_argument("--payload-file", metavar="FILE", help="send pieces of this text file, chosen at random")
    payload.add_argument("--payload-monotonic", action="store_true", help="send the numbers 0, 1, 2, ...")
    parser.add_argument("--payload-delimiter", default="\\n", metavar="REGEX",
                        help="what separates the pieces of --payload-file (default: end of line)")  # fmt: skip
    parser.add_argument("--throughput", required=True, type=float, metavar="N",
                        help="records a second to keep to, -1 for as many as possible")  # fmt: skip
    parser.add_argument("--producer-props", nargs="+", action="extend", default=[], metavar="KEY=VALUE",
                        help="older name of --command-property")  # fmt: skip
    parser.add_argument("--command-property", nargs="+", action="extend", default=[], metavar="KEY=VALUE",
                        help="settings of the producer, such as acks=1 linger.ms=10")  # fmt: skip
    parser.add_argument("--producer.config", dest="producer_config", metavar="FILE",
                        help="older name of --command-config")  # fmt: skip
    parser.add_argument("--print-metrics", action="store_true", help="print the client's own figures at the end")
    perf_transactions.add_options(parser)
    parser.add_argument("--warmup-records", type=int, default=0, metavar="N",
                        help="leave the first N records out of a second, steady state summary")  # fmt: skip
    parser.add_argument("--reporting-interval", type=int, default=5000, metavar="MS",
                        help="print figures so often (default: 5000)")  # fmt: skip
    add_connection_options(parser)
    return parser


def _check(args: argparse.Namespace) -> None:
    if args.num_records < 0:
        raise CommandError(f"--num-records cannot be negative: {args.num_records}")
    if args.record_size is not None and args.record_size <= 0:
        raise CommandError(f"--record-size should be greater than zero: {args.record_size}")
    if args.reporting_interval <= 0:
        raise CommandError(f"--reporting-interval should be greater than zero: {args.reporting_interval}")
    if not 0 <= args.warmup_records < max(1, args.num_records):
        raise CommandError("--warmup-records should be fewer than --num-records")
    if args.throughput == 0:
        raise CommandError("--throughput 0 would never send anything; -1 means without limit")


def _payloads(args: argparse.Namespace) -> Payloads:
    if args.record_size is not None:
        return _random_letters(args.record_size)
    if args.payload_monotonic:
        return (b"%d" % number for number in range(args.num_records))
    return _pieces_of_file(args.payload_file, args.payload_delimiter)


def _random_letters(size: int) -> Payloads:
    """Records of random capital letters, cut out of one block: making fresh ones would be what is measured."""
    generator = random.Random(0)  # noqa: S311 - the same load every time
    block = generator.randbytes(max(RANDOM_BLOCK_BYTES, 2 * size)).translate(_LETTERS)
    last = len(block) - size
    at = 0
    while True:
        yield block[at : at + size]
        at += size
        if at > last:
            at = generator.randrange(size)  # another phase, so that the second pass has other records


def _pieces_of_file(path: str, delimiter: str) -> Payloads:
    print(f"Reading payloads from: {Path(path).resolve()}")
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        pieces = [piece.encode() for piece in re.split(delimiter, text)]
    except OSError as error:
        raise CommandError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CommandError(f"{path} is not UTF-8 text: {error.reason}") from error
    except re.error as error:
        raise CommandError(f"--payload-delimiter is not a regular expression: {error}") from error
    while pieces and not pieces[-1]:
        pieces.pop()
    if not pieces:
        raise CommandError("File does not exist or empty file provided.")
    print(f"Number of records read: {len(pieces)}")
    choose = random.Random(0).choice  # noqa: S311 - the same load every time
    return iter(lambda: choose(pieces), None)


class _Acknowledged:
    """Receives delivery reports: the inner loop of the tool, so it only remembers numbers."""

    def __init__(self) -> None:
        self.latencies_s: list[float] = []
        self.bytes = 0
        self.failed = 0
        self._said: set[int] = set()

    def callback(self) -> Callable[[KafkaError | None, Message], None]:
        remember = self.latencies_s.append

        def acknowledged(error: KafkaError | None, record: Message) -> None:
            if error is not None:
                self._failure(error)
                return
            remember(record.latency())
            self.bytes += len(record)

        return acknowledged

    def _failure(self, error: KafkaError) -> None:
        self.failed += 1
        if error.code() not in self._said:
            self._said.add(error.code())
            warn(f"a record was not acknowledged: {in_words(error)}")

    def take(self) -> tuple[list[int], int]:
        """Latencies in microseconds and bytes since the last call."""
        taken = [int(latency * 1_000_000) for latency in self.latencies_s]
        self.latencies_s.clear()  # the callback holds on to this list
        size, self.bytes = self.bytes, 0
        return taken, size


class _Test:
    def __init__(self, producer: Producer, args: argparse.Namespace, max_block_s: float, stop: StopRequest) -> None:
        self._producer = producer
        self._args = args
        self._max_block_s = max_block_s
        self._stop = stop
        self.transactions: Transactions | None = None
        self._interval_s = args.reporting_interval / 1000
        self._warming = _Acknowledged()
        self._measured = _Acknowledged()  # records sent in steady state; all of them where there is no warmup
        self._on_delivery = (self._warming if args.warmup_records else self._measured).callback()
        now = time.monotonic()
        self._total = LatencyStats(now)
        self._steady: LatencyStats | None = None
        self._window = LatencyStats(now)
        self._window_ends = now + self._interval_s

    @property
    def failed(self) -> int:
        return self._warming.failed + self._measured.failed

    def run(self, payloads: Payloads) -> None:
        args = self._args
        if args.warmup_records:
            self._say(
                f"Warmup first {args.warmup_records} records. "
                "Steady state results will print after the complete test summary."
            )
        if self.transactions is not None:
            self.transactions.prepare()
        throttle = Throttle(args.throughput, time.monotonic())
        sent = 0
        while sent < args.num_records and not self._stop:
            if args.warmup_records and sent == args.warmup_records:
                self._become_steady()
            room = self._next_chunk(sent, throttle)
            if room:
                if self.transactions is not None:
                    self.transactions.before_sending(time.monotonic())
                self._send([{"value": next(payloads)} for _ in range(room)])
                sent += room
            self._producer.poll(0 if room else min(POLL_S, throttle.wait_s(sent, time.monotonic())))
            self._report()
            if self.transactions is not None and self.transactions.is_due(time.monotonic()):
                self._flush()
                self.transactions.end()
        self._flush()
        if self._stop:
            flush_all(self._producer, self._stop)
        if self.transactions is not None:
            self.transactions.end()

    def _flush(self) -> None:
        while self._producer.flush(POLL_S) and not self._stop:
            self._report()

    def _next_chunk(self, sent: int, throttle: Throttle) -> int:
        """How many records to send now: a chunk, but not across the end of the warmup nor past the throttle."""
        goal = self._args.warmup_records if sent < self._args.warmup_records else self._args.num_records
        room: int = min(CHUNK, goal - sent)
        return room if throttle.unlimited else min(room, throttle.allowance(sent, time.monotonic()))

    def _send(self, records: list[dict[str, Any]]) -> None:
        deadline = 0.0
        while True:
            try:
                taken = self._producer.produce_batch(self._args.topic, records, on_delivery=self._on_delivery)
            except BufferError:
                taken = 0
            except KafkaException as exception:
                raise CommandError(f"cannot send to {self._args.topic}: {error_of(exception)}") from exception
            if taken == len(records):
                return
            records = [{"value": record["value"]} for record in records if "_error" in record or not taken]
            now = time.monotonic()
            deadline = deadline or now + self._max_block_s
            if now >= deadline:
                raise CommandError(f"the buffer stayed full for {self._max_block_s:g} s (max.block.ms)")
            self._producer.poll(POLL_S)
            self._report()

    def _become_steady(self) -> None:
        self._drain()
        now = time.monotonic()
        self._steady = LatencyStats(now)
        self._window = LatencyStats(now)
        self._window_ends = now + self._interval_s
        self._on_delivery = self._measured.callback()
        self._say("In steady state.")

    def _drain(self) -> None:
        warm, warm_size = self._warming.take()
        latencies, size = self._measured.take()
        self._total.add(warm + latencies, warm_size + size)
        if self._steady is None:
            self._window.add(warm + latencies, warm_size + size)
        else:
            self._steady.add(latencies, size)
            self._window.add(latencies, size)

    def _report(self) -> None:
        now = time.monotonic()
        if now < self._window_ends:
            return
        self._drain()
        window = self._window.summary(now, ())
        self._say(
            f"{window.records} records sent, {window.records_per_second:.1f} records/sec "
            f"({window.megabytes_per_second:.2f} MB/sec), {window.average_ms:.1f} ms avg latency, "
            f"{window.max_ms:.1f} ms max latency."
        )
        self._window = LatencyStats(now)
        self._window_ends = now + self._interval_s

    def print_totals(self) -> None:
        self._drain()
        now = time.monotonic()
        summaries = {"": self._total.summary(now)}
        if self._steady is not None:
            summaries[" steady state"] = self._steady.summary(now)
        if self._args.json:
            print_json({"total": _json(summaries[""]), "steady": _json(summaries.get(" steady state"))})
            return
        for word, total in summaries.items():
            tail = ", ".join(f"{value:.0f} ms {rank:g}th" for rank, value in total.percentiles_ms.items())
            print(
                f"{total.records}{word} records sent, {total.records_per_second:.6f} records/sec "
                f"({total.megabytes_per_second:.2f} MB/sec), {total.average_ms:.2f} ms avg latency, "
                f"{total.max_ms:.2f} ms max latency, {tail}."
            )

    def _say(self, text: str) -> None:
        print(text, file=sys.stderr if self._args.json else sys.stdout, flush=True)


def _json(total: Summary | None) -> dict[str, object] | None:
    if total is None:
        return None
    return {
        "records": total.records,
        "seconds": round(total.seconds, 6),
        "records_per_second": round(total.records_per_second, 3),
        "megabytes_per_second": round(total.megabytes_per_second, 3),
        "latency_ms": {"avg": round(total.average_ms, 3), "max": total.max_ms}
        | {f"p{rank:g}": value for rank, value in total.percentiles_ms.items()},
    }
