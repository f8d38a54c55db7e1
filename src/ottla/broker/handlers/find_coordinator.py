"""FindCoordinator, key 10, versions 0 to 6.

Tells which broker answers for a group or a transactional id. The first question creates `__consumer_offsets` or
`__transaction_state`. Missing: coordinators of share groups, which are not served; the answer says so and is final.
"""

from ottla.broker.coordination.coordinator import partition_for
from ottla.broker.handlers.context import Broker, Call
from ottla.cluster.image import TopicImage
from ottla.model.errors import ApiError, ErrorCode
from ottla.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

GROUP, TRANSACTION, SHARE = 0, 1, 2
BATCHED_FROM = 4
NO_NODE = -1


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
    if key_type not in (GROUP, TRANSACTION):
        # The code is a final one: on others librdkafka asks again until its time is up and never shows the reason.
        known = "share groups are not served by this version of Ottla" if key_type == SHARE else None
        return _none(key, ErrorCode.INVALID_REQUEST, known or f"there is no coordinator of type {key_type}")
    try:
        topic = await _topic(broker, key_type)
    except ApiError as error:
        return _none(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, f"the coordinator's topic cannot be created: {error}")
    leader = broker.metadata.image.brokers.get(topic.partitions[partition_for(key, len(topic.partitions))].leader)
    endpoint = leader.endpoint(call.listener) if leader is not None else None
    if leader is None or endpoint is None:
        return _none(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, "the coordinator's partition has no leader now")
    return Coordinator(key=key, node_id=leader.id, host=endpoint.host, port=endpoint.port)


async def _topic(broker: Broker, key_type: int) -> TopicImage:
    if key_type == TRANSACTION:
        topic = await broker.controller.ensure_transactions_topic()
        broker.transactions.refresh()
        return topic
    topic = await broker.controller.ensure_offsets_topic()
    broker.groups.refresh()
    return topic


def _none(key: str, code: ErrorCode, message: str) -> Coordinator:
    return Coordinator(key=key, node_id=NO_NODE, host="", port=-1, error_code=code, error_message=message)
