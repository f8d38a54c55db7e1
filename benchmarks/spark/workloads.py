"""What is run with each format against each broker, and the figures that count."""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from benchmarks import generator, wire
from benchmarks.brokers import Broker
from benchmarks.spark.processes import SparkProcess

PARTITIONS = 4
SIZES = {"100 B": 100, "1 kB": 1000}
MICRO_BATCH_ROWS = 1_000
MICRO_BATCHES = 20
FIRST_BATCHES = 2  # of a query: planning and classes that are loaded once
GENERATED_PER_RUN_MAX = 5_000_000  # the generator has a limit of time for one run

Processes = Mapping[tuple[str, str], SparkProcess]


class Figure(NamedTuple):
    """One measurement."""

    workload: str
    format: str
    broker: str
    unit: str
    value: float
    spark_cpu: float
    """Microseconds a record, all of Spark's processes together."""
    broker_cpu: float


Measure = Callable[[Mapping[str, Broker], Processes, int, int, Callable[[str], None]], Iterator[Figure]]


class Workload(NamedTuple):
    name: str
    title: str
    unit: str
    measure: Measure


def _throughput(name: str, pair: tuple[str, str], records: int, figures: Mapping[str, float]) -> Figure:
    return Figure(
        name, *pair, "records/s", records / figures["seconds"], figures["spark_cpu_seconds"] / records * 1e6,
        figures["broker_cpu_seconds"] / records * 1e6,
    )  # fmt: skip


def _new_topic(broker: Broker, partitions: int = PARTITIONS) -> str:
    topic = f"bench-{time.monotonic_ns()}"
    wire.create_topics(broker.port, [topic], partitions)
    return topic


def _remove(broker: Broker, topic: str) -> None:
    wire.delete_topic(broker.port, topic)
    os.sync()


def _fill(broker: Broker, topic: str, records: int, size: int, partitions: int = PARTITIONS) -> None:
    """By librdkafka as it comes, which favours neither format."""
    while records > 0:
        count = min(records, GENERATED_PER_RUN_MAX)
        generator.run(
            "produce", records=count, brokers=f"127.0.0.1:{broker.port}", topic=topic, partitions=partitions, size=size
        )
        records -= count


def _reading(name: str, size: int) -> Measure:
    """One broker at a time, so that its topic stays in memory; the formats take turns on it."""

    def measure(
        brokers: Mapping[str, Broker], processes: Processes, records: int, rounds: int, say: Callable[[str], None]
    ) -> Iterator[Figure]:
        for kind, broker in brokers.items():
            topic = _new_topic(broker)
            say(f"{name}: filling a topic ({kind})")
            _fill(broker, topic, records, size)
            pairs = [pair for pair in processes if pair[1] == kind]
            for round_number in range(rounds + 1):
                for pair in pairs:
                    say(f"{name}: {' on '.join(pair)}, round {round_number}")
                    figures = processes[pair].run("read", topic=topic)
                    if round_number:  # round 0 warms up the Java of Spark and of the broker
                        yield _throughput(name, pair, records, figures)
            _remove(broker, topic)

    return measure


def _writing(name: str, size: int) -> Measure:
    def measure(
        brokers: Mapping[str, Broker], processes: Processes, records: int, rounds: int, say: Callable[[str], None]
    ) -> Iterator[Figure]:
        for round_number in range(rounds + 1):
            for pair, process in processes.items():
                say(f"{name}: {' on '.join(pair)}, round {round_number}")
                broker = brokers[pair[1]]
                topic = _new_topic(broker)
                count = records if round_number else max(1, records // 5)
                figures = process.run("write", topic=topic, records=count, size=size)
                if round_number:
                    yield _throughput(name, pair, records, figures)
                elif (found := process.run("count", topic=topic)["records"]) != count:
                    raise wire.WireError(f"{' on '.join(pair)} wrote {count} records, and {found} are there")
                _remove(broker, topic)

    return measure


def _following(name: str, *, to_topic: bool) -> Measure:
    def measure(
        brokers: Mapping[str, Broker], processes: Processes, records: int, rounds: int, say: Callable[[str], None]
    ) -> Iterator[Figure]:
        del records  # small batches are small whatever the size of the run
        topics = {kind: _new_topic(broker) for kind, broker in brokers.items()}
        count = MICRO_BATCH_ROWS * MICRO_BATCHES
        for kind, topic in topics.items():
            _fill(brokers[kind], topic, count, 100)
        for round_number in range(rounds + 1):
            for pair, process in processes.items():
                say(f"{name}: {' on '.join(pair)}, round {round_number}")
                into = _new_topic(brokers[pair[1]]) if to_topic else None
                figures = process.run("follow", topic=topics[pair[1]], rows_per_batch=MICRO_BATCH_ROWS, into=into)
                assert figures["records"] >= count, figures
                if into is not None:
                    _remove(brokers[pair[1]], into)
                if round_number:
                    batches = figures["batch_ms"][FIRST_BATCHES:]
                    yield Figure(
                        name, *pair, "ms", sum(batches) / len(batches), figures["spark_cpu_seconds"] / count * 1e6,
                        figures["broker_cpu_seconds"] / count * 1e6,
                    )  # fmt: skip
        for kind, topic in topics.items():
            _remove(brokers[kind], topic)

    return measure


WORKLOADS = (
    *(
        Workload(f"read-{size}", f"read, {title}", "records/s", _reading(f"read-{size}", size))
        for title, size in SIZES.items()
    ),
    *(
        Workload(f"write-{size}", f"write, {title}", "records/s", _writing(f"write-{size}", size))
        for title, size in SIZES.items()
    ),
    Workload("batch-read", "micro-batch of 1,000 records", "ms", _following("batch-read", to_topic=False)),
    Workload("batch-copy", "micro-batch of 1,000, to a topic", "ms", _following("batch-copy", to_topic=True)),
)
