"""Tokens that come at a steady rate and are taken for work (KIP-599). Pure: `now_ms` comes in.

The bucket holds what comes in the whole window and starts full. It may be emptied below nothing by one piece of work,
which is let through as a whole; the next has to wait until the bucket is back at nothing.
"""


class TokenBucket:
    __slots__ = ("_at_ms", "_tokens", "_window_s", "rate")

    def __init__(self, window_s: float, rate: float = 0.0) -> None:
        self._window_s = window_s
        self._tokens: float | None = None  # not used yet: full, whatever the rate will be
        self._at_ms = 0
        self.rate = rate
        """Tokens a second; may be changed at any time."""

    def tokens(self, now_ms: int) -> float:
        full = self._window_s * self.rate
        before = full if self._tokens is None else self._tokens
        self._tokens = min(full, before + self.rate * (now_ms - self._at_ms) / 1000)
        self._at_ms = now_ms
        return self._tokens

    def take(self, count: float, now_ms: int) -> None:
        self._tokens = min(self._window_s * self.rate, self.tokens(now_ms) - count)

    def wait_ms(self, now_ms: int) -> int:
        """How long until there is no debt; 0 when there is none."""
        tokens = self.tokens(now_ms)
        return 0 if tokens >= 0 else int(-tokens / self.rate * 1000 + 0.5)

    def is_idle(self, now_ms: int) -> bool:
        """Whether a new one in its place would say the same."""
        return self._tokens is None or self.tokens(now_ms) >= self._window_s * self.rate
