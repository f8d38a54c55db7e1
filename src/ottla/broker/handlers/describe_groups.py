"""DescribeGroups, key 15, versions 0 to 6.

State, protocol and members of groups. A group that does not exist is "Dead"; from version 6 it is also an error.
"""

from ottla.broker.coordination.groups.describing import DescribedGroup as Described
from ottla.broker.coordination.groups.describing import missing
from ottla.broker.handlers.context import Broker, Call
from ottla.model.errors import ApiError, ErrorCode
from ottla.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

TELLS_UNKNOWN_GROUPS_FROM = 6
NOT_ASKED = -(2**31)
ALL_OPERATIONS = sum(1 << operation for operation in (3, 6, 8, 10, 11))
"""Read, delete, describe, describe configs, alter configs: nothing is forbidden without access control."""


def handle(broker: Broker, call: Call, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
    operations = ALL_OPERATIONS if request.include_authorized_operations else NOT_ASKED
    return DescribeGroupsResponse(groups=[_describe(broker, call, name, operations) for name in request.groups])


def _describe(broker: Broker, call: Call, group_id: str, operations: int) -> DescribedGroup:
    try:
        found = broker.groups.describe_group(group_id)
    except ApiError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.message)
    answer = _answer(found or missing(group_id))
    if found is None and call.version >= TELLS_UNKNOWN_GROUPS_FROM:
        answer.error_code = ErrorCode.GROUP_ID_NOT_FOUND
        answer.error_message = f"Group {group_id} not found."
    else:
        answer.authorized_operations = operations
    return answer


def _answer(found: Described) -> DescribedGroup:
    return DescribedGroup(
        group_id=found.group_id,
        group_state=found.state,
        protocol_type=found.protocol_type,
        protocol_data=found.protocol,
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata,
                member_assignment=member.assignment,
            )
            for member in found.members
        ],
    )
