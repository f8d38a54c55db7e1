"""kafka-python 3, unmodified, against a real broker."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, OffsetSpec
from kafka.consumer.subscription_state import ConsumerRebalanceListener
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.errors import (
    InvalidPartitionsError,
    InvalidReplicationFactorError,
    InvalidTopicError,
    NoError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)
from kafka.structs import OffsetAndMetadata

from ottla.testing import RunningBroker
from ottla.testing.running import brokers_wanted
from ottla.testing.waiting import wait_until

Sent = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]
SECONDS_MAX = 30.0


@pytest.fixture
def admin(ottla_broker: RunningBroker) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=ottla_broker.bootstrap)
    yield client
    client.close()


@pytest.fixture
def topic(admin: KafkaAdminClient, unique: Callable[[str], str]) -> str:
    name = unique("kafka-python")
    admin.create_topics({name: {"num_partitions": 1}})
    return name


@contextmanager
def _producer(broker: RunningBroker, **settings: object) -> Iterator[KafkaProducer]:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap, **settings)
    try:
        yield producer
    finally:
        producer.close()


@contextmanager
def _consumer(broker: RunningBroker, group: str | None, **settings: object) -> Iterator[KafkaConsumer]:
    consumer = KafkaConsumer(
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
    try:
        yield consumer
    finally:
        consumer.close()


def _produce(broker: RunningBroker, topic: str, values: list[bytes]) -> None:
    with _producer(broker) as producer:
        for future in [producer.send(topic, value, partition=0) for value in values]:
            future.get(SECONDS_MAX)


def _read(consumer: KafkaConsumer, count: int) -> list[object]:
    found: list[object] = []

    def enough() -> bool:
        # Long enough for a whole join, see `_member`.
        for batch in consumer.poll(timeout_ms=5000, max_records=count - len(found)).values():
            found.extend(batch)
        return len(found) >= count

    wait_until(enough, f"{count} records", seconds=SECONDS_MAX)
    return found


@contextmanager
def _member(
    broker: RunningBroker, group: str, topic: str, listener: ConsumerRebalanceListener | None = None, **settings: object
) -> Iterator[KafkaConsumer]:
    """A consumer that polls on its own thread, as a rebalance needs all members to.

    A poll must last long enough for a whole join: this client forgets its assignment when the answer to the sync comes
    between two polls.
    """
    with _consumer(broker, group, **settings) as consumer:
        consumer.subscribe([topic], listener=listener)
        leaving = threading.Event()

        def poll() -> None:
            while not leaving.is_set():
                consumer.poll(timeout_ms=500)

        thread = threading.Thread(target=poll)
        thread.start()
        try:
            yield consumer
        finally:
            leaving.set()
            thread.join()


def _partitions(consumer: KafkaConsumer) -> set[int]:
    return {partition.partition for partition in consumer.assignment()}


# Topics and settings


def test_topics_are_created_described_grown_and_deleted(admin: KafkaAdminClient, unique: Callable[[str], str]) -> None:
    name = unique("admin")
    admin.create_topics({name: {"num_partitions": 3, "replication_factor": 1, "configs": {"retention.ms": "123456"}}})
    wait_until(lambda: name in admin.list_topics(), "every broker knows the topic")
    (described,) = admin.describe_topics([name])
    assert sorted(partition["partition_index"] for partition in described["partitions"]) == [0, 1, 2]
    leaders = {partition["leader_id"] for partition in described["partitions"]}
    assert leaders <= set(range(1, brokers_wanted() + 1))

    admin.create_partitions({name: 5})

    def partitions() -> int:
        (paged,) = admin.describe_topic_partitions([name])["topics"]
        return len(paged["partitions"])

    wait_until(lambda: partitions() == 5, "there are five partitions")
    admin.delete_topics([name])
    wait_until(lambda: name not in admin.list_topics(), "the topic is gone")


def test_a_topic_that_is_only_validated_does_not_come_into_being(
    admin: KafkaAdminClient, unique: Callable[[str], str]
) -> None:
    name = unique("never")
    admin.create_topics({name: {"num_partitions": 3}}, validate_only=True)
    assert name not in admin.list_topics()


def test_refusals_have_kafkas_codes(admin: KafkaAdminClient, topic: str) -> None:
    with pytest.raises(TopicAlreadyExistsError):
        admin.create_topics([topic])
    with pytest.raises(InvalidTopicError):
        admin.create_topics(["no/slash"])
    with pytest.raises(InvalidReplicationFactorError):
        admin.create_topics({"too-many": {"num_partitions": 1, "replication_factor": brokers_wanted() + 1}})
    with pytest.raises(UnknownTopicOrPartitionError):
        admin.delete_topics(["never-made"])
    with pytest.raises(InvalidPartitionsError):
        admin.create_partitions({topic: 1})


def test_topic_settings_are_altered_reset_and_told(admin: KafkaAdminClient, topic: str) -> None:
    def told(name: str) -> str:
        asked = [ConfigResource(ConfigResourceType.TOPIC, topic)]
        return str(admin.describe_configs(asked, config_filter="all")["topic"][topic][name]["value"])

    admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": "60000"})])
    assert told("retention.ms") == "60000"
    admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {"segment.ms": "70000"})], incremental=False)
    assert (told("retention.ms"), told("segment.ms")) == ("60000", "70000")
    admin.reset_configs([ConfigResource(ConfigResourceType.TOPIC, topic, ["retention.ms"])])
    assert (told("retention.ms"), told("segment.ms")) == ("604800000", "70000")


def test_the_cluster_describes_itself(admin: KafkaAdminClient, ottla_broker: RunningBroker) -> None:
    cluster = admin.describe_cluster()
    addresses = {f"{broker['host']}:{broker['port']}" for broker in cluster["brokers"]}
    assert addresses == set(ottla_broker.bootstrap.split(","))
    directories = [directory for broker in admin.describe_log_dirs() for directory in broker["log_dirs"]]
    assert len(directories) == brokers_wanted()
    assert {directory["log_dir"] for directory in directories} >= {str(path) for path in ottla_broker.log_dirs}


# Records


@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
def test_records_come_back_as_sent(
    codec: str | None, ottla_broker: RunningBroker, topic: str, records: list[Sent]
) -> None:
    # This client refuses a header without a value before the broker could see it.
    records = [(key, value, [header for header in headers if header[1] is not None]) for key, value, headers in records]
    with _producer(ottla_broker, compression_type=codec, linger_ms=5) as producer:
        futures = [
            producer.send(topic, key=key, value=value, headers=headers, partition=0) for key, value, headers in records
        ]
        assert [future.get(SECONDS_MAX).offset for future in futures] == list(range(len(records)))
    with _consumer(ottla_broker, None) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        found = _read(consumer, len(records))
    assert [(m.key, m.value, list(m.headers)) for m in found] == records  # type: ignore[attr-defined]


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_every_kind_of_acknowledgement(acks: int | str, ottla_broker: RunningBroker, topic: str) -> None:
    values = [str(n).encode() for n in range(300)]
    with _producer(ottla_broker, acks=acks, enable_idempotence=acks == "all") as producer:
        for value in values:
            producer.send(topic, value, partition=0)
        producer.flush(SECONDS_MAX)
    with _consumer(ottla_broker, None) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        assert [m.value for m in _read(consumer, len(values))] == values  # type: ignore[attr-defined]


def test_records_are_stamped_by_the_broker_if_the_topic_says_so(
    admin: KafkaAdminClient, ottla_broker: RunningBroker, unique: Callable[[str], str]
) -> None:
    name = unique("stamped")
    admin.create_topics({name: {"num_partitions": 1, "configs": {"message.timestamp.type": "LogAppendTime"}}})
    before = int(time.time() * 1000)
    with _producer(ottla_broker) as producer:
        metadata = producer.send(name, b"x", timestamp_ms=1000, partition=0).get(SECONDS_MAX)
    assert before <= metadata.timestamp <= int(time.time() * 1000)
    with _consumer(ottla_broker, None) as consumer:
        consumer.assign([TopicPartition(name, 0)])
        (record,) = _read(consumer, 1)
    assert (record.timestamp, record.timestamp_type) == (metadata.timestamp, 1)  # type: ignore[attr-defined]


# Offsets


def test_seek_by_time(ottla_broker: RunningBroker, topic: str) -> None:
    start = int(time.time() * 1000) - 100_000
    with _producer(ottla_broker) as producer:
        for n in range(100):
            producer.send(topic, str(n).encode(), timestamp_ms=start + n * 1000, partition=0)
        producer.flush(SECONDS_MAX)
    position = TopicPartition(topic, 0)
    with _consumer(ottla_broker, None) as consumer:
        consumer.assign([position])
        found = consumer.offsets_for_times({position: start + 41_500})[position]
        assert (found.offset, found.timestamp) == (42, start + 42_000)
        assert consumer.offsets_for_times({position: start + 10**9})[position] is None
        consumer.seek(position, found.offset)
        assert _read(consumer, 1)[0].value == b"42"  # type: ignore[attr-defined]
        assert consumer.beginning_offsets([position]) == {position: 0}
        assert consumer.end_offsets([position]) == {position: 100}


def test_committed_offsets_are_where_the_group_goes_on(
    ottla_broker: RunningBroker, topic: str, unique: Callable[[str], str]
) -> None:
    group, position = unique("committers"), TopicPartition(topic, 0)
    _produce(ottla_broker, topic, [str(n).encode() for n in range(10)])
    with _consumer(ottla_broker, group) as consumer:
        consumer.subscribe([topic])
        _read(consumer, 4)
        consumer.commit({position: OffsetAndMetadata(4, "half-way", -1)})
        assert consumer.committed(position, metadata=True)[:2] == (4, "half-way")
    with _consumer(ottla_broker, group) as consumer:
        consumer.subscribe([topic])
        expected = [str(n).encode() for n in range(4, 10)]
        assert [m.value for m in _read(consumer, 6)] == expected  # type: ignore[attr-defined]


def test_where_a_group_without_offsets_begins(
    ottla_broker: RunningBroker, topic: str, unique: Callable[[str], str]
) -> None:
    _produce(ottla_broker, topic, [b"old"] * 5)
    with _consumer(ottla_broker, unique("earliest"), auto_offset_reset="earliest") as consumer:
        consumer.subscribe([topic])
        assert _read(consumer, 1)[0].offset == 0  # type: ignore[attr-defined]
    with (
        _consumer(ottla_broker, unique("latest"), auto_offset_reset="latest") as consumer,
        _producing(ottla_broker, topic, b"new"),
    ):
        consumer.subscribe([topic])
        assert _read(consumer, 1)[0].value == b"new"  # type: ignore[attr-defined]


@contextmanager
def _producing(broker: RunningBroker, topic: str, value: bytes) -> Iterator[None]:
    """One record after another meanwhile, so that a reader that begins at the end has something to read."""
    ending = threading.Event()

    def produce() -> None:
        with _producer(broker) as producer:
            while not ending.wait(0.05):
                producer.send(topic, value, partition=0)

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()


def test_records_below_an_offset_are_deleted(admin: KafkaAdminClient, ottla_broker: RunningBroker, topic: str) -> None:
    _produce(ottla_broker, topic, [str(n).encode() for n in range(10)])
    position = TopicPartition(topic, 0)
    assert admin.delete_records({position: 6})[position]["low_watermark"] == 6
    with _consumer(ottla_broker, None) as consumer:
        consumer.assign([position])
        assert _read(consumer, 1)[0].offset == 6  # type: ignore[attr-defined]
    assert admin.delete_records({position: -1})[position]["low_watermark"] == 10


# Groups


@pytest.mark.parametrize(
    "strategy", [RangePartitionAssignor, RoundRobinPartitionAssignor, CooperativeStickyAssignor], ids=lambda s: s.name
)
def test_members_share_partitions_as_they_come_and_go(
    strategy: object, admin: KafkaAdminClient, ottla_broker: RunningBroker, unique: Callable[[str], str]
) -> None:
    name, group = unique("shared"), unique("group")
    admin.create_topics({name: {"num_partitions": 4}})
    settings = {"partition_assignment_strategy": [strategy]}
    with _member(ottla_broker, group, name, **settings) as first:
        wait_until(lambda: _partitions(first) == {0, 1, 2, 3}, "one member has everything")
        with _member(ottla_broker, group, name, **settings) as second:
            wait_until(
                lambda: (
                    len(_partitions(first)) == len(_partitions(second)) == 2
                    and _partitions(first) | _partitions(second) == {0, 1, 2, 3}
                ),
                "two members have two partitions each",
            )
        wait_until(lambda: _partitions(first) == {0, 1, 2, 3}, "the remaining member has everything again")


class _Moves(ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self) -> None:
        self.revoked: list[TopicPartition] = []

    def on_partitions_revoked(self, revoked: list[TopicPartition]) -> None:
        self.revoked.extend(revoked)

    def on_partitions_assigned(self, assigned: list[TopicPartition]) -> None:
        """What is gained is seen in the assignment."""


def test_a_static_member_comes_back_to_its_partitions_without_a_rebalance(
    admin: KafkaAdminClient, ottla_broker: RunningBroker, unique: Callable[[str], str]
) -> None:
    name, group = unique("static"), unique("group")
    admin.create_topics({name: {"num_partitions": 2}})
    moves = _Moves()

    def member(instance: str) -> dict[str, object]:
        return {"group_instance_id": instance, "session_timeout_ms": 30_000}

    with _member(ottla_broker, group, name, moves, **member("stays")) as stays:
        with _member(ottla_broker, group, name, **member("returns")) as returns:
            wait_until(
                lambda: len(_partitions(stays)) == len(_partitions(returns)) == 1,
                "one partition for each",
            )
            had = _partitions(returns)
        moves.revoked.clear()
        with _member(ottla_broker, group, name, **member("returns")) as returned:
            wait_until(lambda: _partitions(returned) == had, "the same partition as before")
        assert moves.revoked == []


def test_groups_are_listed_described_reset_and_deleted(
    admin: KafkaAdminClient, ottla_broker: RunningBroker, topic: str, unique: Callable[[str], str]
) -> None:
    group, position = unique("listed"), TopicPartition(topic, 0)
    _produce(ottla_broker, topic, [b"x"] * 5)
    with _consumer(ottla_broker, group, client_id="the-client") as consumer:
        consumer.subscribe([topic])
        _read(consumer, 5)
        consumer.commit()
        described = admin.describe_groups([group])[group]
        assert described["group_state"] == "Stable"
        assert [member["client_id"] for member in described["members"]] == ["the-client"]
        assert admin.delete_groups([group]) == {group: "NonEmptyGroupError"}

    wait_until(lambda: admin.describe_groups([group])[group]["group_state"] == "Empty", "the group is empty")
    assert group in {entry["group_id"] for entry in admin.list_groups(states_filter=["EMPTY"])}
    assert admin.list_group_offsets({group: None})[group][position].offset == 5

    assert admin.reset_group_offsets(group, {position: OffsetSpec.EARLIEST})[position]["error"] is NoError
    assert admin.list_group_offsets({group: [position]})[group][position].offset == 0
    assert admin.delete_group_offsets(group, [position]) == {position: NoError}
    assert position not in admin.list_group_offsets({group: None})[group]

    admin.alter_group_offsets(group, {position: OffsetAndMetadata(3, "", -1)})
    assert admin.delete_groups([group, unique("unknown")])[group] == "OK"
    assert group not in {entry["group_id"] for entry in admin.list_groups()}
