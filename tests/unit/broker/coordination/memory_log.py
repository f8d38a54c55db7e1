"""A coordinator's log in memory, and the markers that a partition would write."""

import struct
from collections.abc import Awaitable, Iterator, Mapping

from ottla.model.errors import ApiError, ErrorCode
from ottla.protocol.records import NewRecord, encode_batch, iterate_batches, read_header

MARKER_KEY = struct.Struct(">hh")
MARKER_VALUE = struct.Struct(">hi")


class MemoryCoordinatorLog:
    """Implements CoordinatorLog, for as long as the process lives.

    `led` and `epochs` tell what is led here, `failure` makes appends fail, `gate` makes commits wait.
    """

    def __init__(self, partitions: int = 1) -> None:
        self.batches: list[list[bytes]] = [[] for _ in range(partitions)]
        self.led: set[int] = set(range(partitions))
        self.epochs = [0] * partitions
        self.failure: ApiError | None = None
        self.gate: Awaitable[None] | None = None
        self._starts = [0] * partitions
        self._ends = [0] * partitions

    def partition_count(self) -> int:
        return len(self.batches)

    def led_partitions(self) -> Mapping[int, int]:
        return {partition: self.epochs[partition] for partition in self.led}

    def check_led(self, partition: int, epoch: int) -> None:
        if self.led_partitions().get(partition) != epoch:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def may_be_deposed(self, partition: int) -> bool:
        return False

    def append(self, partition: int, batch: bytearray, epoch: int = 0) -> Awaitable[None] | None:
        self.check_led(partition, epoch)
        if self.failure is not None:
            raise self.failure
        header = read_header(batch)
        batch[:8] = self._ends[partition].to_bytes(8, "big")
        self._ends[partition] += header.last_offset_delta + 1
        self.batches[partition].append(bytes(batch))
        return self.gate

    def append_marker(
        self,
        partition: int,
        producer_id: int,
        producer_epoch: int,
        *,
        commit: bool,
        coordinator_epoch: int,
        transaction_version: int = 1,
        epoch: int = 0,
    ) -> Awaitable[None] | None:
        return self.append(partition, marker_batch(producer_id, producer_epoch, commit, coordinator_epoch), epoch)

    def when_committed(self, partition: int, offset: int, epoch: int) -> Awaitable[None] | None:
        self.check_led(partition, epoch)
        return self.gate

    def read(self, partition: int, end: int | None = None) -> Iterator[bytes | memoryview]:
        for batch in list(self.batches[partition]):
            if read_header(batch).last_offset >= self._starts[partition]:
                yield batch

    def start_offset(self, partition: int) -> int:
        return self._starts[partition]

    def end_offset(self, partition: int) -> int:
        return self._ends[partition]

    def truncate_before(self, partition: int, offset: int, epoch: int = 0) -> Awaitable[None] | None:
        self.check_led(partition, epoch)
        self._starts[partition] = max(self._starts[partition], offset)
        self.batches[partition] = [
            batch for batch in self.batches[partition] if next(iterate_batches(batch))[1].last_offset >= offset
        ]
        return None

    def copy(self) -> "MemoryCoordinatorLog":
        """What a process that is killed now would leave behind."""
        twin = MemoryCoordinatorLog(len(self.batches))
        twin.batches = [list(batches) for batches in self.batches]
        twin._starts, twin._ends = list(self._starts), list(self._ends)
        twin.epochs = list(self.epochs)
        return twin


def marker_batch(producer_id: int, producer_epoch: int, commit: bool, coordinator_epoch: int) -> bytearray:
    """The control batch that ends a transaction, as a partition would write it."""
    marker = NewRecord(MARKER_KEY.pack(0, commit), MARKER_VALUE.pack(0, coordinator_epoch), 0)
    return encode_batch(
        [marker], producer_id=producer_id, producer_epoch=producer_epoch, transactional=True, control=True
    )
