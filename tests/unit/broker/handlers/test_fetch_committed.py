"""Fetch and ListOffsets of committed records: where they stop, what they skip, and when a waiting one wakes."""

import asyncio

import pytest
from tests.unit.broker.handlers.conftest import Harness
from tests.unit.broker.handlers.partition_requests import TOPIC, batch, begin_fetch, create_topic, fetched

from ottla.broker.handlers.context import Parked
from ottla.broker.replication.partition import Partition
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ottla.protocol.records import iterate_batches

NOW_MS = 1_000
LONG_MS = 3_600_000


@pytest.fixture
def partition(harness: Harness) -> Partition:
    return create_topic(harness)[0]


def end(partition: Partition, producer_id: int, *, commit: bool) -> None:
    partition.append_marker(producer_id, 0, commit=commit, coordinator_epoch=0, now_ms=NOW_MS)


def done(parked: Parked) -> bool:
    return parked.resolved


def offsets(records: bytes | memoryview | bytearray | None) -> list[int]:
    return [header.base_offset for _, header in iterate_batches(records or b"")]


@pytest.mark.parametrize("version", range(4, 19))
def test_committed_records_end_at_the_last_stable_offset(harness: Harness, partition: Partition, version: int) -> None:
    partition.append(batch(1, 0), NOW_MS)
    end(partition, 1, commit=False)
    partition.append(batch(2, 0), NOW_MS)
    partition.append(batch(-1, -1, epoch=-1, transactional=False), NOW_MS)
    data = fetched(begin_fetch(harness, 0, version=version), version)
    assert offsets(data.records) == [0, 1]
    assert (data.high_watermark, data.last_stable_offset) == (4, 2)
    assert [(one.producer_id, one.first_offset) for one in data.aborted_transactions or ()] == [(1, 0)]
    everything = fetched(begin_fetch(harness, 0, version=version, committed=False), version)
    assert offsets(everything.records) == [0, 1, 2, 3]
    assert everything.aborted_transactions is None
    end(partition, 2, commit=True)
    data = fetched(begin_fetch(harness, 2, version=version), version)
    assert offsets(data.records) == [2, 3, 4]
    assert data.aborted_transactions == []


def test_aborted_transactions_are_sorted_by_their_first_offset(harness: Harness, partition: Partition) -> None:
    partition.append(batch(1, 0), NOW_MS)
    partition.append(batch(2, 0), NOW_MS)
    end(partition, 2, commit=False)
    end(partition, 1, commit=False)
    data = fetched(begin_fetch(harness, 0))
    assert [one.first_offset for one in data.aborted_transactions or ()] == [0, 1]


def test_only_the_end_of_the_transaction_wakes_who_waits_for_it(harness: Harness, partition: Partition) -> None:
    async def run() -> None:
        partition.append(batch(1, 0), NOW_MS)
        waiting = begin_fetch(harness, 0, wait_ms=LONG_MS)
        eager = begin_fetch(harness, 1, wait_ms=LONG_MS, committed=False)
        assert isinstance(waiting, Parked)
        assert isinstance(eager, Parked)
        partition.append(batch(1, 1), NOW_MS)
        partition.append(batch(2, 0), NOW_MS)
        partition.append(batch(-1, -1, epoch=-1, transactional=False), NOW_MS)
        end(partition, 2, commit=True)
        await asyncio.sleep(0)
        assert done(eager)
        assert not done(waiting), "the oldest transaction is still open"
        assert len(partition.readers) == 1
        end(partition, 1, commit=True)
        await asyncio.sleep(0)
        assert done(waiting)
        assert not partition.readers
        waiting.when_resolved(lambda raw: seen.extend(offsets(fetched(raw).records)))

    seen: list[int] = []
    asyncio.run(run())
    assert seen == [0, 1, 2, 3, 4, 5]


