"""A filter for loggers of libraries that say the same over and over while something is away."""

import logging
import time
from collections.abc import Callable


class OnceInAWhile(logging.Filter):
    """Lets each kind of message pass once in so many seconds; its kind is its text before the values are put in."""

    def __init__(self, seconds: float, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._seconds = seconds
        self._now = now
        self._passed: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        now = self._now()
        kind = str(record.msg)
        if now - self._passed.get(kind, -self._seconds) < self._seconds:
            return False
        self._passed[kind] = now
        return True
