"""Service levels: good and bad events, the objective, what is left of its error budget and how fast it burns. Pure."""

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

MINUTE = 60
RECENT_SECONDS = 60
BURN_WINDOWS: dict[str, int] = {
    "5m": 5 * MINUTE,
    "30m": 30 * MINUTE,
    "1h": 3_600,
    "6h": 6 * 3_600,
    "3d": 3 * 86_400,
}
"""The pairs of windows that alerts on burn rates look at: short ones to end soon, long ones to be sure."""


class Objective(NamedTuple):
    ratio: float = 0.999
    window_s: int = 30 * 86_400

    @property
    def allowed(self) -> float:
        """What share may be bad."""
        return 1.0 - self.ratio


class Events(NamedTuple):
    good: int = 0
    bad: int = 0

    @property
    def total(self) -> int:
        return self.good + self.bad

    @property
    def ratio(self) -> float | None:
        return self.good / self.total if self.total else None


class Level:
    """Events of one kind, by minute for as long as the objective's window, and by second for the last minute."""

    def __init__(self, objective: Objective) -> None:
        self.objective = objective
        self.good = self.bad = 0
        """Of all time."""
        self._minutes: deque[tuple[int, int, int]] = deque()
        self._seconds: deque[tuple[int, int, int]] = deque()

    def note(self, good: int, bad: int, now_s: float) -> None:
        if good or bad:
            self.good += good
            self.bad += bad
            _put(self._minutes, int(now_s // MINUTE), good, bad)
            _put(self._seconds, int(now_s), good, bad)
        while self._minutes and self._minutes[0][0] < (now_s - self.objective.window_s) // MINUTE:
            self._minutes.popleft()
        while self._seconds and self._seconds[0][0] <= now_s - RECENT_SECONDS:
            self._seconds.popleft()

    def recent(self, now_s: float, seconds: int = RECENT_SECONDS) -> Events:
        return _sum(each for each in self._seconds if each[0] > now_s - seconds)

    def over(self, seconds: int, now_s: float) -> Events:
        """Of the last so many seconds, to the minute."""
        return _sum(each for each in self._minutes if each[0] > (now_s - seconds) // MINUTE)

    def in_window(self, now_s: float) -> Events:
        return self.over(self.objective.window_s, now_s)

    def budget_left(self, now_s: float) -> float:
        """1: all of it; 0: as many were bad as may be; below: more."""
        events = self.in_window(now_s)
        if not events.bad:
            return 1.0
        if not self.objective.allowed:
            return -float(events.bad)
        return 1.0 - events.bad / (events.total * self.objective.allowed)

    def burn_rate(self, seconds: int, now_s: float) -> float:
        """At 1 the budget lasts for the objective's window; at 14.4 an hour takes 2 % of thirty days' budget."""
        events = self.over(seconds, now_s)
        if not events.bad:
            return 0.0
        share = events.bad / events.total
        return share / self.objective.allowed if self.objective.allowed else float("inf")


def _put(buckets: deque[tuple[int, int, int]], key: int, good: int, bad: int) -> None:
    if buckets and buckets[-1][0] == key:
        _, before_good, before_bad = buckets.pop()
        good, bad = before_good + good, before_bad + bad
    buckets.append((key, good, bad))


def _sum(buckets: Iterable[tuple[int, int, int]]) -> Events:
    good = bad = 0
    for _, more_good, more_bad in buckets:
        good += more_good
        bad += more_bad
    return Events(good, bad)


class Delays:
    """Times of the last minute, for percentiles."""

    def __init__(self) -> None:
        self._seconds: deque[tuple[int, list[float]]] = deque()

    def note(self, delay_ms: float, now_s: float) -> None:
        second = int(now_s)
        if not self._seconds or self._seconds[-1][0] != second:
            self._seconds.append((second, []))
            while self._seconds[0][0] <= second - RECENT_SECONDS:
                self._seconds.popleft()
        self._seconds[-1][1].append(delay_ms)

    def summary(self, now_s: float) -> dict[str, float]:
        """Average, maximum and percentiles by Xinfra's names; nothing if there was nothing."""
        found = sorted(each for second, delays in self._seconds if second > now_s - RECENT_SECONDS for each in delays)
        if not found:
            return {}
        return {
            "avg": sum(found) / len(found),
            "max": found[-1],
            **{name: _at(found, share) for name, share in (("50th", 0.5), ("99th", 0.99), ("999th", 0.999))},
        }


def _at(found: list[float], share: float) -> float:
    return found[min(len(found) - 1, int(share * len(found)))]
