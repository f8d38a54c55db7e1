"""CreatePartitions, key 37, versions 0 to 3.

Gives topics more partitions. Answered when they have leaders, or with REQUEST_TIMED_OUT if they have none in time.
"""

from ottla.broker.controller.decisions import MorePartitions, TopicOutcome
from ottla.broker.handlers.context import Broker, Call
from ottla.model.errors import ApiError, ErrorCode
from ottla.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)


async def handle(broker: Broker, call: Call, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    wanted = [
        MorePartitions(
            topic.name,
            topic.count,
            None if topic.assignments is None else [assignment.broker_ids for assignment in topic.assignments],
        )
        for topic in request.topics
    ]
    try:
        outcomes = await broker.controller.create_partitions(
            wanted, validate_only=request.validate_only, wait_ms=request.timeout_ms
        )
    except ApiError as error:
        outcomes = [TopicOutcome(name, None, error) for name in dict.fromkeys(more.name for more in wanted)]
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
