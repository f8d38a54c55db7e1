"""Before a transactional batch is appended its partition must be part of the transaction, or the batch would never be
committed nor aborted: it would hang, and hold up every reader of committed records.

The coordinator is asked once per transaction and partition; after that the partition's own open transaction tells.
A guard is kept while it is asked: a marker that ends the transaction meanwhile takes it away, and the batch is refused.
A producer of transaction version 2 does not wait for the markers of its last transaction, so one of those may come
while the coordinator is asked about the next; its epoch tells that it is not about that. A guard is also lost when the
lead of the partition is: then it is the new leader who has to be asked.
"""

from collections.abc import Awaitable, Sequence
from typing import NamedTuple

import msgspec

from ottla.broker.coordination.transactions.events import TransactionalWrite
from ottla.broker.handlers.context import Broker
from ottla.broker.replication.partition import Partition
from ottla.broker.storage.producer_state import Verification
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import TopicPartition
from ottla.protocol.errors import CorruptBatch
from ottla.protocol.messages.produce import PartitionProduceData
from ottla.protocol.records import BatchHeader, read_header

ADDS_PARTITIONS_FROM = 12
"""From this version on a produce adds its partitions to the transaction by itself (transaction version 2)."""
KNOWS_ABORTABLE_FROM = 11

RETRIED_AS_TOO_FEW_REPLICAS = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.OPERATION_NOT_ATTEMPTED,
    }
)
"""Codes that producers do not expect from a partition. NOT_ENOUGH_REPLICAS makes all of them simply try again."""


class Target(msgspec.Struct):
    """One partition's part of the request, and the partition or why there is none."""

    data: PartitionProduceData
    partition: "Partition | ApiError"


Targets = list[list[Target]]
Errors = dict[TopicPartition, ErrorCode]


class _Batch(NamedTuple):
    partition: Partition
    header: BatchHeader


def verify(
    broker: Broker, version: int, transactional_id: str | None, targets: Targets
) -> Targets | Awaitable[Targets]:
    """The same targets, with an error in place of each partition that may not be written in this transaction.

    Raises ApiError if nothing of the request may be written.
    """
    batches = _transactional_batches(targets)
    if not batches:
        return targets
    if transactional_id is None:
        raise ApiError(
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "a transactional batch came without a transactional id"
        )
    producers = {(batch.header.producer_id, batch.header.producer_epoch) for batch in batches}
    if len(producers) > 1:
        raise ApiError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, "the batches of a transaction have one producer")
    ((producer_id, epoch),) = producers
    unknown = [batch for batch in batches if batch.partition.open_transaction(producer_id, epoch) is None]
    if not unknown:
        return targets
    question = _Question(broker, version, transactional_id, producer_id, epoch, unknown)
    answer = question.ask()
    return question.judge(targets, answer) if isinstance(answer, dict) else question.wait(targets, answer)


def _transactional_batches(targets: Targets) -> list[_Batch]:
    found = []
    for parts in targets:
        for target in parts:
            partition, records = target.partition, target.data.records
            if isinstance(partition, Partition) and records:
                try:
                    header = read_header(records)
                except CorruptBatch:
                    continue  # appending meets the same error and answers it
                if header.is_transactional and header.producer_id >= 0:
                    found.append(_Batch(partition, header))
    return found


class _Question:
    """Whether some partitions belong to a transaction, asked of the coordinator on behalf of one request."""

    def __init__(
        self,
        broker: Broker,
        version: int,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        batches: Sequence[_Batch],
    ) -> None:
        self._transaction_partitions = broker.transaction_partitions
        self._version = version
        self._transactional_id = transactional_id
        self._producer = (producer_id, producer_epoch)
        now_ms = broker.clock.now_ms()
        self._guards: dict[TopicPartition, Verification] = {
            partition.tp: partition.log.producers.begin_verification(
                header, now_ms, begins_at_zero=version >= ADDS_PARTITIONS_FROM
            )
            for partition, header in batches
        }
        self._leader_epochs = {partition.tp: partition.leader_epoch for partition, _ in batches}

    def ask(self) -> Errors | Awaitable[Errors]:
        adds = self._version >= ADDS_PARTITIONS_FROM
        write = TransactionalWrite(self._transactional_id, *self._producer, list(self._guards), adds)
        return self._transaction_partitions.ensure_partitions(write)

    async def wait(self, targets: Targets, answer: Awaitable[Errors]) -> Targets:
        return self.judge(targets, await answer)

    def judge(self, targets: Targets, errors: Errors) -> Targets:
        return [[self._judge(target, errors) for target in parts] for parts in targets]

    def _judge(self, target: Target, errors: Errors) -> Target:
        partition = target.partition
        if not isinstance(partition, Partition) or partition.tp not in self._guards:
            return target
        code = errors.get(partition.tp, ErrorCode.NONE)
        if code is not ErrorCode.NONE:
            refusal = _refusal(code, self._version)
            if refusal.code.retriable:
                partition.note_refused(target.data.records or b"")
            return Target(target.data, refusal)
        producers = partition.log.producers
        if (
            producers.is_verified(self._producer[0], self._guards[partition.tp])
            or producers.open_transaction(*self._producer) is not None
            or producers.is_fenced(*self._producer)  # appending meets this and says so
        ):
            return target
        if partition.leader_epoch != self._leader_epochs[partition.tp]:
            return Target(target.data, ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        return Target(target.data, ApiError(ErrorCode.INVALID_TXN_STATE, "the transaction has ended meanwhile"))


def _refusal(code: ErrorCode, version: int) -> ApiError:
    """What the coordinator said, in the words producers of this version understand from a partition."""
    if code in RETRIED_AS_TOO_FEW_REPLICAS or (
        code is ErrorCode.CONCURRENT_TRANSACTIONS and version < ADDS_PARTITIONS_FROM
    ):
        return ApiError(
            ErrorCode.NOT_ENOUGH_REPLICAS, f"the coordinator could not be asked about the transaction: {code.name}"
        )
    if code is ErrorCode.PRODUCER_FENCED:
        return ApiError(ErrorCode.INVALID_PRODUCER_EPOCH)
    if code is ErrorCode.TRANSACTION_ABORTABLE and version < KNOWS_ABORTABLE_FROM:
        code = ErrorCode.INVALID_TXN_STATE
    if code is ErrorCode.INVALID_TXN_STATE:
        return ApiError(code, "the partition is not part of the transaction")
    return ApiError(code)
