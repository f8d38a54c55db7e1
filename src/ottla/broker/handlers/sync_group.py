"""SyncGroup, key 14, versions 0 to 5.

The leader hands in the assignment of a generation, every member gets its share; the answers wait for the leader.
"""

from ottla.broker.coordination.groups.events import Sync, Synced
from ottla.broker.handlers.common import access
from ottla.broker.handlers.context import Broker, Call
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.rights import Operation, Resource
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

NAMES_PROTOCOL_FROM = 5


async def handle(broker: Broker, call: Call, request: SyncGroupRequest) -> SyncGroupResponse:
    if call.version >= NAMES_PROTOCOL_FROM and (request.protocol_type is None or request.protocol_name is None):
        return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    access.require(broker, call, Operation.READ, Resource.GROUP, request.group_id)
    event = Sync(
        ticket=0,
        group_id=request.group_id,
        member_id=request.member_id,
        generation=request.generation_id,
        instance_id=request.group_instance_id,
        protocol_type=request.protocol_type,
        protocol=request.protocol_name,
        assignments=tuple((share.member_id, share.assignment) for share in request.assignments),
    )
    try:
        synced = await broker.groups.sync(event)
    except ApiError as error:
        synced = Synced(error.code)
    return SyncGroupResponse(
        error_code=synced.error,
        protocol_type=synced.protocol_type,
        protocol_name=synced.protocol,
        assignment=synced.assignment,
    )
