"""CreatePartitions, key 37, versions 0 to 3.

Gives topics more partitions. Answered when they have leaders, or with REQUEST_TIMED_OUT if they have none in time.
"""

from ottla.broker.controller.decisions import MorePartitions, TopicOutcome
from ottla.broker.handlers.common import access
from ottla.broker.handlers.common.mutations import charge_for, throttle
from ottla.broker.handlers.context import Broker, Call
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.rights import Operation, Resource
from ottla.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)

FIRST_VERSION_THAT_IS_REFUSED = 3
"""When its quota is used up; older ones are done, and wait afterwards."""


async def handle(broker: Broker, call: Call, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    names = [topic.name for topic in request.topics]
    denied = access.denied(broker, call, Operation.ALTER, Resource.TOPIC, names)
    wanted = [
        MorePartitions(
            topic.name,
            topic.count,
            None if topic.assignments is None else [assignment.broker_ids for assignment in topic.assignments],
        )
        for topic in request.topics
        if topic.name not in denied
    ]
    charge = charge_for(broker, call, refused_from=FIRST_VERSION_THAT_IS_REFUSED)
    try:
        outcomes = await broker.controller.create_partitions(
            wanted, validate_only=request.validate_only, wait_ms=request.timeout_ms, charge=charge
        )
    except ApiError as error:
        outcomes = [TopicOutcome(name, None, error) for name in dict.fromkeys(more.name for more in wanted)]
    throttle(call, charge)
    refusal = ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    outcomes += [TopicOutcome(name, None, refusal) for name in dict.fromkeys(names) if name in denied]
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsTopicResult(
                name=outcome.name,
                error_code=outcome.refusal.code if outcome.refusal else ErrorCode.NONE,
                error_message=outcome.refusal.message if outcome.refusal else None,
            )
            for outcome in outcomes
        ]
    )
