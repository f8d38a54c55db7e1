"""A Kafka broker goes on with the groups that Ottla wrote: both protocols, offsets, and what transactions left."""

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from compat.peer.kafka import Kafka, PeerError
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConsumerGroupDescription, NewTopic

from ottla.testing.running import RunningBroker, broker
from ottla.testing.waiting import wait_until

pytestmark = pytest.mark.usefixtures("kafka_libs")

TOPIC = "group-files"
WAIT_S = 60
OFFSETS = "__consumer_offsets-0"


def write_groups(running: RunningBroker) -> None:
    """A classic group that a static member upgrades and leaves for a while, a pattern, and offsets of transactions."""
    admin = AdminClient({"bootstrap.servers": running.bootstrap})
    admin.create_topics([NewTopic(TOPIC, 2, 1)])[TOPIC].result(WAIT_S)
    classic = member(running.bootstrap, "moved", **{"group.protocol": "classic"})
    static = member(running.bootstrap, "moved", others=[classic], **{"group.instance.id": "one"})
    classic.close()
    pattern = member(running.bootstrap, "pattern", "^group-f.*")
    static.commit(offsets=[TopicPartition(TOPIC, 0, 11)], asynchronous=False)
    producer = Producer({"bootstrap.servers": running.bootstrap, "transactional.id": "mover"})
    producer.init_transactions()
    for offset, finish in ((22, producer.commit_transaction), (33, producer.abort_transaction)):
        producer.begin_transaction()
        position = TopicPartition(TOPIC, 1, offset)
        producer.send_offsets_to_transaction([position], static.consumer_group_metadata())
        finish()
    static.close()
    pattern.close()


def member(
    bootstrap: str, group: str, topic: str = TOPIC, others: Sequence[Consumer] = (), **settings: str
) -> Consumer:
    """A member that has partitions, while the others go on speaking."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "group.protocol": "consumer", "enable.auto.commit": False}
        | settings
    )
    consumer.subscribe([topic])

    def has_partitions() -> bool:
        for one in (consumer, *others):
            one.poll(0.1)
        return bool(consumer.assignment())

    wait_until(has_partitions, "the member has partitions", seconds=WAIT_S)
    return consumer


def test_kafka_goes_on_with_our_groups(tmp_path: Path) -> None:
    with broker({"offsets.topic.num.partitions": 1}) as running:
        write_groups(running)
        running.stop()
        source = running.log_dirs[0] / OFFSETS
        node = Kafka(tmp_path, settings={"offsets.topic.num.partitions": "1"})
        node.start()
        try:
            admin = AdminClient({"bootstrap.servers": node.bootstrap})
            admin.create_topics([NewTopic(TOPIC, 2, 1)])[TOPIC].result(WAIT_S)
            member(node.bootstrap, "own").close()
            node.stop()
            target = node.log_dir / OFFSETS
            identity = (target / "partition.metadata").read_bytes()
            shutil.rmtree(target)
            shutil.copytree(source, target)
            (target / "partition.metadata").write_bytes(identity)
            node.start()
            check(node)
            # Kafka 4.3 keeps the epoch of each assigned partition too. Ottla does not; Kafka says so and takes the
            # member's epoch instead.
            log = (tmp_path / "server.log").read_text()
            errors = [line for line in log.splitlines() if re.search("ERROR|IllegalStateException", line)]
            assert [line for line in errors if "Size of assignment epochs 0" not in line] == []
        except PeerError as error:
            pytest.fail(str(error))
        finally:
            node.stop()


def check(node: Kafka) -> None:
    admin = AdminClient({"bootstrap.servers": node.bootstrap})

    def describe(group: str) -> ConsumerGroupDescription | None:
        try:
            return admin.describe_consumer_groups([group])[group].result(WAIT_S)
        except KafkaException as error:
            if error.args[0].name() not in ("NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS"):
                raise
            return None

    moved = wait_until(lambda: describe("moved"), "Kafka has read the groups")
    pattern = wait_until(lambda: describe("pattern"), "Kafka has read the groups")
    assert moved is not None
    assert pattern is not None
    assert moved.type.name == "CONSUMER"
    assert pattern.type.name == "CONSUMER"
    assert [m.group_instance_id for m in moved.members] in ([], ["one"])  # Kafka may have let it go already
    found = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions("moved")])
    offsets = {(p.topic, p.partition): p.offset for p in found["moved"].result(WAIT_S).topic_partitions}
    assert offsets == {(TOPIC, 0): 11, (TOPIC, 1): 22}
