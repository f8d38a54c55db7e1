"""OffsetCommit, key 8, versions 2 to 10.

Stores how far a group has read. Answered as soon as the record is committed; on one broker that is at once.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any

from ottla.broker.coordination.groups.events import Commit, OffsetToCommit
from ottla.broker.handlers.common import access
from ottla.broker.handlers.context import Broker, Call
from ottla.cluster.image import ClusterImage, TopicImage
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.rights import Operation, Resource
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

TELLS_UNKNOWN_GROUPS_FROM = 9
MEMBER_EPOCHS_FROM = 9
TOPIC_IDS_FROM = 10


def handle(
    broker: Broker, call: Call, request: OffsetCommitRequest
) -> OffsetCommitResponse | Coroutine[Any, Any, OffsetCommitResponse]:
    response = OffsetCommitResponse()
    accepted: list[OffsetToCommit] = []
    answers: list[OffsetCommitResponsePartition] = []
    """The answers that wait for the coordinator, in the order of `accepted`."""
    image = broker.metadata.image
    refusal, hidden = _refusals(broker, call, request)
    for asked in request.topics:
        answer = OffsetCommitResponseTopic(name=asked.name, topic_id=asked.topic_id)
        response.topics.append(answer)
        topic = refusal or _topic(image, asked, call.version, hidden)
        for partition in asked.partitions:
            slot = OffsetCommitResponsePartition(partition_index=partition.partition_index)
            answer.partitions.append(slot)
            if isinstance(topic, ErrorCode):
                slot.error_code = topic
            elif not 0 <= partition.partition_index < len(topic.partitions):
                slot.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                answers.append(slot)
                accepted.append(
                    OffsetToCommit(
                        topic.name, partition.partition_index, partition.committed_offset,
                        partition.committed_leader_epoch, partition.committed_metadata, topic.topic_id,
                    )
                )  # fmt: skip
    if not accepted:
        return response
    try:
        outcome = broker.groups.commit(_event(request, call.version, accepted))
    except ApiError as error:
        return _refused(response, answers, error.code)
    if isinstance(outcome, asyncio.Future):
        return _later(response, answers, outcome)
    return _answered(response, answers, outcome)


def _refusals(
    broker: Broker, call: Call, request: OffsetCommitRequest
) -> tuple[ErrorCode | None, frozenset[str | None]]:
    """Why nothing of the request may be, or which topics of it may not."""
    if broker.authorizer is None:
        return None, frozenset()
    if not access.allowed(broker, call, Operation.READ, Resource.GROUP, request.group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED, frozenset()
    names = [topic.name for topic in request.topics]
    if call.version >= TOPIC_IDS_FROM:
        by_id = broker.metadata.image.names_by_id
        names = [name for topic in request.topics if (name := by_id.get(topic.topic_id)) is not None]
    return None, frozenset(access.denied(broker, call, Operation.READ, Resource.TOPIC, names))


def _topic(
    image: ClusterImage, asked: OffsetCommitRequestTopic, version: int, hidden: frozenset[str | None]
) -> TopicImage | ErrorCode:
    name = asked.name
    if version >= TOPIC_IDS_FROM:
        topic = image.topic_by_id(asked.topic_id)
        if topic is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
        name = topic.name
    if name in hidden:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if version >= TOPIC_IDS_FROM:
        return image.topics[name]
    return image.topics.get(asked.name) or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _event(request: OffsetCommitRequest, version: int, accepted: list[OffsetToCommit]) -> Commit:
    unknown = ErrorCode.GROUP_ID_NOT_FOUND if version >= TELLS_UNKNOWN_GROUPS_FROM else ErrorCode.ILLEGAL_GENERATION
    return Commit(
        request.group_id,
        accepted,
        request.member_id,
        request.generation_id_or_member_epoch,
        request.group_instance_id,
        request.retention_time_ms,
        unknown,
        knows_member_epochs=version >= MEMBER_EPOCHS_FROM,
    )


async def _later(
    response: OffsetCommitResponse,
    answers: list[OffsetCommitResponsePartition],
    outcome: "asyncio.Future[list[ErrorCode]]",
) -> OffsetCommitResponse:
    try:
        return _answered(response, answers, await outcome)
    except ApiError as error:
        return _refused(response, answers, error.code)


def _answered(
    response: OffsetCommitResponse, answers: list[OffsetCommitResponsePartition], codes: list[ErrorCode]
) -> OffsetCommitResponse:
    for slot, code in zip(answers, codes, strict=True):
        slot.error_code = code
    return response


def _refused(
    response: OffsetCommitResponse, answers: list[OffsetCommitResponsePartition], code: ErrorCode
) -> OffsetCommitResponse:
    return _answered(response, answers, [code] * len(answers))
