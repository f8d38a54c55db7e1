"""How many bytes a second, measured over a sliding window in pieces. Pure: `now` in seconds comes in.

The window is made of `windows` pieces of `window_s` seconds. The rate is what was noted in it over the time since its
oldest piece began, at least one piece; so a burst after silence counts in full, and is forgotten piece by piece.
"""

from collections import deque
from collections.abc import Callable

NO_LIMIT = 2**63 - 1
_SHORTEST_WAIT_S = 1e-6
"""Rounding may find the moment to be now while the rate is still too high by a hair: 0 would say that it is not."""


class WindowedRate:
    __slots__ = ("_pieces", "_span_s", "_total", "_window_s")

    def __init__(self, windows: int, window_s: float) -> None:
        self._window_s = window_s
        self._span_s = windows * window_s
        self._pieces: deque[tuple[float, int]] = deque()  # when it began, bytes
        self._total = 0

    def note(self, count: int, now: float) -> None:
        self._forget(now)
        if self._pieces and now - self._pieces[-1][0] < self._window_s:
            began, before = self._pieces[-1]
            self._pieces[-1] = (began, before + count)
        else:
            self._pieces.append((now, count))
        self._total += count

    def per_second(self, now: float) -> float:
        self._forget(now)
        if not self._pieces:
            return 0.0
        return self._total / max(now - self._pieces[0][0], self._window_s)

    def seconds_until(self, limit: float, now: float) -> float:
        """How long to wait before it is worth asking again whether the rate is at or below `limit`; 0 if it is."""
        if self.per_second(now) <= limit:
            return 0.0
        began = self._pieces[0][0]
        forgotten = began + self._span_s
        due = min(forgotten, began + self._total / limit) if limit > 0 else forgotten
        return max(due - now, _SHORTEST_WAIT_S)

    def _forget(self, now: float) -> None:
        while self._pieces and self._pieces[0][0] + self._span_s <= now:
            self._total -= self._pieces.popleft()[1]


class ByteQuota:
    """A limit that may be changed at any time, and what has been used of it."""

    __slots__ = ("_limit", "_rate")

    def __init__(self, limit: Callable[[], int], windows: int, window_s: float) -> None:
        self._limit = limit
        self._rate = WindowedRate(windows, window_s)

    @property
    def is_limited(self) -> bool:
        return self._limit() < NO_LIMIT

    def is_used_up(self, now: float) -> bool:
        limit = self._limit()
        return limit < NO_LIMIT and self._rate.per_second(now) > limit

    def note(self, count: int, now: float) -> None:
        # Without a limit nothing needs to be known; one that is set later begins with what is noted from then on.
        if self._limit() < NO_LIMIT:
            self._rate.note(count, now)

    def seconds_to_wait(self, now: float) -> float:
        """How long to wait before asking again; 0 when something may be sent now."""
        limit = self._limit()
        return self._rate.seconds_until(limit, now) if limit < NO_LIMIT else 0.0
