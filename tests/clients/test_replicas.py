"""Moves and elections as kafka-python and librdkafka ask for them, unmodified, with three real brokers."""

from collections.abc import Callable

from confluent_kafka import ElectionType, KafkaError, TopicPartition
from confluent_kafka.admin import NewTopic
from kafka import KafkaAdminClient
from kafka import TopicPartition as PythonTopicPartition

from ottla.testing.cluster import RunningCluster
from ottla.testing.waiting import wait_until


def test_a_partition_is_moved_and_its_preferred_leader_elected(
    ottla_cluster: RunningCluster, unique: Callable[[str], str]
) -> None:
    """kafka-python moves a partition, librdkafka elects its preferred leader."""
    topic = unique("others")
    new = NewTopic(topic, num_partitions=1, replica_assignment=[[1, 2]])
    ottla_cluster.admin.create_topics([new])[topic].result()
    python = KafkaAdminClient(bootstrap_servers=ottla_cluster.bootstrap)
    try:
        place = PythonTopicPartition(topic, 0)
        assert python.alter_partition_reassignments({place: [3, 1]}) == {place: None}
        wait_until(lambda: place not in python.list_partition_reassignments(), "the end of the move", seconds=60)
    finally:
        python.close()
    assert ottla_cluster.partitions(topic)[topic, 0].replicas == [3, 1]
    assert ottla_cluster.partitions(topic)[topic, 0].leader == 1
    asked = TopicPartition(topic, 0)

    def elect() -> KafkaError | None:
        answer: KafkaError | None = ottla_cluster.admin.elect_leaders(ElectionType.PREFERRED, [asked]).result()[asked]
        return answer

    assert elect() is None
    wait_until(lambda: ottla_cluster.partitions(topic)[topic, 0].leader == 3, "the preferred leader")
    again = elect()
    assert again is not None
    assert again.code() == KafkaError.ELECTION_NOT_NEEDED
