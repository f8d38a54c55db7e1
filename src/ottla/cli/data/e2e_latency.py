"""`e2e-latency`: the time from sending a record to receiving it, one record at a time."""

import argparse
import random
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from ottla.cli.common.options import ToolParser, add_connection_options, bootstrap_of
from ottla.cli.common.output import CommandError, note, print_json
from ottla.cli.data.broker_presence import Patience, await_broker
from ottla.cli.data.client_properties import admin_settings, consumer_settings, load_properties, producer_settings
from ottla.cli.data.deserializers import java_decimal
from ottla.cli.data.kafka_clients import (
    POLL_S,
    StopRequest,
    error_of,
    in_words,
    open_consumer,
    open_producer,
    partitions_of,
    stop_on_signals,
)
from ottla.cli.data.latency_stats import LatencyStats

EXAMPLES = """\
  ottla e2e-latency --topic ping --num-records 10000 --producer-acks all --record-size 100
  ottla e2e-latency --topic ping --num-records 1000 --producer-acks 1 --record-size 1000 --record-key-size 16 --json
  kafka-run-class.sh kafka.tools.EndToEndLatency localhost:9092 ping 10000 1 20
"""
POSITIONAL = ("--bootstrap-server", "--topic", "--num-records", "--producer-acks", "--record-size", "--command-config")
ARRIVAL_TIMEOUT_S = 60.0
PROGRESS_EVERY = 1000
PERCENTILES = (50, 99, 99.9)


class _Record(NamedTuple):
    key: bytes | None
    value: bytes
    headers: list[tuple[str, bytes | None]]


def main(argv: Sequence[str] | None = None, prog: str = "ottla e2e-latency") -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    args = _parser(prog).parse(_named(arguments))
    _check(args)
    properties = load_properties(args, ["command-config"], [])
    properties["bootstrap.servers"] = bootstrap_of(args)
    with stop_on_signals() as stop:
        reading = consumer_settings(_consumer_properties(properties))
        writing = producer_settings(properties | {"linger.ms": "0", "acks": args.producer_acks})
        if not await_broker(properties, Patience(writing.max_block_s, "max.block.ms"), lambda: stop):
            return stop.exit_code
        # One file serves both clients here, so what belongs to the other one is no surprise.
        consumer, _reporter = open_consumer(reading._replace(notes=()))
        producer, _reporter = open_producer(writing._replace(notes=()))
        try:
            _start(consumer, _partitions(consumer, args, properties), args.topic)
            return _measure(producer, consumer, args, stop)
        finally:
            consumer.close()


def _named(arguments: list[str]) -> list[str]:
    """The old form `brokers topic count acks size [file]` as options."""
    if not arguments or arguments[0].startswith("-"):
        return arguments
    if len(arguments) not in (len(POSITIONAL) - 1, len(POSITIONAL)):
        raise CommandError(
            "the form without option names is: bootstrap-server topic num-records producer-acks record-size "
            f"[command-config]; there are {len(arguments)} arguments"
        )
    note(f"arguments by position are the old form; the names are {' '.join(POSITIONAL)}")
    return [part for name, value in zip(POSITIONAL, arguments, strict=False) if value for part in (name, value)]


def _parser(prog: str) -> ToolParser:
    parser = ToolParser(prog, "Measures the time from sending a record to receiving it, one at a time.", EXAMPLES)
    parser.add_argument("--topic", required=True, help="the topic to use; made with one partition where it is missing")
    parser.add_argument("--num-records", required=True, type=int, metavar="N", help="how many records to send")
    parser.add_argument("--producer-acks", required=True, metavar="1|all", help="acknowledgements to wait for")
    parser.add_argument("--record-size", required=True, type=int, metavar="BYTES", help="size of a record's value")
    parser.add_argument("--record-key-size", type=int, default=0, metavar="BYTES", help="size of a record's key")
    parser.add_argument("--num-headers", type=int, default=0, metavar="N", help="headers of a record")
    parser.add_argument("--record-header-key-size", type=int, default=0, metavar="BYTES",
                        help="size of a header's name")  # fmt: skip
    parser.add_argument("--record-header-size", type=int, default=0, metavar="BYTES",
                        help="size of a header's value, -1 for null")  # fmt: skip
    add_connection_options(parser)
    return parser


def _check(args: argparse.Namespace) -> None:
    if args.producer_acks not in ("1", "all"):
        raise CommandError("latency testing requires synchronous acknowledgement: --producer-acks is 1 or all")
    if args.num_records < 1:
        raise CommandError(f"--num-records is at least 1, not {args.num_records}")
    for option, least in (
        ("record_size", 0), ("record_key_size", 0), ("num_headers", 0), ("record_header_key_size", 0),
        ("record_header_size", -1),
    ):  # fmt: skip
        if getattr(args, option) < least:
            raise CommandError(f"--{option.replace('_', '-')} is at least {least}, not {getattr(args, option)}")


def _consumer_properties(properties: dict[str, str]) -> dict[str, str]:
    return properties | {
        "group.id": f"test-group-{time.time_ns() // 1_000_000}",
        "enable.auto.commit": "false",
        "auto.offset.reset": "latest",
        # A look at a missing topic must not make it: it is made below, with one partition.
        "allow.auto.create.topics": "false",
    }


