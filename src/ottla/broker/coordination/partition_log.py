"""The coordinators' log, over the partitions of an internal topic that this broker leads."""

import asyncio
from collections.abc import Awaitable, Iterator, Mapping

from ottla.broker.replication.partition import Partition
from ottla.broker.replication.partitions import Partitions
from ottla.cluster.store import MetadataStore
from ottla.model.clock import Clock
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import CONSUMER_OFFSETS
from ottla.protocol.records import iterate_batches

LOAD_CHUNK_BYTES = 1 << 20
COMMIT_RECHECK_SECONDS = 0.2


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

    def led_partitions(self) -> Mapping[int, int]:
        led: dict[int, int] = {}
        for number in range(self.partition_count()):
            found = self._partitions.find(self._topic, number)
            if found is not None and found.is_leader:
                led[number] = found.leader_epoch
        return led

    def check_led(self, partition: int, epoch: int) -> None:
        self._led(partition, epoch)

    def may_be_deposed(self, partition: int) -> bool:
        """Who is alone in sync can have no successor."""
        found = self._get(partition)
        return len(found.isr) > 1 or found.isr_changes

    def append(self, partition: int, batch: bytearray, epoch: int) -> Awaitable[None] | None:
        found = self._led(partition, epoch)
        result = found.append_internal(batch, self._clock.now_ms())
        return _committed(found, result.last_offset + 1)

    def append_marker(
        self,
        partition: int,
        producer_id: int,
        producer_epoch: int,
        *,
        commit: bool,
        coordinator_epoch: int,
        transaction_version: int,
        epoch: int,
    ) -> Awaitable[None] | None:
        found = self._led(partition, epoch)
        result = found.append_marker(
            producer_id,
            producer_epoch,
            commit=commit,
            coordinator_epoch=coordinator_epoch,
            now_ms=self._clock.now_ms(),
            transaction_version=transaction_version,
        )
        return _committed(found, result.last_offset + 1)

    def when_committed(self, partition: int, offset: int, epoch: int) -> Awaitable[None] | None:
        return _committed(self._led(partition, epoch), offset)

    def read(self, partition: int, end: int | None = None) -> Iterator[bytes | memoryview]:
        """Also what is not committed yet: who led before may have acknowledged it."""
        found = self._get(partition)
        return _chunks(found, found.log.end_offset if end is None else end)

    def start_offset(self, partition: int) -> int:
        return self._get(partition).log.start_offset

    def end_offset(self, partition: int) -> int:
        return self._get(partition).log.end_offset

    def truncate_before(self, partition: int, offset: int, epoch: int) -> Awaitable[None] | None:
        """What replaces the old records must be committed, and on disk, before they go."""
        found = self._led(partition, epoch)

        async def flush_and_drop() -> None:
            end = found.log.end_offset
            pending = _committed(found, end)
            if pending is not None:
                await pending
            await found.flush_to(end)
            self._led(partition, epoch)
            found.delete_records_before(min(offset, found.high_watermark))

        return flush_and_drop()

    def _get(self, partition: int) -> Partition:
        return self._partitions.get((self._topic, partition))

    def _led(self, partition: int, epoch: int) -> Partition:
        found = self._get(partition)
        if found.leader_epoch != epoch:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{found.tp} is in leader epoch {found.leader_epoch}")
        return found


def _chunks(partition: Partition, end: int) -> Iterator[bytes | memoryview]:
    offset = partition.log.start_offset
    while offset < end:
        data = partition.log.read(offset, LOAD_CHUNK_BYTES, end, min_one_batch=True).read()
        whole = 0
        for position, header in iterate_batches(data):
            whole = position + header.size
            offset = header.next_offset
        if not whole:
            return
        yield memoryview(data)[:whole]


def _committed(partition: Partition, offset: int) -> Awaitable[None] | None:
    if partition.high_watermark >= offset and not partition.flush_due:
        return None
    return _until_committed(partition, offset, partition.leader_epoch)


async def _until_committed(partition: Partition, offset: int, epoch: int) -> None:
    """Too few replicas are no reason to give up: what is in the log may be committed yet. Who waits has its limit."""
    while True:
        if partition.leader_epoch != epoch:  # the offset may be another record's by now
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{partition.tp} has another leader epoch")
        try:
            pending = partition.when_committed(offset)
            if pending is not None:
                await pending
        except ApiError as error:
            if error.code is not ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND:
                raise
        else:
            return
        await asyncio.sleep(COMMIT_RECHECK_SECONDS)
