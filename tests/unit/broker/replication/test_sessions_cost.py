"""A fetch in a session costs what changed since the last one, however many partitions the session holds."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.unit.broker.replication.replica_world import TOPIC, World, WorldBroker, world_of
from tests.virtual_time import run_virtually

from ottla.broker.replication.partition import Partition
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ForgottenTopic
from ottla.protocol.records import NewRecord, encode_batch

MANY = 300


class Reads:
    """Counts how often partitions are read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        for name in ("read", "read_committed", "read_uncommitted"):
            monkeypatch.setattr(Partition, name, self._counted(getattr(Partition, name)))

    def _counted(self, read: Any) -> Any:
        def counted(*args: Any, **kwargs: Any) -> Any:
            self.count += 1
            return read(*args, **kwargs)

        return counted

    def take(self) -> int:
        count, self.count = self.count, 0
        return count


class Consumer:
    """A client with a session."""

    def __init__(self, world: World, broker: WorldBroker, isolation_level: int = 0) -> None:
        self._topic_id = world.shared.image.topics[TOPIC].topic_id
        self._broker = broker
        self._isolation_level = isolation_level
        self._session = (0, 0)
        self.offsets: dict[int, int] = {}

    async def fetch(self, *partitions: int, wait_ms: int = 0, forget: tuple[int, ...] = ()) -> dict[int, Any]:
        named = [
            FetchPartition(partition=p, fetch_offset=self.offsets.get(p, 0), partition_max_bytes=2**20)
            for p in partitions
        ]
        request = FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=1,
            isolation_level=self._isolation_level,
            session_id=self._session[0],
            session_epoch=self._session[1],
            topics=[FetchTopic(topic_id=self._topic_id, partitions=named)] if named else [],
            forgotten_topics_data=[ForgottenTopic(topic_id=self._topic_id, partitions=list(forget))] if forget else [],
        )
        answer = await self._broker.ask(request, FetchResponse, 16)
        assert answer.error_code == 0
        self._session = (answer.session_id, self._session[1] + 1)
        return {data.partition_index: data for topic in answer.responses for data in topic.partitions}


def test_a_consumers_idle_partitions_are_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        async with world_of(tmp_path, 1) as world:
            world.create(1, partitions=MANY)
            broker, reads = world.brokers[1], Reads(monkeypatch)
            consumer = Consumer(world, broker)
            assert len(await consumer.fetch(*range(MANY))) == MANY
            assert reads.take() == MANY
            assert await consumer.fetch() == {}
            assert reads.take() == 0
            await broker.produce(b"a", number=7)
            await broker.produce(b"b", number=9)
            assert set(await consumer.fetch()) == {7, 9}
            assert reads.take() == 2
            assert set(await consumer.fetch()) == {7, 9}, "who does not go on is given it again"
            consumer.offsets |= {7: 1, 9: 1}
            assert await consumer.fetch(7, 9) == {}
            reads.take()
            assert await consumer.fetch() == {}
            assert reads.take() == 0
            waiting = asyncio.ensure_future(consumer.fetch(wait_ms=60_000))
            await asyncio.sleep(0.01)
            await broker.produce(b"c", number=200)
            assert set(await waiting) == {200}
            assert reads.take() <= 2
            await consumer.fetch(forget=(200,))
            await broker.produce(b"d", number=200)
            reads.take()
            assert await consumer.fetch() == {}
            assert reads.take() == 0
            assert not broker.partition(200).readers, "what is forgotten is not told any more"

    run_virtually(run())


def test_a_partition_that_fails_is_told_again_until_it_is_well(tmp_path: Path) -> None:
    async def run() -> None:
        async with world_of(tmp_path, 1, 2) as world:
            world.create(1, 2, partitions=3)
            consumer = Consumer(world, world.brokers[1])
            await consumer.fetch(0, 1, 2)
            waiting = asyncio.ensure_future(consumer.fetch(wait_ms=60_000))
            await asyncio.sleep(0.01)
            world.elect(2, number=1)
            world.brokers[1].partition(1).fence()
            told = await waiting
            assert set(told) == {1}
            assert told[1].error_code
            assert set(await consumer.fetch()) == {1}

    run_virtually(run())


def test_followers_of_many_idle_partitions_are_served_for_what_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        async with world_of(tmp_path, 1, 2) as world:
            world.create(1, 2, partitions=MANY)
            for number in range(0, MANY, 10):
                await world.brokers[1].produce(b"a", number=number)
                await world.settled(number)
            fetches = [request for _, _, request in world.calls if isinstance(request, FetchRequest)]
            before, reads = len(fetches), Reads(monkeypatch)
            for _ in range(20):
                assert (await world.brokers[1].produce(b"b", number=5)).error_code == 0
            assert reads.take() < 150, "twenty records to one partition, hundreds of others at rest"
            fetches = [request for _, _, request in world.calls if isinstance(request, FetchRequest)]
            named = sum(len(topic.partitions) for request in fetches[before:] for topic in request.topics)
            assert named < 100

    run_virtually(run())


def test_a_session_that_is_given_up_leaves_nothing_behind(tmp_path: Path) -> None:
    async def run() -> None:
        async with world_of(tmp_path, 1) as world:
            world.create(1, partitions=3)
            consumer = Consumer(world, world.brokers[1])
            await consumer.fetch(0, 1, 2)
            assert all(world.brokers[1].partition(n).readers for n in range(3))
            consumer._session = (consumer._session[0], -1)
            await consumer.fetch(0)
            assert not any(world.brokers[1].partition(n).readers for n in range(3))

    run_virtually(run())


def test_committed_readers_wait_for_the_replicas_of_a_marker(tmp_path: Path) -> None:
    """The end of a transaction counts when it is committed; before, its records must not be shown as decided."""

    async def run() -> None:
        async with world_of(tmp_path, 1, 2) as world:
            world.create(1, 2)
            broker = world.brokers[1]
            leader = broker.partition()
            consumer = Consumer(world, broker, isolation_level=1)
            leader.append(transactional(broker), broker.clock.now_ms())
            await world.settled()
            assert leader.last_stable_offset == 0
            assert (await consumer.fetch(0))[0].last_stable_offset == 0
            waiting = asyncio.ensure_future(consumer.fetch(wait_ms=60_000))
            world.cut(1, 2)
            leader.append_marker(9, 0, commit=True, coordinator_epoch=0, now_ms=broker.clock.now_ms())
            await asyncio.sleep(0.02)
            assert leader.log.first_unstable_offset == 0, "the marker lies above the high watermark"
            assert leader.last_stable_offset == 0
            assert not waiting.done()
            world.mend(1, 2)
            told = await waiting
            assert told[0].records
            assert leader.last_stable_offset == leader.high_watermark == 2

    run_virtually(run())


def transactional(broker: WorldBroker) -> bytearray:
    record = NewRecord(None, b"a", broker.clock.now_ms())
    return encode_batch([record], producer_id=9, producer_epoch=0, base_sequence=0, transactional=True)
