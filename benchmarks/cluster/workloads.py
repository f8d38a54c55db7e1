"""What is done to three brokers with three replicas, and what Ottla's figure should come to against Apache Kafka's."""

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchmarks import generator
from benchmarks.cluster.clusters import (
    ClusterUnderTest,
    admin_of,
    cpu_seconds,
    fresh_topic,
    resident_mb,
    wait_until_settled,
)
from benchmarks.workloads import LATENCY, THROUGHPUT, Metric, Target
from confluent_kafka.admin import AdminClient
from tests.cluster.gaps import TimedLedger

from ottla.testing.load import LoadProducer
from ottla.testing.waiting import wait_until

Run = Callable[[ClusterUnderTest, float], Mapping[str, float]]
STEADY_PER_SECOND = 500


@dataclass(frozen=True)
class ClusterWorkload:
    """Something done to a running cluster. `run` gets the share of the full size and returns figures by key."""

    name: str
    label: str
    group: str
    metrics: tuple[Metric, ...]
    run: Run


def _settle(admin: AdminClient, topic: str) -> None:
    """Remove what the run wrote and let the disk catch up, so that the next run does not pay for this one."""
    admin.delete_topics([topic])[topic].result(60)
    os.sync()


def _generated(mode: str, partitions: int, arguments: Callable[[float], Mapping[str, object]]) -> Run:
    def run(cluster: ClusterUnderTest, share: float) -> Mapping[str, float]:
        topic = fresh_topic(cluster, partitions)
        before = cpu_seconds([*cluster.broker_pids(), *cluster.other_pids()])
        figures = generator.run(mode, brokers=cluster.bootstrap, topic=topic, **arguments(share))
        spent = cpu_seconds([*cluster.broker_pids(), *cluster.other_pids()]) - before
        _settle(admin_of(cluster), topic)
        return {**figures, "broker_cpu_seconds": spent}

    return run


def _produce(records: int, size: int, partitions: int, **properties: object) -> Run:
    def arguments(share: float) -> Mapping[str, object]:
        return {"records": max(10_000, int(records * share)), "size": size, "partitions": partitions, **properties}

    return _generated("produce", partitions, arguments)


def _latency(rate: int, size: int, seconds: int, **properties: object) -> Run:
    def arguments(share: float) -> Mapping[str, object]:
        return {"rate": rate, "size": size, "seconds": max(2, round(seconds * share)), **properties}

    return _generated("latency", 1, arguments)


def _killed_leader(cluster: ClusterUnderTest, _share: float) -> Mapping[str, float]:
    """From the kill of a leader under load to the first record that its partition acknowledges again."""
    topic = fresh_topic(cluster, 1, assignment=[[2, 3, 1]])
    ledger = TimedLedger()
    producer = LoadProducer(
        cluster.bootstrap, topic, 1, number=0, ledger=ledger, records_per_second=STEADY_PER_SECOND,
        client_settings={"message.timeout.ms": 120_000, "topic.metadata.refresh.interval.ms": 1_000},
    ).start()  # fmt: skip
    try:
        wait_until(lambda: ledger.total > STEADY_PER_SECOND, "records are acknowledged")
        ledger.begin_anew()
        killed = time.monotonic()
        cluster.kill(2)
        after = ledger.total + STEADY_PER_SECOND
        wait_until(lambda: ledger.total > after, "records are acknowledged again", seconds=120)
        gap = ledger.longest_gap
        noticed = time.monotonic()
    finally:
        producer.stop()
    started = time.monotonic()
    cluster.restart(2)
    wait_until_settled(admin_of(cluster), topic)
    back = time.monotonic() - started
    assert noticed > killed
    return {"recover_s": gap, "in_sync_s": back}


def _memory(cluster: ClusterUnderTest, share: float) -> Mapping[str, float]:
    idle = resident_mb(cluster.broker_pids())
    topic = fresh_topic(cluster, 8)
    arguments = {"brokers": cluster.bootstrap, "topic": topic, "partitions": 8, "records": int(1_000_000 * share)}
    generator.run("produce", size=1_000, P__acks="all", **arguments)
    generator.run("consume", **arguments)
    _settle(admin_of(cluster), topic)
    others = resident_mb(cluster.other_pids())
    return {"idle_mb": idle, "loaded_mb": resident_mb(cluster.broker_pids()), "all_mb": idle + others}


RECORDS = (Metric("records_per_second", "records/s", "records/s", THROUGHPUT),)
MEGABYTES = (Metric("mb_per_second", "MB/s", "MB/s", THROUGHPUT),)
PERCENTILES = (
    Metric("p50_ms", "p50", "ms", LATENCY),
    Metric("p99_ms", "p99", "ms", LATENCY),
    Metric("p999_ms", "p99.9", "ms"),
)
PRODUCE = "produce with acks=all, three replicas"
SMALL, LARGE = 1_000_000, 200_000

WORKLOADS = (
    # First, so that idle is idle.
    ClusterWorkload(
        "memory", "resident memory of three brokers", "memory",
        (
            Metric("idle_mb", "idle", "MB", Target(at_most=0.2)),
            Metric("loaded_mb", "after 1 GB in and out", "MB", Target(at_most=0.2)),
            Metric("all_mb", "idle, with the three ZooKeepers of Ottla", "MB"),
        ),
        _memory,
    ),
    ClusterWorkload("produce-100b", "100 B, 1 partition", PRODUCE, RECORDS, _produce(SMALL, 100, 1, P__acks="all")),
    ClusterWorkload("produce-100b-6p", "100 B, 6 partitions", PRODUCE, RECORDS, _produce(SMALL, 100, 6, P__acks="all")),
    ClusterWorkload("produce-1kb", "1 kB, 1 partition", PRODUCE, MEGABYTES, _produce(LARGE, 1000, 1, P__acks="all")),
    ClusterWorkload(
        "produce-1kb-6p", "1 kB, 6 partitions", PRODUCE, MEGABYTES, _produce(LARGE, 1000, 6, P__acks="all")
    ),
    ClusterWorkload(
        "produce-1kb-lz4", "1 kB, 6 partitions, lz4", PRODUCE, MEGABYTES,
        _produce(LARGE, 1000, 6, P__acks="all", P__compression__type="lz4"),
    ),
    ClusterWorkload(
        "latency-100", "100 records/s of 1 kB, acks=all", "end to end, three replicas", PERCENTILES,
        _latency(100, 1000, 15, P__acks="all"),
    ),
    ClusterWorkload(
        "latency-1000", "1,000 records/s of 1 kB, acks=all", "end to end, three replicas", PERCENTILES,
        _latency(1000, 1000, 10, P__acks="all"),
    ),
    ClusterWorkload(
        "killed-leader", "kill -9 of a leader under load, session of 9 s", "recovery",
        (
            Metric("recover_s", "until its partition takes records again", "s", Target(at_most=1.2)),
            Metric("in_sync_s", "until it is in sync again after its start", "s"),
        ),
        _killed_leader,
    ),
)  # fmt: skip
