"""TxnOffsetCommit, key 28, versions 0 to 5.

Stores how far a group has read as part of a producer's transaction: the offsets count when it is committed. From
version 5 the group's partition becomes part of the transaction by itself; before, AddOffsetsToTxn must have said so.
"""

import inspect

from ottla.broker.coordination.coordinator import partition_for
from ottla.broker.coordination.groups.events import Commit, OffsetToCommit
from ottla.broker.coordination.transactions.events import TransactionalWrite
from ottla.broker.handlers.common import access
from ottla.broker.handlers.context import Broker, Call
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import CONSUMER_OFFSETS, TopicPartition
from ottla.model.rights import Operation, Resource
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

KNOWS_ABORTABLE_FROM = 4
ADDS_PARTITION_FROM = 5
UNANSWERED = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.OPERATION_NOT_ATTEMPTED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
"""The transaction's coordinator could not be asked, or does not know the offsets topic yet."""


async def handle(broker: Broker, call: Call, request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
    refusal, hidden = _refusals(broker, call, request)
    response = TxnOffsetCommitResponse()
    accepted: list[OffsetToCommit] = []
    answers: list[TxnOffsetCommitResponsePartition] = []
    topics = broker.metadata.image.topics
    for asked in request.topics:
        answer = TxnOffsetCommitResponseTopic(name=asked.name)
        response.topics.append(answer)
        topic = topics.get(asked.name)
        for partition in asked.partitions:
            slot = TxnOffsetCommitResponsePartition(partition_index=partition.partition_index)
            answer.partitions.append(slot)
            if refusal is not None or asked.name in hidden:
                slot.error_code = refusal or ErrorCode.TOPIC_AUTHORIZATION_FAILED
                continue
            if topic is None or not 0 <= partition.partition_index < len(topic.partitions):
                slot.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                continue
            answers.append(slot)
            accepted.append(
                OffsetToCommit(
                    topic.name, partition.partition_index, partition.committed_offset,
                    partition.committed_leader_epoch, partition.committed_metadata, topic.topic_id,
                )
            )  # fmt: skip
    codes = await _commit(broker, call, request, accepted) if accepted else []
    for slot, code in zip(answers, codes, strict=True):
        slot.error_code = code
    return response


def _refusals(broker: Broker, call: Call, request: TxnOffsetCommitRequest) -> tuple[ErrorCode | None, frozenset[str]]:
    """Why nothing of the request may be, or which topics of it may not."""
    if not access.allowed(broker, call, Operation.WRITE, Resource.TRANSACTIONAL_ID, request.transactional_id):
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, frozenset()
    if not access.allowed(broker, call, Operation.READ, Resource.GROUP, request.group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED, frozenset()
    names = (topic.name for topic in request.topics)
    return None, access.denied(broker, call, Operation.READ, Resource.TOPIC, names)


async def _commit(
    broker: Broker, call: Call, request: TxnOffsetCommitRequest, accepted: list[OffsetToCommit]
) -> list[ErrorCode]:
    try:
        await _join_transaction(broker, call, request)
        outcome = broker.groups.commit(
            Commit(
                request.group_id,
                accepted,
                request.member_id,
                request.generation_id,
                request.group_instance_id,
                producer_id=request.producer_id,
                producer_epoch=request.producer_epoch,
            )
        )
        return await outcome if inspect.isawaitable(outcome) else outcome
    except ApiError as error:
        return [error.code] * len(accepted)


async def _join_transaction(broker: Broker, call: Call, request: TxnOffsetCommitRequest) -> None:
    """The partition that holds the group's offsets must be part of the transaction, or no marker would come."""
    offsets_topic = broker.metadata.image.topics.get(CONSUMER_OFFSETS)
    if offsets_topic is None:
        raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    partition = TopicPartition(CONSUMER_OFFSETS, partition_for(request.group_id, len(offsets_topic.partitions)))
    adds = call.version >= ADDS_PARTITION_FROM
    write = TransactionalWrite(request.transactional_id, request.producer_id, request.producer_epoch, [partition], adds)
    outcome = broker.transaction_partitions.ensure_partitions(write)
    codes = await outcome if inspect.isawaitable(outcome) else outcome
    code = codes.get(partition, ErrorCode.NONE)
    if code is ErrorCode.TRANSACTION_ABORTABLE and call.version < KNOWS_ABORTABLE_FROM:
        code = ErrorCode.INVALID_TXN_STATE
    if code in UNANSWERED:
        # Clients simply try again; they would take the others for something about the group's coordinator.
        code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    if code:
        raise ApiError(code)
