"""What was, for the lines that are drawn: a bounded number of points of each thing. Pure."""

from collections import deque
from collections.abc import Iterable, Mapping

from ottla.console.snapshot import Snapshot

POINTS = 60


class History:
    def __init__(self, points: int = POINTS) -> None:
        self._points = points
        self._lags: dict[str, deque[int]] = {}
        self._speeds: dict[str, deque[float]] = {}
        self.speed: deque[float] = deque(maxlen=points)
        self.lag: deque[int] = deque(maxlen=points)

    def note(self, snapshot: Snapshot) -> None:
        if snapshot.per_second is not None:
            self.speed.append(snapshot.per_second)
        self.lag.append(sum(row.lag for row in snapshot.groups))
        self._keep(self._lags, {row.group: row.lag for row in snapshot.groups})
        speeds = {row.name: row.per_second for row in snapshot.topics if row.per_second is not None}
        self._keep(self._speeds, speeds)

    def lag_of(self, group: str) -> list[int]:
        return list(self._lags.get(group, ()))

    def speed_of(self, topic: str) -> list[float]:
        return list(self._speeds.get(topic, ()))

    def _keep(self, known: dict[str, deque], now: Mapping[str, float]) -> None:  # type: ignore[type-arg]
        """Things that are gone are forgotten, so that what is kept is bounded by what there is."""
        _forget(known, now)
        for name, value in now.items():
            found = known.get(name)
            if found is None:
                # Most things never move: a line that is flat at nothing needs no memory.
                if not value:
                    continue
                found = known[name] = deque([0], maxlen=self._points)
            found.append(value)


def _forget(known: dict[str, deque], now: Iterable[str]) -> None:  # type: ignore[type-arg]
    for gone in known.keys() - set(now):
        del known[gone]
