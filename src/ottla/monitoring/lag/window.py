"""What is remembered of a partition: its last ends, and the last commits of a group. Pure.

The window moves with commits and not with time: ten commits of a group that commits every minute are ten minutes.
"""

from array import array
from typing import NamedTuple

MS = 1000
_COMMIT, _END = 4, 2
"""How many numbers each has."""
_UNKNOWN = -1


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
    """A ring of the last commits of one group for one partition. Kept as plain numbers, for there may be ten of each of
    a hundred thousand: a deque of them would take ten times as much."""

    __slots__ = ("_min_distance_ms", "_ring", "intervals")

    def __init__(self, intervals: int, min_distance_ms: int) -> None:
        self.intervals = intervals
        self._min_distance_ms = min_distance_ms
        self._ring = array("q")

    def __len__(self) -> int:
        return len(self._ring) // _COMMIT

    def __bool__(self) -> bool:
        return bool(self._ring)

    @property
    def all(self) -> tuple[Commit, ...]:
        """Oldest first."""
        ring = self._ring
        return tuple(_commit(*ring[at : at + _COMMIT]) for at in range(0, len(ring), _COMMIT))

    @property
    def last(self) -> Commit:
        return _commit(*self._ring[-_COMMIT:])

    def add(self, offset: int, timestamp_ms: int, observed_ms: int, end: int | None) -> None:
        """One that follows the last within the minimum distance takes its place, and keeps its time.

        So a group that commits with every record cannot shrink the window to nothing. A commit from before the last
        is not taken: it was overtaken.
        """
        lag = _UNKNOWN if end is None else max(0, end - offset)
        if self._ring:
            last = self.last
            if timestamp_ms < last.timestamp_ms:
                return
            if timestamp_ms - last.timestamp_ms < self._min_distance_ms:
                del self._ring[-_COMMIT:]
                timestamp_ms = last.timestamp_ms
        self._ring.extend((offset, timestamp_ms, observed_ms, lag))
        del self._ring[: -_COMMIT * self.intervals]


def _commit(offset: int, timestamp_ms: int, observed_ms: int, lag: int) -> Commit:
    return Commit(offset, timestamp_ms, observed_ms, None if lag == _UNKNOWN else lag)


class Ends:
    """A ring of the last ends of one partition's log, as they were asked for; kept as commits are."""

    __slots__ = ("_intervals", "_ring")

    def __init__(self, intervals: int) -> None:
        self._intervals = intervals
        self._ring = array("q")

    def __bool__(self) -> bool:
        return bool(self._ring)

    @property
    def all(self) -> tuple[End, ...]:
        """Oldest first."""
        return tuple(map(End, self._ring[::_END], self._ring[1::_END]))

    @property
    def last(self) -> End:
        return End(*self._ring[-_END:])

    def add(self, offset: int, observed_ms: int) -> None:
        self._ring.extend((offset, observed_ms))
        del self._ring[: -_END * self._intervals]
