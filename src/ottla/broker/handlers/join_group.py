"""JoinGroup, key 11, versions 0 to 9.

A member asks to be part of the next generation; the answer waits until that generation is known.
"""

from ottla.broker.coordination.groups.events import Join, Joined
from ottla.broker.handlers.common import access
from ottla.broker.handlers.context import Broker, Call
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.rights import Operation, Resource
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember

REQUIRES_KNOWN_ID_FROM = 4
NULL_PROTOCOL_FROM = 7
SKIPS_ASSIGNMENT_FROM = 9


async def handle(broker: Broker, call: Call, request: JoinGroupRequest) -> JoinGroupResponse:
    if not access.allowed(broker, call, Operation.READ, Resource.GROUP, request.group_id):
        return _response(Joined("", ErrorCode.GROUP_AUTHORIZATION_FAILED), call.version)
    event = Join(
        ticket=0,
        unique="",
        group_id=request.group_id,
        member_id=request.member_id,
        client_id=call.client_id or "",
        client_host=f"/{call.session.host}",
        session_timeout_ms=request.session_timeout_ms,
        # The first version has one timeout for both.
        rebalance_timeout_ms=request.rebalance_timeout_ms if call.version >= 1 else request.session_timeout_ms,
        protocol_type=request.protocol_type,
        protocols=tuple((protocol.name, protocol.metadata) for protocol in request.protocols),
        instance_id=request.group_instance_id,
        reason=request.reason,
        requires_known_id=call.version >= REQUIRES_KNOWN_ID_FROM,
        can_skip_assignment=call.version >= SKIPS_ASSIGNMENT_FROM,
    )
    try:
        joined = await broker.groups.join(event)
    except ApiError as error:
        joined = Joined(request.member_id, error.code)
    return _response(joined, call.version)


def _response(joined: Joined, version: int) -> JoinGroupResponse:
    protocol = joined.protocol
    return JoinGroupResponse(
        error_code=joined.error,
        generation_id=joined.generation,
        protocol_type=joined.protocol_type,
        protocol_name="" if protocol is None and version < NULL_PROTOCOL_FROM else protocol,
        leader=joined.leader,
        skip_assignment=joined.skip_assignment,
        member_id=joined.member_id,
        members=[
            JoinGroupResponseMember(
                member_id=member.member_id, group_instance_id=member.instance_id, metadata=member.metadata
            )
            for member in joined.members
        ],
    )
