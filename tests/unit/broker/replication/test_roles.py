"""Sessions with the store that end or fall silent, leaders that do not know enough yet, records that are deleted."""

import asyncio
from pathlib import Path

from tests.unit.broker.replication.replica_world import SESSION_TIMEOUT_MS, TOPIC, WorldBroker, world_of
from tests.virtual_time import run_virtually

from ottla.cluster.store import Session
from ottla.model.errors import ErrorCode
from ottla.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)


def test_a_lost_session_ends_every_role_until_the_broker_is_registered_again(tmp_path: Path) -> None:
    async def run() -> None:
        async with world_of(tmp_path, 1, 2) as world:
            world.create(1, 2, partitions=2)
            world.elect(2, number=1)
            one = world.brokers[1]
            await one.produce(b"a")
            await world.settled(0)
            one.store.change_session(Session.LOST)
            assert (await one.produce(b"b")).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            assert not one.partition(0).is_leader
            assert not one.partition(1).is_follower
            world.elect(2, number=0)
            assert not one.partition(0).is_follower, "what the image says counts only once it is registered again"
            one.store.change_session(Session.CONNECTED)
            assert not one.partition(0).is_follower
            await one.store.register_broker(world.shared.image.brokers[1])
            await world.brokers[2].produce(b"c")
            await world.settled(0)

    run_virtually(run())


def test_while_the_store_is_silent_a_leader_goes_on_as_long_as_its_followers_follow(tmp_path: Path) -> None:
    async def run() -> None:
        async with world_of(tmp_path, 1, 2) as world:
            world.create(1, 2)
            one = world.brokers[1]
            await one.produce(b"a")
            one.store.change_session(Session.SUSPENDED)
            world.clock.ahead_s += SESSION_TIMEOUT_MS / 1000 + 1
            await one.partitions.note_awake()
            served = len(world.calls)
            await world.until(lambda: len(world.calls) > served + 2)
            assert (await one.produce(b"b")).error_code == 0
            world.cut(1, 2)
            await asyncio.sleep(0.01)
            assert (await one.produce(b"c", acks=1)).error_code == 0
            world.clock.ahead_s += SESSION_TIMEOUT_MS / 1000 + 1
            assert (await one.produce(b"d", acks=1)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            one.store.change_session(Session.CONNECTED)
            assert (await one.produce(b"d", acks=1)).error_code == 0

    run_virtually(run())


def test_a_leader_that_slept_waits_until_its_followers_show_that_they_still_follow(tmp_path: Path) -> None:
    async def run() -> None:
        async with world_of(tmp_path, 1, 2) as world:
            world.create(1, 2)
            one = world.brokers[1]
            await one.produce(b"a")
            await one.partitions.note_awake()
            world.cut(1, 2)
            world.clock.ahead_s += SESSION_TIMEOUT_MS / 1000 + 1
            assert (await one.produce(b"b", acks=1)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            world.mend(1, 2)
            seen = len(world.calls)
            await world.until(lambda: sum(call[:2] == (2, 1) for call in world.calls[seen:]) > 2)
            assert (await one.produce(b"b")).error_code == 0

    run_virtually(run())


def test_a_leader_that_is_alone_in_sync_goes_on_without_the_store(tmp_path: Path) -> None:
    async def run() -> None:
        async with world_of(tmp_path, 1) as world:
            world.create(1, 2, isr=(1,))
            await world.brokers[1].partitions.note_awake()
            world.brokers[1].store.change_session(Session.SUSPENDED)
            world.clock.ahead_s += 1_000
            assert (await world.brokers[1].produce(b"a")).error_code == 0

    run_virtually(run())


def test_a_new_leader_does_not_name_an_end_that_might_go_back(tmp_path: Path) -> None:
    async def run() -> None:
        async with world_of(tmp_path, 1, 2, 3, replica_fetch_wait_max_ms="60000") as world:
            world.create(1, 2, 3)
            world.cut(1, 3)
            late = await world.brokers[1].produce(b"a", timeout_ms=20)
            assert late.error_code == ErrorCode.REQUEST_TIMED_OUT
            await world.until(lambda: world.brokers[2].partition().log.end_offset == 1)
            world.cut(2, 3)
            await world.stop(1)
            world.elect(2, (2, 3))
            two = world.brokers[2]
            assert await latest(two, 5) == (ErrorCode.OFFSET_NOT_AVAILABLE, -1)
            assert await latest(two, 4) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
            assert await latest(two, 5, replica_id=3) == (0, 1)
            world.mend(2, 3)
            await world.until(lambda: two.partition().high_watermark == 1)
            assert await latest(two, 5) == (0, 1)

    run_virtually(run())


async def latest(broker: WorldBroker, version: int, replica_id: int = -1) -> tuple[int, int]:
    asked = ListOffsetsTopic(name=TOPIC, partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)])
    answer = await broker.ask(ListOffsetsRequest(replica_id=replica_id, topics=[asked]), ListOffsetsResponse, version)
    found = answer.topics[0].partitions[0]
    return found.error_code, found.offset


def test_records_are_deleted_on_every_replica_before_it_is_answered(tmp_path: Path) -> None:
    async def run() -> None:
        async with world_of(tmp_path, 1, 2, 3) as world:
            world.create(1, 2, 3)
            await world.brokers[1].produce(*[b"a"] * 10)
            await world.settled()
            assert await delete(world.brokers[1], 5) == (0, 5)
            assert [world.brokers[n].partition().log.start_offset for n in (1, 2, 3)] == [5, 5, 5]
            world.cut(1, 3)
            assert await delete(world.brokers[1], 7, timeout_ms=50) == (ErrorCode.REQUEST_TIMED_OUT, -1)
            waiting = asyncio.ensure_future(delete(world.brokers[1], -1))
            await world.until(lambda: world.brokers[2].partition().log.start_offset == 10)
            assert not waiting.done()
            await world.stop(3)
            assert await waiting == (0, 10), "a replica on a dead broker is not waited for"
            assert await delete(world.brokers[1], 11) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)

    run_virtually(run())


async def delete(broker: WorldBroker, offset: int, timeout_ms: int = 10_000) -> tuple[int, int]:
    topic = DeleteRecordsTopic(name=TOPIC, partitions=[DeleteRecordsPartition(partition_index=0, offset=offset)])
    answer = await broker.ask(DeleteRecordsRequest(topics=[topic], timeout_ms=timeout_ms), DeleteRecordsResponse, 2)
    found = answer.topics[0].partitions[0]
    return found.error_code, found.low_watermark
