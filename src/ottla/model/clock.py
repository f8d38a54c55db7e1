"""Time comes in as an argument: whoever needs it is given a clock."""

from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> int:
        """Wall-clock time in milliseconds since 1970, as records carry it."""

    def monotonic(self) -> float:
        """Seconds that never go back; the zero is arbitrary. For timers."""


class ManualClock:
    """A clock that stands still until a test moves it."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = float(now_ms)

    def now_ms(self) -> int:
        return int(self._now_ms)

    def monotonic(self) -> float:
        return self._now_ms / 1000.0

    def advance(self, ms: float) -> None:
        self._now_ms += ms
