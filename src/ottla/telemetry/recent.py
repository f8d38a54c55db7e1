"""Times of what is rare: their mean and the longest, over the last 30 to 60 seconds, as Kafka tells them. Pure."""

WINDOW_S = 30.0


class RecentTimes:
    """Two windows: the current one, and the one before it while the current one fills."""

    __slots__ = ("_before", "_began", "_current")

    def __init__(self) -> None:
        self._began = float("-inf")
        self._current: list[float] = [0, 0.0, 0.0]  # how many, their sum, the longest
        self._before: list[float] = [0, 0.0, 0.0]

    def note(self, ms: float, now: float) -> None:
        self._turn(now)
        self._current[0] += 1
        self._current[1] += ms
        self._current[2] = max(self._current[2], ms)

    def mean(self, now: float) -> float:
        self._turn(now)
        count = self._current[0] + self._before[0]
        return (self._current[1] + self._before[1]) / count if count else 0.0

    def longest(self, now: float) -> float:
        self._turn(now)
        return max(self._current[2], self._before[2])

    def _turn(self, now: float) -> None:
        if now - self._began < WINDOW_S:
            return
        self._before = self._current if now - self._began < 2 * WINDOW_S else [0, 0.0, 0.0]
        self._current, self._began = [0, 0.0, 0.0], now
