"""What a broker does by itself, again and again: one loop per job, none of them on the path of a request."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple

logger = logging.getLogger(__name__)

SHORTEST_INTERVAL_SECONDS = 0.05


class Job(NamedTuple):
    name: str
    interval_ms: Callable[[], int]
    """Read before each round, so that a changed setting takes effect."""
    run: Callable[[], Awaitable[object]]


class Jobs:
    """Runs each job at its interval until stopped. A round that fails is logged; the next one comes all the same."""

    def __init__(self, jobs: list[Job]) -> None:
        self._jobs = jobs
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._tasks = [asyncio.create_task(self._repeat(job), name=job.name) for job in self._jobs]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _repeat(self, job: Job) -> None:
        while True:
            await asyncio.sleep(max(SHORTEST_INTERVAL_SECONDS, job.interval_ms() / 1000))
            try:
                await job.run()
            except Exception:
                logger.exception("The periodic task %s failed; it runs again after its interval", job.name)
