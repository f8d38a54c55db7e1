"""A log as readers see it: where it begins and ends, and slices of its segments. log.py writes it.

Any thread may read, beside appends and beside retention, and takes no lock: what belongs together is replaced together,
and whoever meets a file that has just gone away looks whether the log still begins before it.
"""

from collections.abc import Callable

from ottla.broker.storage.disk import PASSING_ERRORS
from ottla.broker.storage.environment import LogEnvironment
from ottla.broker.storage.leader_epochs import LeaderEpochs
from ottla.broker.storage.producer_state import ProducerState
from ottla.broker.storage.results import LogSlice
from ottla.broker.storage.segment import Segment
from ottla.broker.storage.segments import SegmentList
from ottla.broker.storage.timestamps import Found, first_at_or_after, newest
from ottla.broker.storage.transaction_index import AbortedTransaction
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import TopicPartition
from ottla.protocol.errors import CorruptBatch

SIZE_MAX = 2**63 - 1


class ReadableLog:
    """What reading needs of a log."""

    def __init__(
        self,
        tp: TopicPartition,
        environment: LogEnvironment,
        segments: list[Segment],
        start_offset: int,
        end_offset: int,
        leader_epochs: LeaderEpochs,
        producers: ProducerState,
    ) -> None:
        self.tp = tp
        self.environment = environment
        self.segments = SegmentList(segments)
        self.start_offset = start_offset
        self.leader_epochs = leader_epochs
        self.producers = producers
        self.failure: str | None = None
        # No abort is known after this offset, so most reads need not look for one.
        self._last_abort = max((s.transactions.last_offset for s in segments if s.transactions.stored), default=-1)
        self._set_end(end_offset, self.segments.active)

    def _set_end(self, end_offset: int, active: Segment) -> None:
        self.end_offset = end_offset
        # What belongs together is replaced together: a reader in another thread must not pair two moments.
        self._tail = (end_offset, active, active.size)

    @property
    def size_bytes(self) -> int:
        return self.segments.size_bytes

    def read(self, offset: int, max_bytes: int, end_offset_exclusive: int, *, min_one_batch: bool) -> LogSlice:
        """Bytes from the batch that holds `offset` on, of one segment and below `end_offset_exclusive`.

        The last batch may be cut at `max_bytes`; a first batch that does not fit is given whole if `min_one_batch`,
        and not at all otherwise.
        """
        end_offset, active, active_size = self._tail
        if offset < self.start_offset or offset > end_offset:
            raise self.out_of_range(offset)
        limit = min(end_offset_exclusive, end_offset)
        if offset >= limit:
            return LogSlice(None, 0, 0, active.base_offset)
        self._check_alive()
        try:
            if offset >= active.base_offset:
                segment, position = active, active.find(offset)
            else:
                segment, position = self.segments.find(offset)
            if position is None:
                return LogSlice(None, 0, 0, active.base_offset)
            if limit == end_offset:
                end = active_size if segment is active else segment.size
            else:
                end = self.segments.end_position(segment, limit)
            length = end - position
            if length > max_bytes:
                first = segment.batch_size(position)
                length = max_bytes if first <= max_bytes else first if min_one_batch else 0
            elif segment is active:
                active.remember(limit, end)
            return LogSlice(segment.file if length > 0 else None, position, length, segment.base_offset)
        except (OSError, CorruptBatch) as error:
            if offset < self.start_offset:  # retention took the segment away while it was read
                raise self.out_of_range(offset) from None
            raise self._storage_error(error, "cannot read") from error

    def aborted_transactions(self, from_offset: int, to_offset: int) -> list[AbortedTransaction]:
        """Aborted transactions with records in [from_offset, to_offset), by their first offset."""
        if from_offset > self._last_abort:
            return []
        try:
            return self.segments.aborted_between(from_offset, to_offset)
        except (OSError, CorruptBatch) as error:
            if from_offset < self.start_offset:  # retention took the segment away meanwhile
                raise self.out_of_range(from_offset) from None
            raise self._storage_error(error, "cannot read") from error

    def read_committed(
        self, offset: int, max_bytes: int, end_offset_exclusive: int, *, min_one_batch: bool
    ) -> tuple[LogSlice, list[AbortedTransaction]]:
        """What `read` gives, and the aborted transactions that have records in it (perhaps a few soon after, too)."""
        while True:
            segments = self.segments.all
            records = self.read(offset, max_bytes, end_offset_exclusive, min_one_batch=min_one_batch)
            if offset > self._last_abort or not records.length:
                return records, []
            bound = self.segments.offset_bound(records.segment_base_offset, records.position + records.length)
            end = end_offset_exclusive if bound is None else min(end_offset_exclusive, bound)
            aborted = self.aborted_transactions(offset, end)
            # A cleaned segment has other records and other aborts than those it replaces: the two must not be mixed.
            if self.segments.all is segments:
                return records, aborted

    def bytes_between(self, start: int, end: int) -> int:
        """How many bytes the records in [start, end) take, as far as they lie in the segment of `start`."""
        return self.read(start, SIZE_MAX, end, min_one_batch=True).length if start < end else 0

    @property
    def first_unstable_offset(self) -> int:
        """Where the oldest open transaction begins, as far as it still lies in the log; its end if there is none."""
        first = self.producers.first_unstable_offset()
        return self.end_offset if first is None else max(first, self.start_offset)

    def offset_for_timestamp(self, timestamp: int) -> Found | None:
        """(timestamp, offset, leader epoch) of the first record that is at least this recent."""
        return self._search(lambda segments: first_at_or_after(segments, timestamp, self.start_offset))

    def max_timestamp_offset(self) -> Found | None:
        """(timestamp, offset, leader epoch) of the first record with the largest timestamp."""
        return self._search(lambda segments: newest(segments, self.start_offset))

    def _search(self, search: Callable[[list[Segment]], Found | None]) -> Found | None:
        while True:
            segments = self.segments.all
            try:
                return search(segments)
            except (OSError, CorruptBatch) as error:
                # Retention may have taken a segment away meanwhile; then the rest is searched again.
                if self.segments.all is segments:
                    raise self._storage_error(error, "cannot read") from error

    def epoch_end_offset(self, epoch: int) -> tuple[int, int]:
        """As OffsetForLeaderEpoch asks: the largest known epoch not above this one and where it ended, or (-1, -1)."""
        return self.leader_epochs.end_offset(epoch, self.end_offset)

    def _check_alive(self) -> None:
        if self.failure is not None:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, self.failure)

    def _storage_error(self, error: OSError | CorruptBatch, doing: str) -> ApiError:
        # A log that was just deleted or taken offline fails for that reason, which is no news about the directory.
        if isinstance(error, OSError) and self.failure is None:
            tell = self.environment.on_passing if error.errno in PASSING_ERRORS else self.environment.on_failure
            tell(error)
        return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"{doing} {self.tp}: {error}")

    def out_of_range(self, offset: int) -> ApiError:
        why = f"offset {offset} is out of range of {self.tp}: {self.start_offset} to {self.end_offset}"
        return ApiError(ErrorCode.OFFSET_OUT_OF_RANGE, why)
