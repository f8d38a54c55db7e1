"""Markers: the control records that tell a partition how a transaction ended."""

import logging
from collections.abc import Awaitable, Callable, Collection
from typing import NamedTuple, Protocol

from ottla.broker.coordination.runtime import GroupCoordinator
from ottla.broker.coordination.sending import watched
from ottla.broker.replication.partitions import Partitions
from ottla.cluster.store import MetadataStore
from ottla.config.topic import PROMOTING
from ottla.model.clock import Clock
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import CONSUMER_OFFSETS, TopicPartition

logger = logging.getLogger(__name__)


class Marker(NamedTuple):
    producer_id: int
    producer_epoch: int
    commit: bool
    coordinator_epoch: int
    transaction_version: int = 1


class MarkerWriter(Protocol):
    """Brings markers to partitions, wherever they are led."""

    def write(self, marker: Marker, partition: TopicPartition) -> Awaitable[None] | None:
        """Write one marker. Writing it again does no harm.

        Raises ApiError if it cannot be done now. Returns None if it is done, or else something to wait for.
        """


DONE_ANYWAY = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})
"""The partition knows a newer epoch of the producer, or of the coordinator: what this marker would end has ended."""


class LocalMarkers:
    """Implements MarkerWriter for the partitions of this broker. A partition that exists no more needs no marker."""

    def __init__(self, partitions: Partitions, groups: GroupCoordinator, metadata: MetadataStore, clock: Clock) -> None:
        self._partitions = partitions
        self._groups = groups
        self._metadata = metadata
        self._clock = clock

    def write(self, marker: Marker, partition: TopicPartition) -> Awaitable[None] | None:
        topic = self._metadata.image.topics.get(partition.topic)
        if topic is None or partition.partition >= len(topic.partitions):
            return None
        try:
            return self.append(marker, partition)
        except ApiError as error:
            if error.code not in DONE_ANYWAY:
                raise
            logger.warning(
                "%s: Transaction marker of producer id %d is not needed any more: %s",
                partition,
                marker.producer_id,
                error,
            )
            return None

    def append(self, marker: Marker, partition: TopicPartition) -> Awaitable[None] | None:
        """As WriteTxnMarkers asks for it: every refusal is raised."""
        if partition.topic == CONSUMER_OFFSETS:
            return self._groups.complete_transaction(
                partition.partition,
                marker.producer_id,
                marker.producer_epoch,
                commit=marker.commit,
                coordinator_epoch=marker.coordinator_epoch,
                transaction_version=marker.transaction_version,
            )
        found = self._partitions.get(partition)
        if (source := found.log.rules.mirrors) and not source.startswith(PROMOTING):
            return None  # no producer of this cluster has records here; its marker would take a record's offset
        result = found.append_marker(
            marker.producer_id,
            marker.producer_epoch,
            commit=marker.commit,
            coordinator_epoch=marker.coordinator_epoch,
            now_ms=self._clock.now_ms(),
            transaction_version=marker.transaction_version,
        )
        return found.when_committed(result.last_offset + 1)


def write_all(
    writer: MarkerWriter, marker: Marker, partitions: Collection[TopicPartition], refused: Callable[[ApiError], None]
) -> tuple[set[TopicPartition], dict[TopicPartition, Awaitable[None]]]:
    """Write a marker to each partition. Returns those that refused, and those that are to be waited for."""
    left: set[TopicPartition] = set()
    waiting: dict[TopicPartition, Awaitable[None]] = {}
    for partition in partitions:
        try:
            pending = writer.write(marker, partition)
        except ApiError as error:
            left.add(partition)
            refused(error)
            continue
        if pending is not None:
            waiting[partition] = watched(pending)
    return left, waiting
