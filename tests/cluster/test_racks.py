"""Five brokers in three racks: where replicas go, who is read from, and a move of a whole topic to other brokers."""

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import NewTopic
from tests.cluster.reassigning import reassign
from tests.cluster.traffic import Traffic

from ottla.protocol.messages.fetch import FetchRequest, FetchResponse
from ottla.testing.cluster import RunningCluster, cluster
from ottla.testing.load import RECONNECT, quiet
from ottla.testing.requests import FETCH_VERSION, fetch_request
from ottla.testing.waiting import wait_until
from ottla.testing.wire import WireConnection
from ottla.testing.zookeeper import ZooKeeperEnsemble

RACKS = ("a", "b", "c", "a", "b")
RACK_OF = dict(enumerate(RACKS, start=1))
SETTINGS = {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}


@pytest.fixture(scope="module")
def five_brokers(ensemble: ZooKeeperEnsemble) -> Iterator[RunningCluster]:
    with cluster(5, settings=SETTINGS, racks=RACKS, zookeeper=ensemble) as running:
        yield running


def test_the_replicas_of_a_partition_are_in_different_racks(
    five_brokers: RunningCluster, unique: Callable[[str], str]
) -> None:
    topic = unique("spread")
    five_brokers.admin.create_topics([NewTopic(topic, 15, replication_factor=3)])[topic].result(30)
    found = wait_until(lambda: five_brokers.partitions(topic), "the topic is there")
    assert len(found) == 15
    for partition in found.values():
        assert {RACK_OF[number] for number in partition.replicas} == {"a", "b", "c"}, partition.replicas
    first = [partition.replicas[0] for partition in found.values()]
    assert {first.count(number) for number in five_brokers.brokers} == {3}, "each broker leads as many as any other"


def test_a_consumer_reads_in_its_own_rack(five_brokers: RunningCluster, unique: Callable[[str], str]) -> None:
    topic = unique("near")
    new = NewTopic(topic, 1, replica_assignment=[[1, 2, 3]])
    five_brokers.admin.create_topics([new])[topic].result(30)
    five_brokers.wait_until_settled(topic)
    producer = Producer({"bootstrap.servers": five_brokers.bootstrap, "acks": "all"}, logger=quiet)
    for number in range(100):
        producer.produce(topic, b"%d" % number, partition=0)
    assert producer.flush(30) == 0

    def preferred(rack: str) -> int:
        request: FetchRequest = fetch_request(topic, 0, 0)
        request.rack_id = rack
        leader = five_brokers.brokers[1]
        with WireConnection(leader.host, leader.port) as connection:
            answer = connection.call(request, FETCH_VERSION, FetchResponse)
        return answer.responses[0].partitions[0].preferred_read_replica

    wait_until(lambda: preferred("b") == 2, "the leader knows that broker 2 has everything")
    assert preferred("c") == 3
    assert preferred("a") == -1, "the leader itself is in that rack"

    consumer = Consumer(
        {
            "bootstrap.servers": five_brokers.bootstrap,
            "group.id": unique("near"),
            "client.rack": "c",
            "auto.offset.reset": "earliest",
            **RECONNECT,
        },
        logger=quiet,
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    read: list[bytes] = []
    while len(read) < 100:
        message = consumer.poll(20)
        assert message is not None, f"nothing more came after {len(read)} records"
        assert message.error() is None, message.error()
        value = message.value()
        assert value is not None
        read.append(value)
    consumer.close()
    assert read == [b"%d" % number for number in range(100)]


def test_a_topic_moves_to_other_brokers_under_load(five_brokers: RunningCluster, unique: Callable[[str], str]) -> None:
    topic = unique("moves")
    with Traffic(five_brokers, topic, assignment=[[1, 2, 3]] * 3) as traffic:
        reassign(five_brokers.brokers[5], topic, dict.fromkeys(range(3), (3, 4, 5)))

        def moved() -> bool:
            found = five_brokers.partitions(topic).values()
            return all(sorted(each.replicas) == sorted(each.isrs) == [3, 4, 5] for each in found)

        wait_until(moved, "the topic is on brokers 3, 4 and 5", seconds=60)
        # What it was on before is not needed any more.
        five_brokers.brokers[1].kill()
        five_brokers.brokers[2].kill()
        traffic.wait_for_each_partition()
        traffic.finish()
    five_brokers.start()
    five_brokers.wait_until_settled()
