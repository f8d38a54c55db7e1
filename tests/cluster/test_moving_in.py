"""A broker that was on its own becomes the first of a cluster, with its topics, groups and records."""

from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.cluster.reassigning import reassign

from ottla.testing import broker
from ottla.testing.cluster import cluster
from ottla.testing.load import RECONNECT, quiet, read_log
from ottla.testing.waiting import wait_until
from ottla.testing.zookeeper import ZooKeeperEnsemble

RECORDS = 500


def test_a_broker_moves_into_a_cluster(
    tmp_path: Path, ensemble: ZooKeeperEnsemble, unique: Callable[[str], str]
) -> None:
    topic, group = unique("alone"), unique("group")
    with broker({"node.id": 1, "num.partitions": 2}, data_dir=tmp_path / "broker-1") as alone:
        cluster_id = (
            AdminClient({"bootstrap.servers": alone.bootstrap}, logger=quiet).list_topics(timeout=30).cluster_id
        )
        admin = AdminClient({"bootstrap.servers": alone.bootstrap}, logger=quiet)
        admin.create_topics([NewTopic(topic, 2, 1, config={"retention.ms": "987654321"})])[topic].result(30)
        producer = Producer({"bootstrap.servers": alone.bootstrap, "enable.idempotence": True}, logger=quiet)
        for number in range(RECORDS):
            producer.produce(topic, b"%d" % number, partition=number % 2)
        assert producer.flush(30) == 0
        consumer = Consumer({"bootstrap.servers": alone.bootstrap, "group.id": group}, logger=quiet)
        consumer.commit(offsets=[TopicPartition(topic, 0, 17)], asynchronous=False)
        consumer.close()

    with cluster(3, zookeeper=ensemble, data_dir=tmp_path, started=[1]) as running:
        assert running.metadata().cluster_id == cluster_id
        running.start()
        wait_until(lambda: sorted(running.metadata().brokers) == [1, 2, 3], "all three are there")
        # Its topics have one replica until they are given more.
        reassign(running.brokers[2], topic, {0: [1, 2, 3], 1: [2, 3, 1]})
        reassign(running.brokers[2], "__consumer_offsets", {0: [1, 2, 3]})
        wait_until(lambda: len(running.partitions(topic)[topic, 0].isrs) == 3, "it is on all brokers", seconds=60)
        running.wait_until_settled()

        running.brokers[1].kill()
        running.leader_of(topic, 0)
        running.leader_of(topic, 1)
        values = {value for _, _, value in read_log(running.bootstrap, topic, 2)}
        assert values == {b"%d" % number for number in range(RECORDS)}
        consumer = Consumer({"bootstrap.servers": running.bootstrap, "group.id": group, **RECONNECT}, logger=quiet)
        (found,) = consumer.committed([TopicPartition(topic, 0)], timeout=60)
        consumer.close()
        assert found.offset == 17
