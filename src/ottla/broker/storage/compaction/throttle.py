"""Holds the cleaner to log.cleaner.io.max.bytes.per.second."""

from collections.abc import Callable

# Short enough that the pace is even, long enough that sleeping is exact.
PERIOD_SECONDS = 0.1


class Throttle:
    def __init__(self, bytes_per_second: float, monotonic: Callable[[], float], sleep: Callable[[float], None]) -> None:
        self._rate = bytes_per_second
        self._monotonic = monotonic
        self._sleep = sleep
        self._began = monotonic()
        self._spent = 0

    def spend(self, count: int) -> None:
        """Note bytes read or written, and wait when there were too many of them."""
        self._spent += count
        elapsed = self._monotonic() - self._began
        if elapsed < PERIOD_SECONDS and self._spent <= self._rate * PERIOD_SECONDS:
            return
        behind = self._spent / self._rate - elapsed
        if behind > 0:
            self._sleep(behind)
        self._began = self._monotonic()
        self._spent = 0
