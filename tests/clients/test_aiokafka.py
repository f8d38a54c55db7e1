"""aiokafka, unmodified, against a real broker."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.structs import OffsetAndMetadata

from ottla.testing import RunningBroker
from ottla.testing.running import brokers_wanted

T = TypeVar("T")

Sent = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]
SECONDS_MAX = 30.0


def run(scenario: Coroutine[Any, Any, None]) -> None:
    """One event loop for one test."""

    async def limited() -> None:
        async with asyncio.timeout(60):
            await scenario

    asyncio.run(limited())


@asynccontextmanager
async def _admin(broker: RunningBroker) -> AsyncIterator[AIOKafkaAdminClient]:
    admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)
    await admin.start()
    try:
        yield admin
    finally:
        await admin.close()


@asynccontextmanager
async def _producer(broker: RunningBroker, **settings: object) -> AsyncIterator[AIOKafkaProducer]:
    producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap, **settings)
    await producer.start()
    try:
        yield producer
    finally:
        await producer.stop()


@asynccontextmanager
async def _consumer(broker: RunningBroker, group: str | None, **settings: object) -> AsyncIterator[AIOKafkaConsumer]:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=broker.bootstrap,
        group_id=group,
        **{
            "auto_offset_reset": "earliest",
            "enable_auto_commit": False,
            "session_timeout_ms": 6000,
            "heartbeat_interval_ms": 200,
            **settings,
        },
    )
    await consumer.start()
    try:
        yield consumer
    finally:
        await consumer.stop()


async def _create(broker: RunningBroker, name: str, partitions: int) -> str:
    async with _admin(broker) as admin:
        await admin.create_topics([NewTopic(name, partitions, brokers_wanted())])
    return name


async def _produce(broker: RunningBroker, topic: str, values: list[bytes]) -> None:
    async with _producer(broker) as producer:
        for value in values:
            await producer.send_and_wait(topic, value, partition=0)


async def _read(consumer: AIOKafkaConsumer, count: int) -> list[Any]:
    return [await asyncio.wait_for(consumer.getone(), SECONDS_MAX) for _ in range(count)]


async def _until(condition: Callable[[], bool], what: str) -> None:
    """The members heartbeat and rejoin by themselves, on this loop."""
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, what
        await asyncio.sleep(0.02)


def _partitions(consumer: AIOKafkaConsumer) -> set[int]:
    return {partition.partition for partition in consumer.assignment()}


# Topics and settings


async def _answered(ask: Callable[[], Awaitable[T]], wanted: Callable[[T], bool]) -> None:
    """Another broker may answer than the one that made a change, a moment before it hears of it."""
    async with asyncio.timeout(SECONDS_MAX):
        while True:
            if wanted(await ask()):
                return
            await asyncio.sleep(0.01)


def test_topics_are_created_described_grown_and_deleted(
    ottla_broker: RunningBroker, unique: Callable[[str], str]
) -> None:
    async def scenario() -> None:
        name = unique("admin")
        async with _admin(ottla_broker) as admin:
            created = await admin.create_topics([NewTopic(name, 3, 1, topic_configs={"retention.ms": "123456"})])
            assert [error for _, error, *_ in created.topic_errors] == [0]

            async def partitions() -> list[int]:
                (described,) = await admin.describe_topics([name])
                return sorted(partition["partition"] for partition in described["partitions"])

            await _answered(partitions, lambda found: found == [0, 1, 2])
            await admin.create_partitions({name: NewPartitions(5)})
            await _answered(partitions, lambda found: len(found) == 5)
            again = await admin.create_topics([NewTopic(name, 3, 1)])
            assert [error for _, error, *_ in again.topic_errors] == [36]
            await admin.delete_topics([name])
            await _answered(admin.list_topics, lambda names: name not in names)

    run(scenario())


def test_topic_settings_are_altered_and_told(ottla_broker: RunningBroker, unique: Callable[[str], str]) -> None:
    async def scenario() -> None:
        name = await _create(ottla_broker, unique("settings"), 1)
        async with _admin(ottla_broker) as admin:
            await admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, name, {"retention.ms": "60000"})])

            async def told() -> dict[str, str]:
                (answer,) = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, name)])
                ((_, _, _, _, entries),) = answer.resources
                return {entry[0]: entry[1] for entry in entries}

            await _answered(told, lambda entries: entries["retention.ms"] == "60000")

    run(scenario())


# Records


@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
def test_records_come_back_as_sent(
    codec: str | None, ottla_broker: RunningBroker, unique: Callable[[str], str], records: list[Sent]
) -> None:
    async def scenario() -> None:
        topic = await _create(ottla_broker, unique("records"), 1)
        async with _producer(ottla_broker, compression_type=codec, linger_ms=5) as producer:
            futures = [
                await producer.send(topic, value, key, partition=0, headers=headers) for key, value, headers in records
            ]
            acknowledged = [await asyncio.wait_for(future, SECONDS_MAX) for future in futures]
        assert [metadata.offset for metadata in acknowledged] == list(range(len(records)))
        async with _consumer(ottla_broker, None) as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            found = await _read(consumer, len(records))
        assert [(m.key, m.value, list(m.headers)) for m in found] == records

    run(scenario())


@pytest.mark.parametrize("settings", [{"acks": 0}, {"acks": 1}, {"acks": "all"}, {"enable_idempotence": True}])
def test_every_kind_of_acknowledgement(
    settings: dict[str, object], ottla_broker: RunningBroker, unique: Callable[[str], str]
) -> None:
    async def scenario() -> None:
        topic = await _create(ottla_broker, unique("acks"), 1)
        values = [str(n).encode() for n in range(300)]
        async with _producer(ottla_broker, **settings) as producer:
            for value in values:
                await producer.send(topic, value, partition=0)
            await producer.flush()
        async with _consumer(ottla_broker, None) as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            assert [m.value for m in await _read(consumer, len(values))] == values

    run(scenario())


# Offsets


def test_seek_by_time(ottla_broker: RunningBroker, unique: Callable[[str], str]) -> None:
    async def scenario() -> None:
        topic = await _create(ottla_broker, unique("times"), 1)
        position = TopicPartition(topic, 0)
        start = int(time.time() * 1000) - 100_000
        async with _producer(ottla_broker) as producer:
            for n in range(100):
                await producer.send(topic, str(n).encode(), partition=0, timestamp_ms=start + n * 1000)
            await producer.flush()
        async with _consumer(ottla_broker, None) as consumer:
            consumer.assign([position])
            found = (await consumer.offsets_for_times({position: start + 41_500}))[position]
            assert (found.offset, found.timestamp) == (42, start + 42_000)
            assert (await consumer.offsets_for_times({position: start + 10**9}))[position] is None
            consumer.seek(position, found.offset)
            assert (await _read(consumer, 1))[0].value == b"42"
            assert await consumer.beginning_offsets([position]) == {position: 0}
            assert await consumer.end_offsets([position]) == {position: 100}

    run(scenario())


def test_committed_offsets_are_where_the_group_goes_on(
    ottla_broker: RunningBroker, unique: Callable[[str], str]
) -> None:
    async def scenario() -> None:
        topic, group = await _create(ottla_broker, unique("commits"), 1), unique("committers")
        position = TopicPartition(topic, 0)
        await _produce(ottla_broker, topic, [str(n).encode() for n in range(10)])
        async with _consumer(ottla_broker, group) as consumer:
            consumer.subscribe([topic])
            await _read(consumer, 4)
            await consumer.commit({position: OffsetAndMetadata(4, "half-way")})
            assert await consumer.committed(position) == 4
        async with _consumer(ottla_broker, group) as consumer:
            consumer.subscribe([topic])
            assert [m.value for m in await _read(consumer, 6)] == [str(n).encode() for n in range(4, 10)]

    run(scenario())


@pytest.mark.parametrize(("reset", "expected"), [("earliest", 0), ("latest", 5)])
def test_where_a_group_without_offsets_begins(
    reset: str, expected: int, ottla_broker: RunningBroker, unique: Callable[[str], str]
) -> None:
    async def scenario() -> None:
        topic = await _create(ottla_broker, unique("reset"), 1)
        await _produce(ottla_broker, topic, [b"old"] * 5)
        async with _consumer(ottla_broker, unique("group"), auto_offset_reset=reset) as consumer:
            consumer.subscribe([topic])
            await _until(lambda: _partitions(consumer) == {0}, "an assignment")
            assert await consumer.position(TopicPartition(topic, 0)) == expected

    run(scenario())


def test_records_below_an_offset_are_deleted(ottla_broker: RunningBroker, unique: Callable[[str], str]) -> None:
    async def scenario() -> None:
        topic = await _create(ottla_broker, unique("deleted"), 1)
        position = TopicPartition(topic, 0)
        await _produce(ottla_broker, topic, [str(n).encode() for n in range(10)])
        async with _admin(ottla_broker) as admin:
            assert await admin.delete_records({position: RecordsToDelete(before_offset=6)}) == {position: 6}
        async with _consumer(ottla_broker, None) as consumer:
            consumer.assign([position])
            assert (await _read(consumer, 1))[0].offset == 6

    run(scenario())


# Groups


@pytest.mark.parametrize(
    "strategy", [RangePartitionAssignor, RoundRobinPartitionAssignor, StickyPartitionAssignor], ids=lambda s: s.name
)
def test_members_share_partitions_as_they_come_and_go(
    strategy: object, ottla_broker: RunningBroker, unique: Callable[[str], str]
) -> None:
    async def scenario() -> None:
        topic, group = await _create(ottla_broker, unique("shared"), 4), unique("group")
        settings = {"partition_assignment_strategy": [strategy]}
        async with _consumer(ottla_broker, group, **settings) as first:
            first.subscribe([topic])
            await _until(lambda: _partitions(first) == {0, 1, 2, 3}, "one member has everything")
            async with _consumer(ottla_broker, group, **settings) as second:
                second.subscribe([topic])
                await _until(
                    lambda: (
                        len(_partitions(first)) == len(_partitions(second)) == 2
                        and _partitions(first) | _partitions(second) == {0, 1, 2, 3}
                    ),
                    "two members have two partitions each",
                )
            await _until(lambda: _partitions(first) == {0, 1, 2, 3}, "the remaining member has everything again")

    run(scenario())


class _Moves(ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self) -> None:
        self.revoked = 0

    async def on_partitions_revoked(self, revoked: list[TopicPartition]) -> None:
        self.revoked += 1

    async def on_partitions_assigned(self, assigned: list[TopicPartition]) -> None:
        """What is gained is seen in the assignment."""


def test_a_static_member_comes_back_to_its_partitions_without_a_rebalance(
    ottla_broker: RunningBroker, unique: Callable[[str], str]
) -> None:
    async def scenario() -> None:
        topic, group = await _create(ottla_broker, unique("static"), 2), unique("group")
        moves = _Moves()

        def member(instance: str) -> dict[str, object]:
            return {"group_instance_id": instance, "session_timeout_ms": 30_000}

        async with _consumer(ottla_broker, group, **member("stays")) as stays:
            stays.subscribe([topic], listener=moves)
            async with _consumer(ottla_broker, group, **member("returns")) as returns:
                returns.subscribe([topic])
                await _until(
                    lambda: len(_partitions(stays)) == len(_partitions(returns)) == 1, "one partition for each"
                )
                had = _partitions(returns)
            moves.revoked = 0
            async with _consumer(ottla_broker, group, **member("returns")) as returned:
                returned.subscribe([topic])
                await _until(lambda: _partitions(returned) == had, "the same partition as before")
            assert moves.revoked == 0

    run(scenario())


def test_groups_are_listed_and_described(ottla_broker: RunningBroker, unique: Callable[[str], str]) -> None:
    async def scenario() -> None:
        topic, group = await _create(ottla_broker, unique("listed"), 1), unique("group")
        position = TopicPartition(topic, 0)
        await _produce(ottla_broker, topic, [b"x"] * 5)
        async with _admin(ottla_broker) as admin:
            async with _consumer(ottla_broker, group) as consumer:
                consumer.subscribe([topic])
                await _read(consumer, 5)
                await consumer.commit()
                (described,) = await admin.describe_consumer_groups([group])
                ((error, name, state, *_),) = described.groups
                assert (error, name, state) == (0, group, "Stable")
            assert group in {name for name, _ in await admin.list_consumer_groups()}
            assert (await admin.list_consumer_group_offsets(group))[position].offset == 5

    run(scenario())
