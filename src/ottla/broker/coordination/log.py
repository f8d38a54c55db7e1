"""The seam between coordinators and the partitions of the topic that they keep their state in."""

from collections.abc import Awaitable, Iterator, Mapping
from typing import Protocol


class CoordinatorLog(Protocol):
    """The partitions of one internal topic. Errors are ApiErrors with the codes a partition gives producers.

    Who writes names the leader epoch that it read the log in. If this broker does not lead in that epoch any more,
    NOT_LEADER_OR_FOLLOWER is raised: others may have written what the writer does not know.
    """

    def partition_count(self) -> int:
        """How many partitions the topic has; 0 while it does not exist."""

    def led_partitions(self) -> Mapping[int, int]:
        """The partitions that this broker is the leader of, with their leader epochs."""

    def check_led(self, partition: int, epoch: int) -> None:
        """Raises if this broker does not lead the partition in this epoch, or may not answer for it now."""

    def may_be_deposed(self, partition: int) -> bool:
        """Whether another broker may have become the leader without this one knowing it yet."""

    def append(self, partition: int, batch: bytearray, epoch: int) -> Awaitable[None] | None:
        """Append one batch, whatever `max.message.bytes` says.

        Raises, having written nothing, if it cannot be appended here. Returns as `when_committed` does.
        """

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
        """Append the control batch that ends a producer's transaction here. Raises and returns as `append` does."""

    def when_committed(self, partition: int, offset: int, epoch: int) -> Awaitable[None] | None:
        """None if everything below the offset is committed already, or else something that is done when it is.

        It waits for as long as it takes and raises only if it may be lost: this broker does not lead any more, or its
        disk failed.
        """

    def read(self, partition: int, end: int | None = None) -> Iterator[bytes | memoryview]:
        """Everything from the start offset to `end` (the log's end), in chunks of whole batches. Runs in a thread."""

    def start_offset(self, partition: int) -> int: ...

    def end_offset(self, partition: int) -> int: ...

    def truncate_before(self, partition: int, offset: int, epoch: int) -> Awaitable[None] | None:
        """Let go of everything before the offset, as DeleteRecords does, once all that is in the log is committed."""
