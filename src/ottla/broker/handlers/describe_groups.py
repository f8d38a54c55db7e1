"""DescribeGroups, key 15, versions 0 to 6.

State, protocol and members of groups. A group that does not exist is "Dead"; from version 6 it is also an error.
"""

from ottla.broker.coordination.groups.describing import DescribedGroup as Described
from ottla.broker.coordination.groups.describing import missing
from ottla.broker.handlers.common import access
from ottla.broker.handlers.context import Broker, Call
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.rights import Operation, Resource
from ottla.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

TELLS_UNKNOWN_GROUPS_FROM = 6


def handle(broker: Broker, call: Call, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
    asked = request.include_authorized_operations
    return DescribeGroupsResponse(
        groups=[_describe(broker, call, name, tells_operations=asked) for name in request.groups]
    )


def _describe(broker: Broker, call: Call, group_id: str, *, tells_operations: bool) -> DescribedGroup:
    if not access.allowed(broker, call, Operation.DESCRIBE, Resource.GROUP, group_id):
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED, error_message=None)
    try:
        found = broker.groups.describe_group(group_id)
    except ApiError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.message)
    answer = _answer(found or missing(group_id))
    if found is None and call.version >= TELLS_UNKNOWN_GROUPS_FROM:
        answer.error_code = ErrorCode.GROUP_ID_NOT_FOUND
        answer.error_message = f"Group {group_id} not found."
    elif tells_operations:
        answer.authorized_operations = access.operations(broker, call, Resource.GROUP, group_id)
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
