"""Groups on the new protocol (KIP-848) through confluent-kafka: group.protocol=consumer against a real broker."""

from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.testing import RunningBroker
from ottla.testing.ledger import Ledger
from ottla.testing.load import RECONNECT, LoadProducer, quiet
from ottla.testing.waiting import wait_until

PARTITIONS = 6
SECONDS_MAX = 120.0
RECORDS_BETWEEN_CHANGES = 300
Unique = Callable[[str], str]


class Group:
    """Members that are polled in turn, and everything that they have read."""

    def __init__(self, bootstrap: str, name: str, topic: str) -> None:
        self.members: list[Consumer] = []
        self.read: Counter[tuple[int, int]] = Counter()
        self._bootstrap = bootstrap
        self._name = name
        self._topic = topic

    def join(self, protocol: str = "consumer", *, subscription: str | None = None, **more: str) -> Consumer:
        settings: dict[str, str | int | float | bool] = {
            "bootstrap.servers": self._bootstrap,
            "group.id": self._name,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 100,
            **RECONNECT,
            **{name.replace("_", "."): value for name, value in more.items()},
        }
        if protocol == "classic":
            settings |= {"heartbeat.interval.ms": 200}
        member = Consumer(settings, logger=quiet)
        member.subscribe([subscription or self._topic])
        self.members.append(member)
        return member

    def leave(self, member: Consumer) -> None:
        """In order: what was read is committed before the partitions go to others."""
        self.members.remove(member)
        member.close()

    def poll(self) -> None:
        for member in self.members:
            for message in member.consume(500, timeout=0.05):
                if message.error() is not None:
                    raise KafkaException(message.error())
                partition, offset = message.partition(), message.offset()
                assert partition is not None
                assert offset is not None
                self.read[partition, offset] += 1

    def shared(self) -> bool:
        """Whether every partition has one reader and the readers have equally many, give or take one."""
        self.poll()
        owned = [{each.partition for each in member.assignment()} for member in self.members]
        sizes = [len(each) for each in owned]
        return sum(sizes) == PARTITIONS == len(set().union(*owned)) and max(sizes) - min(sizes) <= 1

    def wait_until_shared(self) -> None:
        wait_until(self.shared, f"{len(self.members)} members share the partitions", seconds=SECONDS_MAX)

    def wait_for_records(self) -> None:
        """Some more, so that the next change finds the members at work."""
        before = len(self.read)

        def more() -> bool:
            self.poll()
            return len(self.read) >= before + RECORDS_BETWEEN_CHANGES

        wait_until(more, "the members go on reading", seconds=SECONDS_MAX)

    def has_read(self, ledger: Ledger) -> bool:
        self.poll()
        return len(self.read) >= ledger.total

    def close(self) -> None:
        for member in self.members:
            member.close()


@pytest.fixture
def topic(ottla_broker: RunningBroker, unique: Unique) -> str:
    name = unique("new-groups")
    admin = AdminClient({"bootstrap.servers": ottla_broker.bootstrap}, logger=quiet)
    admin.create_topics([NewTopic(name, PARTITIONS)])[name].result(30)
    return name


@pytest.fixture
def group(ottla_broker: RunningBroker, unique: Unique, topic: str) -> Iterator[Group]:
    group = Group(ottla_broker.bootstrap, unique("group"), topic)
    yield group
    group.close()


@pytest.fixture
def load(ottla_broker: RunningBroker, topic: str) -> Iterator[tuple[LoadProducer, Ledger]]:
    """Records that keep coming until the producer is stopped."""
    ledger = Ledger()
    producer = LoadProducer(
        ottla_broker.bootstrap, topic, PARTITIONS, number=0, ledger=ledger, records_per_second=1_000
    ).start()
    yield producer, ledger
    producer.stop()


def _check_all_read(group: Group, load: tuple[LoadProducer, Ledger]) -> None:
    producer, ledger = load
    producer.stop()
    wait_until(lambda: group.has_read(ledger), "everything is read", seconds=SECONDS_MAX)
    assert len(group.read) == ledger.total > 0
    assert [place for place, times in group.read.items() if times > 1] == [], "read twice"


@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_members_come_and_go_under_load(group: Group, load: tuple[LoadProducer, Ledger], assignor: str) -> None:
    for _ in range(3):
        group.join(group_remote_assignor=assignor)
        group.wait_until_shared()
        group.wait_for_records()
    group.leave(group.members[0])
    group.wait_until_shared()
    group.wait_for_records()
    group.join(group_remote_assignor=assignor)
    group.wait_until_shared()
    group.wait_for_records()
    group.leave(group.members[1])
    group.leave(group.members[0])
    group.wait_until_shared()
    _check_all_read(group, load)


def test_rolling_upgrade_and_back_under_load(group: Group, load: tuple[LoadProducer, Ledger]) -> None:
    for protocol in ("classic", "classic", "consumer", "consumer", "classic", "classic"):
        if len(group.members) == 2:
            group.leave(group.members[0])
        group.join(protocol)
        group.wait_until_shared()
        group.wait_for_records()
    _check_all_read(group, load)


def test_a_static_member_that_comes_back_has_its_partitions_again(group: Group) -> None:
    first = group.join(group_instance_id="first")
    second = group.join(group_instance_id="second")
    group.wait_until_shared()
    before = {each.partition for each in second.assignment()}
    others = {each.partition for each in first.assignment()}
    group.leave(second)

    second = group.join(group_instance_id="second")

    wait_until(lambda: group.shared() and bool(second.assignment()), "it is back", seconds=SECONDS_MAX)
    assert {each.partition for each in second.assignment()} == before
    assert {each.partition for each in first.assignment()} == others


def test_a_pattern_is_evaluated_by_the_broker(group: Group, topic: str) -> None:
    group.join(subscription=f"^{topic.replace('groups', 'g[a-z]+ps')}$")
    group.wait_until_shared()
    (member,) = group.members
    assert {(each.topic, each.partition) for each in member.assignment()} == {
        (topic, number) for number in range(PARTITIONS)
    }
