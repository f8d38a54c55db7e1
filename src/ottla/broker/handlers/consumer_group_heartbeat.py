"""ConsumerGroupHeartbeat, key 68, versions 0 to 1.

The whole life of a member of a consumer group (KIP-848): it joins, says what it wants and what it has, hears what it
shall have, and leaves.
"""

from ottla.broker.coordination.groups.consumer.assignments import Assignment as Partitions
from ottla.broker.coordination.groups.consumer.assignments import assignment_of
from ottla.broker.coordination.groups.consumer.events import ConsumerAnswer, ConsumerHeartbeat, Sight
from ottla.broker.handlers.common import access
from ottla.broker.handlers.context import Broker, Call
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.rights import Operation, Resource
from ottla.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ResponseTopicPartitions,
)

BRINGS_OWN_ID_FROM = 1


async def handle(broker: Broker, call: Call, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
    names, owned = request.subscribed_topic_names, request.topic_partitions
    access.require(broker, call, Operation.READ, Resource.GROUP, request.group_id)
    if access.denied(broker, call, Operation.DESCRIBE, Resource.TOPIC, names or ()):
        raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    event = ConsumerHeartbeat(
        ticket=0,
        group_id=request.group_id,
        member_id=request.member_id,
        member_epoch=request.member_epoch,
        client_id=call.client_id or "",
        client_host=f"/{call.session.host}",
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        topics=None if names is None else tuple(names),
        regex=request.subscribed_topic_regex,
        assignor=request.server_assignor,
        owned=None
        if owned is None
        else assignment_of((topic.topic_id, number) for topic in owned for number in topic.partitions),
        brings_own_id=call.version >= BRINGS_OWN_ID_FROM,
        sight=_sight(broker, call),
    )
    try:
        answer = await broker.groups.consumer_heartbeat(event)
    except ApiError as error:
        answer = ConsumerAnswer(error.code, error.message)
    return ConsumerGroupHeartbeatResponse(
        error_code=answer.error,
        error_message=answer.message,
        member_id=answer.member_id,
        member_epoch=answer.member_epoch,
        heartbeat_interval_ms=answer.heartbeat_interval_ms,
        assignment=None if answer.assignment is None else _assignment(answer.assignment),
    )


def _sight(broker: Broker, call: Call) -> Sight | None:
    """Which topics the caller's pattern may find. It is asked about later too, when topics come that it matches."""
    authorizer = broker.authorizer
    if authorizer is None:
        return None
    session, api_key = call.session, call.api_key
    # What was answered stays: with other rules comes another sight, and what differs between the two is seen.
    known: dict[str, bool] = {}

    def sees(name: str) -> bool:
        allowed = known.get(name)
        if allowed is None:
            allowed = authorizer.allows(session, api_key, Operation.DESCRIBE, Resource.TOPIC, name, probe=True)
            known[name] = allowed
        return allowed

    return Sight((str(session.principal), session.host, authorizer.version), sees)


def _assignment(partitions: Partitions) -> Assignment:
    return Assignment(
        topic_partitions=[
            ResponseTopicPartitions(topic_id=topic_id, partitions=sorted(numbers))
            for topic_id, numbers in partitions.items()
        ]
    )
