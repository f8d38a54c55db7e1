"""Partitions that one request creates and deletes, charged to its client (KIP-599). Pure: the clock comes in.

Clients that know the error are refused, topic by topic, as long as their bucket is in debt. For others, and for topics
that come into being because somebody asked for them, the work is done and the client waits afterwards.
"""

from collections.abc import Callable, Hashable

from ottla.broker.quotas.budgets import MutationBudget
from ottla.model.errors import ApiError, ErrorCode

Charge = Callable[[Hashable, int], None]
"""Told of what is to be changed, and how many partitions that creates or deletes. ApiError if it is not to be done."""


class MutationCharge:
    __slots__ = ("_budget", "_now_ms", "_paid", "_strict", "wait_ms")

    def __init__(self, budget: MutationBudget, now_ms: Callable[[], int], *, strict: bool) -> None:
        self._budget = budget
        self._now_ms = now_ms
        self._strict = strict
        self._paid: set[Hashable] = set()
        self.wait_ms = 0
        """How long the client has to be left alone."""

    def __call__(self, what: Hashable, partitions: int) -> None:
        if what in self._paid:
            return  # decided anew, because somebody else was quicker
        now_ms = self._now_ms()
        if self._strict:
            self._wait(now_ms)
            if self.wait_ms:
                raise ApiError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "The throttling quota has been exceeded.")
        self._budget.take(partitions, now_ms)
        self._paid.add(what)
        if not self._strict:
            self._wait(now_ms)

    def _wait(self, now_ms: int) -> None:
        wait_ms = self._budget.wait_ms(now_ms)
        if wait_ms and not self.wait_ms:
            self._budget.waits.note(wait_ms, now_ms)
        self.wait_ms = wait_ms
