"""confluent-kafka (librdkafka), unmodified, against a real broker."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from ottla.protocol.records import Codec, iterate_batches
from ottla.testing import RunningBroker
from ottla.testing.running import brokers_wanted
from ottla.testing.waiting import wait_until

Sent = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]
SECONDS_MAX = 30.0


@pytest.fixture
def admin(ottla_broker: RunningBroker) -> AdminClient:
    return AdminClient({"bootstrap.servers": ottla_broker.bootstrap})


@pytest.fixture
def topic(admin: AdminClient, unique: Callable[[str], str]) -> str:
    name = unique("confluent")
    _create(admin, NewTopic(name, num_partitions=1))
    return name


def _create(admin: AdminClient, new: NewTopic) -> None:
    admin.create_topics([new])[new.topic].result(SECONDS_MAX)


def _produce(broker: RunningBroker, topic: str, sent: list[Sent], **settings: object) -> list[Message]:
    """Send to partition 0 and wait; the messages as acknowledged."""
    acknowledged: list[Message] = []

    def on_delivery(error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        acknowledged.append(message)

    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5, **settings})
    for key, value, headers in sent:
        producer.produce(topic, value, key, partition=0, headers=headers, on_delivery=on_delivery)
    assert producer.flush(SECONDS_MAX) == 0
    return acknowledged


@contextmanager
def _consumer(broker: RunningBroker, group: str, **settings: object) -> Iterator[Consumer]:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 200,
            **settings,
        }
    )
    try:
        yield consumer
    finally:
        consumer.close()


def _read(consumer: Consumer, count: int) -> list[Message]:
    found: list[Message] = []

    def enough() -> bool:
        for message in consumer.consume(count - len(found), timeout=0.2):
            assert message.error() is None, message.error()
            found.append(message)
        return len(found) >= count

    wait_until(enough, f"{count} records", seconds=SECONDS_MAX)
    return found


def _poll_until(consumers: list[Consumer], condition: Callable[[], bool], what: str) -> None:
    """Rebalances happen inside poll, so every member must poll while one waits."""

    def polled() -> bool:
        for consumer in consumers:
            message = consumer.poll(0.02)
            assert message is None or message.error() is None, message.error()
        return condition()

    wait_until(polled, what, seconds=SECONDS_MAX)


def _partitions(consumer: Consumer) -> set[int]:
    return {position.partition for position in consumer.assignment()}


# Topics and settings


def test_topics_are_created_described_grown_and_deleted(admin: AdminClient, unique: Callable[[str], str]) -> None:
    name = unique("admin")
    _create(admin, NewTopic(name, num_partitions=3, replication_factor=1, config={"retention.ms": "123456"}))

    described = admin.describe_topics(TopicCollection([name]))[name].result(SECONDS_MAX)
    assert [partition.id for partition in described.partitions] == [0, 1, 2]
    assert {partition.leader.id for partition in described.partitions} <= set(range(1, brokers_wanted() + 1))
    assert str(described.topic_id) != ""

    admin.create_partitions([NewPartitions(name, 5)])[name].result(SECONDS_MAX)
    wait_until(lambda: len(admin.list_topics(name).topics[name].partitions) == 5, "five partitions")

    admin.delete_topics([name])[name].result(SECONDS_MAX)
    wait_until(lambda: name not in admin.list_topics().topics, "the topic is gone")


def test_refusals_have_kafkas_codes(admin: AdminClient, topic: str, unique: Callable[[str], str]) -> None:
    cases: list[tuple[Callable[[], Future[None]], int]] = [
        (lambda: admin.create_topics([NewTopic(topic, 1)])[topic], KafkaError.TOPIC_ALREADY_EXISTS),
        (lambda: admin.create_topics([NewTopic("no/slash", 1)])["no/slash"], KafkaError.TOPIC_EXCEPTION),
        (
            lambda: admin.create_topics([NewTopic("x", 1, replication_factor=brokers_wanted() + 1)])["x"],
            KafkaError.INVALID_REPLICATION_FACTOR,
        ),
        (lambda: admin.create_topics([NewTopic("y", 1, config={"no.such": "1"})])["y"], KafkaError.INVALID_CONFIG),
        (lambda: admin.delete_topics(["never-made"])["never-made"], KafkaError.UNKNOWN_TOPIC_OR_PART),
        (lambda: admin.create_partitions([NewPartitions(topic, 1)])[topic], KafkaError.INVALID_PARTITIONS),
    ]
    for request, code in cases:
        with pytest.raises(KafkaException) as refused:
            request().result(SECONDS_MAX)
        assert refused.value.args[0].code() == code


def test_topic_settings_are_altered_and_told(admin: AdminClient, topic: str) -> None:
    resource = ConfigResource(
        ResourceType.TOPIC,
        topic,
        incremental_configs=[ConfigEntry("retention.ms", "60000", incremental_operation=AlterConfigOpType.SET)],
    )
    admin.incremental_alter_configs([resource])[resource].result(SECONDS_MAX)
    asked = ConfigResource(ResourceType.TOPIC, topic)
    told = admin.describe_configs([asked])[asked].result(SECONDS_MAX)
    assert (told["retention.ms"].value, told["retention.ms"].is_default) == ("60000", False)
    assert told["segment.bytes"].is_default

    back = ConfigResource(
        ResourceType.TOPIC,
        topic,
        incremental_configs=[ConfigEntry("retention.ms", None, incremental_operation=AlterConfigOpType.DELETE)],
    )
    admin.incremental_alter_configs([back])[back].result(SECONDS_MAX)
    assert admin.describe_configs([asked])[asked].result(SECONDS_MAX)["retention.ms"].value == "604800000"


def test_the_cluster_describes_itself(admin: AdminClient, ottla_broker: RunningBroker) -> None:
    cluster = admin.list_topics()
    addresses = {f"{broker.host}:{broker.port}" for broker in cluster.brokers.values()}
    assert addresses == set(ottla_broker.bootstrap.split(","))
    assert cluster.controller_id in cluster.brokers
    assert admin.describe_cluster().result(SECONDS_MAX).cluster_id == cluster.cluster_id
    asked = ConfigResource(ResourceType.BROKER, "1")
    assert admin.describe_configs([asked])[asked].result(SECONDS_MAX)["offsets.topic.num.partitions"].value == "1"


# Records


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_come_back_as_sent(
    codec: str, ottla_broker: RunningBroker, topic: str, records: list[Sent], unique: Callable[[str], str]
) -> None:
    records = [
        *records,
        (None, None, [("neither", b"key nor value")]),
    ]  # of the three clients only this one lets it pass
    acknowledged = _produce(ottla_broker, topic, records, **{"compression.type": codec})
    assert [message.offset() for message in acknowledged] == list(range(len(records)))
    with _consumer(ottla_broker, unique("readers")) as consumer:
        consumer.subscribe([topic])
        found = _read(consumer, len(records))
    assert [(m.key(), m.value(), m.headers() or []) for m in found] == records
    # This client leaves a batch as it is when compressing would make it larger.
    assert Codec[codec.upper()] in _codecs_on_disk(ottla_broker, topic)


def _codecs_on_disk(broker: RunningBroker, topic: str) -> set[int]:
    segment = Path(broker.log_dirs[0]) / f"{topic}-0" / "00000000000000000000.log"
    return {header.codec for _, header in iterate_batches(segment.read_bytes())}


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_kind_of_acknowledgement(acks: str, ottla_broker: RunningBroker, topic: str) -> None:
    sent: list[Sent] = [(None, str(n).encode(), []) for n in range(500)]
    _produce(ottla_broker, topic, sent, acks=acks)
    with _consumer(ottla_broker, f"{topic}-readers") as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        assert [m.value() for m in _read(consumer, len(sent))] == [value for _, value, _ in sent]


def test_a_record_that_is_too_large_is_refused_and_the_next_is_not(
    admin: AdminClient, ottla_broker: RunningBroker, unique: Callable[[str], str]
) -> None:
    name = unique("small")
    _create(admin, NewTopic(name, 1, config={"max.message.bytes": "1000"}))
    results: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": ottla_broker.bootstrap})
    for value in (b"x" * 5000, b"small"):
        producer.produce(name, value, on_delivery=lambda error, _: results.append(error))
        producer.flush(SECONDS_MAX)
    assert results[0] is not None
    assert results[0].code() == KafkaError.MSG_SIZE_TOO_LARGE
    assert results[1] is None


def test_a_topic_comes_into_being_when_first_written_to(
    ottla_broker: RunningBroker, unique: Callable[[str], str]
) -> None:
    name = unique("by-itself")
    _produce(ottla_broker, name, [(None, b"first", [])])
    with _consumer(ottla_broker, unique("readers")) as consumer:
        consumer.assign([TopicPartition(name, 0, 0)])
        assert _read(consumer, 1)[0].value() == b"first"


# Offsets


def test_seek_by_time(ottla_broker: RunningBroker, topic: str, unique: Callable[[str], str]) -> None:
    producer = Producer({"bootstrap.servers": ottla_broker.bootstrap})
    start = int(time.time() * 1000) - 100_000
    for n in range(100):
        producer.produce(topic, str(n), partition=0, timestamp=start + n * 1000)
    producer.flush(SECONDS_MAX)
    with _consumer(ottla_broker, unique("readers")) as consumer:
        (found,) = consumer.offsets_for_times([TopicPartition(topic, 0, start + 41_500)], SECONDS_MAX)
        assert found.offset == 42
        (beyond,) = consumer.offsets_for_times([TopicPartition(topic, 0, start + 10**9)], SECONDS_MAX)
        assert beyond.offset == -1
        consumer.assign([found])
        assert _read(consumer, 1)[0].value() == b"42"


def test_offsets_of_special_times(admin: AdminClient, ottla_broker: RunningBroker, topic: str) -> None:
    producer = Producer({"bootstrap.servers": ottla_broker.bootstrap})
    now = int(time.time() * 1000)
    for timestamp in (now - 3000, now - 1000, now - 2000):
        producer.produce(topic, b"x", partition=0, timestamp=timestamp)
        producer.flush(SECONDS_MAX)
    position = TopicPartition(topic, 0)
    for spec, offset in (
        (OffsetSpec.earliest(), 0),
        (OffsetSpec.latest(), 3),
        (OffsetSpec.max_timestamp(), 1),
        (OffsetSpec.for_timestamp(now - 2500), 1),
    ):
        assert admin.list_offsets({position: spec})[position].result(SECONDS_MAX).offset == offset


def test_committed_offsets_are_where_the_group_goes_on(
    ottla_broker: RunningBroker, topic: str, unique: Callable[[str], str]
) -> None:
    group = unique("committers")
    _produce(ottla_broker, topic, [(None, str(n).encode(), []) for n in range(10)])
    with _consumer(ottla_broker, group) as consumer:
        consumer.subscribe([topic])
        _read(consumer, 4)
        consumer.commit(offsets=[TopicPartition(topic, 0, 4, metadata="half-way")], asynchronous=False)
        (committed,) = consumer.committed([TopicPartition(topic, 0)], SECONDS_MAX)
        assert (committed.offset, committed.metadata) == (4, "half-way")
    with _consumer(ottla_broker, group) as consumer:
        consumer.subscribe([topic])
        assert [m.value() for m in _read(consumer, 6)] == [str(n).encode() for n in range(4, 10)]


def test_a_group_without_offsets_begins_at_the_earliest_record_if_told_so(
    ottla_broker: RunningBroker, topic: str, unique: Callable[[str], str]
) -> None:
    _produce(ottla_broker, topic, [(None, str(n).encode(), []) for n in range(5)])
    with _consumer(ottla_broker, unique("earliest"), **{"auto.offset.reset": "earliest"}) as consumer:
        consumer.subscribe([topic])
        assert _read(consumer, 1)[0].value() == b"0"


def test_a_group_without_offsets_begins_at_the_latest_record_if_told_so(
    ottla_broker: RunningBroker, topic: str, unique: Callable[[str], str]
) -> None:
    _produce(ottla_broker, topic, [(None, b"old", [])] * 5)
    found: list[bytes | None] = []
    with _consumer(ottla_broker, unique("latest"), **{"auto.offset.reset": "latest"}) as consumer:
        consumer.subscribe([topic])

        def seen() -> bool:
            # Having partitions is not having a position yet, so one new record may come too early to be seen.
            _produce(ottla_broker, topic, [(None, b"new", [])])
            found.extend(message.value() for message in consumer.consume(10, timeout=0.2))
            return bool(found)

        wait_until(seen, "a new record")
    assert set(found) == {b"new"}


def test_records_below_an_offset_are_deleted(
    admin: AdminClient, ottla_broker: RunningBroker, topic: str, unique: Callable[[str], str]
) -> None:
    _produce(ottla_broker, topic, [(None, str(n).encode(), []) for n in range(10)])
    asked = TopicPartition(topic, 0, 6)
    assert admin.delete_records([asked])[asked].result(SECONDS_MAX).low_watermark == 6
    with _consumer(ottla_broker, unique("readers")) as consumer:
        assert consumer.get_watermark_offsets(TopicPartition(topic, 0), SECONDS_MAX) == (6, 10)
        consumer.subscribe([topic])
        assert _read(consumer, 1)[0].offset() == 6


# Groups


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
def test_members_share_partitions_as_they_come_and_go(
    strategy: str, admin: AdminClient, ottla_broker: RunningBroker, unique: Callable[[str], str]
) -> None:
    name, group = unique("shared"), unique("group")
    _create(admin, NewTopic(name, 4))
    settings = {"partition.assignment.strategy": strategy}
    with _consumer(ottla_broker, group, **settings) as first:
        first.subscribe([name])
        _poll_until([first], lambda: _partitions(first) == {0, 1, 2, 3}, "one member has everything")
        with _consumer(ottla_broker, group, **settings) as second:
            second.subscribe([name])
            _poll_until(
                [first, second],
                lambda: (
                    len(_partitions(first)) == len(_partitions(second)) == 2
                    and _partitions(first) | _partitions(second) == {0, 1, 2, 3}
                ),
                "two members have two partitions each",
            )
        _poll_until([first], lambda: _partitions(first) == {0, 1, 2, 3}, "the remaining member has everything again")


def test_cooperative_rebalance_takes_away_only_what_moves(
    admin: AdminClient, ottla_broker: RunningBroker, unique: Callable[[str], str]
) -> None:
    name, group = unique("cooperative"), unique("group")
    _create(admin, NewTopic(name, 4))
    revoked: list[int] = []
    settings = {"partition.assignment.strategy": "cooperative-sticky"}
    with _consumer(ottla_broker, group, **settings) as first, _consumer(ottla_broker, group, **settings) as second:
        first.subscribe([name], on_revoke=lambda _, gone: revoked.extend(position.partition for position in gone))
        _poll_until([first], lambda: _partitions(first) == {0, 1, 2, 3}, "one member has everything")
        second.subscribe([name])
        _poll_until(
            [first, second],
            lambda: len(_partitions(first)) == len(_partitions(second)) == 2,
            "two members have two partitions each",
        )
        assert len(revoked) == 2
        assert set(revoked) == _partitions(second)


def test_a_static_member_comes_back_to_its_partitions_without_a_rebalance(
    admin: AdminClient, ottla_broker: RunningBroker, unique: Callable[[str], str]
) -> None:
    name, group = unique("static"), unique("group")
    _create(admin, NewTopic(name, 2))
    moves: list[str] = []

    def member(instance: str) -> dict[str, object]:
        return {"group.instance.id": instance, "session.timeout.ms": 30_000}

    with _consumer(ottla_broker, group, **member("stays")) as stays:
        stays.subscribe([name], on_revoke=lambda *_: moves.append("revoked"))
        with _consumer(ottla_broker, group, **member("returns")) as returns:
            returns.subscribe([name])
            _poll_until(
                [stays, returns],
                lambda: len(_partitions(stays)) == len(_partitions(returns)) == 1,
                "one partition for each",
            )
            had = _partitions(returns)
        moves.clear()
        with _consumer(ottla_broker, group, **member("returns")) as returned:
            returned.subscribe([name])
            _poll_until([stays, returned], lambda: _partitions(returned) == had, "the same partition as before")
        assert moves == []
        members = admin.describe_consumer_groups([group])[group].result(SECONDS_MAX).members
        assert {m.group_instance_id for m in members} == {"stays", "returns"}


def test_groups_are_listed_described_reset_and_deleted(
    admin: AdminClient, ottla_broker: RunningBroker, topic: str, unique: Callable[[str], str]
) -> None:
    group = unique("listed")
    _produce(ottla_broker, topic, [(None, b"x", [])] * 5)
    with _consumer(ottla_broker, group, **{"client.id": "the-client"}) as consumer:
        consumer.subscribe([topic])
        _read(consumer, 5)
        consumer.commit(asynchronous=False)
        described = admin.describe_consumer_groups([group])[group].result(SECONDS_MAX)
        assert described.state == ConsumerGroupState.STABLE
        (member,) = described.members
        assert member.client_id == "the-client"
        assert [p.partition for p in member.assignment.topic_partitions] == [0]
        with pytest.raises(KafkaException) as refused:
            admin.delete_consumer_groups([group])[group].result(SECONDS_MAX)
        assert refused.value.args[0].code() == KafkaError.NON_EMPTY_GROUP

    wait_until(
        lambda: admin.describe_consumer_groups([group])[group].result(SECONDS_MAX).state == ConsumerGroupState.EMPTY,
        "the group is empty",
    )
    listed = admin.list_consumer_groups().result(SECONDS_MAX)
    assert group in {entry.group_id for entry in listed.valid}

    asked = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 2)])
    admin.alter_consumer_group_offsets([asked])[group].result(SECONDS_MAX)
    told = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result(SECONDS_MAX)
    assert [(p.topic, p.partition, p.offset) for p in told.topic_partitions] == [(topic, 0, 2)]

    admin.delete_consumer_groups([group])[group].result(SECONDS_MAX)
    listed = admin.list_consumer_groups().result(SECONDS_MAX)
    assert group not in {entry.group_id for entry in listed.valid}
