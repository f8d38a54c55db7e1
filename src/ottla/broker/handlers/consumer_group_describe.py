"""ConsumerGroupDescribe, key 69, versions 0 to 1.

Shows groups of the consumer protocol: epochs, members, what they have and what they shall have.
"""

from collections.abc import Mapping
from uuid import UUID

from ottla.broker.coordination.groups.consumer.assignments import Assignment as Partitions
from ottla.broker.coordination.groups.describing import DescribedConsumerMember
from ottla.broker.handlers.common import access
from ottla.broker.handlers.context import Broker, Call
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.rights import Operation, Resource
from ottla.protocol.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1


def handle(broker: Broker, call: Call, request: ConsumerGroupDescribeRequest) -> ConsumerGroupDescribeResponse:
    asked = request.include_authorized_operations
    return ConsumerGroupDescribeResponse(
        groups=[_describe(broker, call, name, tells_operations=asked) for name in request.group_ids]
    )


def _describe(broker: Broker, call: Call, group_id: str, *, tells_operations: bool) -> DescribedGroup:
    try:
        if not access.allowed(broker, call, Operation.DESCRIBE, Resource.GROUP, group_id):
            raise ApiError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        found = broker.groups.describe_consumer_group(group_id)
        if found is None:
            is_classic = broker.groups.describe_group(group_id) is not None
            message = "is not a consumer group." if is_classic else "not found."
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {message}")
    except ApiError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.message)
    names = broker.metadata.image.names_by_id
    members = [_member(described, names) for described in found.members]
    if access.denied(broker, call, Operation.DESCRIBE, Resource.TOPIC, _topics(members)):
        return DescribedGroup(
            group_id=group_id,
            error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            error_message="The described group uses topics that the client is not authorized to describe.",
        )
    return DescribedGroup(
        group_id=group_id,
        group_state=found.state,
        group_epoch=found.epoch,
        assignment_epoch=found.assignment_epoch,
        assignor_name=found.assignor,
        members=members,
        authorized_operations=access.operations(broker, call, Resource.GROUP, group_id)
        if tells_operations
        else access.NOT_ASKED,
    )


def _topics(members: list[Member]) -> set[str]:
    """What the answer would tell of."""
    told = {name for member in members for name in member.subscribed_topic_names}
    for member in members:
        for assignment in (member.assignment, member.target_assignment):
            told.update(topic.topic_name for topic in assignment.topic_partitions)
    return told


def _member(described: DescribedConsumerMember, names: Mapping[UUID, str]) -> Member:
    member = described.member
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(described.topics),
        subscribed_topic_regex=member.regex,
        assignment=_assignment(member.assigned, names),
        target_assignment=_assignment(described.target, names),
        member_type=CLASSIC_MEMBER if member.is_classic else CONSUMER_MEMBER,
    )


def _assignment(partitions: Partitions, names: Mapping[UUID, str]) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, topic_name=names[topic_id], partitions=sorted(numbers))
            for topic_id, numbers in partitions.items()
            if topic_id in names
        ]
    )
