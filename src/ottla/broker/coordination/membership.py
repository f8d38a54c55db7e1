"""Whether partitions are part of a transaction, asked of its coordinator, on whatever broker that is.

What is asked of another broker goes as AddPartitionsToTxn in its batched form, many transactions in one request.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from ottla.broker.coordination.coordinator import partition_for
from ottla.broker.coordination.sending import Sender
from ottla.broker.coordination.transaction_runtime import Errors, TransactionCoordinator, in_partition
from ottla.broker.replication.peers import Peers
from ottla.cluster.image import NO_LEADER
from ottla.cluster.store import MetadataStore
from ottla.config.broker import BrokerSettings
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import TRANSACTION_STATE, TopicPartition, by_topic
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)

LANE = "transactions"


class TransactionMembership(Protocol):
    def ensure_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[TopicPartition],
        *,
        add: bool,
    ) -> Errors | Awaitable[Errors]:
        """Before a transactional write: NONE for each partition that is part of the transaction.

        With `add` they become part of it (transaction version 2); without it they must be already. The codes are
        those of a partition: a fenced producer has an INVALID_PRODUCER_EPOCH there.
        """


class ClusterMembership:
    """Implements TransactionMembership."""

    def __init__(
        self,
        node_id: int,
        local: TransactionCoordinator,
        metadata: MetadataStore,
        peers: Peers,
        settings: Callable[[], BrokerSettings],
    ) -> None:
        self._node_id = node_id
        self._local = local
        self._metadata = metadata
        self._peers = peers
        self._settings = settings
        self._sender: Sender[AddPartitionsToTxnTransaction, AddPartitionsToTxnResult] = Sender(self._send)

    def ensure_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[TopicPartition],
        *,
        add: bool,
    ) -> Errors | Awaitable[Errors]:
        leader = self._coordinator_of(transactional_id)
        if leader == self._node_id:
            return self._local.ensure_partitions(transactional_id, producer_id, producer_epoch, partitions, add=add)
        if not add and not self._settings().transaction_partition_verification_enable:
            return dict.fromkeys(partitions, ErrorCode.NONE)
        if leader == NO_LEADER:
            return dict.fromkeys(partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        question = AddPartitionsToTxnTransaction(
            transactional_id=transactional_id,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            verify_only=not add,
            topics=[
                AddPartitionsToTxnTopic(name=name, partitions=those) for name, those in by_topic(partitions).items()
            ],
        )
        return _answered(self._sender.submit(leader, question), partitions)

    def close(self) -> None:
        self._sender.close()

    def _coordinator_of(self, transactional_id: str) -> int:
        topic = self._metadata.image.topics.get(TRANSACTION_STATE)
        if topic is None:
            return NO_LEADER
        return topic.partitions[partition_for(transactional_id, len(topic.partitions))].leader

    async def _send(
        self, broker_id: int, questions: list[AddPartitionsToTxnTransaction]
    ) -> Sequence[AddPartitionsToTxnResult | ApiError]:
        response = await self._peers.call(
            broker_id,
            AddPartitionsToTxnRequest(transactions=questions),
            AddPartitionsToTxnResponse,
            timeout_s=self._settings().request_timeout_ms / 1000.0,
            lane=LANE,
        )
        if response.error_code:
            raise ApiError(ErrorCode(response.error_code))
        if [result.transactional_id for result in response.results_by_transaction] != [
            question.transactional_id for question in questions
        ]:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "the answer is about other transactions")
        return response.results_by_transaction


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
