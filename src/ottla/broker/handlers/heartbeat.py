"""Heartbeat, key 12, versions 0 to 4.

Keeps a member's session alive and tells it when to join again.
"""

from ottla.broker.handlers.common import access
from ottla.broker.handlers.context import Broker, Call
from ottla.model.rights import Operation, Resource
from ottla.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def handle(broker: Broker, call: Call, request: HeartbeatRequest) -> HeartbeatResponse:
    access.require(broker, call, Operation.READ, Resource.GROUP, request.group_id)
    code = broker.groups.heartbeat(
        request.group_id, request.member_id, request.group_instance_id, request.generation_id
    )
    return HeartbeatResponse(error_code=code)
