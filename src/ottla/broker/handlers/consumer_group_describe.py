"""ConsumerGroupDescribe, key 69, versions 0 to 1.

Shows groups of the consumer protocol: epochs, members, what they have and what they shall have.
"""

from collections.abc import Mapping
from uuid import UUID

from ottla.broker.coordination.groups.consumer.assignments import Assignment as Partitions
from ottla.broker.coordination.groups.describing import DescribedConsumerMember
from ottla.broker.handlers.context import Broker, Call
from ottla.broker.handlers.describe_groups import ALL_OPERATIONS, NOT_ASKED
from ottla.model.errors import ApiError, ErrorCode
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
    operations = ALL_OPERATIONS if request.include_authorized_operations else NOT_ASKED
    return ConsumerGroupDescribeResponse(groups=[_describe(broker, name, operations) for name in request.group_ids])


def _describe(broker: Broker, group_id: str, operations: int) -> DescribedGroup:
    try:
        found = broker.groups.describe_consumer_group(group_id)
        if found is None:
            is_classic = broker.groups.describe_group(group_id) is not None
            message = "is not a consumer group." if is_classic else "not found."
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {message}")
    except ApiError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.message)
    names = broker.metadata.image.names_by_id
    return DescribedGroup(
        group_id=group_id,
        group_state=found.state,
        group_epoch=found.epoch,
        assignment_epoch=found.assignment_epoch,
        assignor_name=found.assignor,
        members=[_member(described, names) for described in found.members],
        authorized_operations=operations,
    )


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
