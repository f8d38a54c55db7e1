"""Whether a leader may go on while the metadata store does not answer. Pure.

The store declares a silent broker dead after its session timeout, and then the controller makes another in-sync replica
the leader. That one fetches no more from the old leader. So as long as every other in-sync replica has fetched, as a
follower of this very epoch, within the last session timeout, nobody else leads; and a leader that is alone in sync
cannot be replaced without losing data, which nobody does.
"""

from collections.abc import Iterable, Mapping
from math import inf

FOREVER_S = 1e9
"""A broker on its own has a store that never forgets it."""
STALL_SHARE = 0.5
"""A broker that did nothing for this share of the session timeout may have been declared dead without noticing."""


def may_go_on(me: int, in_sync: Iterable[int], fetched_s: Mapping[int, float], now_s: float, timeout_s: float) -> bool:
    """`fetched_s` has when each follower fetched last, if it did in this epoch."""
    return all(replica == me or now_s - fetched_s.get(replica, -inf) <= timeout_s for replica in in_sync)


class SuspensionState:
    """Since when a broker cannot be sure that its session with the store lasts.

    Either the store does not answer, or the broker itself stood still (a stopped process, a machine that slept): then
    the first thing it does may be to answer requests that waited for it, before it hears that it was declared dead.
    """

    __slots__ = ("_alive_s", "_resumed_s", "_since_s", "is_watching", "timeout_s")

    def __init__(self) -> None:
        self.timeout_s = inf
        self.is_watching = False
        """Whether `tick` is called regularly, so that its absence means something."""
        self._since_s: float | None = None
        self._alive_s = -inf
        self._resumed_s: float | None = None

    def begin(self, now_s: float) -> None:
        """The store does not answer."""
        self._since_s = now_s if self._since_s is None else min(now_s, self._since_s)
        self._resumed_s = None

    def end(self) -> None:
        """The store has answered, and what it knows is known here."""
        self._since_s = self._resumed_s = None

    def tick(self, now_s: float) -> None:
        """The broker is awake. Called several times in a session timeout."""
        if self.timeout_s >= FOREVER_S:
            return
        self._look(now_s)
        self.is_watching = True
        self._alive_s = now_s
        if self._resumed_s is not None and now_s - self._resumed_s > self.timeout_s:
            self.end()  # a session that had ended would have shown by now

    def is_due(self, now_s: float) -> bool:
        """Whether the session may be over, and a leader needs its followers to vouch for it."""
        self._look(now_s)
        return self._since_s is not None and now_s - self._since_s > self.timeout_s

    def _look(self, now_s: float) -> None:
        if self.is_watching and now_s - self._alive_s > self.timeout_s * STALL_SHARE:
            self._since_s = self._alive_s if self._since_s is None else min(self._alive_s, self._since_s)
            self._resumed_s = now_s
            self._alive_s = now_s
