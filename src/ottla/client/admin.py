"""Topics, settings and log directories: the calls behind the admin tools."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from functools import partial
from typing import NamedTuple

from ottla.client.cluster import Cluster, error_code, raise_for
from ottla.client.errors import UnsupportedByBroker
from ottla.model.errors import ErrorCode
from ottla.model.wire_numbers import ConfigSource as ConfigSource  # noqa: PLC0414 (known from here)
from ottla.model.wire_numbers import ResourceType as ResourceType  # noqa: PLC0414 (known from here)
from ottla.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from ottla.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from ottla.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from ottla.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)
from ottla.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    RequestCursor,
    TopicRequest,
)
from ottla.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

ADMIN_TIMEOUT_MS = 30_000
PARTITIONS_PER_ANSWER = 2_000
BROKER_DEFAULT = -1
"""Number of partitions or replicas that leaves the choice to the broker."""


class AlterOperation(IntEnum):
    """What to do with a setting."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Resource(NamedTuple):
    """A topic by name, a broker by id, or, with an empty name, the defaults of all brokers."""

    type: ResourceType
    name: str


class PartitionDescription(NamedTuple):
    partition: int
    leader: int | None
    leader_epoch: int
    replicas: list[int]
    isr: list[int]
    eligible_leaders: list[int] | None = None
    last_eligible_leaders: list[int] | None = None
    adding: list[int] | None = None
    """With `removing`: how the replicas differ from before, while the partition is being moved."""
    removing: list[int] | None = None


class TopicDescription(NamedTuple):
    name: str
    topic_id: uuid.UUID
    internal: bool
    partitions: list[PartitionDescription]


class TopicListing(NamedTuple):
    name: str
    topic_id: uuid.UUID
    internal: bool
    partitions: list[int]


async def list_topics(cluster: Cluster) -> list[TopicListing]:
    """Every topic, by name."""
    response = await cluster.retrying(lambda: cluster.metadata(None))
    listings = [
        TopicListing(
            topic.name or "",
            topic.topic_id,
            topic.is_internal,
            sorted(partition.partition_index for partition in topic.partitions),
        )
        for topic in response.topics
    ]
    return sorted(listings)


async def describe_topics(
    cluster: Cluster, names: Sequence[str], *, partitions_per_answer: int = PARTITIONS_PER_ANSWER
) -> list[TopicDescription]:
    """Topics with their partitions, by name. Raises for a topic that does not exist."""
    if not names:
        return []
    try:
        topics = await _describe_in_pages(cluster, names, partitions_per_answer)
    except UnsupportedByBroker:
        topics = await _describe_by_metadata(cluster, names)
    return sorted(topics.values())


async def _describe_in_pages(cluster: Cluster, names: Sequence[str], limit: int) -> dict[str, TopicDescription]:
    topics: dict[str, TopicDescription] = {}
    wanted = [TopicRequest(name=name) for name in sorted(set(names))]
    cursor: RequestCursor | None = None
    while True:
        request = DescribeTopicPartitionsRequest(topics=wanted, response_partition_limit=limit, cursor=cursor)
        response = await cluster.retrying(partial(cluster.call, request, DescribeTopicPartitionsResponse))
        for topic in response.topics:
            raise_for(topic.error_code, f"topic `{topic.name}`: {error_code(topic.error_code).name}")
            known = topics.setdefault(
                topic.name or "", TopicDescription(topic.name or "", topic.topic_id, topic.is_internal, [])
            )
            known.partitions.extend(
                PartitionDescription(
                    found.partition_index,
                    found.leader_id if found.leader_id >= 0 else None,
                    found.leader_epoch,
                    found.replica_nodes,
                    found.isr_nodes,
                    found.eligible_leader_replicas,
                    found.last_known_elr,
                )
                for found in topic.partitions
            )
        if response.next_cursor is None:
            return topics
        reached = response.next_cursor
        cursor = RequestCursor(topic_name=reached.topic_name, partition_index=reached.partition_index)
        wanted = [topic for topic in wanted if topic.name >= reached.topic_name]


async def _describe_by_metadata(cluster: Cluster, names: Sequence[str]) -> dict[str, TopicDescription]:
    response = await cluster.retrying(lambda: cluster.metadata(names))
    topics: dict[str, TopicDescription] = {}
    for topic in response.topics:
        raise_for(topic.error_code, f"topic `{topic.name}`: {error_code(topic.error_code).name}")
        partitions = [
            PartitionDescription(
                found.partition_index,
                found.leader_id if found.leader_id >= 0 else None,
                found.leader_epoch,
                found.replica_nodes,
                found.isr_nodes,
            )
            for found in sorted(topic.partitions, key=lambda partition: partition.partition_index)
        ]
        topics[topic.name or ""] = TopicDescription(topic.name or "", topic.topic_id, topic.is_internal, partitions)
    return topics


async def create_topic(
    cluster: Cluster,
    name: str,
    *,
    partitions: int = BROKER_DEFAULT,
    replication_factor: int = BROKER_DEFAULT,
    assignment: Mapping[int, Sequence[int]] | None = None,
    configs: Mapping[str, str] | None = None,
    validate_only: bool = False,
) -> CreatableTopicResult:
    """Create a topic; with `assignment` (partition to brokers) the two numbers stay at the broker's default."""
    request = CreateTopicsRequest(
        topics=[
            CreatableTopic(
                name=name,
                num_partitions=partitions,
                replication_factor=replication_factor,
                assignments=[
                    CreatableReplicaAssignment(partition_index=partition, broker_ids=list(brokers))
                    for partition, brokers in (assignment or {}).items()
                ],
                configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
            )
        ],
        timeout_ms=ADMIN_TIMEOUT_MS,
        validate_only=validate_only,
    )

    async def attempt() -> CreatableTopicResult:
        response = await cluster.call(request, CreateTopicsResponse, node=await cluster.controller(), min_version=4)
        result = response.topics[0]
        raise_for(result.error_code, result.error_message)
        return result

    return await cluster.retrying(attempt)


