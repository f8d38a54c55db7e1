"""OffsetDelete, key 47, version 0.

Forgets what a group has committed for some partitions, unless its members read that topic now.
"""

import asyncio

from ottla.broker.handlers.common import access
from ottla.broker.handlers.context import Broker, Call
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.rights import Operation, Resource
from ottla.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


async def handle(broker: Broker, call: Call, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
    if not access.allowed(broker, call, Operation.DELETE, Resource.GROUP, request.group_id):
        return OffsetDeleteResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    hidden = access.denied(broker, call, Operation.READ, Resource.TOPIC, (topic.name for topic in request.topics))
    response = OffsetDeleteResponse()
    accepted: list[tuple[str, int]] = []
    answers: list[OffsetDeleteResponsePartition] = []
    topics = broker.metadata.image.topics
    for asked in request.topics:
        answer = OffsetDeleteResponseTopic(name=asked.name)
        response.topics.append(answer)
        topic = topics.get(asked.name)
        for partition in asked.partitions:
            slot = OffsetDeleteResponsePartition(partition_index=partition.partition_index)
            answer.partitions.append(slot)
            if asked.name in hidden:
                slot.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif topic is None or not 0 <= partition.partition_index < len(topic.partitions):
                slot.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                answers.append(slot)
                accepted.append((asked.name, partition.partition_index))
    try:
        outcome = broker.groups.delete_offsets(request.group_id, accepted)
        codes = await outcome if isinstance(outcome, asyncio.Future) else outcome
    except ApiError as error:
        return OffsetDeleteResponse(error_code=error.code)
    for slot, code in zip(answers, codes, strict=True):
        slot.error_code = code
    return response
