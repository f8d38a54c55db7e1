"""Consumers are sent to replicas in their rack and served there; who asks the wrong broker hears of the right one."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.unit.broker.replication.replica_world import TOPIC, World, WorldBroker

from ottla.model.errors import ErrorCode
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from ottla.protocol.records import NewRecord, encode_batch, iterate_batches

SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
RACKS = {1: "a", 2: "b", 3: "c"}


def in_world(directory: Path, test: Callable[[World], Awaitable[None]], **settings: str) -> None:
    async def run() -> None:
        world = World(directory, **settings)
        world.racks.update(RACKS)
        for node in RACKS:
            await world.start(node)
        try:
            await test(world)
        finally:
            for broker in tuple(world.brokers.values()):
                await broker.stop()

    asyncio.run(run())


async def fetch(
    broker: WorldBroker, offset: int, *, rack: str = "", version: int = 12, wait_ms: int = 0, epoch: int = -1
) -> PartitionData:
    request = FetchRequest(
        max_wait_ms=wait_ms, min_bytes=1, rack_id=rack, session_epoch=-1,
        topics=[
            FetchTopic(
                topic=TOPIC,
                partitions=[
                    FetchPartition(
                        partition=0, fetch_offset=offset, partition_max_bytes=2**20, current_leader_epoch=epoch
                    )
                ],
            )
        ],
    )  # fmt: skip
    answer = await broker.ask(request, FetchResponse, version)
    return answer.responses[0].partitions[0]


def offsets(data: PartitionData) -> list[int]:
    return [header.base_offset for _, header in iterate_batches(bytes(data.records or b""))]


def test_a_consumer_is_sent_to_the_follower_in_its_rack(tmp_path: Path) -> None:
    async def check(world: World) -> None:
        world.create(1, 2, 3)
        for value in (b"x", b"y"):
            await world.brokers[1].produce(value)
        await world.settled()
        sent = await fetch(world.brokers[1], 1, rack="b", wait_ms=60_000)
        assert (sent.error_code, sent.preferred_read_replica, offsets(sent)) == (0, 2, [])
        assert sent.high_watermark == 2
        served = await fetch(world.brokers[2], 1, rack="b")
        assert (served.error_code, served.preferred_read_replica, offsets(served)) == (0, -1, [1])
        for rack in ("a", "", "nowhere"):
            near = await fetch(world.brokers[1], 1, rack=rack)
            assert (near.preferred_read_replica, offsets(near)) == (-1, [1])
        world.cut(1, 2)
        await world.stop(2)
        world.shared.write([])
        alone = await fetch(world.brokers[1], 1, rack="b")
        assert (alone.preferred_read_replica, offsets(alone)) == (-1, [1]), "a broker that is gone serves nobody"

    in_world(tmp_path, check, replica_selector_class=SELECTOR)


def test_a_follower_that_is_not_in_sync_gets_no_consumers(tmp_path: Path) -> None:
    async def check(world: World) -> None:
        world.cut(1, 2)
        world.create(1, 2, 3, isr=(1, 3))
        await world.brokers[1].produce(b"x")
        near = await fetch(world.brokers[1], 0, rack="b")
        assert (near.preferred_read_replica, offsets(near)) == (-1, [0])

    in_world(tmp_path, check, replica_selector_class=SELECTOR)


@pytest.mark.parametrize("selector", ["", "org.apache.kafka.common.replica.LeaderSelector"])
def test_without_the_selector_all_stay_with_the_leader(tmp_path: Path, selector: str) -> None:
    async def check(world: World) -> None:
        world.create(1, 2, 3)
        await world.brokers[1].produce(b"x")
        await world.settled()
        near = await fetch(world.brokers[1], 0, rack="b")
        assert (near.preferred_read_replica, offsets(near)) == (-1, [0])
        served = await fetch(world.brokers[2], 0)
        assert offsets(served) == [0], "who asks a follower by himself is answered all the same"

    in_world(tmp_path, check, replica_selector_class=selector)


def test_a_follower_shows_only_what_is_committed(tmp_path: Path) -> None:
    async def check(world: World) -> None:
        world.create(1, 2, 3)
        await world.brokers[1].produce(b"x")
        await world.settled()
        world.cut(1, 3)
        await world.brokers[1].produce(b"y", acks=1)
        await world.until(lambda: world.brokers[2].partition().log.end_offset == 2)
        assert offsets(await fetch(world.brokers[2], 0)) == [0]
        uncommitted = await fetch(world.brokers[2], 1)
        assert (uncommitted.error_code, offsets(uncommitted), uncommitted.high_watermark) == (0, [], 1)
        beyond = await fetch(world.brokers[2], 3, rack="b")
        assert beyond.error_code == ErrorCode.OFFSET_OUT_OF_RANGE, "who was sent here asks the leader next"
        mistaken = await fetch(world.brokers[2], 3)
        assert mistaken.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER, "who was not would give up its place"
        assert (await fetch(world.brokers[1], 3)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        waiting = asyncio.ensure_future(fetch(world.brokers[2], 1, wait_ms=20_000))
        world.mend(1, 3)
        assert offsets(await waiting) == [1]

    in_world(tmp_path, check)


def test_a_follower_refuses_what_only_leaders_answer(tmp_path: Path) -> None:
    async def check(world: World) -> None:
        world.create(1, 2, 3)
        await world.brokers[1].produce(b"x")
        await world.settled()
        assert (await fetch(world.brokers[2], 0, version=10)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        request = ListOffsetsRequest(
            replica_id=-1,
            topics=[ListOffsetsTopic(TOPIC, [ListOffsetsPartition(partition_index=0, timestamp=-1)])],
        )
        answer = await world.brokers[2].ask(request, ListOffsetsResponse, 7)
        assert answer.topics[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        world.elect(1)
        await world.settled()
        assert (await fetch(world.brokers[2], 0, epoch=0)).error_code == ErrorCode.FENCED_LEADER_EPOCH
        assert (await fetch(world.brokers[2], 0, epoch=1)).error_code == 0
        assert (await fetch(world.brokers[2], 0, epoch=2)).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
        world.assign(1, 3)
        await world.until(lambda: world.brokers[2].partitions.find(TOPIC, 0) is None)
        assert (await fetch(world.brokers[2], 0)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    in_world(tmp_path, check)


def test_a_waiting_consumer_hears_when_the_follower_becomes_the_leader(tmp_path: Path) -> None:
    async def check(world: World) -> None:
        world.create(1, 2, 3)
        await world.brokers[1].produce(b"x")
        await world.settled()
        waiting = asyncio.ensure_future(fetch(world.brokers[2], 1, wait_ms=20_000, epoch=0))
        await asyncio.sleep(0)
        world.elect(2)
        assert (await waiting).error_code == ErrorCode.FENCED_LEADER_EPOCH

    in_world(tmp_path, check)


def test_a_refused_produce_tells_where_the_leader_is(tmp_path: Path) -> None:
    async def ask(broker: WorldBroker, world: World, version: int) -> ProduceResponse:
        topic_id = world.shared.image.topics[TOPIC].topic_id
        records = encode_batch([NewRecord(None, b"x", world.clock.now_ms())])
        topic = TopicProduceData(partition_data=[PartitionProduceData(index=0, records=records)])
        if version >= 13:
            topic.topic_id = topic_id
        else:
            topic.name = TOPIC
        return await broker.ask(ProduceRequest(acks=-1, timeout_ms=100, topic_data=[topic]), ProduceResponse, version)

    async def check(world: World) -> None:
        world.create(1, 2)
        for broker in (world.brokers[2], world.brokers[3]):
            for version in (9, 10, 13):
                answer = await ask(broker, world, version)
                refused = answer.responses[0].partition_responses[0]
                assert refused.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
                leader = (refused.current_leader.leader_id, refused.current_leader.leader_epoch)
                places = [(node.node_id, node.host, node.port, node.rack) for node in answer.node_endpoints]
                assert (leader, places) == (((1, 0), [(1, "h", 9001, "a")]) if version >= 10 else ((-1, -1), []))
        await world.stop(1)
        answer = await ask(world.brokers[2], world, 13)
        assert answer.responses[0].partition_responses[0].current_leader.leader_id == 1
        assert answer.node_endpoints == []

    in_world(tmp_path, check)


def test_a_refused_fetch_tells_where_the_leader_is(tmp_path: Path) -> None:
    async def ask(broker: WorldBroker, world: World, version: int, epoch: int = -1) -> FetchResponse:
        part = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=2**20, current_leader_epoch=epoch)
        topic = FetchTopic(topic_id=world.shared.image.topics[TOPIC].topic_id, partitions=[part])
        request = FetchRequest(max_wait_ms=0, min_bytes=1, session_epoch=-1, topics=[topic])
        return await broker.ask(request, FetchResponse, version)

    async def check(world: World) -> None:
        world.create(1, 2)
        world.elect(1)
        cases = ((3, -1, ErrorCode.NOT_LEADER_OR_FOLLOWER), (1, 0, ErrorCode.FENCED_LEADER_EPOCH))
        for node, epoch, code in cases:
            for version in (13, 16, 18):
                answer = await ask(world.brokers[node], world, version, epoch)
                refused = answer.responses[0].partitions[0]
                assert refused.error_code == code
                leader = (refused.current_leader.leader_id, refused.current_leader.leader_epoch)
                places = [(place.node_id, place.host, place.port, place.rack) for place in answer.node_endpoints]
                assert (leader, places) == (((1, 1), [(1, "h", 9001, "a")]) if version >= 16 else ((-1, -1), []))
        fine = await ask(world.brokers[1], world, 16)
        assert (fine.responses[0].partitions[0].error_code, fine.node_endpoints) == (0, [])

    in_world(tmp_path, check)