async def create_partitions(
    cluster: Cluster, topic: str, count: int, assignment: Sequence[Sequence[int]] | None = None
) -> None:
    """Bring a topic to `count` partitions; `assignment` lists the brokers of each new one."""
    assignments = None if assignment is None else [CreatePartitionsAssignment(broker_ids=list(b)) for b in assignment]
    request = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=topic, count=count, assignments=assignments)], timeout_ms=ADMIN_TIMEOUT_MS
    )

    async def attempt() -> None:
        response = await cluster.call(request, CreatePartitionsResponse, node=await cluster.controller())
        raise_for(response.results[0].error_code, response.results[0].error_message)

    await cluster.retrying(attempt)


async def delete_topic(cluster: Cluster, name: str) -> None:
    request = DeleteTopicsRequest(topic_names=[name], topics=[DeleteTopicState(name=name)], timeout_ms=ADMIN_TIMEOUT_MS)

    async def attempt() -> None:
        response = await cluster.call(request, DeleteTopicsResponse, node=await cluster.controller())
        result = response.responses[0]
        raise_for(result.error_code, result.error_message)

    await cluster.retrying(attempt)


async def describe_configs(
    cluster: Cluster, resources: Iterable[Resource]
) -> dict[Resource, list[DescribeConfigsResourceResult]]:
    """The settings of each resource, by name. Raises for a resource that does not exist."""
    found: dict[Resource, list[DescribeConfigsResourceResult]] = {}
    for node, group in _by_node(resources).items():
        request = DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(resource_type=type_, resource_name=name, configuration_keys=None)
                for type_, name in group
            ],
            include_synonyms=True,
        )

        async def attempt(request: DescribeConfigsRequest = request, node: int | None = node) -> None:
            response = await cluster.call(request, DescribeConfigsResponse, node=node)
            for result in response.results:
                raise_for(result.error_code, result.error_message)
                resource = Resource(ResourceType(result.resource_type), result.resource_name)
                found[resource] = sorted(result.configs, key=lambda config: config.name)

        await cluster.retrying(attempt)
    return found


async def topic_settings(cluster: Cluster, topics: Iterable[str]) -> dict[str, dict[str, str]]:
    """What was set for the topics themselves; defaults and what brokers say are each cluster's own."""
    described = await describe_configs(cluster, [Resource(ResourceType.TOPIC, topic) for topic in topics])
    return {
        resource.name: {
            config.name: config.value or ""
            for config in configs
            if config.config_source == ConfigSource.DYNAMIC_TOPIC_CONFIG
        }
        for resource, configs in described.items()
    }


async def alter_configs(
    cluster: Cluster, resource: Resource, *, add: Mapping[str, str] | None = None, delete: Sequence[str] = ()
) -> None:
    """Set some settings of a resource and return others to their defaults; the rest stays as it is."""
    changes = [
        AlterableConfig(name=key, value=value, config_operation=AlterOperation.SET)
        for key, value in (add or {}).items()
    ] + [AlterableConfig(name=key, value=None, config_operation=AlterOperation.DELETE) for key in delete]
    request = IncrementalAlterConfigsRequest(
        resources=[AlterConfigsResource(resource_type=resource.type, resource_name=resource.name, configs=changes)]
    )
    node = _node_of(resource)

    async def attempt() -> None:
        target = await cluster.controller() if node is None else node
        response = await cluster.call(request, IncrementalAlterConfigsResponse, node=target)
        for result in response.responses:
            raise_for(result.error_code, result.error_message)

    await cluster.retrying(attempt)


async def describe_log_dirs(
    cluster: Cluster, node: int, partitions: Mapping[str, Sequence[int]] | None = None
) -> list[DescribeLogDirsResult]:
    """The log directories of a broker with the partitions in them, all of them unless some are named."""
    topics = (
        None
        if partitions is None
        else [DescribableLogDirTopic(topic=topic, partitions=list(numbers)) for topic, numbers in partitions.items()]
    )

    async def attempt() -> list[DescribeLogDirsResult]:
        response = await cluster.call(DescribeLogDirsRequest(topics=topics), DescribeLogDirsResponse, node=node)
        raise_for(response.error_code)
        return response.results

    return await cluster.retrying(attempt)


def _by_node(resources: Iterable[Resource]) -> dict[int | None, list[Resource]]:
    groups: dict[int | None, list[Resource]] = {}
    for resource in resources:
        groups.setdefault(_node_of(resource), []).append(resource)
    return groups


def _node_of(resource: Resource) -> int | None:
    """Settings of one broker are known to that broker only; the rest is known to all."""
    if resource.type in (ResourceType.BROKER, ResourceType.BROKER_LOGGER) and resource.name:
        if not resource.name.isdigit():
            raise_for(ErrorCode.INVALID_REQUEST, f"a broker is named by its number, not `{resource.name}`")
        return int(resource.name)
    return None
