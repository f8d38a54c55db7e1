"""AlterPartitionReassignments, ListPartitionReassignments and ElectLeaders, through the codec."""

import asyncio

import pytest

from ottla.broker.controller.decisions import NewTopic
from ottla.broker.controller.writes import partition_writes
from ottla.cluster.image import BrokerImage, Endpoint, PartitionImage
from ottla.model.errors import ErrorCode
from ottla.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions
from ottla.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
)

from .conftest import Harness


@pytest.fixture
def cluster(harness: Harness) -> Harness:
    """Three brokers, of which the first is real; topic a has its partitions on 1 and 2."""

    async def fill() -> None:
        for broker in (2, 3):
            await harness.store.register_broker(BrokerImage(broker, None, (Endpoint("PLAINTEXT", "x", broker),)))
        await harness.broker.controller.create_topics([NewTopic("a", assignments=[(0, (1, 2)), (1, (2, 1))])])

    asyncio.run(fill())
    return harness


def partition(harness: Harness, number: int) -> PartitionImage:
    return harness.store.image.topics["a"].partitions[number]


def move(
    harness: Harness, *partitions: tuple[int, list[int] | None], version: int = 1, allow_factor_change: bool = True
) -> list[int]:
    answer = harness.call(
        AlterPartitionReassignmentsRequest(
            topics=[ReassignableTopic("a", [ReassignablePartition(*each) for each in partitions])],
            allow_replication_factor_change=allow_factor_change,
        ),
        AlterPartitionReassignmentsResponse,
        version,
    )
    assert answer.error_code == ErrorCode.NONE
    return [each.error_code for topic in answer.responses for each in topic.partitions]


@pytest.mark.parametrize("version", [0, 1])
def test_moves_begin_are_listed_and_given_up(cluster: Harness, version: int) -> None:
    assert move(cluster, (0, [3, 1]), (9, [1]), version=version) == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert partition(cluster, 0) == PartitionImage(1, 0, (3, 1, 2), (1, 2), adding=(3,), removing=(2,))
    for topics in (
        None,
        [ListPartitionReassignmentsTopics("a", [0, 1, 7]), ListPartitionReassignmentsTopics("b", [0])],
    ):
        listed = cluster.call(ListPartitionReassignmentsRequest(topics=topics), ListPartitionReassignmentsResponse, 0)
        ((topic,),) = (listed.topics,)
        ((under_way,),) = (topic.partitions,)
        assert (topic.name, under_way.partition_index) == ("a", 0)
        assert (under_way.replicas, under_way.adding_replicas, under_way.removing_replicas) == ([3, 1, 2], [3], [2])
    assert move(cluster, (0, None), (1, None), version=version) == [0, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS]
    assert partition(cluster, 0) == PartitionImage(1, 0, (1, 2), (1, 2))
    listed = cluster.call(ListPartitionReassignmentsRequest(topics=None), ListPartitionReassignmentsResponse, 0)
    assert not listed.topics


def test_what_cannot_be_moved_is_refused(cluster: Harness) -> None:
    assert move(cluster, (0, [4]), (1, [])) == [ErrorCode.INVALID_REPLICA_ASSIGNMENT] * 2
    assert move(cluster, (0, [1, 1])) == [ErrorCode.INVALID_REPLICA_ASSIGNMENT]
    assert move(cluster, (0, [1]), allow_factor_change=False) == [ErrorCode.INVALID_REPLICATION_FACTOR]
    assert move(cluster, (0, [3]), (0, [2])) == [ErrorCode.INVALID_REQUEST] * 2
    assert partition(cluster, 0) == PartitionImage(1, 0, (1, 2), (1, 2))


def elect(harness: Harness, partitions: list[int] | None, *, kind: int = 0, version: int = 2) -> ElectLeadersResponse:
    asked = None if partitions is None else [TopicPartitions("a", partitions)]
    return harness.call(ElectLeadersRequest(kind, asked), ElectLeadersResponse, version)


def codes(answer: ElectLeadersResponse) -> dict[int, int]:
    return {
        each.partition_id: each.error_code
        for topic in answer.replica_election_results
        for each in topic.partition_result
    }


def lead(harness: Harness, number: int, state: PartitionImage) -> None:
    store = harness.store
    asyncio.run(store.commit(partition_writes({("a", number): state}, store.image, store.version)))


@pytest.mark.parametrize("version", [0, 1, 2])
def test_preferred_replicas_lead_again(cluster: Harness, version: int) -> None:
    lead(cluster, 0, PartitionImage(2, 1, (1, 2), (1, 2)))
    answer = elect(cluster, [0, 1, 5], version=version)
    assert codes(answer) == {0: 0, 1: ErrorCode.ELECTION_NOT_NEEDED, 5: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert partition(cluster, 0) == PartitionImage(1, 2, (1, 2), (1, 2))


def test_an_election_for_all_tells_only_what_was_done(cluster: Harness) -> None:
    lead(cluster, 0, PartitionImage(2, 1, (1, 2), (1, 2)))
    assert codes(elect(cluster, None)) == {0: 0}
    assert codes(elect(cluster, None)) == {}


def test_an_unclean_election(cluster: Harness) -> None:
    lead(cluster, 0, PartitionImage(-1, 1, (1, 9), (9,)))
    assert codes(elect(cluster, [0, 1], kind=1)) == {0: 0, 1: ErrorCode.ELECTION_NOT_NEEDED}
    assert (partition(cluster, 0).leader, partition(cluster, 0).isr) == (1, (1,))
    odd = elect(cluster, [0], kind=7)
    assert odd.error_code == ErrorCode.INVALID_REQUEST
