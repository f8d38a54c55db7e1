"""Markers for the partitions of a whole cluster: those led here are written at once, others go to their leaders.

A marker that did not arrive is refused; the coordinator asks for it again, and it goes to whoever leads by then.
"""

import logging
from collections.abc import Awaitable, Sequence

from ottla.broker.coordination.markers import DONE_ANYWAY, LocalMarkers, Marker
from ottla.broker.coordination.sending import InterBroker, Sender
from ottla.cluster.image import NO_LEADER
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import TopicPartition, by_topic
from ottla.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

logger = logging.getLogger(__name__)

LANE = "markers"

Wanted = tuple[Marker, TopicPartition]


class ClusterMarkers:
    """Implements MarkerWriter."""

    def __init__(self, local: LocalMarkers, others: InterBroker) -> None:
        self._local = local
        self._others = others
        self._sender: Sender[Wanted, None] = Sender(self._send)

    def write(self, marker: Marker, partition: TopicPartition) -> Awaitable[None] | None:
        topic = self._others.metadata.image.topics.get(partition.topic)
        if topic is None or partition.partition >= len(topic.partitions):
            return None
        leader = topic.partitions[partition.partition].leader
        if leader == self._others.node_id:
            return self._local.write(marker, partition)
        if leader == NO_LEADER:
            raise ApiError(ErrorCode.LEADER_NOT_AVAILABLE, f"{partition} has no leader now")
        return self._sender.submit(leader, (marker, partition))

    def close(self) -> None:
        self._sender.close()

    async def _send(self, broker_id: int, wanted: list[Wanted]) -> Sequence[ApiError | None]:
        markers = list(dict.fromkeys(marker for marker, _ in wanted))
        request = _request(markers, wanted)
        response = await self._others.call(broker_id, request, WriteTxnMarkersResponse, lane=LANE)
        codes = {
            (marker, TopicPartition(topic.name, partition.partition_index)): ErrorCode(partition.error_code)
            for marker, result in zip(markers, response.markers, strict=False)
            for topic in result.topics
            for partition in topic.partitions
        }
        return [
            _judged(marker, partition, codes.get((marker, partition), ErrorCode.UNKNOWN_SERVER_ERROR))
            for marker, partition in wanted
        ]


def _judged(marker: Marker, partition: TopicPartition, code: ErrorCode) -> ApiError | None:
    if code is ErrorCode.NONE:
        return None
    if code in DONE_ANYWAY:
        logger.warning(
            "%s: Transaction marker of producer id %d is not needed any more: %s",
            partition,
            marker.producer_id,
            code.name,
        )
        return None
    return ApiError(code)


def _request(markers: list[Marker], wanted: list[Wanted]) -> WriteTxnMarkersRequest:
    partitions: dict[Marker, list[TopicPartition]] = {marker: [] for marker in markers}
    for marker, partition in wanted:
        partitions[marker].append(partition)
    return WriteTxnMarkersRequest(
        markers=[
            WritableTxnMarker(
                producer_id=marker.producer_id,
                producer_epoch=marker.producer_epoch,
                transaction_result=marker.commit,
                coordinator_epoch=marker.coordinator_epoch,
                transaction_version=marker.transaction_version,
                topics=[
                    WritableTxnMarkerTopic(name=name, partition_indexes=numbers)
                    for name, numbers in by_topic(partitions[marker]).items()
                ],
            )
            for marker in markers
        ]
    )
