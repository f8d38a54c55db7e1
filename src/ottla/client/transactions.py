"""Transactions as their coordinators know them, and as partitions do."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from ottla.client.cluster import Cluster, error_code, raise_for
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import TopicPartition, by_topic
from ottla.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    ProducerState,
    TopicRequest,
)
from ottla.protocol.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from ottla.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

TRANSACTION = 1
FENCING_TIMEOUT_MS = 1
"""An id is initialised only to fence off whoever has it: the timeout is never used."""


class TransactionListing(NamedTuple):
    transactional_id: str
    coordinator: int
    producer_id: int
    state: str


class TransactionDescription(NamedTuple):
    transactional_id: str
    coordinator: int
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    started_ms: int | None
    partitions: list[TopicPartition]


async def list_transactions(
    cluster: Cluster, *, producer_ids: Sequence[int] = (), duration_ms: int = -1, pattern: str | None = None
) -> list[TransactionListing]:
    """The transactional ids of all brokers, by name."""
    request = ListTransactionsRequest(
        producer_id_filters=list(producer_ids), duration_filter=duration_ms, transactional_id_pattern=pattern
    )
    min_version = 2 if pattern is not None else 1 if duration_ms >= 0 else 0

    async def ask(node: int) -> list[TransactionListing]:
        response = await cluster.call(request, ListTransactionsResponse, node=node, min_version=min_version)
        raise_for(response.error_code)
        return [
            TransactionListing(found.transactional_id, node, found.producer_id, found.transaction_state)
            for found in response.transaction_states
        ]

    async def attempt() -> list[TransactionListing]:
        await cluster.metadata([])
        answers = await asyncio.gather(*(ask(node) for node in cluster.brokers))
        return sorted(listing for answer in answers for listing in answer)

    return await cluster.retrying(attempt)


async def describe_transaction(cluster: Cluster, transactional_id: str) -> TransactionDescription:
    """Raises TRANSACTIONAL_ID_NOT_FOUND if there is no such id."""
    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])

    async def attempt() -> TransactionDescription:
        node = await cluster.coordinator(transactional_id, TRANSACTION)
        response = await cluster.call(request, DescribeTransactionsResponse, node=node)
        found = response.transaction_states[0]
        raise_for(found.error_code)
        return TransactionDescription(
            transactional_id,
            node,
            found.producer_id,
            found.producer_epoch,
            found.transaction_state,
            found.transaction_timeout_ms,
            found.transaction_start_time_ms if found.transaction_start_time_ms >= 0 else None,
            [TopicPartition(topic.topic, number) for topic in found.topics for number in topic.partitions],
        )

    return await cluster.retrying(attempt)


async def describe_producers(
    cluster: Cluster, partitions: Sequence[TopicPartition], node: int | None = None
) -> dict[TopicPartition, list[ProducerState] | ErrorCode]:
    """What partitions remember of their producers: on one broker, or else on the leader of each."""

    async def ask(node: int, group: list[TopicPartition]) -> dict[TopicPartition, list[ProducerState] | ErrorCode]:
        request = DescribeProducersRequest(
            topics=[TopicRequest(name=topic, partition_indexes=numbers) for topic, numbers in by_topic(group).items()]
        )
        response = await cluster.call(request, DescribeProducersResponse, node=node)
        return {
            TopicPartition(topic.name, found.partition_index): (
                error_code(found.error_code) if found.error_code else found.active_producers
            )
            for topic in response.topics
            for found in topic.partitions
        }

    if node is None:
        return await cluster.each_leader(partitions, ask)
    await cluster.metadata([])
    return await ask(node, list(partitions))


async def write_abort_marker(
    cluster: Cluster, partition: TopicPartition, producer_id: int, producer_epoch: int, coordinator_epoch: int
) -> None:
    """End a transaction in one partition behind its coordinator's back: for those that no coordinator knows."""
    marker = WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        coordinator_epoch=coordinator_epoch,
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(name=partition.topic, partition_indexes=[partition.partition])],
    )

    async def ask(node: int, _: list[TopicPartition]) -> dict[TopicPartition, ErrorCode | None]:
        request = WriteTxnMarkersRequest(markers=[marker])
        response = await cluster.call(request, WriteTxnMarkersResponse, node=node)
        code = response.markers[0].topics[0].partitions[0].error_code
        return {partition: error_code(code) if code else None}

    outcome = (await cluster.each_leader([partition], ask))[partition]
    if outcome is not None:
        raise ApiError(outcome)


async def fence_producer(cluster: Cluster, transactional_id: str) -> None:
    """Take the id away from whoever has it; the transaction that it has open is aborted."""
    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=FENCING_TIMEOUT_MS)

    async def attempt() -> None:
        node = await cluster.coordinator(transactional_id, TRANSACTION)
        response = await cluster.call(request, InitProducerIdResponse, node=node)
        raise_for(response.error_code)

    await cluster.retrying(attempt)
