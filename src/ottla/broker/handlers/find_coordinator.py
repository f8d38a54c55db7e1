"""FindCoordinator, key 10, versions 0 to 6.

Tells which broker answers for a group or a transactional id. The first question creates `__consumer_offsets` or
`__transaction_state`. Missing: coordinators of share groups, which are not served; the answer says so and is final.
"""

from ottla.broker.coordination.coordinator import partition_for
from ottla.broker.coordination.kinds import CoordinatorKind
from ottla.broker.handlers.common import access
from ottla.broker.handlers.context import Broker, Call
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.rights import Operation, Resource
from ottla.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

BATCHED_FROM = 4
NO_NODE = -1
NOT_SERVED: dict[int, str] = {CoordinatorKind.SHARE: "share groups are not served by this version of Ottla"}


async def handle(broker: Broker, call: Call, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    if call.version >= BATCHED_FROM:
        found = [await _find(broker, call, request.key_type, key) for key in request.coordinator_keys]
        return FindCoordinatorResponse(coordinators=found)
    only = await _find(broker, call, request.key_type, request.key)
    return FindCoordinatorResponse(
        error_code=only.error_code,
        error_message=only.error_message or None,
        node_id=only.node_id,
        host=only.host,
        port=only.port,
    )


async def _find(broker: Broker, call: Call, key_type: int, key: str) -> Coordinator:
    entry = broker.coordinators.get(key_type)
    if entry is None:
        # The code is a final one: on others librdkafka asks again until its time is up and never shows the reason.
        reason = NOT_SERVED.get(key_type, f"there is no coordinator of type {key_type}")
        return _none(key, ErrorCode.INVALID_REQUEST, reason)
    kind = Resource.GROUP if key_type == CoordinatorKind.GROUP else Resource.TRANSACTIONAL_ID
    if not access.allowed(broker, call, Operation.DESCRIBE, kind, key):
        refusal = access.refusal(call, Operation.DESCRIBE, kind, key)
        return _none(key, refusal.code, refusal.message or "")
    try:
        topic = await entry.topic()
    except ApiError as error:
        return _none(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, f"the coordinator's topic cannot be created: {error}")
    leader = broker.metadata.image.brokers.get(topic.partitions[partition_for(key, len(topic.partitions))].leader)
    endpoint = leader.endpoint(call.session.listener) if leader is not None else None
    if leader is None or endpoint is None:
        return _none(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, "the coordinator's partition has no leader now")
    return Coordinator(key=key, node_id=leader.id, host=endpoint.host, port=endpoint.port)


def _none(key: str, code: ErrorCode, message: str) -> Coordinator:
    return Coordinator(key=key, node_id=NO_NODE, host="", port=-1, error_code=code, error_message=message)
