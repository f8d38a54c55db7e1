"""What one look keeps of a cluster's metadata."""

from ottla.model.names import TopicPartition
from ottla.monitoring.looking import places_of
from ottla.protocol.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic

BROKERS = (1, 2, 3)


def partition(number: int) -> MetadataResponsePartition:
    first = number % len(BROKERS)
    replicas = [*BROKERS[first:], *BROKERS[:first]]
    return MetadataResponsePartition(
        partition_index=number, leader_id=replicas[0], replica_nodes=replicas, isr_nodes=replicas[:2]
    )


def test_partitions_in_the_same_place_share_what_says_so() -> None:
    """A console keeps two looks at 50,000 partitions: what each costs of its own counts."""
    topics = [MetadataResponseTopic(name=f"t{each}", partitions=list(map(partition, range(9)))) for each in range(100)]
    places = places_of(MetadataResponse(topics=topics), {1, 2})
    assert len(places) == 900
    assert len(set(map(id, places.values()))) == len(BROKERS)
    assert places[TopicPartition("t7", 4)] == (2, (2, 3, 1), (2, 3))
    assert places[TopicPartition("t7", 5)].leader is None, "broker 3 is away"
