"""Timers for coordinators, so that tests can own the time."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from ottla.model.clock import Clock


class TimerHandle(Protocol):
    def cancel(self) -> None: ...


class Scheduler(Protocol):
    def call_at(self, at_ms: float, callback: Callable[[], None]) -> TimerHandle:
        """Call back when the clock's steady time reaches `at_ms` milliseconds."""


class LoopScheduler:
    """Timers of the running event loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def call_at(self, at_ms: float, callback: Callable[[], None]) -> TimerHandle:
        delay = max(at_ms / 1000.0 - self._clock.monotonic(), 0.0)
        return asyncio.get_running_loop().call_later(delay, callback)
