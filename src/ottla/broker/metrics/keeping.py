"""What has to be looked at from time to time, so that a scrape finds it: rates, how idle the loop is, intervals.

Runs only while somebody can ask for metrics.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator

from ottla.telemetry.catalogue import METRICS
from ottla.telemetry.declared import network
from ottla.telemetry.histogram import Histogram
from ottla.telemetry.metric import Metric
from ottla.telemetry.registry import Telemetry

TICK_SECONDS = 5
RATE_TICKS = 12
"""A rate is over this many ticks: a minute."""
FOLD_TICKS = 6
"""An interval of the histograms, of which ten are kept: five minutes."""
DELAY_PROBE_SECONDS = 0.1

Fold = Callable[[], Iterable[None] | None]


class Rates:
    """So many a second, over the last minute, of counters that are read when the time comes."""

    def __init__(self, telemetry: Telemetry, now: Callable[[], float]) -> None:
        self._telemetry = telemetry
        self._now = now
        self._of = {metric: METRICS[metric.rate_of] for metric in METRICS.values() if metric.rate_of}
        self._seen: deque[tuple[float, dict[Metric, dict[tuple[str, ...], float]]]] = deque(maxlen=RATE_TICKS)

    def show(self) -> None:
        for metric, counter in self._of.items():
            self._telemetry.observe(metric, lambda counter=counter: self._read(counter))  # type: ignore[misc]

    def tick(self) -> None:
        self._seen.append((self._now(), {counter: self._count(counter) for counter in self._of.values()}))

    def _count(self, counter: Metric) -> dict[tuple[str, ...], float]:
        if counter not in self._telemetry.observed:
            return {}
        return {sample.labels: sample.value for sample in self._telemetry.read(counter)}

    def _read(self, counter: Metric) -> Iterator[tuple[tuple[str, ...], float]]:
        then, before = self._seen[0] if self._seen else (self._now(), {})
        elapsed = self._now() - then
        for labels, value in self._count(counter).items():
            grown = value - before.get(counter, {}).get(labels, 0)
            yield labels, grown / elapsed if elapsed > 0 else 0.0


class LoopWatch:
    """How much of the last minute the loop's thread was idle, and how late the loop is with timers."""

    def __init__(self) -> None:
        self._clock = time.pthread_getcpuclockid(threading.get_ident())
        self._seen: deque[tuple[float, float]] = deque(maxlen=RATE_TICKS)
        self.delays = Histogram(1 / 1000)

    def tick(self) -> None:
        self._seen.append((time.monotonic(), time.clock_gettime(self._clock)))

    def idle(self) -> float:
        then, used = self._seen[0] if self._seen else (0.0, 0.0)
        elapsed = time.monotonic() - then
        return min(max(1.0 - (time.clock_gettime(self._clock) - used) / elapsed, 0.0), 1.0)

    async def probe(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + DELAY_PROBE_SECONDS
            await asyncio.sleep(DELAY_PROBE_SECONDS)
            self.delays.record(int(1e6 * max(0.0, loop.time() - due)))

    def show(self, telemetry: Telemetry) -> None:
        telemetry.observe_together((network.NETWORK_IDLE, network.HANDLER_IDLE), lambda: (((), (self.idle(),) * 2),))
        telemetry.observe_one(network.LOOP_DELAY, self.delays.read)


class Keeper:
    """Made on the loop whose thread it is to watch."""

    def __init__(
        self,
        telemetry: Telemetry,
        folds: Iterable[Fold],
        every_tick: Callable[[], None],
    ) -> None:
        self._every_tick = every_tick
        self._rates = Rates(telemetry, time.monotonic)
        self._watch = LoopWatch()
        self._folds = (*folds, self._watch.delays.fold)
        self._rates.show()
        self._watch.show(telemetry)
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._tick()
        self._tasks = [
            asyncio.create_task(self._run(), name="metrics"),
            asyncio.create_task(self._watch.probe(), name="loop delay"),
        ]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _tick(self) -> None:
        self._rates.tick()
        self._watch.tick()
        self._every_tick()

    async def _run(self) -> None:
        ticks = 0
        while True:
            await asyncio.sleep(TICK_SECONDS)
            self._tick()
            ticks += 1
            if ticks % FOLD_TICKS == 0:
                for fold in self._folds:
                    for _ in fold() or ():
                        await asyncio.sleep(0)
