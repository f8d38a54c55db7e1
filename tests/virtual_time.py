"""Coroutines of unit tests in virtual time: waiting for a minute takes no longer than waiting for a moment.

The loop is the simulation's. Threads are done after a moment of that time, without being threads.
"""

import asyncio
import random
from collections.abc import Coroutine
from typing import Any, TypeVar

from tests.simulation.loop import SimulatedLoop

from ottla.model.clock import Clock

T = TypeVar("T")


class LoopClock(Clock):
    """The running loop's time."""

    def now_ms(self) -> int:
        return int(asyncio.get_running_loop().time() * 1000)

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()


def virtual_loop() -> SimulatedLoop:
    return SimulatedLoop(random.Random(0))


def run_virtually(main: Coroutine[Any, Any, T], loop: SimulatedLoop | None = None) -> T:
    """As `asyncio.run`; a test in which nothing is left to happen fails at once, and one with a forgotten error too."""
    loop = loop or virtual_loop()
    try:
        result: T = loop.run(loop.create_task(main))
        return result
    finally:
        end(loop)
        assert not loop.failures, loop.failures


def end(loop: SimulatedLoop) -> None:
    """Cancel what is left, and see it end."""
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        loop.run(loop.create_task(_all_of(left)))
    loop.close()


async def _all_of(tasks: "set[asyncio.Task[Any]]") -> None:
    await asyncio.wait(tasks)
