"""A coordinator on a log in memory, with a clock and timers that the test moves."""

import asyncio
import dataclasses
import heapq
import itertools
import random
from collections.abc import Callable, Coroutine
from typing import Any

from ottla.broker.coordination.groups.events import Commit, Join, Joined, OffsetToCommit, Sync, Synced
from ottla.broker.coordination.runtime import GroupCoordinator
from ottla.config.broker import BrokerSettings
from ottla.model.errors import ErrorCode
from ottla.testing.clock import ManualClock

from .group_world import RANGE
from .memory_log import MemoryCoordinatorLog


class ManualTimer:
    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class ManualScheduler:
    """Timers that fire when the test says that time has passed."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self._timers: list[tuple[float, int, ManualTimer]] = []
        self._order = itertools.count()

    def call_at(self, at_ms: float, callback: Callable[[], None]) -> ManualTimer:
        timer = ManualTimer(callback)
        heapq.heappush(self._timers, (at_ms, next(self._order), timer))
        return timer

    def advance(self, ms: float) -> None:
        end = self._clock.monotonic() * 1000 + ms
        while self._timers and self._timers[0][0] <= end:
            at, _, timer = heapq.heappop(self._timers)
            self._clock.advance(max(at - self._clock.monotonic() * 1000, 0))
            if timer.callback is not None:
                timer.callback()
        self._clock.advance(end - self._clock.monotonic() * 1000)


class Coordinator:
    """The coordinator under test, and short words for what its clients ask."""

    def __init__(
        self, log: MemoryCoordinatorLog, clock: ManualClock | None = None, *,
        chance: random.Random | None = None, **settings: Any,
    ) -> None:  # fmt: skip
        self.log = log
        self.clock = clock or ManualClock()
        self.scheduler = ManualScheduler(self.clock)
        self.settings = BrokerSettings(**settings)
        self.groups = GroupCoordinator(log, lambda: self.settings, self.clock, self.scheduler, chance)
        self.groups.start()

    def change_settings(self, **changes: Any) -> None:
        self.settings = dataclasses.replace(self.settings, **changes)

    def restarted(self, log: MemoryCoordinatorLog | None = None) -> "Coordinator":
        """What comes up after the process was killed."""
        twin = Coordinator(log or self.log.copy(), self.clock)
        twin.settings = self.settings
        return twin

    def join(self, member_id: str = "", **details: Any) -> asyncio.Future[Joined]:
        return self.groups.join(
            Join(
                ticket=0, unique="", group_id=details.pop("group_id", "g"), member_id=member_id, client_id="client",
                client_host="/127.0.0.1", session_timeout_ms=10_000, rebalance_timeout_ms=60_000,
                protocol_type="consumer", protocols=RANGE, **details,
            )
        )  # fmt: skip

    def sync(self, member_id: str, generation: int, assignment: bytes = b"mine") -> asyncio.Future[Synced]:
        return self.groups.sync(Sync(0, "g", member_id, generation, assignments=((member_id, assignment),)))

    async def stable(self) -> tuple[str, int]:
        """A stable group of one member: its id and generation."""
        member_id = (await self.join()).member_id
        parked = self.join(member_id)
        self.scheduler.advance(self.settings.group_initial_rebalance_delay_ms)
        joined = await parked
        assert joined.error is ErrorCode.NONE
        assert (await self.sync(member_id, joined.generation)).error is ErrorCode.NONE
        return member_id, joined.generation

    def commit(
        self, offset: int, topic: str = "t", partition: int = 0, **details: Any
    ) -> list[ErrorCode] | asyncio.Future[list[ErrorCode]]:
        group_id = details.pop("group_id", "g")
        return self.groups.commit(Commit(group_id, [OffsetToCommit(topic, partition, offset)], **details))

    def committed(self, topic: str = "t", partition: int = 0, group_id: str = "g") -> int | None:
        offsets = self.groups.fetch_all_offsets(group_id)
        assert isinstance(offsets, dict)
        value = offsets.get(topic, {}).get(partition)
        return None if value is None else value.offset


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, 60))


async def turns(count: int = 5) -> None:
    """Let callbacks run that are ready."""
    for _ in range(count):
        await asyncio.sleep(0)
