"""Consumer groups and the offsets they have committed."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ottla.client.cluster import Address, Broker, Cluster, error_code, raise_for
from ottla.client.errors import UnsupportedByBroker
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import TopicPartition, by_topic
from ottla.model.sentinels import NO_EPOCH
from ottla.protocol.codec import decode
from ottla.protocol.errors import MalformedMessage
from ottla.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    Member,
)
from ottla.protocol.messages.consumer_group_describe import DescribedGroup as ConsumerGroup
from ottla.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from ottla.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from ottla.protocol.messages.describe_groups import DescribedGroup as ClassicGroup
from ottla.protocol.messages.describe_groups import (
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from ottla.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

# OffsetFetch asks about many groups since version 8. Its version 10, and OffsetCommit's, name topics by id, which would
# cost a look-up for no gain here.
# Before that (Kafka 2.8) it asks about one, since version 2 about all topics of it, since 7 about stable offsets.
OFFSET_FETCH_ALL_TOPICS_VERSION_MIN = 2
OFFSET_FETCH_STABLE_VERSION_MIN = 7
OFFSET_FETCH_VERSION_MIN = 8
OFFSETS_BY_NAME_VERSION_MAX = 9

CLASSIC = "Classic"
CONSUMER = "Consumer"


class MemberDescription(NamedTuple):
    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: list[TopicPartition]
    epoch: int | None = None
    target: list[TopicPartition] | None = None


class GroupDescription(NamedTuple):
    group_id: str
    type: str
    state: str
    protocol_type: str
    assignor: str
    members: list[MemberDescription]
    coordinator: Broker
    epoch: int | None = None
    target_epoch: int | None = None


class CommittedOffset(NamedTuple):
    offset: int
    leader_epoch: int
    metadata: str


async def list_groups(cluster: Cluster, *, states: Sequence[str] = (), types: Sequence[str] = ()) -> list[ListedGroup]:
    """The groups of all brokers, by name."""
    request = ListGroupsRequest(states_filter=list(states), types_filter=list(types))
    min_version = 5 if types else 4 if states else 0

    async def ask(node: int) -> list[ListedGroup]:
        response = await cluster.call(request, ListGroupsResponse, node=node, min_version=min_version)
        raise_for(response.error_code)
        return response.groups

    async def attempt() -> list[ListedGroup]:
        await cluster.metadata([])
        answers = await asyncio.gather(*(ask(node) for node in cluster.brokers))
        return sorted((group for groups in answers for group in groups), key=lambda group: group.group_id)

    return await cluster.retrying(attempt)


async def describe_group(cluster: Cluster, group_id: str) -> GroupDescription:
    """One group with its members. Raises GROUP_ID_NOT_FOUND where the broker can tell; an old one says state Dead."""

    async def attempt() -> GroupDescription:
        node = await cluster.coordinator(group_id)
        try:
            return await _describe_consumer_group(cluster, group_id, node)
        except UnsupportedByBroker:
            return await _describe_classic_group(cluster, group_id, node)
        except ApiError as error:
            # The group is of the other kind, or is none.
            if error.code not in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION):
                raise
            return await _describe_classic_group(cluster, group_id, node)

    return await cluster.retrying(attempt)


async def describe_groups_of(
    cluster: Cluster, node: int, group_ids: Sequence[str], *, kind: str = CLASSIC
) -> dict[str, GroupDescription]:
    """Groups of one kind that this broker coordinates, in one request; without those that it does not describe."""
    if kind == CONSUMER:
        request = ConsumerGroupDescribeRequest(group_ids=list(group_ids))
        told = await cluster.call(request, ConsumerGroupDescribeResponse, node=node)
        return {
            group.group_id: _consumer_group(group, _coordinator(cluster, node))
            for group in told.groups
            if not group.error_code
        }
    described = await cluster.call(DescribeGroupsRequest(groups=list(group_ids)), DescribeGroupsResponse, node=node)
    return {
        group.group_id: _classic_group(group, _coordinator(cluster, node))
        for group in described.groups
        if not group.error_code
    }


def _coordinator(cluster: Cluster, node: int) -> Broker:
    """It answered, and may have been given up by somebody else since."""
    return cluster.brokers.get(node) or Broker(node, Address("", 0), None)


async def _describe_consumer_group(cluster: Cluster, group_id: str, node: int) -> GroupDescription:
    request = ConsumerGroupDescribeRequest(group_ids=[group_id])
    response = await cluster.call(request, ConsumerGroupDescribeResponse, node=node)
    group = response.groups[0]
    raise_for(group.error_code, group.error_message)
    return _consumer_group(group, cluster.brokers[node])


def _consumer_group(group: ConsumerGroup, coordinator: Broker) -> GroupDescription:
    return GroupDescription(
        group.group_id,
        CONSUMER,
        group.group_state,
        "consumer",
        group.assignor_name,
        [_consumer_member(member) for member in group.members],
        coordinator,
        group.group_epoch,
        group.assignment_epoch,
    )


def _consumer_member(member: Member) -> MemberDescription:
    assigned, target = (
        [
            TopicPartition(topic.topic_name, partition)
            for topic in part.topic_partitions
            for partition in topic.partitions
        ]
        for part in (member.assignment, member.target_assignment)
    )
    return MemberDescription(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        assigned,
        member.member_epoch,
        target,
    )


async def _describe_classic_group(cluster: Cluster, group_id: str, node: int) -> GroupDescription:
    response = await cluster.call(DescribeGroupsRequest(groups=[group_id]), DescribeGroupsResponse, node=node)
    group = response.groups[0]
    raise_for(group.error_code, group.error_message)
    return _classic_group(group, cluster.brokers[node])


def _classic_group(group: ClassicGroup, coordinator: Broker) -> GroupDescription:
    return GroupDescription(
        group.group_id,
        CLASSIC,
        group.group_state,
        group.protocol_type,
        group.protocol_data,
        [_classic_member(member, group.protocol_type) for member in group.members],
        coordinator,
    )


def _classic_member(member: DescribedGroupMember, protocol_type: str) -> MemberDescription:
    assignment = _read_assignment(member.member_assignment) if protocol_type == "consumer" else []
    return MemberDescription(
        member.member_id, member.group_instance_id, member.client_id, member.client_host, assignment
    )


def _read_assignment(encoded: bytes) -> list[TopicPartition]:
    """What the group's leader gave to a member. Its bytes are the clients' affair: odd ones count as nothing."""
    if len(encoded) < 2:
        return []
    version = min(int.from_bytes(encoded[:2], "big", signed=True), ConsumerProtocolAssignment.MAX_VERSION)
    try:
        assignment = decode(ConsumerProtocolAssignment, max(version, 0), encoded, 2)
    except MalformedMessage:
        return []
    return sorted(
        TopicPartition(topic.topic, partition)
        for topic in assignment.assigned_partitions
        for partition in topic.partitions
    )


async def group_offsets(
    cluster: Cluster, group_id: str, *, stable: bool = False
) -> dict[TopicPartition, CommittedOffset]:
    """Everything the group has committed; `stable` waits for transactions that are about to commit some more."""

    async def attempt() -> dict[TopicPartition, CommittedOffset]:
        (group,) = await _fetch_offsets(cluster, await cluster.coordinator(group_id), [group_id], stable=stable)
        raise_for(group.error_code)
        return _committed(group)

    return await cluster.retrying(attempt)


async def group_offsets_of(
    cluster: Cluster, node: int, group_ids: Sequence[str]
) -> dict[str, dict[TopicPartition, CommittedOffset]]:
    """What groups have committed that this broker coordinates, in one request; without those that it refuses."""
    told = await _fetch_offsets(cluster, node, group_ids)
    return {group.group_id: _committed(group) for group in told if not group.error_code}


class _GroupOffsets(NamedTuple):
    group_id: str
    error_code: int
    topics: Sequence[OffsetFetchResponseTopics | OffsetFetchResponseTopic]


async def _fetch_offsets(
    cluster: Cluster, node: int, group_ids: Sequence[str], *, stable: bool = False
) -> list[_GroupOffsets]:
    served = (await cluster.connection(node)).versions.get(OffsetFetchRequest.API_KEY)
    if served is None or served.max_version >= OFFSET_FETCH_VERSION_MIN:
        groups = [OffsetFetchRequestGroup(group_id=name, topics=None) for name in group_ids]
        response = await cluster.call(
            OffsetFetchRequest(groups=groups, require_stable=stable),
            OffsetFetchResponse,
            node=node,
            min_version=OFFSET_FETCH_VERSION_MIN,
            max_version=OFFSETS_BY_NAME_VERSION_MAX,
        )
        return [_GroupOffsets(each.group_id, each.error_code, each.topics) for each in response.groups]

    async def one(name: str) -> _GroupOffsets:
        request = OffsetFetchRequest(group_id=name, topics=None, require_stable=stable)
        lowest = OFFSET_FETCH_STABLE_VERSION_MIN if stable else OFFSET_FETCH_ALL_TOPICS_VERSION_MIN
        answer = await cluster.call(request, OffsetFetchResponse, node=node, min_version=lowest)
        return _GroupOffsets(name, answer.error_code, answer.topics)

    return list(await asyncio.gather(*(one(name) for name in group_ids)))


def _committed(group: _GroupOffsets) -> dict[TopicPartition, CommittedOffset]:
    committed: dict[TopicPartition, CommittedOffset] = {}
    for topic in group.topics:
        for found in topic.partitions:
            raise_for(found.error_code)
            if found.committed_offset >= 0:
                committed[TopicPartition(topic.name, found.partition_index)] = CommittedOffset(
                    found.committed_offset, found.committed_leader_epoch, found.metadata or ""
                )
    return dict(sorted(committed.items()))


async def commit_offsets(
    cluster: Cluster,
    group_id: str,
    offsets: Mapping[TopicPartition, int],
    *,
    epochs: Mapping[TopicPartition, int] | None = None,
    metadata: Mapping[TopicPartition, str] | None = None,
) -> dict[TopicPartition, ErrorCode]:
    """Set a group's offsets from outside, which works while nobody is in it. Gives the partitions that were refused.

    `epochs` are the leader epochs of the records before the offsets, where they are to be remembered; `metadata` is
    what stands beside them.
    """
    known, beside = epochs or {}, metadata or {}
    request = OffsetCommitRequest(
        group_id=group_id,
        topics=[
            OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=number,
                        committed_offset=offsets[TopicPartition(topic, number)],
                        committed_leader_epoch=known.get(TopicPartition(topic, number), NO_EPOCH),
                        committed_metadata=beside.get(TopicPartition(topic, number), ""),
                    )
                    for number in numbers
                ],
            )
            for topic, numbers in by_topic(offsets).items()
        ],
    )

    async def attempt() -> dict[TopicPartition, ErrorCode]:
        node = await cluster.coordinator(group_id)
        response = await cluster.call(request, OffsetCommitResponse, node=node, max_version=OFFSETS_BY_NAME_VERSION_MAX)
        refused = {
            TopicPartition(topic.name, found.partition_index): error_code(found.error_code)
            for topic in response.topics
            for found in topic.partitions
            if found.error_code
        }
        if refused and set(refused) == set(offsets):
            code = next(iter(refused.values()))
            raise_for(code, f"group `{group_id}` took no offsets: {code.name}")
        return refused

    return await cluster.retrying(attempt)


async def delete_offsets(
    cluster: Cluster, group_id: str, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, ErrorCode]:
    """Forget offsets of a group; a code for each partition, NONE where it went well."""
    request = OffsetDeleteRequest(
        group_id=group_id,
        topics=[
            OffsetDeleteRequestTopic(
                name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=number) for number in numbers]
            )
            for topic, numbers in by_topic(partitions).items()
        ],
    )

    async def attempt() -> dict[TopicPartition, ErrorCode]:
        response = await cluster.call(request, OffsetDeleteResponse, node=await cluster.coordinator(group_id))
        raise_for(response.error_code)
        return {
            TopicPartition(topic.name, found.partition_index): error_code(found.error_code)
            for topic in response.topics
            for found in topic.partitions
        }

    return await cluster.retrying(attempt)


async def delete_group(cluster: Cluster, group_id: str) -> None:
    """Delete a group that nobody is in, with its offsets."""

    async def attempt() -> None:
        node = await cluster.coordinator(group_id)
        response = await cluster.call(DeleteGroupsRequest(groups_names=[group_id]), DeleteGroupsResponse, node=node)
        raise_for(response.results[0].error_code)

    await cluster.retrying(attempt)
