"""DescribeTransactions, key 65, version 0.

Tells the state of transactional ids: producer, timeout, start, partitions.
"""

from ottla.broker.handlers.common import access
from ottla.broker.handlers.context import Broker, Call
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.rights import Operation, Resource
from ottla.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from ottla.protocol.transaction_records import TransactionValue


def handle(broker: Broker, call: Call, request: DescribeTransactionsRequest) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=[_describe(broker, call, transactional_id) for transactional_id in request.transactional_ids]
    )


def _describe(broker: Broker, call: Call, transactional_id: str) -> TransactionState:
    try:
        access.require(broker, call, Operation.DESCRIBE, Resource.TRANSACTIONAL_ID, transactional_id)
        value = broker.transactions.describe(transactional_id)
    except ApiError as error:
        return TransactionState(transactional_id=transactional_id, error_code=error.code)
    if value is None:
        return TransactionState(transactional_id=transactional_id, error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    topics = _topics(value)
    hidden = access.denied(broker, call, Operation.DESCRIBE, Resource.TOPIC, (topic.topic for topic in topics))
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=value.state.word,
        transaction_timeout_ms=value.timeout_ms,
        transaction_start_time_ms=value.started_ms,
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        topics=[topic for topic in topics if topic.topic not in hidden],
    )


def _topics(value: TransactionValue) -> list[TopicData]:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(value.partitions):
        by_topic.setdefault(topic, []).append(partition)
    return [TopicData(topic=topic, partitions=partitions) for topic, partitions in by_topic.items()]
