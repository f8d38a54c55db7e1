"""AlterPartitionReassignments, key 45, versions 0 and 1.

Begins to move partitions to other brokers, replaces moves that are under way, or gives them up (no replicas given).
Answered when that is decided; the move itself goes on until every new replica is in sync. From version 1 a request can
forbid that the number of replicas changes.
"""

import asyncio
from collections import Counter

from ottla.broker.controller.holders import Place
from ottla.broker.controller.partition_decisions import Move
from ottla.broker.handlers.common import access
from ottla.broker.handlers.context import Broker, Call
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.rights import Operation
from ottla.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)


async def handle(
    broker: Broker, call: Call, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    access.require_cluster(broker, call, Operation.ALTER)
    allow_factor_change = request.allow_replication_factor_change
    asked = [(topic.name, each.partition_index) for topic in request.topics for each in topic.partitions]
    twice = {place for place, count in Counter(asked).items() if count > 1}
    wanted = {
        (topic.name, each.partition_index): Move(each.replicas, allow_factor_change)
        for topic in request.topics
        for each in topic.partitions
    }
    refusals = {place: ApiError(ErrorCode.INVALID_REQUEST, "the request has this partition twice") for place in twice}
    moves = {place: move for place, move in wanted.items() if place not in twice}
    response = AlterPartitionReassignmentsResponse(
        error_message=None, allow_replication_factor_change=allow_factor_change
    )
    try:
        async with asyncio.timeout(max(0, request.timeout_ms) / 1000):
            refusals |= await broker.controller.move_partitions(moves)
    except TimeoutError:
        response.error_code, response.error_message = ErrorCode.REQUEST_TIMED_OUT, "not decided in time"
    except ApiError as error:
        response.error_code, response.error_message = error.code, error.message
    for topic in request.topics:
        response.responses.append(
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[_result((topic.name, each.partition_index), refusals) for each in topic.partitions],
            )
        )
    return response


def refuse(
    call: Call, request: AlterPartitionReassignmentsRequest, error: ApiError
) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(
        error_code=error.code,
        error_message=error.message,
        responses=[
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    ReassignablePartitionResponse(each.partition_index, error.code, error.message)
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


def _result(place: Place, refusals: dict[Place, ApiError]) -> ReassignablePartitionResponse:
    refusal = refusals.get(place)
    return ReassignablePartitionResponse(
        partition_index=place[1],
        error_code=refusal.code if refusal else ErrorCode.NONE,
        error_message=refusal.message if refusal else None,
    )
