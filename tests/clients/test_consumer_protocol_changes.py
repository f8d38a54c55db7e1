"""What happens around groups of the consumer protocol: new topics and partitions, a killed broker, administrators."""

import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupState, ConsumerGroupType, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from ottla.testing import RunningBroker, broker
from ottla.testing.waiting import wait_until

SECONDS_MAX = 60.0
NUMBERS = 500


@pytest.fixture(scope="module")
def quick() -> Iterator[RunningBroker]:
    with broker({"group.consumer.session.timeout.ms": 45_000}) as running:
        yield running


@pytest.fixture
def admin(quick: RunningBroker) -> AdminClient:
    return AdminClient({"bootstrap.servers": quick.bootstrap})


class Reader:
    """A consumer in a thread of its own, which counts every record that it was given."""

    def __init__(self, running: RunningBroker, group: str, seen: Counter[int], topic: str, **settings: Any) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": running.bootstrap,
                "group.id": group,
                "group.protocol": "consumer",
                "auto.offset.reset": "earliest",
            }
            | {key.replace("_", "."): value for key, value in settings.items()}
        )
        self.partitions: set[tuple[str, int]] = set()
        self.moves = 0
        self._seen = seen
        self._stopped = threading.Event()
        self._consumer.subscribe([topic], on_assign=self._on_assign, on_revoke=self._on_revoke)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _on_assign(self, consumer: Consumer, partitions: list[Any]) -> None:
        self.partitions |= {(position.topic, position.partition) for position in partitions}
        self.moves += bool(partitions)

    def _on_revoke(self, consumer: Consumer, partitions: list[Any]) -> None:
        self.partitions -= {(position.topic, position.partition) for position in partitions}
        self.moves += bool(partitions)

    def _run(self) -> None:
        while not self._stopped.is_set():
            message = self._consumer.poll(0.1)
            if message is not None and message.error() is None:
                self._take(message)
        self._consumer.close()

    def _take(self, message: Message) -> None:
        value = message.value()
        assert value is not None
        self._seen[int(value)] += 1

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join(SECONDS_MAX)


@pytest.fixture
def readers() -> Iterator[list[Reader]]:
    started: list[Reader] = []
    yield started
    for reader in started:
        reader.stop()


def create(admin: AdminClient, name: str, partitions: int) -> str:
    admin.create_topics([NewTopic(name, partitions)])[name].result(SECONDS_MAX)
    return name


def shares(*readers: Reader) -> list[int]:
    return sorted(len(reader.partitions) for reader in readers)


def test_patterns_find_topics_that_come_later(admin: AdminClient, quick: RunningBroker, readers: list[Reader]) -> None:
    create(admin, "pattern-a", 1)
    create(admin, "other", 1)
    reader = Reader(quick, "pattern", Counter(), "^pattern-.*")
    readers.append(reader)
    wait_until(lambda: reader.partitions == {("pattern-a", 0)}, "what matches is assigned", seconds=SECONDS_MAX)
    create(admin, "pattern-b", 2)
    expected = {("pattern-a", 0), ("pattern-b", 0), ("pattern-b", 1)}
    wait_until(lambda: reader.partitions == expected, "a new topic that matches too", seconds=SECONDS_MAX)


def test_new_partitions_are_assigned(admin: AdminClient, quick: RunningBroker, readers: list[Reader]) -> None:
    topic = create(admin, "growing", 1)
    readers += [Reader(quick, "growing", Counter(), topic) for _ in range(2)]
    wait_until(lambda: shares(*readers) == [0, 1], "one partition for two", seconds=SECONDS_MAX)
    admin.create_partitions([NewPartitions(topic, 4)])[topic].result(SECONDS_MAX)
    wait_until(lambda: shares(*readers) == [2, 2], "new partitions are shared", seconds=SECONDS_MAX)


def test_a_broker_that_was_killed_goes_on_where_it_was(
    admin: AdminClient, quick: RunningBroker, readers: list[Reader]
) -> None:
    topic = create(admin, "killed", 4)
    seen: Counter[int] = Counter()
    readers += [Reader(quick, "killed", seen, topic) for _ in range(2)]
    wait_until(lambda: shares(*readers) == [2, 2], "both have their share", seconds=SECONDS_MAX)
    moves = [reader.moves for reader in readers]
    quick.kill()
    quick.start()
    producer = Producer({"bootstrap.servers": quick.bootstrap})
    for number in range(NUMBERS):
        producer.produce(topic, str(number), key=str(number))
    assert producer.flush(SECONDS_MAX) == 0
    wait_until(lambda: len(seen) == NUMBERS, "everything is read", seconds=SECONDS_MAX)
    assert [reader.moves for reader in readers] == moves, "nobody lost its partitions"


def test_groups_of_the_new_kind_are_listed_described_and_deleted(
    admin: AdminClient, quick: RunningBroker, readers: list[Reader]
) -> None:
    topic = create(admin, "described", 2)
    reader = Reader(quick, "described", Counter(), topic, client_id="me", group_remote_assignor="range")
    readers.append(reader)
    wait_until(lambda: shares(reader) == [2], "it has everything", seconds=SECONDS_MAX)
    described = admin.describe_consumer_groups(["described"])["described"].result(SECONDS_MAX)
    assert (described.type, described.state) == (ConsumerGroupType.CONSUMER, ConsumerGroupState.STABLE)
    assert described.partition_assignor == "range"
    (member,) = described.members
    assert member.client_id == "me"
    assert {(p.topic, p.partition) for p in member.assignment.topic_partitions} == {(topic, 0), (topic, 1)}
    assert {(p.topic, p.partition) for p in member.target_assignment.topic_partitions} == {(topic, 0), (topic, 1)}
    listed = admin.list_consumer_groups(types={ConsumerGroupType.CONSUMER}).result(SECONDS_MAX).valid
    assert "described" in {group.group_id for group in listed}
    with pytest.raises(KafkaException) as refused:
        admin.delete_consumer_groups(["described"])["described"].result(SECONDS_MAX)
    assert refused.value.args[0].name() == "NON_EMPTY_GROUP"
    readers.remove(reader)
    reader.stop()
    admin.delete_consumer_groups(["described"])["described"].result(SECONDS_MAX)
