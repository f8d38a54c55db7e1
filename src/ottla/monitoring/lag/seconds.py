"""Lag as time: since when the oldest unread record waits, and when a consumer will have caught up. Pure.

Records are what brokers count; seconds are what people ask for. Both are estimates from what the window has seen.
"""

import itertools
from collections.abc import Sequence

from ottla.monitoring.lag.window import MS, Commit, End


def waiting_seconds(committed: int, ends: Sequence[End], now_ms: int) -> float | None:
    """How old the oldest unread record is, from when the log's end passed it; None if that was before the window.

    Between two looks at the log its end is taken to have moved evenly.
    """
    if not ends or ends[-1].offset <= committed:
        return 0.0 if ends else None
    if ends[0].offset > committed:
        return None
    for earlier, later in itertools.pairwise(ends):
        if earlier.offset <= committed < later.offset:
            share = (committed - earlier.offset) / (later.offset - earlier.offset)
            written_ms = earlier.observed_ms + share * (later.observed_ms - earlier.observed_ms)
            return max(0.0, (now_ms - written_ms) / MS)
    return None  # the log became shorter meanwhile


def caught_up_seconds(commits: Sequence[Commit], ends: Sequence[End], current_lag: int) -> float | None:
    """In how many seconds nothing will be unread, at the speeds of the window; None if never, or not known."""
    if current_lag <= 0:
        return 0.0
    reading = _per_second([(commit.offset, commit.timestamp_ms) for commit in commits])
    writing = _per_second([(end.offset, end.observed_ms) for end in ends])
    if reading is None or reading <= (writing or 0.0):
        return None
    return current_lag / (reading - (writing or 0.0))


def _per_second(points: Sequence[tuple[int, int]]) -> float | None:
    if len(points) < 2 or points[-1][1] <= points[0][1]:
        return None
    (first, since), (last, until) = points[0], points[-1]
    return (last - first) * MS / (until - since)
