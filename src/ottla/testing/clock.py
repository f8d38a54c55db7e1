"""A clock for tests of what is given one."""


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
