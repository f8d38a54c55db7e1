"""OffsetDelete, key 47, version 0.

Forgets what a group has committed for some partitions, unless its members read that topic now.
"""

import asyncio

from ottla.broker.handlers.context import Broker, Call
from ottla.model.errors import ApiError, ErrorCode
from ottla.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


async def handle(broker: Broker, call: Call, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
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
            if topic is None or not 0 <= partition.partition_index < len(topic.partitions):
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
