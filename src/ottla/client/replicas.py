"""Who holds and leads partitions: the calls behind the tools that move replicas and elect leaders."""

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from ottla.client.cluster import Cluster, error_code, raise_for
from ottla.model.errors import ApiError
from ottla.model.names import TopicPartition, by_topic
from ottla.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from ottla.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions
from ottla.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
)

REQUEST_TIMEOUT_MS = 30_000


class ElectionType(IntEnum):
    """Who may become leader: the first replica, if it is in sync; or any that is left."""

    PREFERRED = 0
    UNCLEAN = 1


class Reassignment(NamedTuple):
    """A move under way: all replicas of old and new, and which of them are being added and removed."""

    replicas: list[int]
    adding: list[int]
    removing: list[int]

    @property
    def target(self) -> list[int]:
        return [replica for replica in self.replicas if replica not in self.removing]


async def alter_reassignments(
    cluster: Cluster,
    targets: Mapping[TopicPartition, Sequence[int] | None],
    *,
    allow_factor_change: bool = True,
) -> dict[TopicPartition, ApiError]:
    """Move partitions to these brokers, or (None) give up moves. The result has those that are refused."""
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=REQUEST_TIMEOUT_MS,
        allow_replication_factor_change=allow_factor_change,
        topics=[
            ReassignableTopic(
                name=topic,
                partitions=[
                    ReassignablePartition(number, None if replicas is None else list(replicas))
                    for number in numbers
                    for replicas in (targets[TopicPartition(topic, number)],)
                ],
            )
            for topic, numbers in by_topic(targets).items()
        ],
    )

    async def attempt() -> dict[TopicPartition, ApiError]:
        # Only from version 1 on can a request say that the number of replicas is to stay.
        response = await cluster.call(
            request,
            AlterPartitionReassignmentsResponse,
            node=await cluster.controller(),
            min_version=0 if allow_factor_change else 1,
        )
        raise_for(response.error_code, response.error_message)
        return {
            TopicPartition(topic.name, found.partition_index): ApiError(
                error_code(found.error_code), found.error_message
            )
            for topic in response.responses
            for found in topic.partitions
            if found.error_code
        }

    return await cluster.retrying(attempt)


async def list_reassignments(
    cluster: Cluster, partitions: Iterable[TopicPartition] | None = None
) -> dict[TopicPartition, Reassignment]:
    """Moves under way, of these partitions or of all."""
    topics = (
        None
        if partitions is None
        else [ListPartitionReassignmentsTopics(topic, numbers) for topic, numbers in by_topic(partitions).items()]
    )
    request = ListPartitionReassignmentsRequest(timeout_ms=REQUEST_TIMEOUT_MS, topics=topics)

    async def attempt() -> dict[TopicPartition, Reassignment]:
        response = await cluster.call(request, ListPartitionReassignmentsResponse, node=await cluster.controller())
        raise_for(response.error_code, response.error_message)
        return {
            TopicPartition(topic.name, found.partition_index): Reassignment(
                found.replicas, found.adding_replicas, found.removing_replicas
            )
            for topic in response.topics
            for found in topic.partitions
        }

    return await cluster.retrying(attempt)


async def elect_leaders(
    cluster: Cluster, kind: ElectionType, partitions: Iterable[TopicPartition] | None
) -> dict[TopicPartition, ApiError | None]:
    """Elect leaders of these partitions, or (None) of all: for each that was looked at None, or why not."""
    asked = (
        None
        if partitions is None
        else [TopicPartitions(topic, numbers) for topic, numbers in by_topic(partitions).items()]
    )
    request = ElectLeadersRequest(election_type=kind, topic_partitions=asked, timeout_ms=REQUEST_TIMEOUT_MS)

    async def attempt() -> dict[TopicPartition, ApiError | None]:
        response = await cluster.call(
            request,
            ElectLeadersResponse,
            node=await cluster.controller(),
            min_version=0 if kind is ElectionType.PREFERRED else 1,
        )
        raise_for(response.error_code)
        return {
            TopicPartition(topic.topic, found.partition_id): (
                ApiError(error_code(found.error_code), found.error_message) if found.error_code else None
            )
            for topic in response.replica_election_results
            for found in topic.partition_result
        }

    return await cluster.retrying(attempt)


async def alter_replica_log_dirs(
    cluster: Cluster, node: int, directories: Mapping[TopicPartition, str]
) -> dict[TopicPartition, ApiError]:
    """Move replicas of one broker to other directories of it. The result has those that are refused."""
    by_path: dict[str, list[TopicPartition]] = {}
    for partition, path in directories.items():
        by_path.setdefault(path, []).append(partition)
    request = AlterReplicaLogDirsRequest(
        dirs=[
            AlterReplicaLogDir(
                path, [AlterReplicaLogDirTopic(topic, numbers) for topic, numbers in by_topic(partitions).items()]
            )
            for path, partitions in by_path.items()
        ]
    )

    async def attempt() -> dict[TopicPartition, ApiError]:
        response = await cluster.call(request, AlterReplicaLogDirsResponse, node=node)
        return {
            TopicPartition(topic.topic_name, found.partition_index): ApiError(error_code(found.error_code))
            for topic in response.results
            for found in topic.partitions
            if found.error_code
        }

    return await cluster.retrying(attempt)
