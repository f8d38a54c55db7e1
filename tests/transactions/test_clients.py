"""Transactions through confluent-kafka, aiokafka and kafka-python, unmodified, against a real broker."""

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.transactions.adapters import Aio, Client, Confluent, LoopThread, Python, Refused, TransactionalClient

from ottla.testing import RunningBroker
from ottla.testing.load import quiet
from ottla.testing.waiting import wait_until

PARTITIONS = 2
TIMEOUT_MS = 30_000
SHORT_TIMEOUT_MS = 2_000
NewProducer = Callable[..., TransactionalClient]
Read = Callable[..., list[tuple[int, bytes]]]


@pytest.fixture(params=["confluent-kafka", "aiokafka", "kafka-python"])
def client(request: pytest.FixtureRequest) -> Iterator[Client]:
    if request.param == "aiokafka":
        loop = LoopThread()
        yield Aio(loop)
        loop.close()
    else:
        yield Confluent() if request.param == "confluent-kafka" else Python()


@pytest.fixture
def topic(ottla_broker: RunningBroker, unique: Callable[[str], str]) -> str:
    name = unique("transactions")
    admin = AdminClient({"bootstrap.servers": ottla_broker.bootstrap}, logger=quiet)
    admin.create_topics([NewTopic(name, PARTITIONS)])[name].result(30)
    return name


@pytest.fixture
def new_producer(client: Client, ottla_broker: RunningBroker) -> Iterator[NewProducer]:
    made: list[TransactionalClient] = []

    def make(transactional_id: str, *, timeout_ms: int = TIMEOUT_MS) -> TransactionalClient:
        made.append(client.producer(ottla_broker.bootstrap, transactional_id, timeout_ms=timeout_ms))
        return made[-1]

    yield make
    for producer in made:
        producer.close()


@pytest.fixture
def read(client: Client, ottla_broker: RunningBroker, topic: str) -> Read:
    def everything(*, committed_only: bool, of: str = topic) -> list[tuple[int, bytes]]:
        return client.read(ottla_broker.bootstrap, of, PARTITIONS, committed_only=committed_only)

    return everything


def _send(producer: TransactionalClient, topic: str, *values: bytes) -> list[tuple[int, bytes]]:
    """Each value to every partition; what a reader is then to see."""
    for value in values:
        for partition in range(PARTITIONS):
            producer.send(topic, partition, value)
    return [(partition, value) for partition in range(PARTITIONS) for value in values]


def test_a_transaction_is_seen_when_it_is_committed_and_not_before(
    new_producer: NewProducer, topic: str, read: Read, unique: Callable[[str], str]
) -> None:
    producer = new_producer(unique("id"))
    first = [b"%d" % number for number in range(5)]
    producer.begin()
    sent = _send(producer, topic, *first)
    assert read(committed_only=True) == []
    assert read(committed_only=False) == sent

    producer.commit()

    wait_until(lambda: read(committed_only=True) == sent, "the transaction is seen whole and in order")
    producer.begin()
    _send(producer, topic, b"later")
    producer.commit()
    both = [(partition, value) for partition in range(PARTITIONS) for value in (*first, b"later")]
    wait_until(lambda: read(committed_only=True) == both, "the next one comes after it")
    assert read(committed_only=False) == both


def test_what_is_aborted_is_never_seen(
    new_producer: NewProducer, topic: str, read: Read, unique: Callable[[str], str]
) -> None:
    producer = new_producer(unique("id"))
    for value in (b"1", b"2", b"3", b"4"):
        producer.begin()
        _send(producer, topic, value)
        if value in {b"1", b"3"}:
            producer.abort()
        else:
            producer.commit()
    expected = [(partition, value) for partition in range(PARTITIONS) for value in (b"2", b"4")]
    wait_until(lambda: read(committed_only=True) == expected, "only what was committed is seen")
    everything = [(partition, value) for partition in range(PARTITIONS) for value in (b"1", b"2", b"3", b"4")]
    assert read(committed_only=False) == everything


