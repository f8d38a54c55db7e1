"""A replica's own side: its log, up to where it knows that everything is committed, and who watches it."""

import asyncio
import logging
from collections.abc import Iterable

from ottla.broker.replication.waiters import Watch
from ottla.broker.storage.log import AbortedTransaction, AppendResult, Log, LogSlice
from ottla.broker.storage.readable_log import SIZE_MAX
from ottla.model.errors import ApiError
from ottla.protocol.compression import Buffer
from ottla.protocol.records import BATCH_OVERHEAD, read_header

logger = logging.getLogger(__name__)


class Replica:
    __slots__ = ("_alone", "_flushing", "_high_watermark", "followers", "log", "readers", "topic_id", "tp")

    def __init__(self, log: Log, high_watermark: int | None = None) -> None:
        self.log = log
        self.tp = log.tp
        self.topic_id = log.topic_id
        # In the order in which they came, and are told: a set's order would differ from run to run.
        self.readers: dict[Watch, None] = {}
        self.followers: dict[Watch, None] = {}
        self._alone = False
        """Whether this is a leader that is all that counts: then what is appended is committed."""
        self._high_watermark = max(log.start_offset, min(high_watermark or 0, log.end_offset))
        self._flushing = asyncio.Lock()

    @property
    def high_watermark(self) -> int:
        """Everything before it is on every in-sync replica and will never be lost with one of them."""
        return self.log.end_offset if self._alone else self._high_watermark

    @property
    def last_stable_offset(self) -> int:
        """Up to where every transaction is decided: what a reader of committed records may see."""
        return min(self.log.first_unstable_offset, self.high_watermark)

    def open_transaction(self, producer_id: int, producer_epoch: int | None = None) -> int | None:
        """The first offset of the producer's open transaction (of this epoch, when one is given)."""
        return self.log.producers.open_transaction(producer_id, producer_epoch)

    def use_log(self, log: Log) -> None:
        """The log has moved to another directory."""
        log.producers.replicated = not self._alone
        self.log = log

    @property
    def flush_due(self) -> bool:
        """Whether flush.messages asks for a flush before the last append is acknowledged."""
        return self.log.flush_required

    async def flush_to(self, offset: int) -> None:
        """Return once everything before `offset` is on the disk. Callers that come together share one flush."""
        async with self._flushing:
            for _ in range(2):  # the log may move to another directory meanwhile; then its copy counts
                log = self.log
                if log.recovery_point >= offset:
                    return
                try:
                    await asyncio.to_thread(log.flush)
                except ApiError:
                    if self.log is log:
                        raise
                if self.log is log:
                    return

    # -- the high watermark

    def _count_alone(self, *, alone: bool) -> None:
        if alone == self._alone:
            return
        if self._alone:
            self._high_watermark = self.log.end_offset
        else:
            self.log.producers.committed_to(self.log.end_offset)
        self._alone = alone
        self.log.producers.replicated = not alone

    def _advance(self, high_watermark: int) -> None:
        before = self._high_watermark
        if high_watermark <= before:
            return
        producers = self.log.producers
        stable_before = before
        if producers.first_unstable_offset() is not None:
            stable_before = self.last_stable_offset
            producers.committed_to(high_watermark)
        self._high_watermark = high_watermark
        self._moved(before, high_watermark, stable_before)

    def _moved(self, before: int, high_watermark: int, stable_before: int) -> None:
        if high_watermark <= before:
            return
        self._on_committed_to(high_watermark)
        if self.readers:
            size = self._bytes_between(before, high_watermark)
            decided = size
            if stable_before != before or self.log.producers.first_unstable_offset() is not None:
                decided = self._bytes_between(stable_before, self.last_stable_offset)
            self._tell_readers(size, decided)
        tell(self.followers, 0)

    def _on_committed_to(self, high_watermark: int) -> None:
        """More is committed."""

    # -- who watches

    def _wake_waiters(self) -> None:
        for watch in (*self.readers, *self.followers):
            watch.changed()

    def _tell_readers(self, size: int, decided: int) -> None:
        for watch in tuple(self.readers):
            watch.arrived(decided if watch.committed_only else size)

    def _bytes_between(self, start: int, end: int) -> int:
        try:
            return self.log.bytes_between(start, end)
        except ApiError:
            return SIZE_MAX  # whoever waits meets the same error when it reads

    # -- following

    def replicate(self, records: Buffer, now_ms: int) -> AppendResult:
        """Append what the leader sent."""
        log = self.log
        if log.start_offset == log.end_offset and len(records) >= BATCH_OVERHEAD:
            first = read_header(records)
            if first.base_offset < log.end_offset <= first.last_offset:
                # The leader's log begins inside of this batch. So does this one, once `follow` is told where.
                log.restart_at(first.base_offset)
        return log.append_as_follower(records, now_ms)

    def follow(self, leader_high_watermark: int, leader_start: int) -> None:
        """Take over how far the leader says that everything is committed, and where its log begins."""
        self._advance(min(leader_high_watermark, self.log.end_offset))
        if self.log.start_offset < leader_start <= self.log.end_offset:
            self.log.delete_records_before(leader_start)
            self._high_watermark = max(self._high_watermark, leader_start)

    def truncate_to(self, offset: int) -> None:
        """Cut off what the leader does not have."""
        if offset < self._high_watermark:
            logger.warning(
                "%s: Truncating to offset %d below high watermark %d: the leader lacks committed records, as after an "
                "unclean leader election",
                self.tp, offset, self._high_watermark,
            )  # fmt: skip
        self.log.truncate_to(offset)
        self._high_watermark = min(self._high_watermark, self.log.end_offset)
        self.log.producers.committed_to(self._high_watermark)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Begin again where the leader's log begins."""
        self.log.restart_at(offset)
        self._high_watermark = offset

    # -- reading

    def read(self, offset: int, max_bytes: int, *, min_one_batch: bool) -> LogSlice:
        return self.log.read(offset, max_bytes, self.high_watermark, min_one_batch=min_one_batch)

    def read_committed(
        self, offset: int, max_bytes: int, *, min_one_batch: bool
    ) -> tuple[LogSlice, list[AbortedTransaction]]:
        """Records of decided transactions, and the aborted ones among these, which the reader must skip."""
        return self.log.read_committed(offset, max_bytes, self.last_stable_offset, min_one_batch=min_one_batch)

    def read_uncommitted(self, offset: int, max_bytes: int, *, min_one_batch: bool) -> LogSlice:
        """What followers get: everything to the end of the log."""
        return self.log.read(offset, max_bytes, SIZE_MAX, min_one_batch=min_one_batch)


def tell(watches: Iterable[Watch], size: int) -> None:
    for watch in tuple(watches):
        watch.arrived(size)
