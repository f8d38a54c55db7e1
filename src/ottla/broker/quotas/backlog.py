"""What was used and is not paid off yet, at so much a second. Pure: `now_ms` comes in.

Kafka waits until the rate over a sliding window is down to the bound. That lets clients through in waves as long as the
window, and below their bound: samples leave the window later than what they count for. A debt that falls steadily gives
the same to whoever begins, or comes back, and exactly the bound to whoever goes on.
"""


class Backlog:
    __slots__ = ("_at_ms", "_left", "rate")

    def __init__(self, rate: float = 1.0) -> None:
        self._left = 0.0
        self._at_ms = 0
        self.rate = rate
        """Units a second; may be changed at any time."""

    def left(self, now_ms: int) -> float:
        if now_ms > self._at_ms:
            self._left = max(0.0, self._left - self.rate * (now_ms - self._at_ms) / 1000)
            self._at_ms = now_ms
        return self._left

    def add(self, used: float, now_ms: int) -> None:
        """A negative number gives back what was added and then not used."""
        self._left = max(0.0, self.left(now_ms) + used)

    def wait_ms(self, most: float, now_ms: int) -> int:
        """How long until no more than this is left."""
        return max(0, int((self.left(now_ms) - most) / self.rate * 1000 + 0.5))
