"""The list of workloads: what is run, which figures count, and what they should come to against Apache Kafka."""

import os
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from benchmarks import generator, wire
from benchmarks.brokers import Broker, cpu_seconds

from ottla.protocol.records import Codec


class Target(NamedTuple):
    """A bound on Ottla's figure divided by Kafka's."""

    at_least: float | None = None
    at_most: float | None = None

    def met_by(self, ratio: float) -> bool:
        return (self.at_least is None or ratio >= self.at_least) and (self.at_most is None or ratio <= self.at_most)

    def __str__(self) -> str:
        if self.at_least is not None:
            return f"≥ {self.at_least:g}x"
        return "" if self.at_most is None else f"≤ {self.at_most:g}x"


NO_TARGET = Target()
THROUGHPUT = Target(at_least=1.0)
LATENCY = Target(at_most=0.5)


class Metric(NamedTuple):
    """One figure of a run that is shown and compared."""

    key: str
    label: str
    unit: str
    target: Target = NO_TARGET


Run = Callable[[Broker, float], Mapping[str, float]]


@dataclass(frozen=True)
class Workload:
    """Something done to a running broker. `run` gets the share of the full size to do and returns figures by key."""

    name: str
    label: str
    group: str
    metrics: tuple[Metric, ...]
    run: Run


def _fresh_topic(broker: Broker, partitions: int) -> str:
    topic = f"bench-{time.monotonic_ns()}"
    wire.create_topics(broker.port, [topic], partitions)
    wire.wait_for_first_record(broker.port, topic, partitions=range(partitions))
    return topic


