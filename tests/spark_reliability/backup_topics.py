"""Topics of every kind for a large backup: plain, transactional, expired in part, compacted."""

import contextlib
import random
import time
from collections.abc import Iterable
from pathlib import Path

from confluent_kafka import Producer
from tests.spark.feeding import create_topic

from ottla.client import admin
from ottla.client.admin import Resource, ResourceType
from ottla.client.groups import commit_offsets
from ottla.client.offsets import EARLIEST, FoundOffset, delete_records, list_offsets
from ottla.client.settings import client_settings
from ottla.model.names import TopicPartition as At
from ottla.spark import loop
from ottla.spark.connections import shared_cluster
from ottla.testing.load import quiet
from ottla.testing.waiting import wait_until

TOPICS = ("plain", "transactional", "expiring", "compacted")
PARTITIONS = 4
VALUE_BYTES = 1_000
PER_TRANSACTION = 5_000
DAY_MS = 24 * 3_600_000
STILL_S = 3.0
GROUP = "shop"
CLEANING = {
    "log.cleaner.backoff.ms": "500", "log.retention.check.interval.ms": "1000", "log.segment.delete.delay.ms": "1000",
}  # fmt: skip


def fill(
    bootstrap: str,
    topic: str,
    numbers: Iterable[int],
    chance: random.Random,
    *,
    transactional: bool = False,
    timestamp_ms: int = 0,
) -> None:
    """Records of 1 kB that do not compress, with keys and headers; of transactions each fifth is aborted."""
    settings: dict[str, str | int | float | bool] = {
        "bootstrap.servers": bootstrap, "linger.ms": 20, "compression.type": "lz4", "batch.size": 200_000,
        "queue.buffering.max.kbytes": 200_000,
    }  # fmt: skip
    producer = Producer(settings | ({"transactional.id": topic} if transactional else {}), logger=quiet)
    if transactional:
        producer.init_transactions()
        producer.begin_transaction()
    pool = chance.randbytes(8 << 20)
    for sent, number in enumerate(numbers, 1):
        at = chance.randrange(len(pool) - VALUE_BYTES)
        headers: list[tuple[str, bytes | None]] = [("n", b"%d" % number), ("none", None)]
        while True:
            try:
                producer.produce(
                    topic, pool[at : at + VALUE_BYTES], b"%d" % number, number % PARTITIONS, headers=headers,
                    timestamp=timestamp_ms,
                )  # fmt: skip
                break
            except BufferError:
                producer.poll(0.05)
        if transactional and sent % PER_TRANSACTION == 0:
            producer.flush()
            producer.abort_transaction() if chance.random() < 0.2 else producer.commit_transaction()
            producer.begin_transaction()
        elif sent % 100 == 0:
            producer.poll(0)
    assert producer.flush(120) == 0
    if transactional:
        producer.commit_transaction()


def prepare(bootstrap: str, logs: Path, megabytes: int, chance: random.Random) -> None:
    records = megabytes * 1_000 // 4  # of each topic
    segment = {"segment.bytes": str(max(1 << 20, min(megabytes << 10, 64 << 20)))}
    now = time.time_ns() // 1_000_000
    cluster = shared_cluster(client_settings({"bootstrap.servers": bootstrap}))
    create_topic(bootstrap, "plain", PARTITIONS)
    fill(bootstrap, "plain", range(records), chance)
    loop.run(commit_offsets(cluster, GROUP, {At("plain", 1): records // 10}))
    create_topic(bootstrap, "transactional", PARTITIONS)
    fill(bootstrap, "transactional", range(records), chance, transactional=True)
    loop.run(delete_records(cluster, {At("transactional", 0): 777}))  # into a batch
    create_topic(bootstrap, "expiring", PARTITIONS, {"retention.ms": str(DAY_MS), **segment})
    fill(bootstrap, "expiring", range(records // 5), chance, timestamp_ms=now - 2 * DAY_MS)
    fill(bootstrap, "expiring", range(records), chance)
    at = [At("expiring", number) for number in range(PARTITIONS)]

    def begins_later() -> bool:
        found = loop.run(list_offsets(cluster, dict.fromkeys(at, EARLIEST)))
        return all(isinstance(each, FoundOffset) and (each.offset or 0) > 0 for each in found.values())

    wait_until(begins_later, "old records of every partition have gone", seconds=120, pause=0.2)
    compact = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", **segment}
    create_topic(bootstrap, "compacted", PARTITIONS, compact)
    fill(bootstrap, "compacted", range(records), chance)
    fill(bootstrap, "compacted", (number for number in range(records) if chance.random() < 0.5), chance)
    wait_until(lambda: size_of(logs, "compacted") < records * 1_250, "the cleaner was there", seconds=600, pause=0.5)
    # From here on all stays as it is, so that there is something to compare with.
    alone = Resource(ResourceType.TOPIC, "compacted")
    loop.run(admin.alter_configs(cluster, alone, add={"cleanup.policy": "delete", "retention.ms": "-1"}))
    sizes: list[tuple[float, int]] = []

    def is_still() -> bool:
        sizes.append((time.monotonic(), size_of(logs)))
        since = next(at for at, size in sizes if size == sizes[-1][1])
        return sizes[-1][0] - since > STILL_S

    wait_until(is_still, "the logs stay as they are", seconds=300, pause=0.2)


def size_of(logs: Path, topic: str = "*") -> int:
    """Of the segments of some topics, in a broker's own folder."""
    size = 0
    for path in files_of(logs, topic):
        with contextlib.suppress(FileNotFoundError):  # the cleaner and retention delete segments
            size += path.stat().st_size
    return size


def files_of(logs: Path, topic: str = "*") -> list[Path]:
    topics = TOPICS if topic == "*" else (topic,)
    return [path for name in topics for path in sorted(logs.glob(f"{name}-*/*.log"))]
