"""A mirror's batches in a cluster of three: replicated like any others, also while their leader dies."""

import asyncio
from collections.abc import Callable

from ottla.client import admin
from ottla.client.cluster import Cluster
from ottla.client.fetch import FetchSettings, PartitionFetcher
from ottla.client.mirrored import MirroredLog
from ottla.client.offsets import EARLIEST, FoundOffset, list_offsets
from ottla.client.transactions import describe_producers
from ottla.model.names import TopicPartition
from ottla.protocol.records import NewRecord, encode_batch, iterate_batches
from ottla.testing.cluster import RunningCluster

SOURCE = "elsewhere/one"
BATCHES = 60
RECORDS = 10


def source_batch(number: int) -> bytes:
    """Every batch leaves a gap behind it, as compaction does."""
    records = [NewRecord(b"k", b"%d.%d" % (number, each), 1_000 + number) for each in range(RECORDS)]
    base = number * (RECORDS + 2)
    return bytes(
        encode_batch(
            records,
            base_offset=base,
            producer_id=number % 3,
            producer_epoch=0,
            base_sequence=number * RECORDS,
            leader_epoch=77,
        )
    )


async def stored(cluster: Cluster, at: TopicPartition, start: int, end: int) -> list[bytes]:
    found = []
    async for fetched in PartitionFetcher(cluster, at, FetchSettings()).read(start, end):
        for position, header in iterate_batches(fetched.records):
            batch = bytes(fetched.records[position : position + header.size])
            assert header.leader_epoch < 77
            found.append(batch[:12] + batch[16:])
    return found


def without_epochs(batches: list[bytes]) -> list[bytes]:
    return [batch[:12] + batch[16:] for batch in batches]


def test_leaders_die_while_batches_come(three_brokers: RunningCluster, unique: Callable[[str], str]) -> None:
    topic = unique("mirrored")
    at = TopicPartition(topic, 0)
    sent = [source_batch(number) for number in range(BATCHES)]

    async def copy() -> None:
        async with Cluster(three_brokers.bootstrap) as cluster:
            configs = {"mirror.source": SOURCE, "min.insync.replicas": "2"}
            await admin.create_topic(cluster, topic, partitions=1, replication_factor=3, configs=configs)
            three_brokers.wait_until_settled()
            log = MirroredLog(cluster, at, SOURCE)
            end = 0
            for number, batch in enumerate(sent):
                if number in (15, 40):
                    three_brokers.brokers[three_brokers.leader_of(topic)].kill()
                if number in (30, 55):
                    for broker in three_brokers.brokers.values():
                        if not broker.running:
                            broker.start()
                    three_brokers.wait_until_settled()
                again = sent[max(0, number - 2) : number + 1] if number % 5 == 0 else [batch]
                first = max(0, number - len(again) + 1) * (RECORDS + 2)
                end = (await log.append(min(first, end), b"".join(again))).end
            assert await stored(cluster, at, 0, end) == without_epochs(sent)
            # The source begins further on by now: leader and followers drop everything and begin there, too.
            assert await log.append(5_000, log_start_offset=5_000) == (5_000, 5_000)
            later = bytes(encode_batch([NewRecord(None, b"later", 1)], base_offset=5_003))
            assert (await log.append(5_000, later)).end == 5_004

    asyncio.run(copy())
    three_brokers.wait_until_settled()
    three_brokers.brokers[three_brokers.leader_of(topic)].kill()

    async def look() -> None:
        async with Cluster(three_brokers.bootstrap) as cluster:
            found = (await list_offsets(cluster, {at: EARLIEST}))[at]
            assert isinstance(found, FoundOffset)
            assert found.offset == 5_000
            assert len(await stored(cluster, at, 5_000, 5_004)) == 1
            assert await describe_producers(cluster, [at]) == {at: []}, "ids of another cluster are not remembered"

    asyncio.run(look())