def _partitions(consumer: Consumer, args: argparse.Namespace, properties: dict[str, str]) -> list[int]:
    found = partitions_of(consumer, args.topic, ARRIVAL_TIMEOUT_S)
    if found:
        return found
    print(
        f'Topic "{args.topic}" does not exist. Will create topic with 1 partition(s) and replication factor = 1',
        file=sys.stderr if args.json else sys.stdout,
    )
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient(dict(admin_settings(properties)))
    try:
        admin.create_topics([NewTopic(args.topic, 1, 1)])[args.topic].result(ARRIVAL_TIMEOUT_S)
    except KafkaException as exception:
        raise CommandError(f"creation of topic {args.topic} failed: {error_of(exception)}") from exception
    deadline = time.monotonic() + ARRIVAL_TIMEOUT_S
    while not (found := partitions_of(consumer, args.topic, ARRIVAL_TIMEOUT_S)):
        if time.monotonic() > deadline:
            raise CommandError(f"the new topic {args.topic} does not appear")
        consumer.poll(POLL_S)
    return found


def _start(consumer: Consumer, partitions: list[int], topic: str) -> None:
    """Start at the current end of each partition, fixed before the first record is sent."""
    places = []
    for partition in partitions:
        place = TopicPartition(topic, partition)
        try:
            _low, place.offset = consumer.get_watermark_offsets(place, timeout=ARRIVAL_TIMEOUT_S)
        except KafkaException as exception:
            raise CommandError(f"no offsets for {topic}-{partition}: {error_of(exception)}") from exception
        places.append(place)
    consumer.assign(places)


def _measure(producer: Producer, consumer: Consumer, args: argparse.Namespace, stop: StopRequest) -> int:
    generator = random.Random(0)  # noqa: S311 - the same load every time
    stats = LatencyStats(time.monotonic())
    for number in range(args.num_records):
        if stop:
            return stop.exit_code
        record = _make(generator, args)
        began = time.perf_counter_ns()
        _send(producer, args.topic, record)
        received = _receive(consumer, stop)
        elapsed_ns = time.perf_counter_ns() - began
        if received is None:
            return stop.exit_code
        _compare(record, received)
        stats.add([elapsed_ns // 1000], len(record.value))
        if number % PROGRESS_EVERY == 0:
            progress = f"{number}\t{java_decimal(elapsed_ns / 1_000_000)}"
            print(progress, file=sys.stderr if args.json else sys.stdout, flush=True)
    _print(stats, args)
    return 0


def _make(generator: random.Random, args: argparse.Namespace) -> _Record:
    def letters(size: int) -> bytes:
        return bytes([65 + generator.randrange(26)]) * size

    headers = [
        (
            letters(args.record_header_key_size).decode(),
            None if args.record_header_size < 0 else letters(args.record_header_size),
        )
        for _ in range(args.num_headers)
    ]
    return _Record(letters(args.record_key_size) if args.record_key_size else None, letters(args.record_size), headers)


def _send(producer: Producer, topic: str, record: _Record) -> None:
    outcome: list[KafkaError | None] = []
    producer.produce(
        topic, value=record.value, key=record.key, headers=record.headers or None,
        on_delivery=lambda error, _message: outcome.append(error),
    )  # fmt: skip
    while not outcome:
        producer.poll(ARRIVAL_TIMEOUT_S)
    if outcome[0] is not None:
        raise CommandError(f"a record was not acknowledged: {in_words(outcome[0])}")


def _receive(consumer: Consumer, stop: StopRequest) -> Message | None:
    deadline = time.monotonic() + ARRIVAL_TIMEOUT_S
    while not stop:
        message = consumer.poll(POLL_S)
        if message is not None:
            if message.error() is not None:
                raise CommandError(in_words(message.error()))
            return message
        if time.monotonic() > deadline:
            raise CommandError(f"the record did not arrive within {ARRIVAL_TIMEOUT_S:g} s")
    return None


def _compare(sent: _Record, received: Message) -> None:
    read = _Record(received.key(), received.value(), list(received.headers() or ()))
    if read != sent:
        raise CommandError(
            f"the record read {read} did not match the record sent {sent}: is something else writing to the topic?"
        )


def _print(stats: LatencyStats, args: argparse.Namespace) -> None:
    summary = stats.summary(time.monotonic(), PERCENTILES)
    if args.json:
        percentiles = {f"p{rank:g}": value for rank, value in summary.percentiles_ms.items()}
        print_json({"records": summary.records, "latency_ms": {"avg": round(summary.average_ms, 4)} | percentiles})
        return
    print(f"Avg latency: {summary.average_ms:.4f} ms")
    ranks = summary.percentiles_ms.items()
    print("Percentiles: " + ", ".join(f"{rank:g}th = {int(value)}" for rank, value in ranks))
    print("Percentiles in microseconds: " + ", ".join(f"{rank:g}th = {value * 1000:.0f}" for rank, value in ranks))
