"""WriteTxnMarkers, key 27, versions 1 and 2.

Writes how transactions ended into partitions. Coordinators of other brokers send it, and `kafka-transactions.sh
abort` does, to end a transaction that its coordinator knows nothing of any more.
"""

import asyncio

from ottla.broker.coordination.markers import LocalMarkers, Marker
from ottla.broker.coordination.sending import watched
from ottla.broker.handlers.common import access
from ottla.broker.handlers.context import Broker, Call
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import TopicPartition
from ottla.model.rights import Operation
from ottla.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

Outcome = ErrorCode | asyncio.Future[None]

# A transaction coordinator takes these for errors of its own; a partition that is not ready is what it understands.
_NOT_READY = frozenset(
    {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR}
)


async def handle(broker: Broker, call: Call, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
    access.require_cluster(broker, call, Operation.ALTER, Operation.CLUSTER_ACTION)
    call.exempt = True
    local = LocalMarkers(broker.partitions, broker.groups, broker.metadata, broker.clock)
    # All are appended before the first is waited for, so that they are replicated together.
    begun = [_begin(local, wanted) for wanted in request.markers]
    waiting = [outcome for outcomes in begun for outcome in outcomes.values() if not isinstance(outcome, ErrorCode)]
    if waiting:
        await asyncio.wait(waiting, timeout=broker.settings.request_timeout_ms / 1000.0)
    return WriteTxnMarkersResponse(
        markers=[_result(wanted, outcomes) for wanted, outcomes in zip(request.markers, begun, strict=True)]
    )


def refuse(call: Call, request: WriteTxnMarkersRequest, error: ApiError) -> WriteTxnMarkersResponse:
    outcomes = [
        {
            TopicPartition(topic.name, number): error.code
            for topic in wanted.topics
            for number in topic.partition_indexes
        }
        for wanted in request.markers
    ]
    return WriteTxnMarkersResponse(
        markers=[_result(wanted, {**each}) for wanted, each in zip(request.markers, outcomes, strict=True)]
    )


def _begin(local: LocalMarkers, wanted: WritableTxnMarker) -> dict[TopicPartition, Outcome]:
    marker = Marker(
        wanted.producer_id,
        wanted.producer_epoch,
        wanted.transaction_result,
        wanted.coordinator_epoch,
        wanted.transaction_version,
    )
    outcomes: dict[TopicPartition, Outcome] = {}
    for topic in wanted.topics:
        for number in topic.partition_indexes:
            partition = TopicPartition(topic.name, number)
            try:
                pending = local.append(marker, partition)
            except ApiError as error:
                outcomes[partition] = error.code
            else:
                outcomes[partition] = ErrorCode.NONE if pending is None else watched(pending)
    return outcomes


def _result(wanted: WritableTxnMarker, outcomes: dict[TopicPartition, Outcome]) -> WritableTxnMarkerResult:
    return WritableTxnMarkerResult(
        producer_id=wanted.producer_id,
        topics=[
            WritableTxnMarkerTopicResult(
                name=topic.name,
                partitions=[
                    WritableTxnMarkerPartitionResult(
                        partition_index=number, error_code=_code(outcomes[TopicPartition(topic.name, number)])
                    )
                    for number in topic.partition_indexes
                ],
            )
            for topic in wanted.topics
        ],
    )


def _code(outcome: Outcome) -> ErrorCode:
    if isinstance(outcome, ErrorCode):
        code = outcome
    elif not outcome.done():
        code = ErrorCode.REQUEST_TIMED_OUT
    elif outcome.cancelled():
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    else:
        error = outcome.exception()
        if isinstance(error, ApiError):
            code = error.code
        else:
            code = ErrorCode.NONE if error is None else ErrorCode.UNKNOWN_SERVER_ERROR
    return ErrorCode.NOT_LEADER_OR_FOLLOWER if code in _NOT_READY else code
