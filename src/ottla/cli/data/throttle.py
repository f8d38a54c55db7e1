"""Keeping to a number of records a second."""


class Throttle:
    """Says how long to wait after the n-th record so that the average stays at `rate`; a negative rate is no limit."""

    def __init__(self, rate: float, started: float) -> None:
        self._rate = rate
        self._started = started

    @property
    def unlimited(self) -> bool:
        return self._rate < 0

    def wait_s(self, sent: int, now: float) -> float:
        if self._rate < 0:
            return 0.0
        if self._rate == 0:
            return float("inf")
        return max(0.0, self._started + sent / self._rate - now)

    def allowance(self, sent: int, now: float) -> int:
        """How many records may be sent at once right now."""
        if self._rate <= 0:
            return 0
        return max(0, int((now - self._started) * self._rate) + 1 - sent)
