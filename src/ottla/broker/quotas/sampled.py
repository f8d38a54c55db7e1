"""What was used in a sliding window, in whole units, and how long to wait after too much. Pure: `now_ms` comes in.

Kafka's measure: what is shown of clients' quotas, and what new connections are held up by. There are `windows` samples
of `window_ms` each, and one more that is about to leave. The window in force begins with the oldest sample, and is
never shorter than all full samples but one: who comes back may use ten seconds' worth at once, not eleven.
"""

NOTHING_TO_FORGET = 2**63


class SampledSum:
    __slots__ = ("_at", "_forget_at", "_lasts", "_oldest", "_starts", "_sums", "_total", "_window_ms", "_windows")

    def __init__(self, windows: int, window_ms: int) -> None:
        self._windows = windows
        self._window_ms = window_ms
        self._at = 0  # which sample is the current one
        self._starts: list[int] = []
        self._lasts: list[int] = []  # when something was recorded last
        self._sums: list[int] = []
        self._total = 0
        self._oldest = 0
        self._forget_at = NOTHING_TO_FORGET  # not before this moment does any sample leave the window

    def record(self, used: int, now_ms: int) -> None:
        if not self._starts:
            self._open(now_ms)
        elif now_ms - self._starts[self._at] >= self._window_ms:
            self._advance(now_ms)
        self._sums[self._at] += used
        self._lasts[self._at] = now_ms
        self._total += used

    def total(self, now_ms: int) -> int:
        """What was recorded and is not forgotten yet."""
        if now_ms >= self._forget_at:
            self._forget(now_ms)
        return self._total

    def span_ms(self, now_ms: int) -> int:
        """The length of the window that the total was recorded in, as it counts."""
        if now_ms >= self._forget_at:
            self._forget(now_ms)
        elapsed = now_ms - self._oldest if self._starts else 0
        missing = self._windows - 1 - elapsed // self._window_ms
        if missing > 0:
            elapsed += missing * self._window_ms
        return max(elapsed, 1)

    def wait_ms(self, per_second: int, now_ms: int) -> int:
        """How long nothing may be used until the rate is down to this bound; 0 when it is not above it."""
        total = self.total(now_ms)
        span_ms = self.span_ms(now_ms)
        if total * 1000 <= per_second * span_ms:
            return 0
        return (2000 * total + per_second) // (2 * per_second) - span_ms  # (rate - bound) / bound * span, rounded

    def is_idle(self, now_ms: int) -> bool:
        """Whether a new one in its place would say the same."""
        return not self._starts or now_ms - max(self._lasts) >= self._windows * self._window_ms

    def _open(self, now_ms: int) -> None:
        self._starts.append(now_ms)
        self._lasts.append(now_ms)
        self._sums.append(0)
        self._look()

    def _advance(self, now_ms: int) -> None:
        self._at = (self._at + 1) % (self._windows + 1)
        if self._at == len(self._starts):
            self._open(now_ms)
        else:
            self._reset(self._at, now_ms)
            self._look()

    def _reset(self, sample: int, now_ms: int) -> None:
        self._total -= self._sums[sample]
        self._starts[sample] = self._lasts[sample] = now_ms
        self._sums[sample] = 0

    def _forget(self, now_ms: int) -> None:
        span_ms = self._windows * self._window_ms
        for sample, last in enumerate(self._lasts):
            if now_ms - last >= span_ms:
                self._reset(sample, now_ms)
        self._look()

    def _look(self) -> None:
        self._oldest = min(self._starts)
        self._forget_at = min(self._lasts) + self._windows * self._window_ms
