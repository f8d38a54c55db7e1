"""WriteTxnMarkers, key 27, versions 1 and 2.

Writes how transactions ended into partitions. Coordinators of other brokers send it, and `kafka-transactions.sh
abort` does, to end a transaction that its coordinator knows nothing of any more.
"""

from ottla.broker.coordination.markers import LocalMarkers, Marker
from ottla.broker.handlers.context import Broker, Call
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import TopicPartition
from ottla.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

# A transaction coordinator takes these for errors of its own; a partition that is not ready is what it understands.
_NOT_READY = frozenset(
    {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR}
)


async def handle(broker: Broker, call: Call, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
    markers = LocalMarkers(broker.partitions, broker.groups, broker.metadata, broker.clock)
    return WriteTxnMarkersResponse(markers=[await _write(markers, marker) for marker in request.markers])


async def _write(markers: LocalMarkers, wanted: WritableTxnMarker) -> WritableTxnMarkerResult:
    marker = Marker(
        wanted.producer_id,
        wanted.producer_epoch,
        wanted.transaction_result,
        wanted.coordinator_epoch,
        wanted.transaction_version,
    )
    return WritableTxnMarkerResult(
        producer_id=wanted.producer_id,
        topics=[
            WritableTxnMarkerTopicResult(
                name=topic.name,
                partitions=[
                    WritableTxnMarkerPartitionResult(
                        partition_index=number,
                        error_code=await _append(markers, marker, TopicPartition(topic.name, number)),
                    )
                    for number in topic.partition_indexes
                ],
            )
            for topic in wanted.topics
        ],
    )


async def _append(markers: LocalMarkers, marker: Marker, partition: TopicPartition) -> ErrorCode:
    try:
        pending = markers.append(marker, partition)
        if pending is not None:
            await pending
    except ApiError as error:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER if error.code in _NOT_READY else error.code
    return ErrorCode.NONE
