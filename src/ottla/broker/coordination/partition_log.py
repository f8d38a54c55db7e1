"""The coordinators' log, over this broker's partitions of an internal topic."""

from collections.abc import Awaitable, Collection, Iterator

from ottla.broker.replication.partition import Partition
from ottla.broker.replication.partitions import Partitions
from ottla.cluster.store import MetadataStore
from ottla.model.clock import Clock
from ottla.model.names import CONSUMER_OFFSETS
from ottla.protocol.records import iterate_batches

LOAD_CHUNK_BYTES = 1 << 20


class PartitionLog:
    """Implements CoordinatorLog."""

    def __init__(
        self, partitions: Partitions, metadata: MetadataStore, clock: Clock, topic: str = CONSUMER_OFFSETS
    ) -> None:
        self._partitions = partitions
        self._metadata = metadata
        self._clock = clock
        self._topic = topic

    def partition_count(self) -> int:
        topic = self._metadata.image.topics.get(self._topic)
        return 0 if topic is None else len(topic.partitions)

    def led_partitions(self) -> Collection[int]:
        return [
            number for number in range(self.partition_count()) if self._partitions.find(self._topic, number) is not None
        ]

    def append(self, partition: int, batch: bytearray) -> Awaitable[None] | None:
        found = self._get(partition)
        result = found.append_internal(batch, self._clock.now_ms())
        return found.flush_to(result.last_offset + 1) if found.flush_due else None

    def append_marker(
        self, partition: int, producer_id: int, producer_epoch: int, *, commit: bool, coordinator_epoch: int
    ) -> Awaitable[None] | None:
        found = self._get(partition)
        result = found.append_marker(
            producer_id,
            producer_epoch,
            commit=commit,
            coordinator_epoch=coordinator_epoch,
            now_ms=self._clock.now_ms(),
        )
        return found.flush_to(result.last_offset + 1) if found.flush_due else None

    def read(self, partition: int) -> Iterator[bytes | memoryview]:
        found = self._get(partition)
        offset = found.log.start_offset
        while offset < found.high_watermark:
            data = found.read(offset, LOAD_CHUNK_BYTES, min_one_batch=True).read()
            end = 0
            for position, header in iterate_batches(data):
                end = position + header.size
                offset = header.next_offset
            if not end:
                return
            yield memoryview(data)[:end]

    def start_offset(self, partition: int) -> int:
        return self._get(partition).log.start_offset

    def end_offset(self, partition: int) -> int:
        return self._get(partition).log.end_offset

    def truncate_before(self, partition: int, offset: int) -> Awaitable[None] | None:
        """What replaces the old records must be on disk before they go."""
        found = self._get(partition)

        async def flush_and_drop() -> None:
            await found.flush_to(found.log.end_offset)
            found.log.delete_records_before(offset)

        return flush_and_drop()

    def _get(self, partition: int) -> Partition:
        return self._partitions.get((self._topic, partition))
