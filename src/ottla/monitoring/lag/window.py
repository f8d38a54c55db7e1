"""What is remembered of a partition: its last ends, and the last commits of a group. Pure.

The window moves with commits and not with time: ten commits of a group that commits every minute are ten minutes.
"""

from collections import deque
from typing import NamedTuple

MS = 1000


class Commit(NamedTuple):
    offset: int
    timestamp_ms: int
    """When it was committed."""
    observed_ms: int
    """When it was seen here."""
    lag: int | None
    """How many records were unread then, as far as the end of the log was known; None if it was not."""


class End(NamedTuple):
    offset: int
    observed_ms: int


class Commits:
    """A ring of the last commits of one group for one partition."""

    __slots__ = ("_min_distance_ms", "_ring", "intervals")

    def __init__(self, intervals: int, min_distance_ms: int) -> None:
        self.intervals = intervals
        self._min_distance_ms = min_distance_ms
        self._ring: deque[Commit] = deque(maxlen=intervals)

    def __len__(self) -> int:
        return len(self._ring)

    def __bool__(self) -> bool:
        return bool(self._ring)

    @property
    def all(self) -> tuple[Commit, ...]:
        """Oldest first."""
        return tuple(self._ring)

    @property
    def last(self) -> Commit:
        return self._ring[-1]

    def add(self, offset: int, timestamp_ms: int, observed_ms: int, end: int | None) -> None:
        """One that follows the last within the minimum distance takes its place, and keeps its time.

        So a group that commits with every record cannot shrink the window to nothing. A commit from before the last
        is not taken: it was overtaken.
        """
        lag = None if end is None else max(0, end - offset)
        if self._ring:
            last = self._ring[-1]
            if timestamp_ms < last.timestamp_ms:
                return
            if timestamp_ms - last.timestamp_ms < self._min_distance_ms:
                self._ring[-1] = Commit(offset, last.timestamp_ms, observed_ms, lag)
                return
        self._ring.append(Commit(offset, timestamp_ms, observed_ms, lag))


class Ends:
    """A ring of the last ends of one partition's log, as they were asked for."""

    __slots__ = ("_ring",)

    def __init__(self, intervals: int) -> None:
        self._ring: deque[End] = deque(maxlen=intervals)

    def __bool__(self) -> bool:
        return bool(self._ring)

    @property
    def all(self) -> tuple[End, ...]:
        """Oldest first."""
        return tuple(self._ring)

    @property
    def last(self) -> End:
        return self._ring[-1]

    def add(self, offset: int, observed_ms: int) -> None:
        self._ring.append(End(offset, observed_ms))