def test_bytes_are_counted_when_they_become_readable(harness: Harness, partition: Partition) -> None:
    size = len(batch(1, 0))

    async def run() -> None:
        partition.append(batch(1, 0), NOW_MS)
        partition.append(batch(2, 0), NOW_MS)
        waiting = begin_fetch(harness, 0, wait_ms=LONG_MS, min_bytes=3 * size)
        assert isinstance(waiting, Parked)
        end(partition, 1, commit=True)  # lets go the first batch only
        await asyncio.sleep(0)
        assert not done(waiting)
        end(partition, 2, commit=True)  # and this the rest, with both markers
        await asyncio.sleep(0)
        assert done(waiting)

    asyncio.run(run())


def test_without_transactions_every_append_wakes(harness: Harness, partition: Partition) -> None:
    async def run() -> None:
        waiting = begin_fetch(harness, 0, wait_ms=LONG_MS)
        assert isinstance(waiting, Parked)
        partition.append(batch(-1, -1, epoch=-1, transactional=False), NOW_MS)
        await asyncio.sleep(0)
        assert done(waiting)

    asyncio.run(run())


def test_a_retried_batch_wakes_nobody(harness: Harness, partition: Partition) -> None:
    async def run() -> None:
        partition.append(batch(3, 0, transactional=False), NOW_MS)
        waiting = begin_fetch(harness, 1, wait_ms=LONG_MS)
        assert isinstance(waiting, Parked)
        assert partition.append(batch(3, 0, transactional=False), NOW_MS).duplicate
        await asyncio.sleep(0)
        assert not done(waiting)
        assert waiting.abandon is not None
        waiting.abandon()

    asyncio.run(run())


def test_who_has_read_beyond_the_stable_offset_waits_on(harness: Harness, partition: Partition) -> None:
    """A consumer that read uncommitted records before and goes on with committed ones."""

    async def run() -> None:
        partition.append(batch(1, 0), NOW_MS)
        partition.append(batch(2, 0), NOW_MS)
        waiting = begin_fetch(harness, 2, wait_ms=LONG_MS)
        assert isinstance(waiting, Parked)
        end(partition, 1, commit=True)
        await asyncio.sleep(0)
        assert not done(waiting), "what became readable lies before its position"
        end(partition, 2, commit=True)
        await asyncio.sleep(0)
        assert done(waiting)

    asyncio.run(run())


def test_the_deadline_answers_with_what_there_is(harness: Harness, partition: Partition) -> None:
    async def run() -> None:
        partition.append(batch(1, 0), NOW_MS)
        waiting = begin_fetch(harness, 0, wait_ms=5)
        assert isinstance(waiting, Parked)
        answered: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        waiting.when_resolved(answered.set_result)
        data = fetched(await answered)
        assert (offsets(data.records), data.last_stable_offset, data.high_watermark) == ([], 0, 1)

    asyncio.run(run())


@pytest.mark.parametrize("version", range(2, 12))
def test_list_offsets_of_committed_records(harness: Harness, partition: Partition, version: int) -> None:
    partition.append(batch(-1, -1, epoch=-1, transactional=False), NOW_MS)
    partition.append(batch(1, 0), NOW_MS)
    for isolation, latest, by_time in ((0, 2, 0), (1, 1, 0)):
        assert list_offset(harness, version, isolation, -1) == latest
        assert list_offset(harness, version, isolation, 0) == by_time
    partition.log.delete_records_before(1)
    assert list_offset(harness, version, 0, 0) == 1
    assert list_offset(harness, version, 1, 0) == -1, "the only record left is not decided"


def list_offset(harness: Harness, version: int, isolation: int, timestamp: int) -> int:
    asked = ListOffsetsTopic(name=TOPIC, partitions=[ListOffsetsPartition(partition_index=0, timestamp=timestamp)])
    request = ListOffsetsRequest(replica_id=-1, isolation_level=isolation, topics=[asked])
    return harness.call(request, ListOffsetsResponse, version).topics[0].partitions[0].offset
