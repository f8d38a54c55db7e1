"""The producer's side of a transaction: begin one by taking its id, let partitions and offsets take part, end it.

Clusters with transaction version 2 let a partition join by the first write to it, and give the producer a new epoch
with every end, so that nothing of one transaction can slip into the next. Before that, partitions are announced, and
whoever wants a new epoch takes the id again.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import NamedTuple, TypeVar

from ottla.client.cluster import BACKOFF_FIRST_S, BACKOFF_MAX_S, TOTAL_TIMEOUT_S, Cluster, raise_for
from ottla.client.errors import ProducerFenced, TransactionLost, Unreachable
from ottla.client.transactions import TRANSACTION
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import TopicPartition, by_topic
from ottla.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from ottla.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)

T = TypeVar("T")

SECOND = 2
"""The transaction version in which partitions join by themselves and every end raises the epoch."""
_ADD_PARTITIONS_VERSION_MAX = 3  # from 4 on the request is for brokers among themselves
_FIRST_VERSION_MAX = 4  # of EndTxn and TxnOffsetCommit, where the cluster is not at transaction version 2

FENCED = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH})
LOST = frozenset({ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.TRANSACTION_ABORTABLE})


class ProducerId(NamedTuple):
    id: int
    epoch: int


NO_PRODUCER = ProducerId(-1, -1)


class TransactionalOffset(NamedTuple):
    offset: int
    metadata: str = ""
    leader_epoch: int = -1


async def transaction_version(cluster: Cluster, transactional_id: str) -> int:
    """What the cluster has agreed on: 2, or less."""

    async def attempt() -> int:
        connection = await cluster.connection(await cluster.coordinator(transactional_id, TRANSACTION))
        return connection.features.get("transaction.version", 0)

    return await _patiently(cluster, attempt)


async def init_producer(
    cluster: Cluster, transactional_id: str | None, timeout_ms: int = 0, *, held: ProducerId = NO_PRODUCER
) -> ProducerId:
    """Take an id. What its last holder left open is aborted, what it was committing is finished first.

    `held` is what the caller has of this id: it gets the next epoch, unless somebody else has taken the id since.
    """
    request = InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=timeout_ms if transactional_id is not None else 0x7FFF_FFFF,
        producer_id=held.id,
        producer_epoch=held.epoch,
    )
    min_version = 0 if held == NO_PRODUCER else 3

    async def attempt() -> ProducerId:
        node = None if transactional_id is None else await cluster.coordinator(transactional_id, TRANSACTION)
        response = await cluster.call(request, InitProducerIdResponse, node=node, min_version=min_version)
        if response.error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT:
            raise_for(
                response.error_code,
                f"the cluster takes no transaction timeout of {timeout_ms} ms: lower transaction.timeout.ms, "
                "or raise transaction.max.timeout.ms of the brokers",
            )
        raise_for(response.error_code)
        return ProducerId(response.producer_id, response.producer_epoch)

    return await _patiently(cluster, attempt)


async def add_partitions(
    cluster: Cluster, transactional_id: str, producer: ProducerId, partitions: Collection[TopicPartition]
) -> None:
    """Announce partitions, as transaction version 1 wants it before the first write to each."""
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=producer.id,
        v3_and_below_producer_epoch=producer.epoch,
        v3_and_below_topics=[
            AddPartitionsToTxnTopic(name=topic, partitions=numbers) for topic, numbers in by_topic(partitions).items()
        ],
    )

    async def attempt() -> None:
        response = await cluster.call(
            request,
            AddPartitionsToTxnResponse,
            node=await cluster.coordinator(transactional_id, TRANSACTION),
            max_version=_ADD_PARTITIONS_VERSION_MAX,
        )
        codes = [
            found.partition_error_code
            for topic in response.results_by_topic_v3_and_below
            for found in topic.results_by_partition
        ]
        # One partition refused refuses all; the others then say only that they were not attempted.
        for code in sorted(codes, key=lambda code: code == ErrorCode.OPERATION_NOT_ATTEMPTED):
            raise_for(code)

    await _patiently(cluster, attempt)


async def commit_offsets_in_transaction(
    cluster: Cluster,
    transactional_id: str,
    producer: ProducerId,
    group_id: str,
    offsets: Mapping[TopicPartition, TransactionalOffset],
    *,
    version: int,
) -> None:
    """Store offsets of a group that count when the transaction is committed."""
    if version < SECOND:
        await _add_offsets(cluster, transactional_id, producer, group_id)
    request = TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id=group_id,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        topics=[
            TxnOffsetCommitRequestTopic(
                name=topic,
                partitions=[_offset(number, offsets[TopicPartition(topic, number)]) for number in numbers],
            )
            for topic, numbers in by_topic(offsets).items()
        ],
    )

    async def attempt() -> None:
        response = await cluster.call(
            request,
            TxnOffsetCommitResponse,
            node=await cluster.coordinator(group_id),
            min_version=3,
            max_version=None if version >= SECOND else _FIRST_VERSION_MAX,
        )
        for topic in response.topics:
            for found in topic.partitions:
                raise_for(found.error_code)

    await _patiently(cluster, attempt)


async def end_transaction(
    cluster: Cluster, transactional_id: str, producer: ProducerId, *, commit: bool, version: int
) -> ProducerId:
    """End it; asking again about one that has ended the same way succeeds too. What the producer goes on with."""
    request = EndTxnRequest(
        transactional_id=transactional_id, producer_id=producer.id, producer_epoch=producer.epoch, committed=commit
    )

    async def attempt() -> ProducerId:
        response = await cluster.call(
            request,
            EndTxnResponse,
            node=await cluster.coordinator(transactional_id, TRANSACTION),
            max_version=None if version >= SECOND else _FIRST_VERSION_MAX,
        )
        raise_for(response.error_code)
        if response.producer_epoch < 0:
            return producer
        return ProducerId(response.producer_id, response.producer_epoch)

    return await _patiently(cluster, attempt)


async def _add_offsets(cluster: Cluster, transactional_id: str, producer: ProducerId, group_id: str) -> None:
    request = AddOffsetsToTxnRequest(
        transactional_id=transactional_id, producer_id=producer.id, producer_epoch=producer.epoch, group_id=group_id
    )

    async def attempt() -> None:
        node = await cluster.coordinator(transactional_id, TRANSACTION)
        response = await cluster.call(request, AddOffsetsToTxnResponse, node=node)
        raise_for(response.error_code)

    await _patiently(cluster, attempt)


def _offset(number: int, offset: TransactionalOffset) -> TxnOffsetCommitRequestPartition:
    return TxnOffsetCommitRequestPartition(
        partition_index=number,
        committed_offset=offset.offset,
        committed_leader_epoch=offset.leader_epoch,
        committed_metadata=offset.metadata,
    )


async def _patiently(cluster: Cluster, attempt: Callable[[], Awaitable[T]]) -> T:
    """Try again while the last transaction is being completed and while no broker can be reached."""
    deadline = time.monotonic() + TOTAL_TIMEOUT_S
    pause_s = BACKOFF_FIRST_S / 4
    while True:
        try:
            return await cluster.retrying(attempt)
        except Unreachable:
            if time.monotonic() + pause_s > deadline:
                raise
        except ApiError as error:
            if error.code is not ErrorCode.CONCURRENT_TRANSACTIONS or time.monotonic() + pause_s > deadline:
                raise by_class(error) from error
        await asyncio.sleep(pause_s)
        pause_s = min(pause_s * 2, BACKOFF_MAX_S)


def by_class(error: ApiError, context: str = "") -> ApiError:
    """The same error as an exception that says what a producer can do about it."""
    prefix = f"{context}: " if context else ""
    if error.code in FENCED:
        return ProducerFenced(
            error.code, f"{prefix}another producer has taken this transactional id, or its transaction timed out"
        )
    if error.code in LOST:
        reason = error.message or error.code.name
        return TransactionLost(error.code, f"{prefix}the transaction is no longer open ({reason})")
    return error
