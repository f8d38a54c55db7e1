"""Keeping the log short: all live records are written again and what was before them is dropped."""

import asyncio
from collections.abc import Awaitable

import pytest

from ottla.broker.coordination import machine_shard as shard_module
from ottla.broker.coordination.loading import LoadedLog
from ottla.model.errors import ApiError, ErrorCode
from ottla.protocol.records import Codec, NewRecord, encode_batch, read_header

from .coordinator_world import Coordinator, run, turns
from .group_world import hard_state
from .memory_log import MemoryCoordinatorLog

LIMIT = 4000


@pytest.fixture(autouse=True)
def snapshots_come_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_module, "SNAPSHOT_LOG_BYTES_MIN", LIMIT)
    monkeypatch.setattr(shard_module, "RECORDS_PER_BATCH_MAX", 3)


class WatchedLog(MemoryCoordinatorLog):
    """Remembers what all that was ever appended amounts to, and checks that the short log says the same."""

    def __init__(self) -> None:
        super().__init__()
        self.whole = LoadedLog()
        self.truncations = 0

    def append(self, partition: int, batch: bytearray, epoch: int = 0) -> Awaitable[None] | None:
        result = super().append(partition, batch, epoch)
        self.whole.replay(self.batches[0][-1:])
        if read_header(batch).record_count > 1 or len(self.batches[0]) % 10 == 0:
            self.check()  # in the middle of a snapshot each time, else now and then
        return result

    def truncate_before(self, partition: int, offset: int, epoch: int = 0) -> Awaitable[None] | None:
        result = super().truncate_before(partition, offset, epoch)
        self.truncations += 1
        self.check()
        return result

    def check(self) -> None:
        """A process that dies right here finds the same groups and offsets as one with the whole history."""
        short = LoadedLog()
        short.replay(self.batches[0])
        assert hard_state(short.machine) == hard_state(self.whole.machine)
        assert short.foreign == self.whole.foreign


def test_the_log_stays_short_and_says_the_same_at_every_point() -> None:
    async def scenario() -> None:
        log = WatchedLog()
        world = Coordinator(log)
        member_id, generation = await world.stable()
        for number in range(300):
            world.commit(number, partition=number % 7, member_id=member_id, generation=generation)
            world.commit(number, group_id=f"group-{number % 5}")
            if number % 50 == 49:
                world.groups.delete_group("group-3")
            await asyncio.sleep(0)
        await turns(20)
        assert log.truncations >= 3
        assert log.whole.size_bytes > 8 * LIMIT
        assert sum(map(len, log.batches[0])) < 3 * LIMIT
        again = world.restarted()
        await again.groups.wait_loaded()
        assert [again.committed(partition=partition) for partition in range(7)] == [294, 295, 296, 297, 298, 299, 293]
        assert again.groups.heartbeat("g", member_id, None, generation) is ErrorCode.NONE

    run(scenario())


def test_commits_and_rebalances_during_a_snapshot_are_kept() -> None:
    async def scenario() -> None:
        log = WatchedLog()
        world = Coordinator(log)
        member_id, generation = await world.stable()
        for partition in range(40):
            world.commit(1, partition=partition, member_id=member_id, generation=generation)
        before = log.truncations
        while log.truncations == before:  # the snapshot takes many turns, three records each
            world.commit(2, partition=39, member_id=member_id, generation=generation)
            await asyncio.sleep(0)
        # A round that began before the snapshot goes on after it.
        parked = world.join(member_id)
        assert (await parked).generation == generation + 1
        for _ in range(60):
            world.commit(3, group_id="other")
            await asyncio.sleep(0)
        assert (await world.sync(member_id, generation + 1)).error is ErrorCode.NONE
        await turns(50)
        again = world.restarted()
        await again.groups.wait_loaded()
        assert again.committed(partition=39) == 2
        assert again.committed(partition=0) == 1
        assert again.groups.heartbeat("g", member_id, None, generation + 1) is ErrorCode.NONE

    run(scenario())


def test_a_snapshot_that_cannot_be_written_is_tried_again_later() -> None:
    async def scenario() -> None:
        log = WatchedLog()
        world = Coordinator(log)
        for number in range(200):
            world.commit(number)
            if log.truncations == 0 and sum(map(len, log.batches[0])) > LIMIT:
                log.failure = ApiError(ErrorCode.KAFKA_STORAGE_ERROR)
                await turns()
                log.failure = None
        await turns(20)
        assert log.truncations == 0
        for number in range(200):
            world.commit(number)
            await asyncio.sleep(0)
        await turns(20)
        assert log.truncations > 0

    run(scenario())


def test_a_long_log_is_shortened_after_loading() -> None:
    async def scenario() -> None:
        log = WatchedLog()
        world = Coordinator(log)
        for number in range(300):
            world.commit(number)  # the loop never gets to the snapshot
        world.groups.shutdown()
        await turns()
        assert log.truncations == 0
        again = Coordinator(log)
        await again.groups.wait_loaded()
        await turns(20)
        assert log.truncations == 1
        assert again.committed() == 299

    run(scenario())


def test_records_of_other_kinds_are_carried_along() -> None:
    async def scenario() -> None:
        log = WatchedLog()
        foreign = [NewRecord(b"\x00\x0a\x00\x01x", b"\x00\x00value", 1), NewRecord(b"\x00\x0cgone", b"v", 1)]
        log.append(0, encode_batch(foreign))
        log.append(0, encode_batch([NewRecord(b"\x00\x0cgone", None, 1)]))
        broken = NewRecord(b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x00", b"\x00\x09?", 1)
        log.append(0, encode_batch([broken]))
        world = Coordinator(log)
        await world.groups.wait_loaded()
        for number in range(100):
            world.commit(number, topic="u")
            await asyncio.sleep(0)
        await turns(20)
        assert log.truncations > 0
        loaded = LoadedLog()
        loaded.replay(log.batches[0])
        assert loaded.foreign == {foreign[0].key: foreign[0].value, broken.key: broken.value}

    run(scenario())


def test_the_topics_own_codec_is_used() -> None:
    async def scenario() -> None:
        log = MemoryCoordinatorLog()
        world = Coordinator(log, offsets_topic_compression_codec=Codec.LZ4.value)
        world.commit(5)
        assert log.batches[0][0][22] & 7 == Codec.LZ4
        again = world.restarted()
        await again.groups.wait_loaded()
        assert again.committed() == 5

    run(scenario())
