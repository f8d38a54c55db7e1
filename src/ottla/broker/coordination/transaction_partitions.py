"""Whether partitions are part of a transaction, asked of its coordinator, on whatever broker that is.

What is asked of another broker goes as AddPartitionsToTxn in its batched form, many transactions in one request.

A producer that adds partitions by writing begins its next transaction as soon as the last one is decided, while markers
may still be on their way. It cannot know, so the broker asks again until `add.partitions.to.txn.retry.backoff.max.ms`.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Protocol

from ottla.broker.coordination.coordinator import partition_for
from ottla.broker.coordination.sending import InterBroker, Sender
from ottla.broker.coordination.transaction_runtime import Errors, TransactionCoordinator, in_partition
from ottla.broker.coordination.transactions.events import TransactionalWrite
from ottla.cluster.image import NO_LEADER
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import TRANSACTION_STATE, TopicPartition, by_topic
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from ottla.telemetry.histogram import Histogram

LANE = "transactions"


class TransactionPartitions(Protocol):
    def ensure_partitions(self, write: TransactionalWrite) -> Errors | Awaitable[Errors]:
        """As the coordinator's own; to be added, the producer's last transaction is waited for a little."""


class ClusterTransactionPartitions:
    """Implements TransactionPartitions."""

    def __init__(self, local: TransactionCoordinator, others: InterBroker) -> None:
        self._local = local
        self._others = others
        self._sender: Sender[AddPartitionsToTxnTransaction, AddPartitionsToTxnResult] = Sender(self._send)
        self.times = Histogram(unit=1 / 1000)
        """How long it took until the coordinator had answered, in microseconds."""
        self.failures = 0

    def ensure_partitions(self, write: TransactionalWrite) -> Errors | Awaitable[Errors]:
        answer = self._ask(write)
        if write.add and not (isinstance(answer, dict) and not _is_to_repeat(answer)):
            return self._timed(self._insist(write, answer))
        if isinstance(answer, dict):
            self._note(answer, 0.0)
            return answer
        return self._timed(answer)

    async def _timed(self, answer: Awaitable[Errors]) -> Errors:
        loop = asyncio.get_running_loop()
        began = loop.time()
        errors = await answer
        self._note(errors, loop.time() - began)
        return errors

    def _note(self, errors: Errors, seconds: float) -> None:
        self.times.record(int(seconds * 1_000_000))
        self.failures += sum(code is not ErrorCode.NONE for code in errors.values())

    def _ask(self, write: TransactionalWrite) -> Errors | Awaitable[Errors]:
        leader = self._coordinator_of(write.transactional_id)
        if leader == self._others.node_id:
            return self._local.ensure_partitions(write)
        if not write.add and not self._others.settings().transaction_partition_verification_enable:
            return dict.fromkeys(write.partitions, ErrorCode.NONE)
        if leader == NO_LEADER:
            return dict.fromkeys(write.partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return _answered(self._sender.submit(leader, _question(write)), write.partitions)

    async def _insist(self, write: TransactionalWrite, answer: Errors | Awaitable[Errors]) -> Errors:
        """Ask again while the producer's last transaction is about to be complete."""
        settings, loop = self._others.settings(), asyncio.get_running_loop()
        asked = loop.time()
        deadline = asked + settings.add_partitions_to_txn_retry_backoff_max_ms / 1000.0
        errors = answer if isinstance(answer, dict) else await answer
        while _is_to_repeat(errors) and loop.time() < deadline:
            # The coordinator waits as long itself before it says so, and then there is no need to wait here too.
            await asyncio.sleep(asked + settings.add_partitions_to_txn_retry_backoff_ms / 1000.0 - loop.time())
            asked = loop.time()
            answer = self._ask(write)
            errors = answer if isinstance(answer, dict) else await answer
        return errors

    def close(self) -> None:
        self._sender.close()

    def _coordinator_of(self, transactional_id: str) -> int:
        topic = self._others.metadata.image.topics.get(TRANSACTION_STATE)
        if topic is None:
            return NO_LEADER
        return topic.partitions[partition_for(transactional_id, len(topic.partitions))].leader

    async def _send(
        self, broker_id: int, questions: list[AddPartitionsToTxnTransaction]
    ) -> Sequence[AddPartitionsToTxnResult | ApiError]:
        request = AddPartitionsToTxnRequest(transactions=questions)
        response = await self._others.call(broker_id, request, AddPartitionsToTxnResponse, lane=LANE)
        if response.error_code:
            raise ApiError(ErrorCode(response.error_code))
        if [result.transactional_id for result in response.results_by_transaction] != [
            question.transactional_id for question in questions
        ]:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "the answer is about other transactions")
        return response.results_by_transaction


def _question(write: TransactionalWrite) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(
        transactional_id=write.transactional_id,
        producer_id=write.producer_id,
        producer_epoch=write.producer_epoch,
        verify_only=not write.add,
        topics=[
            AddPartitionsToTxnTopic(name=name, partitions=those) for name, those in by_topic(write.partitions).items()
        ],
    )


def _is_to_repeat(errors: Errors) -> bool:
    return ErrorCode.CONCURRENT_TRANSACTIONS in errors.values()


async def _answered(answer: Awaitable[AddPartitionsToTxnResult], partitions: Sequence[TopicPartition]) -> Errors:
    try:
        result = await answer
    except ApiError as error:
        return dict.fromkeys(partitions, error.code)
    codes = {
        TopicPartition(topic.name, partition.partition_index): ErrorCode(partition.partition_error_code)
        for topic in result.topic_results
        for partition in topic.results_by_partition
    }
    return {partition: in_partition(codes.get(partition, ErrorCode.UNKNOWN_SERVER_ERROR)) for partition in partitions}
