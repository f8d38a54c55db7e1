"""What clients may use, and have used, of one thing that quotas are set for. Pure: `now_ms` comes in.

RateBudget       bytes, or time of the broker, paid off at a steady rate
MutationBudget   partitions that are created or deleted, from a bucket of tokens
Budgets          all budgets of one kind: finds a client's
"""

import heapq
from collections.abc import Callable, Mapping
from typing import Generic, Protocol, TypeVar

from ottla.broker.quotas.backlog import Backlog
from ottla.broker.quotas.precedence import Sharers, quota_for
from ottla.broker.quotas.sampled import SampledSum
from ottla.broker.quotas.token_bucket import TokenBucket
from ottla.cluster.image import Entity

KEPT_MAX = 10_000
"""Clients choose their ids: above this many, budgets that nobody draws on are let go of."""


class Budget(Protocol):
    def use_bound(self, bound: float) -> None:
        """A bound may change at any time; what was used stays."""

    def is_idle(self, now_ms: int) -> bool:
        """Whether a new one in its place would say the same."""


B = TypeVar("B", bound=Budget)


class Waits:
    """How long clients were told to wait, lately."""

    __slots__ = ("_count", "_ends", "_sum_ms")

    def __init__(self, windows: int, window_s: int) -> None:
        self._ends: list[int] = []  # a heap
        self._count = SampledSum(windows, window_s * 1000)
        self._sum_ms = SampledSum(windows, window_s * 1000)

    def note(self, wait_ms: int, now_ms: int) -> None:
        self._count.record(1, now_ms)
        self._sum_ms.record(wait_ms, now_ms)
        self.running(now_ms)
        heapq.heappush(self._ends, now_ms + wait_ms)

    def running(self, now_ms: int) -> int:
        """How many are not over yet."""
        while self._ends and self._ends[0] <= now_ms:
            heapq.heappop(self._ends)
        return len(self._ends)

    def mean_ms(self, now_ms: int) -> int:
        count = self._count.total(now_ms)
        return self._sum_ms.total(now_ms) // count if count else 0


class RateBudget:
    """So many units a second. Whoever has used more is told how long to wait, and has used it all the same.

    Who has used nothing lately may use at once what comes in all windows but one.
    """

    __slots__ = ("_at_once_s", "_backlog", "_scale", "_used", "_wait_ms_max", "bound", "waits")

    def __init__(self, windows: int, window_s: int, *, scale: int = 1, wait_ms_max: int | None = None) -> None:
        self._used = SampledSum(windows, window_s * 1000)
        self._backlog = Backlog()
        self._at_once_s = max(1, windows - 1) * window_s
        self._scale = scale
        self._wait_ms_max = wait_ms_max
        self.bound = 1
        self.waits = Waits(windows, window_s)

    def use_bound(self, bound: float) -> None:
        self.bound = self._backlog.rate = max(1, round(bound * self._scale))

    def charge(self, used: int, now_ms: int) -> int:
        """Note what was used. Returns for how many milliseconds the client has to be left alone."""
        self.note(used, now_ms)
        wait_ms = self._backlog.wait_ms(self.bound * self._at_once_s, now_ms)
        if wait_ms:
            if self._wait_ms_max is not None and wait_ms > self._wait_ms_max:
                wait_ms = self._wait_ms_max
            self.waits.note(wait_ms, now_ms)
        return wait_ms

    def note(self, used: int, now_ms: int) -> None:
        """Note what was used when it is too late to tell the client."""
        self._used.record(used, now_ms)
        self._backlog.add(used, now_ms)

    def give_back(self, used: int, now_ms: int) -> None:
        """It was charged and then not used."""
        self.note(-used, now_ms)

    def used(self, now_ms: int) -> int:
        return self._used.total(now_ms)

    def is_paid(self, now_ms: int) -> bool:
        """Whether nothing is left of what was used."""
        return self._backlog.left(now_ms) == 0

    def until_paid_ms(self, now_ms: int) -> int:
        return self._backlog.wait_ms(0, now_ms)

    def rate(self, now_ms: int) -> int:
        """Units a second, as they are shown."""
        return self._used.total(now_ms) * 1000 // (self._used.span_ms(now_ms) * self._scale)

    def is_idle(self, now_ms: int) -> bool:
        return self.is_paid(now_ms) and self._used.is_idle(now_ms)


class MutationBudget:
    """So many partitions a second, created or deleted, with bursts."""

    __slots__ = ("_bucket", "_used", "waits")

    def __init__(self, windows: int, window_s: int) -> None:
        self._used = SampledSum(windows, window_s * 1000)
        self._bucket = TokenBucket(windows * window_s)
        self.waits = Waits(windows, window_s)

    def use_bound(self, bound: float) -> None:
        self._bucket.rate = bound

    def wait_ms(self, now_ms: int) -> int:
        """How long until the next change is let through; 0 when it is now."""
        return self._bucket.wait_ms(now_ms)

    def take(self, partitions: int, now_ms: int) -> None:
        self._bucket.take(partitions, now_ms)
        self._used.record(partitions, now_ms)

    def mutation_rate(self, now_ms: int) -> float:
        """Partitions a second that were created or deleted."""
        return 1000 * self._used.total(now_ms) / self._used.span_ms(now_ms)

    def tokens(self, now_ms: int) -> float:
        return self._bucket.tokens(now_ms)

    def is_idle(self, now_ms: int) -> bool:
        return self._bucket.is_idle(now_ms)


class Budgets(Generic[B]):
    """The budgets of one kind of quota, each made when somebody draws on it for the first time."""

    __slots__ = ("_bounds", "_by_client", "_by_sharers", "_make")

    def __init__(self, make: Callable[[], B], bounds: Mapping[Entity, float]) -> None:
        self._make = make
        self._bounds = bounds
        self._by_sharers: dict[Sharers, B] = {}
        self._by_client: dict[tuple[str, str], B | None] = {}

    def use_bounds(self, bounds: Mapping[Entity, float]) -> None:
        """Other quotas are set now. Who draws on the same budget as before has used of it what it had."""
        self._bounds = bounds
        self._by_client.clear()

    def of(self, client: tuple[str, str], now_ms: int) -> B | None:
        """The budget of this user and client id; None when no quota counts for them."""
        try:
            return self._by_client[client]
        except KeyError:
            return self._find(client, now_ms)

    def _find(self, client: tuple[str, str], now_ms: int) -> B | None:
        if len(self._by_client) >= KEPT_MAX:
            self._by_client.clear()
            self._by_sharers = {who: held for who, held in self._by_sharers.items() if not held.is_idle(now_ms)}
        found = quota_for(self._bounds, *client)
        budget = None
        if found is not None:
            sharers, bound = found
            budget = self._by_sharers.get(sharers)
            if budget is None:
                budget = self._by_sharers[sharers] = self._make()
            budget.use_bound(bound)
        self._by_client[client] = budget
        return budget

    def items(self) -> list[tuple[Sharers, B]]:
        return list(self._by_sharers.items())
