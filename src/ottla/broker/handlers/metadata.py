"""Metadata, key 3, versions 0 to 13.

Brokers, as the listener that the request came through advertises them, and topics: all of them, none, or those named
by name or id. A topic that does not exist is created when client and settings allow it, and answered as it then is.
"""

from collections.abc import Collection, Coroutine, Iterable, Mapping
from typing import Any

from ottla.broker.handlers.common import access
from ottla.broker.handlers.common.mutations import charge_for, throttle
from ottla.broker.handlers.context import Broker, Call
from ottla.cluster.image import NO_LEADER, ClusterImage, PartitionImage, TopicImage, dead_or_lagging
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import INTERNAL_TOPICS, NO_TOPIC_ID, TRANSACTION_STATE, check_topic_name
from ottla.model.rights import Operation, Resource
from ottla.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)


def handle(
    broker: Broker, call: Call, request: MetadataRequest
) -> MetadataResponse | Coroutine[Any, Any, MetadataResponse]:
    if _wants_all(call, request):
        return _answer(broker, call, request, {})
    asked = request.topics or []
    if call.version < 12 and any(topic.name is None or topic.topic_id != NO_TOPIC_ID for topic in asked):
        return _refuse(broker, call, request, asked)
    known = broker.metadata.image.topics
    refusals: Mapping[str, ApiError] = {}
    missing = [t.name for t in asked if t.name is not None and t.topic_id == NO_TOPIC_ID and t.name not in known]
    # In versions before 4 the client has no say, and its default is to allow.
    if missing and request.allow_auto_topic_creation and broker.settings.auto_create_topics_enable:
        if broker.authorizer is not None:
            missing, refusals = _creatable(broker, call, missing)
        if missing:
            return _create_and_answer(broker, call, request, missing, refusals)
    return _answer(broker, call, request, refusals)


def wants_newest(broker: Broker, call: Call, request: MetadataRequest) -> bool:
    """A topic that was created a moment ago through another broker is not denied, nor left out of the list of all."""
    image = broker.metadata.image
    return _wants_all(call, request) or any(
        topic.name not in image.topics if topic.topic_id == NO_TOPIC_ID else image.topic_by_id(topic.topic_id) is None
        for topic in request.topics or ()
    )


def _creatable(broker: Broker, call: Call, missing: Iterable[str]) -> tuple[list[str], dict[str, ApiError]]:
    """Which of these topics the client may describe and create; those it may not create, with that as the reason."""
    hidden = access.denied(broker, call, Operation.DESCRIBE, Resource.TOPIC, missing)
    visible = [name for name in missing if name not in hidden]
    if access.allowed(broker, call, Operation.CREATE, Resource.CLUSTER, probe=True):
        return visible, {}
    refused = access.denied(broker, call, Operation.CREATE, Resource.TOPIC, visible)
    refusal = ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return [name for name in visible if name not in refused], dict.fromkeys(refused, refusal)


async def _create_and_answer(
    broker: Broker, call: Call, request: MetadataRequest, missing: Iterable[str], refused: Mapping[str, ApiError]
) -> MetadataResponse:
    # The transaction log would come into being with the wrong number of partitions; nobody needs it yet.
    creatable = sorted({name for name in missing if name != TRANSACTION_STATE})
    charge = charge_for(broker, call)
    try:
        refusals: Mapping[str, ApiError] = await broker.controller.ensure_topics(creatable, charge)
    except ApiError:
        refusals = dict.fromkeys(creatable, ApiError(ErrorCode.LEADER_NOT_AVAILABLE))  # try again later
    throttle(call, charge)
    return _answer(broker, call, request, {**refusals, **refused})


def _wants_all(call: Call, request: MetadataRequest) -> bool:
    return not request.topics if call.version == 0 else request.topics is None


def _answer(broker: Broker, call: Call, request: MetadataRequest, refusals: Mapping[str, ApiError]) -> MetadataResponse:
    image = broker.metadata.image
    describe = _Describer(image, call)
    if _wants_all(call, request):
        hidden = access.denied(broker, call, Operation.DESCRIBE, Resource.TOPIC, image.topics, probe=True)
        topics = [describe.topic(topic) for name, topic in image.topics.items() if name not in hidden]
    else:
        asked = request.topics or []
        hidden = access.denied(broker, call, Operation.DESCRIBE, Resource.TOPIC, _names(asked, image))
        topics = _named(asked, image, describe, refusals, hidden)
    if request.include_topic_authorized_operations:
        for topic in topics:
            if topic.name is not None and topic.error_code != ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                topic.topic_authorized_operations = access.operations(broker, call, Resource.TOPIC, topic.name)
    response = _frame(image, call)
    response.topics = topics
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = access.cluster_operations(broker, call)
    return response


def _names(asked: Iterable[MetadataRequestTopic], image: ClusterImage) -> set[str]:
    """What the topics of a request are called, as far as that is known."""
    named = (image.names_by_id.get(each.topic_id) if each.topic_id != NO_TOPIC_ID else each.name for each in asked)
    return {name for name in named if name is not None}


def _named(
    asked: Iterable[MetadataRequestTopic],
    image: ClusterImage,
    describe: "_Describer",
    refusals: Mapping[str, ApiError],
    hidden: Collection[str],
) -> list[MetadataResponseTopic]:
    """Each topic once. Where any id is given, topics given by name alone are not looked at, as in Kafka.

    Of a topic that is hidden from the client it is not told whether it exists: by name it has no id, by id no name.
    """
    asked = list(asked)
    ids = dict.fromkeys(topic.topic_id for topic in asked if topic.topic_id != NO_TOPIC_ID)
    found: list[MetadataResponseTopic] = []
    for topic_id in ids:
        by_id = image.topic_by_id(topic_id)
        if by_id is not None and by_id.name not in hidden:
            found.append(describe.topic(by_id))
            continue
        code = ErrorCode.UNKNOWN_TOPIC_ID if by_id is None else ErrorCode.TOPIC_AUTHORIZATION_FAILED
        found.append(MetadataResponseTopic(error_code=code, name=None, topic_id=topic_id))
    if ids:
        return found
    for name in dict.fromkeys(topic.name for topic in asked if topic.name is not None):
        if name in hidden:
            found.append(MetadataResponseTopic(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name))
            continue
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
        endpoint = broker.endpoint(call.session.listener)
        if endpoint is not None:
            brokers.append(
                MetadataResponseBroker(node_id=broker.id, host=endpoint.host, port=endpoint.port, rack=broker.rack)
            )
    return MetadataResponse(brokers=brokers, cluster_id=image.cluster_id, controller_id=image.controller_id)


class _Describer:
    """Describes topics to one client: brokers that its listener cannot reach are no leaders for it."""

    def __init__(self, image: ClusterImage, call: Call) -> None:
        self._reachable = frozenset(
            broker.id for broker in image.brokers.values() if broker.endpoint(call.session.listener) is not None
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
        idle = dead_or_lagging(state, self._alive)
        isr = [broker for broker in state.isr if broker not in idle]
        seen = self._seen[state] = (error, leader, list(state.replicas), isr, offline)
        return seen
