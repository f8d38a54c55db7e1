"""A standby in Ottla whose source is Apache Kafka: the same batches and offsets, and what is left when Kafka dies."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from compat.peer.kafka import Kafka, running
from confluent_kafka import KafkaError, Producer
from pyspark.sql import SparkSession
from tests.committed import read_committed
from tests.pipelines.standbys import Standby, first_of_group, raw, refused, values
from tests.pipelines.test_mirror import send
from tests.spark.feeding import create_topic

from ottla.client import admin
from ottla.client.groups import commit_offsets
from ottla.client.offsets import delete_records
from ottla.model.names import TopicPartition as At
from ottla.pipelines.mirror.failing_back import NotFailedBack
from ottla.spark import loop
from ottla.spark.reading import resolving
from ottla.testing.load import quiet
from ottla.testing.running import RunningBroker, broker
from ottla.testing.waiting import wait_until

FOR_EVER = {"retention.ms": "-1"}
COMPACT = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "200"}
OPEN, KILLED_AT = 7, 200


@pytest.fixture
def kafka(kafka_libs: Path, tmp_path: Path) -> Iterator[Kafka]:
    """Its own node: it is killed."""
    settings = {"group.initial.rebalance.delay.ms": "0", "log.cleaner.backoff.ms": "100", "log.roll.jitter.ms": "0"}
    with running(tmp_path / "kafka", settings=settings) as node:
        yield node


@pytest.fixture
def west() -> Iterator[RunningBroker]:
    with broker() as found:
        yield found


@pytest.fixture
def standby(
    kafka: Kafka, west: RunningBroker, spark: SparkSession, tmp_path: Path, unique: Callable[[str], str]
) -> Standby:
    return Standby(spark, tmp_path, unique("standby"), {"east": kafka.bootstrap, "west": west.bootstrap})


def fill(standby: Standby) -> list[At]:
    """Records, transactions of both ends, a log that begins inside of a batch, a compacted one."""
    east = standby.bootstraps["east"]
    orders, latest = f"{standby.name}.orders", f"{standby.name}.latest"
    create_topic(east, orders, 2, FOR_EVER)
    create_topic(east, latest, 1, COMPACT)
    for partition in (0, 1):
        send(east, orders, partition, range(50))
        send(east, orders, partition, range(50, 60), "commit")
        send(east, orders, partition, range(60, 70), "abort")
        send(east, orders, partition, range(70, 300))
    loop.run(delete_records(standby.cluster("east"), {At(orders, 1): 7}))

    def is_compacted() -> bool:
        _overwrite(east, latest)
        found = read_committed(east, latest, 0)
        return found[-1].offset + 1 - len(found) > 30

    wait_until(is_compacted, "Kafka's cleaner has been there", seconds=120)
    loop.run(commit_offsets(standby.cluster("east"), f"{standby.name}.shop", {At(orders, 0): KILLED_AT}))
    return [At(orders, 0), At(orders, 1), At(latest, 0)]


def _overwrite(bootstrap: str, topic: str) -> None:
    """With times of now: Kafka measures by them whether a segment is old enough to be closed, and so cleaned."""
    producer = Producer({"bootstrap.servers": bootstrap}, logger=quiet)
    for number in range(50):
        producer.produce(topic, b"v%d" % number, b"k%d" % number, 0)
    assert producer.flush(30) == 0


@pytest.mark.timeout(900)
def test_apache_kafka_is_copied_batch_for_batch_and_its_standby_promoted(
    standby: Standby, kafka: Kafka, west: RunningBroker
) -> None:
    places = fill(standby)
    orders = places[0].topic
    path = standby.file(limits={"trigger": "200 ms"})
    assert not standby.run(path)
    copied, source = standby.cluster("west"), standby.cluster("east")
    for at in places[:2]:
        assert raw(copied, at) == raw(source, at)
        assert read_committed(west.bootstrap, *at) == read_committed(kafka.bootstrap, *at)
    # The cleaner goes on in Kafka: what is left there is in the copy, with the offsets that it has.
    assert set(read_committed(kafka.bootstrap, *places[2])) <= {*read_committed(west.bootstrap, *places[2])}
    assert loop.run(resolving.earliest(copied, places[1:2])) == {places[1]: 7}
    error = refused(west.bootstrap, orders)
    assert error is not None
    assert error.code() == KafkaError.POLICY_VIOLATION

    # An open transaction holds back what is behind it, and no more.
    (end,) = loop.run(resolving.latest(source, places[:1], committed=True)).values()
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": f"{orders}-open"}, logger=quiet)
    producer.init_transactions(30)
    producer.begin_transaction()
    for number in range(OPEN):
        producer.produce(orders, b"open %d" % number, partition=0)
    assert producer.flush(30) == 0
    send(kafka.bootstrap, orders, 1, range(300, 320), "commit")
    assert not standby.run(path)
    assert loop.run(resolving.latest(copied, places[:1], committed=False)) == {places[0]: end}
    assert raw(copied, places[1]) == raw(source, places[1])

    kafka.kill()
    (said,) = standby.command("promote", str(path))
    assert (said["source_answers"], said["missing_records"], said["missing_topics"]) == (False, 0, [])
    _clients_go_on(standby, west, orders, end)

    kafka.start()
    with pytest.raises(NotFailedBack, match="east is not an Ottla cluster"):
        standby.command("failback", str(path), "--discard")
    assert orders in {found.name for found in loop.run(admin.list_topics(source))}, "and nothing was deleted there"


def _clients_go_on(standby: Standby, west: RunningBroker, topic: str, end: int) -> None:
    first = first_of_group(west.bootstrap, f"{standby.name}.shop", topic)
    assert first.offset() == KILLED_AT
    before = values(west.bootstrap, topic, 0)
    for attempt in range(3):  # Kafka counts the ids of producers from 0, and so does Ottla
        producer = Producer({"bootstrap.servers": west.bootstrap, "enable.idempotence": True}, logger=quiet)
        producer.produce(topic, b"west %d" % attempt, partition=0)
        assert producer.flush(30) == 0
    found = read_committed(west.bootstrap, topic, 0)
    assert [each.value or b"" for each in found] == [*before, b"west 0", b"west 1", b"west 2"]
    assert found[-1].offset == end + 2
