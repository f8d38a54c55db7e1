"""AddPartitionsToTxn, key 24, versions 0 to 5.

Makes partitions part of a producer's transaction before it writes to them. Versions 0 to 3 are the clients' own, with
one transaction; versions 4 and 5 come in batches and may only ask whether partitions are part of it (`verify_only`).
One partition that does not exist refuses all of its transaction.
"""

import asyncio
from collections.abc import Sequence

from ottla.broker.coordination.transactions.events import VERSION_WITH_EPOCH_BUMP
from ottla.broker.handlers.common import access
from ottla.broker.handlers.common.transaction_codes import known_to
from ottla.broker.handlers.context import Broker, Call
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import INTERNAL_TOPICS, TopicPartition
from ottla.model.rights import Operation, Resource
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

BATCHED_FROM = 4
SECOND_TRANSACTION_VERSION_FROM = 5
FENCED_SINCE = 2


async def handle(broker: Broker, call: Call, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
    if call.version < BATCHED_FROM:
        only = AddPartitionsToTxnTransaction(
            transactional_id=request.v3_and_below_transactional_id,
            producer_id=request.v3_and_below_producer_id,
            producer_epoch=request.v3_and_below_producer_epoch,
            topics=request.v3_and_below_topics,
        )
        errors = await _add(broker, call, only)
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_results(only.topics, errors))
    access.require_cluster(broker, call, Operation.CLUSTER_ACTION)
    call.exempt = True  # from another broker
    # All are appended before the first is waited for.
    answers = await asyncio.gather(*(_add(broker, call, transaction) for transaction in request.transactions))
    return AddPartitionsToTxnResponse(
        results_by_transaction=[
            AddPartitionsToTxnResult(
                transactional_id=transaction.transactional_id, topic_results=_results(transaction.topics, errors)
            )
            for transaction, errors in zip(request.transactions, answers, strict=True)
        ]
    )


async def _add(
    broker: Broker, call: Call, transaction: AddPartitionsToTxnTransaction
) -> dict[TopicPartition, ErrorCode]:
    partitions = [TopicPartition(topic.name, number) for topic in transaction.topics for number in topic.partitions]
    hidden: frozenset[str] = frozenset()
    if call.version < BATCHED_FROM:
        name = transaction.transactional_id
        if not access.allowed(broker, call, Operation.WRITE, Resource.TRANSACTIONAL_ID, name):
            return dict.fromkeys(partitions, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        names = (partition.topic for partition in partitions if partition.topic not in INTERNAL_TOPICS)
        hidden = access.denied(broker, call, Operation.WRITE, Resource.TOPIC, names)
    refused = {
        partition: code
        for partition in partitions
        if (
            code := ErrorCode.TOPIC_AUTHORIZATION_FAILED
            if partition.topic in hidden
            else _refusal(broker, call, partition)
        )
    }
    if refused:
        return {partition: refused.get(partition, ErrorCode.OPERATION_NOT_ATTEMPTED) for partition in partitions}
    name, producer_id, epoch = transaction.transactional_id, transaction.producer_id, transaction.producer_epoch
    try:
        if transaction.verify_only:
            verified = broker.transactions.verify_partitions(name, producer_id, epoch, partitions)
            return verified if isinstance(verified, dict) else await verified
        version = VERSION_WITH_EPOCH_BUMP if call.version >= SECOND_TRANSACTION_VERSION_FROM else 0
        added = broker.transactions.add_partitions(name, producer_id, epoch, partitions, version)
        code = added if isinstance(added, ErrorCode) else await added
    except ApiError as error:
        code = error.code
    return dict.fromkeys(partitions, known_to(code, call.version, FENCED_SINCE))


def _refusal(broker: Broker, call: Call, partition: TopicPartition) -> ErrorCode | None:
    if partition.topic in INTERNAL_TOPICS and call.version < BATCHED_FROM:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    topic = broker.metadata.image.topics.get(partition.topic)
    if topic is None or not 0 <= partition.partition < len(topic.partitions):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return None


def _results(
    topics: Sequence[AddPartitionsToTxnTopic], errors: dict[TopicPartition, ErrorCode]
) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=number, partition_error_code=errors[TopicPartition(topic.name, number)]
                )
                for number in topic.partitions
            ],
        )
        for topic in topics
    ]
