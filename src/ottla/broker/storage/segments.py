"""The ordered segments of one log.

The list is never changed in place but replaced, under a lock that is held for that moment only. So a reader in any
thread sees a consistent list without locking, and retention may drop old segments while the loop rolls new ones.
"""

import threading
from bisect import bisect_right

from ottla.broker.storage.segment import Segment
from ottla.broker.storage.transaction_index import AbortedTransaction


class SegmentList:
    __slots__ = ("_inactive_bytes", "_lock", "active", "all")

    def __init__(self, segments: list[Segment]) -> None:
        self._lock = threading.Lock()
        self._set(segments)

    def _set(self, segments: list[Segment]) -> None:
        self._inactive_bytes = sum(segment.size for segment in segments[:-1])
        self.active = segments[-1]
        self.all = segments

    def __len__(self) -> int:
        return len(self.all)

    @property
    def size_bytes(self) -> int:
        return self._inactive_bytes + self.active.size

    @property
    def first_base_offset(self) -> int:
        return self.all[0].base_offset

    def add(self, segment: Segment) -> None:
        with self._lock:
            self._set([*self.all, segment])

    def drop_oldest(self, count: int) -> list[Segment]:
        """Take the oldest segments out; never the active one."""
        with self._lock:
            count = min(count, len(self.all) - 1)
            dropped, kept = self.all[:count], self.all[count:]
            if dropped:
                self._set(kept)
        return dropped

    def swap(self, replaced: list[Segment], new: Segment) -> bool:
        """Put one segment in the place of several neighbours; False when all of them have been dropped meanwhile."""
        with self._lock:
            kept = [segment for segment in self.all if segment not in replaced]
            if len(kept) == len(self.all):
                return False
            # The oldest of them may be gone; their records then lie before the start of the log.
            before = sum(segment.base_offset < new.base_offset for segment in kept)
            self._set([*kept[:before], new, *kept[before:]])
        return True

    def replace(self, segments: list[Segment]) -> None:
        with self._lock:
            self._set(segments)

    def still_active(self, segment: Segment) -> bool:
        with self._lock:
            return self.active is segment

    def from_offset(self, offset: int) -> list[Segment]:
        """The segments that hold this offset or a later one."""
        segments = self.all
        return segments[max(bisect_right(segments, offset, key=_base_offset) - 1, 0) :]

    def find(self, offset: int) -> tuple[Segment, int | None]:
        """The segment and position of the first batch that ends at or after `offset`."""
        for segment in self.from_offset(offset):
            position = segment.find(offset)
            if position is not None:
                return segment, position
        return self.active, None

    def aborted_between(self, start: int, end: int) -> list[AbortedTransaction]:
        """Aborted transactions with records in [start, end), by their first offset."""
        found: list[AbortedTransaction] = []
        for segment in self.from_offset(start):
            if segment.transactions.collect(start, end, found):
                break
        return sorted(found, key=_first_offset)

    def offset_bound(self, base_offset: int, position: int) -> int | None:
        """An offset that nothing before `position` of the segment with this base reaches; None if it is the end."""
        segment, *later = self.from_offset(base_offset)[:2]
        bound = segment.offset_bound(position)
        return later[0].base_offset if bound is None and later else bound

    def end_position(self, segment: Segment, limit: int) -> int:
        """Where in `segment` the batches that lie wholly below offset `limit` end."""
        segments = self.all
        following = bisect_right(segments, segment.base_offset, key=_base_offset)
        if following < len(segments) and segments[following].base_offset <= limit:
            return segment.size
        position = segment.find(limit)
        return segment.size if position is None else position


def _first_offset(transaction: AbortedTransaction) -> int:
    return transaction.first_offset


def _base_offset(segment: Segment) -> int:
    return segment.base_offset
