"""A partition on the broker that leads it: its log, its high watermark, and the fetches waiting for more.

With one replica everything appended is committed at once, so the high watermark is the end of the log.
"""

import asyncio
from collections.abc import Awaitable

from ottla.broker.replication.waiters import FetchWait
from ottla.broker.storage.log import SIZE_MAX, AbortedTransaction, AppendResult, Log, LogSlice
from ottla.broker.storage.markers import Marker
from ottla.broker.storage.validation import AppendOrigin
from ottla.cluster.image import PartitionImage
from ottla.model.errors import ApiError, ErrorCode

ACKS_ALL = -1
NO_EPOCH = -1


class Partition:
    __slots__ = ("_flushing", "isr", "leader_epoch", "log", "topic_id", "tp", "waiters")

    def __init__(self, log: Log, state: PartitionImage) -> None:
        self.log = log
        self.tp = log.tp
        self.topic_id = log.topic_id
        self.leader_epoch = state.leader_epoch
        self.isr = state.isr
        self.waiters: set[FetchWait] = set()
        self._flushing = asyncio.Lock()

    @property
    def is_leader(self) -> bool:
        return True

    @property
    def high_watermark(self) -> int:
        return self.log.end_offset

    @property
    def last_stable_offset(self) -> int:
        """Up to where every transaction is decided: what a reader of committed records may see."""
        return min(self.log.first_unstable_offset, self.high_watermark)

    def open_transaction(self, producer_id: int, producer_epoch: int | None = None) -> int | None:
        """The first offset of the producer's open transaction (of this epoch, when one is given)."""
        return self.log.producers.open_transaction(producer_id, producer_epoch)

    def check_epoch(self, known_by_client: int) -> None:
        """Refuse a client that knows an older or a newer leader than this one."""
        if known_by_client in (NO_EPOCH, self.leader_epoch):
            return
        if known_by_client < self.leader_epoch:
            raise ApiError(ErrorCode.FENCED_LEADER_EPOCH)
        raise ApiError(ErrorCode.UNKNOWN_LEADER_EPOCH)

    def check_enough_replicas(self) -> None:
        needed = self.log.config.min_insync_replicas
        if len(self.isr) < needed:
            raise ApiError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{self.tp} has {len(self.isr)} in-sync replica(s) and min.insync.replicas is {needed}",
            )

    def append(self, records: bytearray | memoryview, now_ms: int, *, acks: int = ACKS_ALL) -> AppendResult:
        """Append a producer's batch. With acks=all enough replicas must be in sync before anything is written."""
        if acks == ACKS_ALL:
            self.check_enough_replicas()
        result = self.log.append_as_leader(records, self.leader_epoch, now_ms)
        if self.waiters:
            self._tell_waiters(result.byte_count)
        return result

    def append_internal(self, records: bytearray, now_ms: int) -> AppendResult:
        """Append a batch that this broker's own coordinator wrote."""
        result = self.log.append_as_leader(records, self.leader_epoch, now_ms, origin=AppendOrigin.COORDINATOR)
        if self.waiters:
            self._tell_waiters(result.byte_count)
        return result

    def append_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        *,
        commit: bool,
        coordinator_epoch: int,
        now_ms: int,
        transaction_version: int = 1,
    ) -> AppendResult:
        """Write how the producer's transaction ended here, and let those read on who waited for it.

        Refuses a marker of an older producer epoch (INVALID_PRODUCER_EPOCH; from transaction version 2 on the epoch
        must be above that of the records) or of an older coordinator (TRANSACTION_COORDINATOR_FENCED).
        """
        stable_before = self.last_stable_offset
        result = self.log.append_marker(
            producer_id, producer_epoch, Marker(commit, coordinator_epoch), self.leader_epoch, now_ms,
            transaction_version=transaction_version,
        )  # fmt: skip
        if self.waiters:
            decided = self._bytes_decided_since(stable_before)
            for waiter in tuple(self.waiters):
                waiter.arrived(decided if waiter.committed_only else result.byte_count)
        return result

    def read(self, offset: int, max_bytes: int, *, min_one_batch: bool) -> LogSlice:
        return self.log.read(offset, max_bytes, self.high_watermark, min_one_batch=min_one_batch)

    def read_committed(
        self, offset: int, max_bytes: int, *, min_one_batch: bool
    ) -> tuple[LogSlice, list[AbortedTransaction]]:
        """Records of decided transactions, and the aborted ones among these, which the reader must skip."""
        return self.log.read_committed(offset, max_bytes, self.last_stable_offset, min_one_batch=min_one_batch)

    def _bytes_decided_since(self, offset: int) -> int:
        try:
            return self.log.bytes_between(offset, self.last_stable_offset)
        except ApiError:
            return SIZE_MAX  # the marker stands; whoever waits meets the same error when it reads

    def _tell_waiters(self, size: int) -> None:
        # New data is undecided as long as any transaction is open: what comes behind it is not readable either.
        decided = self.log.producers.first_unstable_offset() is None
        for waiter in tuple(self.waiters):
            if decided or not waiter.committed_only:
                waiter.arrived(size)

    def stop(self) -> None:
        """The partition is going away: whoever waits for it is answered now."""
        for waiter in tuple(self.waiters):
            waiter.finish_soon()

    def when_committed(self, offset: int) -> Awaitable[None] | None:
        """None when everything below the offset is committed, or else something that is done when it is."""
        return self.flush_to(offset) if self.flush_due else None

    @property
    def flush_due(self) -> bool:
        """Whether flush.messages asks for a flush before the last append is acknowledged."""
        return self.log.flush_required

    async def flush_to(self, offset: int) -> None:
        """Return once everything before `offset` is on the disk. Callers that come together share one flush."""
        async with self._flushing:
            if self.log.recovery_point < offset:
                await asyncio.to_thread(self.log.flush)