class BrokerCpu:
    """Measures the broker's CPU time around a block."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def __enter__(self) -> "BrokerCpu":
        self._before = cpu_seconds(self._broker)
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = cpu_seconds(self._broker) - self._before

    def added_to(self, figures: Mapping[str, float]) -> dict[str, float]:
        return {**figures, "broker_cpu_seconds": self.seconds}


def _settle(broker: Broker, topic: str) -> None:
    """Remove what the run wrote and let the disk catch up, so that the next run does not pay for this one."""
    wire.delete_topic(broker.port, topic)
    os.sync()


def _produce(records: int, size: int, partitions: int, **properties: object) -> Run:
    def run(broker: Broker, share: float) -> Mapping[str, float]:
        topic = _fresh_topic(broker, partitions)
        count = max(10_000, int(records * share))
        arguments = {"brokers": f"127.0.0.1:{broker.port}", "topic": topic, "partitions": partitions, "size": size}
        with BrokerCpu(broker) as cpu:
            figures = generator.run("produce", records=count, **arguments, **properties)
        _settle(broker, topic)
        return cpu.added_to(figures)

    return run


def _prepared_produce(
    total_mb: int, records: int, size: int, partitions: int, connections: int, compression: Codec = Codec.NONE
) -> Run:
    def run(broker: Broker, share: float) -> Mapping[str, float]:
        topic = _fresh_topic(broker, partitions)
        with tempfile.TemporaryDirectory() as folder:
            prepared = wire.prepare_produce(
                Path(folder, "produce"), topic, partitions=partitions, records=records, size=size, acks=-1,
                compression=compression,
            )  # fmt: skip
            requests = max(10, int(total_mb * 1e6 * share / (records * size)))
            with BrokerCpu(broker) as cpu:
                figures = generator.run(
                    "replay", port=broker.port, frames=prepared.path, error_at=prepared.error_at, requests=requests,
                    connections=connections, depth=5, records_per_request=records,
                )  # fmt: skip
        _settle(broker, topic)
        return cpu.added_to(figures)

    return run


def _one_record(connections: int, seconds: float) -> Run:
    def run(broker: Broker, share: float) -> Mapping[str, float]:
        topic = _fresh_topic(broker, 1)
        with tempfile.TemporaryDirectory() as folder:
            prepared = wire.prepare_produce(Path(folder, "one"), topic, partitions=1, records=1, size=100, acks=1)
            with BrokerCpu(broker) as cpu:
                figures = generator.run(
                    "replay", port=broker.port, frames=prepared.path, error_at=prepared.error_at,
                    seconds=max(1, round(seconds * share)), connections=connections,
                )  # fmt: skip
        _settle(broker, topic)
        return cpu.added_to(figures)

    return run


def _fill(broker: Broker, topic: str, *, records: int, size: int, partitions: int) -> int:
    """Write whole batches of 100 records into the partitions in turn; how many records came of it."""
    with tempfile.TemporaryDirectory() as folder:
        prepared = wire.prepare_produce(
            Path(folder, "fill"), topic, partitions=partitions, records=100, size=size, acks=-1
        )
        requests = max(partitions, records // 100)
        generator.run(
            "replay", port=broker.port, frames=prepared.path, error_at=prepared.error_at, requests=requests, depth=5
        )
    return requests * 100


def _consume(records: int, size: int, partitions: int) -> Run:
    def run(broker: Broker, share: float) -> Mapping[str, float]:
        topic = _fresh_topic(broker, partitions)
        written = _fill(broker, topic, records=max(10_000, int(records * share)), size=size, partitions=partitions)
        arguments = {"brokers": f"127.0.0.1:{broker.port}", "topic": topic, "partitions": partitions}
        with BrokerCpu(broker) as cpu:
            figures = generator.run("consume", records=written, **arguments)
        _settle(broker, topic)
        return cpu.added_to(figures)

    return run


def _plain_fetch(records: int, size: int, partitions: int) -> Run:
    def run(broker: Broker, share: float) -> Mapping[str, float]:
        topic = _fresh_topic(broker, partitions)
        _fill(broker, topic, records=max(10_000, int(records * share)), size=size, partitions=partitions)
        with tempfile.TemporaryDirectory() as folder:
            prepared = wire.prepare_fetch(Path(folder, "fetch"), topic, partitions=partitions)
            with BrokerCpu(broker) as cpu:
                figures = generator.run("fetch", port=broker.port, **prepared)
        _settle(broker, topic)
        return cpu.added_to(figures)

    return run


def _latency(rate: int, size: int, seconds: int, **properties: object) -> Run:
    def run(broker: Broker, share: float) -> Mapping[str, float]:
        topic = _fresh_topic(broker, 1)
        arguments = {"brokers": f"127.0.0.1:{broker.port}", "topic": topic, "rate": rate, "size": size}
        with BrokerCpu(broker) as cpu:
            figures = generator.run("latency", seconds=max(2, round(seconds * share)), **arguments, **properties)
        _settle(broker, topic)
        return cpu.added_to(figures)

    return run


RECORDS = (Metric("records_per_second", "records/s", "records/s", THROUGHPUT),)
MEGABYTES = (Metric("mb_per_second", "MB/s", "MB/s", THROUGHPUT),)
IN_TRANSACTIONS = (Metric("records_per_second", "records/s", "records/s"),)
REQUESTS = (Metric("requests_per_second", "requests/s", "requests/s", Target(at_least=0.5)),)
PERCENTILES = (
    Metric("p50_ms", "p50", "ms", LATENCY),
    Metric("p99_ms", "p99", "ms", LATENCY),
    Metric("p999_ms", "p99.9", "ms"),
)

SMALL, LARGE = 4_000_000, 600_000  # records of 100 B and of 1 kB: some seconds' worth

PRODUCE = "produce through librdkafka"
TRANSACTIONS = "produce in transactions"
PREPARED = "produce, prepared batches"
CONSUME = "consume"
LATENCIES = "end to end"
SINGLE = "one-record requests"

WORKLOADS = (
    Workload("produce-100b-acks1", "100 B, acks=1, 1 partition", PRODUCE, RECORDS, _produce(SMALL, 100, 1, P__acks=1)),
    Workload("produce-100b", "100 B, acks=all, 1 partition", PRODUCE, RECORDS, _produce(SMALL, 100, 1, P__acks="all")),
    Workload(
        "produce-100b-8p", "100 B, acks=all, 8 partitions", PRODUCE, RECORDS, _produce(SMALL, 100, 8, P__acks="all")
    ),
    Workload(
        "produce-100b-idempotent", "100 B, idempotent, 1 partition", PRODUCE, RECORDS,
        _produce(SMALL, 100, 1, P__enable__idempotence="true"),
    ),
    Workload("produce-1kb-acks1", "1 kB, acks=1, 1 partition", PRODUCE, MEGABYTES, _produce(LARGE, 1000, 1, P__acks=1)),
    Workload("produce-1kb", "1 kB, acks=all, 1 partition", PRODUCE, MEGABYTES, _produce(LARGE, 1000, 1, P__acks="all")),
    Workload(
        "produce-1kb-8p", "1 kB, acks=all, 8 partitions", PRODUCE, MEGABYTES, _produce(LARGE, 1000, 8, P__acks="all")
    ),
    Workload(
        "produce-1kb-lz4", "1 kB, acks=all, 8 partitions, lz4", PRODUCE, MEGABYTES,
        _produce(LARGE, 1000, 8, P__acks="all", P__compression__type="lz4"),
    ),
    Workload(
        "produce-1kb-zstd", "1 kB, acks=all, 8 partitions, zstd", PRODUCE, MEGABYTES,
        _produce(LARGE, 1000, 8, P__acks="all", P__compression__type="zstd"),
    ),
    Workload(
        "transactions-100", "100 B, a transaction for every 100 records", TRANSACTIONS, IN_TRANSACTIONS,
        _produce(200_000, 100, 1, transaction=100, P__transactional__id="bench"),
    ),
    Workload(
        "transactions-10000", "100 B, a transaction for every 10,000 records", TRANSACTIONS, IN_TRANSACTIONS,
        _produce(SMALL, 100, 1, transaction=10_000, P__transactional__id="bench"),
    ),
    Workload(
        "batches-16kb", "16 kB batches of 100 B, 1 connection", PREPARED, MEGABYTES,
        _prepared_produce(800, 150, 100, 1, 1),
    ),
    Workload(
        "batches-1mb", "900 kB batches of 1 kB, 8 partitions, 4 connections", PREPARED, MEGABYTES,
        _prepared_produce(2000, 900, 1000, 8, 4),
    ),
    Workload(
        "batches-zstd", "zstd batches of 900 x 1 kB, 8 partitions, 4 connections", PREPARED, MEGABYTES,
        _prepared_produce(2000, 900, 1000, 8, 4, Codec.ZSTD),
    ),
    Workload("consume-100b", "100 B, librdkafka, 1 partition", CONSUME, RECORDS, _consume(SMALL, 100, 1)),
    Workload("consume-1kb", "1 kB, librdkafka, 1 partition", CONSUME, MEGABYTES, _consume(LARGE, 1000, 1)),
    Workload("consume-1kb-8p", "1 kB, librdkafka, 8 partitions", CONSUME, MEGABYTES, _consume(LARGE, 1000, 8)),
    Workload("fetch-1kb", "1 kB, plain Fetch, 8 partitions", CONSUME, MEGABYTES, _plain_fetch(2 * LARGE, 1000, 8)),
    Workload(
        "latency-1000", "1,000 records/s of 1 kB, acks=all", LATENCIES, PERCENTILES,
        _latency(1000, 1000, 10, P__acks="all"),
    ),
    Workload(
        "latency-3000", "3,000 records/s of 100 B, acks=all", LATENCIES, PERCENTILES,
        _latency(3000, 100, 10, P__acks="all"),
    ),
    Workload("one-record-1", "1 connection", SINGLE, REQUESTS, _one_record(1, 4)),
    Workload("one-record-100", "100 connections", SINGLE, REQUESTS, _one_record(100, 4)),
)  # fmt: skip