def test_an_open_transaction_holds_back_what_comes_after_it(
    new_producer: NewProducer, topic: str, read: Read, unique: Callable[[str], str]
) -> None:
    slow, quick = new_producer(unique("slow")), new_producer(unique("quick"))
    slow.begin()
    slow.send(topic, 0, b"slow")
    quick.begin()
    _send(quick, topic, b"quick")
    quick.commit()
    wait_until(lambda: read(committed_only=True) == [(1, b"quick")], "the other partition is not held back")
    slow.commit()
    expected = [(0, b"slow"), (0, b"quick"), (1, b"quick")]
    wait_until(lambda: read(committed_only=True) == expected, "then all is seen in the order of the log")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # sockets of kafka-python's
def test_consume_transform_produce(
    client: Client,
    new_producer: NewProducer,
    topic: str,
    read: Read,
    unique: Callable[[str], str],
    ottla_broker: RunningBroker,
) -> None:
    """Copy partition 0 to partition 1. The group's position moves with the copies or not at all."""
    group, bootstrap = unique("group"), ottla_broker.bootstrap
    producer = new_producer(unique("id"))
    producer.begin()
    for number in range(6):
        producer.send(topic, 0, b"%d" % number)
    producer.commit()
    wait_until(lambda: len(read(committed_only=True)) == 6, "there is something to copy")

    def copy(at_most: int) -> int:
        """Take up where the group is; where it will be when this transaction is committed."""
        position = client.committed(bootstrap, group, topic) or 0
        values = [value for partition, value in read(committed_only=True) if partition == 0]
        taken = values[position : position + at_most]
        producer.begin()
        for value in taken:
            producer.send(topic, 1, b"copy of " + value)
        producer.add_positions(group, topic, {0: position + len(taken)})
        return position + len(taken)

    assert copy(at_most=4) == 4
    producer.abort()
    assert client.committed(bootstrap, group, topic) is None
    for ends_at in (2, 4):
        assert copy(at_most=2) == ends_at
        producer.commit()
        wait_until(lambda n=ends_at: client.committed(bootstrap, group, topic) == n, "the position is committed")  # type: ignore[misc]
    assert copy(at_most=2) == 6
    producer.abort()
    assert client.committed(bootstrap, group, topic) == 4
    assert copy(at_most=9) == 6
    producer.commit()
    copies = [b"copy of %d" % number for number in range(6)]
    wait_until(lambda: [v for p, v in read(committed_only=True) if p == 1] == copies, "each is copied once, in order")
    assert len([v for p, v in read(committed_only=False) if p == 1]) == 6 + 4 + 2


def test_a_zombie_is_fenced(new_producer: NewProducer, topic: str, read: Read, unique: Callable[[str], str]) -> None:
    name = unique("id")
    zombie = new_producer(name)
    zombie.begin()
    _send(zombie, topic, b"zombie")
    successor = new_producer(name)
    successor.begin()
    sent = _send(successor, topic, b"successor")
    with pytest.raises(Refused):
        zombie.commit()
    successor.commit()
    wait_until(lambda: read(committed_only=True) == sent, "only the successor's records are seen")


def test_a_transaction_that_takes_too_long_is_aborted(
    new_producer: NewProducer,
    topic: str,
    read: Read,
    unique: Callable[[str], str],
    ottla_broker: RunningBroker,
) -> None:
    slow = new_producer(unique("id"), timeout_ms=SHORT_TIMEOUT_MS)
    slow.begin()
    _send(slow, topic, b"slow")
    plain = Producer({"bootstrap.servers": ottla_broker.bootstrap}, logger=quiet)
    for partition in range(PARTITIONS):
        plain.produce(topic, b"plain", partition=partition)
    assert plain.flush(30) == 0
    assert read(committed_only=True) == []
    expected = [(partition, b"plain") for partition in range(PARTITIONS)]
    wait_until(lambda: read(committed_only=True) == expected, "the broker has ended the transaction", seconds=30)
    with pytest.raises(Refused):
        slow.commit()
    assert read(committed_only=True) == expected
