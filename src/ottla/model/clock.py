"""Time comes in as an argument: whoever needs it is given a clock."""

from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> int:
        """Wall-clock time in milliseconds since 1970, as records carry it."""

    def monotonic(self) -> float:
        """Seconds that never go back; the zero is arbitrary. For timers."""
