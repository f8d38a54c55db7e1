"""Heartbeat, key 12, versions 0 to 4.

Keeps a member's session alive and tells it when to join again.
"""

from ottla.broker.handlers.context import Broker, Call
from ottla.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def handle(broker: Broker, call: Call, request: HeartbeatRequest) -> HeartbeatResponse:
    code = broker.groups.heartbeat(
        request.group_id, request.member_id, request.group_instance_id, request.generation_id
    )
    return HeartbeatResponse(error_code=code)
