"""LeaveGroup, key 13, versions 0 to 5.

Members leave at once instead of by silence. From version 3 an administrator can remove several, static ones by
their instance id alone.
"""

from ottla.broker.coordination.groups.events import Leave, Leaver, Left
from ottla.broker.handlers.common import access
from ottla.broker.handlers.context import Broker, Call
from ottla.model.errors import ApiError
from ottla.model.rights import Operation, Resource
from ottla.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse

BATCHED_FROM = 3


async def handle(broker: Broker, call: Call, request: LeaveGroupRequest) -> LeaveGroupResponse:
    access.require(broker, call, Operation.READ, Resource.GROUP, request.group_id)
    if call.version >= BATCHED_FROM:
        members = tuple(Leaver(asked.member_id, asked.group_instance_id, asked.reason) for asked in request.members)
    else:
        members = (Leaver(request.member_id),)
    try:
        left = await broker.groups.leave(Leave(ticket=0, group_id=request.group_id, members=members))
    except ApiError as error:
        left = Left(error.code)
    if call.version < BATCHED_FROM:
        return LeaveGroupResponse(error_code=left.members[0][1] if left.members else left.error)
    return LeaveGroupResponse(
        error_code=left.error,
        members=[
            MemberResponse(member_id=leaver.member_id, group_instance_id=leaver.instance_id, error_code=error)
            for leaver, error in left.members
        ],
    )
