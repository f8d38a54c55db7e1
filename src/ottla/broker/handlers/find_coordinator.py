"""FindCoordinator, key 10, versions 0 to 6.

Tells which broker answers for a group. The first question creates `__consumer_offsets`.
Missing: coordinators of transactions and of share groups, which are not served; the answer says so and is final.
"""

from ottla.broker.coordination.runtime import partition_for
from ottla.broker.handlers.context import Broker, Call
from ottla.model.errors import ApiError, ErrorCode
from ottla.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

GROUP, TRANSACTION, SHARE = 0, 1, 2
BATCHED_FROM = 4
NO_NODE = -1

# The codes are the final ones: on others librdkafka asks again until its time is up and never shows the reason.
_NOT_SERVED = {
    TRANSACTION: (
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        "transactions are not served by this version of Ottla",
    ),
    SHARE: (ErrorCode.INVALID_REQUEST, "share groups are not served by this version of Ottla"),
}


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
    if key_type != GROUP:
        unknown = ErrorCode.INVALID_REQUEST, f"there is no coordinator of type {key_type}"
        return _none(key, *_NOT_SERVED.get(key_type, unknown))
    try:
        topic = await broker.controller.ensure_offsets_topic()
    except ApiError as error:
        return _none(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, f"the offsets topic cannot be created: {error}")
    broker.groups.refresh()
    image = broker.metadata.image
    leader = image.brokers.get(topic.partitions[partition_for(key, len(topic.partitions))].leader)
    endpoint = leader.endpoint(call.listener) if leader is not None else None
    if leader is None or endpoint is None:
        return _none(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, "the partition of this group has no leader now")
    return Coordinator(key=key, node_id=leader.id, host=endpoint.host, port=endpoint.port)


def _none(key: str, code: ErrorCode, message: str) -> Coordinator:
    return Coordinator(key=key, node_id=NO_NODE, host="", port=-1, error_code=code, error_message=message)
