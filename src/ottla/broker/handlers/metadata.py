"""Metadata, key 3, versions 0 to 13.

Brokers, as the listener that the request came through advertises them, and topics: all of them, none, or those named
by name or id. A topic that does not exist is created when client and settings allow it, and answered as it then is.
"""

from collections.abc import Coroutine, Iterable, Mapping
from typing import Any

from ottla.broker.handlers import authorized_operations
from ottla.broker.handlers.context import Broker, Call
from ottla.cluster.image import ClusterImage, PartitionImage, TopicImage, no_help
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import INTERNAL_TOPICS, NO_TOPIC_ID, TRANSACTION_STATE, check_topic_name
from ottla.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

NO_LEADER = -1


def handle(
    broker: Broker, call: Call, request: MetadataRequest
) -> MetadataResponse | Coroutine[Any, Any, MetadataResponse]:
    if _wants_all(call, request):
        return _answer(broker, call, request, {})
    asked = request.topics or []
    if call.version < 12 and any(topic.name is None or topic.topic_id != NO_TOPIC_ID for topic in asked):
        return _refuse(broker, call, request, asked)
    known = broker.metadata.image.topics
    missing = [t.name for t in asked if t.name is not None and t.topic_id == NO_TOPIC_ID and t.name not in known]
    # In versions before 4 the client has no say, and its default is to allow.
    if missing and request.allow_auto_topic_creation and broker.settings.auto_create_topics_enable:
        return _create_and_answer(broker, call, request, missing)
    return _answer(broker, call, request, {})


def wants_newest(broker: Broker, call: Call, request: MetadataRequest) -> bool:
    """A topic that was created a moment ago through another broker is not denied, nor left out of the list of all."""
    image = broker.metadata.image
    return _wants_all(call, request) or any(
        topic.name not in image.topics if topic.topic_id == NO_TOPIC_ID else image.topic_by_id(topic.topic_id) is None
        for topic in request.topics or ()
    )


async def _create_and_answer(
    broker: Broker, call: Call, request: MetadataRequest, missing: Iterable[str]
) -> MetadataResponse:
    # The transaction log would come into being with the wrong number of partitions; nobody needs it yet.
    creatable = sorted({name for name in missing if name != TRANSACTION_STATE})
    try:
        refusals: Mapping[str, ApiError] = await broker.controller.ensure_topics(creatable)
    except ApiError:
        refusals = dict.fromkeys(creatable, ApiError(ErrorCode.LEADER_NOT_AVAILABLE))  # try again later
    return _answer(broker, call, request, refusals)


def _wants_all(call: Call, request: MetadataRequest) -> bool:
    return not request.topics if call.version == 0 else request.topics is None


def _answer(broker: Broker, call: Call, request: MetadataRequest, refusals: Mapping[str, ApiError]) -> MetadataResponse:
    image = broker.metadata.image
    describe = _Describer(image, call)
    if _wants_all(call, request):
        topics = [describe.topic(topic) for topic in image.topics.values()]
    else:
        topics = _named(request.topics or [], image, describe, refusals)
    if request.include_topic_authorized_operations:
        for topic in topics:
            topic.topic_authorized_operations = authorized_operations.ON_TOPIC
    response = _frame(image, call)
    response.topics = topics
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = authorized_operations.ON_CLUSTER
    return response


def _named(
    asked: Iterable[MetadataRequestTopic],
    image: ClusterImage,
    describe: "_Describer",
    refusals: Mapping[str, ApiError],
) -> list[MetadataResponseTopic]:
    """Each topic once. Where any id is given, topics given by name alone are not looked at, as in Kafka."""
    asked = list(asked)
    ids = dict.fromkeys(topic.topic_id for topic in asked if topic.topic_id != NO_TOPIC_ID)
    found: list[MetadataResponseTopic] = []
    for topic_id in ids:
        by_id = image.topic_by_id(topic_id)
        found.append(
            MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id)
            if by_id is None
            else describe.topic(by_id)
        )
    if ids:
        return found
    for name in dict.fromkeys(topic.name for topic in asked if topic.name is not None):
        by_name = image.topics.get(name)
        found.append(_unknown(name, refusals.get(name)) if by_name is None else describe.topic(by_name))
    return found


def _unknown(name: str, refusal: ApiError | None) -> MetadataResponseTopic:
    try:
        check_topic_name(name)
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if refusal is None else refusal.code
    except ApiError as error:
        code = error.code
    return MetadataResponseTopic(error_code=code, name=name, is_internal=name in INTERNAL_TOPICS)


def _refuse(
    broker: Broker, call: Call, request: MetadataRequest, asked: Iterable[MetadataRequestTopic]
) -> MetadataResponse:
    """Before version 12 a topic has a name and no id, whatever the fields would allow."""
    response = _frame(broker.metadata.image, call)
    response.topics = [
        MetadataResponseTopic(error_code=ErrorCode.INVALID_REQUEST, name=topic.name or "", topic_id=topic.topic_id)
        for topic in asked
    ]
    return response


def _frame(image: ClusterImage, call: Call) -> MetadataResponse:
    """The response without topics."""
    brokers = []
    for broker in image.brokers.values():
        endpoint = broker.endpoint(call.listener)
        if endpoint is not None:
            brokers.append(
                MetadataResponseBroker(node_id=broker.id, host=endpoint.host, port=endpoint.port, rack=broker.rack)
            )
    return MetadataResponse(brokers=brokers, cluster_id=image.cluster_id, controller_id=image.controller_id)


class _Describer:
    """Describes topics to one client: brokers that its listener cannot reach are no leaders for it."""

    def __init__(self, image: ClusterImage, call: Call) -> None:
        self._reachable = frozenset(
            broker.id for broker in image.brokers.values() if broker.endpoint(call.listener) is not None
        )
        self._alive = image.brokers
        self._unreachable_error = ErrorCode.LISTENER_NOT_FOUND if call.version >= 6 else ErrorCode.LEADER_NOT_AVAILABLE
        # Thousands of partitions are held by a few sets of brokers: each set is looked at once.
        self._seen: dict[PartitionImage, tuple[ErrorCode, int, list[int], list[int], list[int]]] = {}

    def topic(self, topic: TopicImage) -> MetadataResponseTopic:
        partitions = []
        for number, state in enumerate(topic.partitions):
            error, leader, replicas, isr, offline = self._seen.get(state) or self._look(state)
            partitions.append(
                MetadataResponsePartition(error, number, leader, state.leader_epoch, replicas, isr, offline)
            )
        return MetadataResponseTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            is_internal=topic.name in INTERNAL_TOPICS,
            partitions=partitions,
        )

    def _look(self, state: PartitionImage) -> tuple[ErrorCode, int, list[int], list[int], list[int]]:
        error, leader = ErrorCode.NONE, state.leader
        if leader not in self._alive:
            error, leader = ErrorCode.LEADER_NOT_AVAILABLE, NO_LEADER
        elif leader not in self._reachable:
            error, leader = self._unreachable_error, NO_LEADER
        offline = [broker for broker in state.replicas if broker not in self._alive]
        idle = no_help(state, self._alive)
        isr = [broker for broker in state.isr if broker not in idle]
        seen = self._seen[state] = (error, leader, list(state.replicas), isr, offline)
        return seen
