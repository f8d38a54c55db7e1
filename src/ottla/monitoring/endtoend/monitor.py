"""The monitor end to end: writes, reads, keeps the books, and says how it stands."""

import asyncio
import contextlib
import time
import uuid
from collections import Counter
from collections.abc import Awaitable
from typing import Any

from ottla.monitoring.endtoend.leaders import Leaders
from ottla.monitoring.endtoend.ledger import Ledger, Outcome
from ottla.monitoring.endtoend.probes import CommitProbe, TopicProbe
from ottla.monitoring.endtoend.reading import Reader
from ottla.monitoring.endtoend.settings import EndToEndSettings
from ottla.monitoring.endtoend.slo import RECENT_SECONDS, Delays, Level
from ottla.monitoring.endtoend.writing import Sent, Writer

TICK_SECONDS = 0.25


class EndToEnd:
    """`start`, then `run` until it is cancelled. Figures can be read at any time in between."""

    def __init__(self, settings: EndToEndSettings) -> None:
        self.settings = settings
        self.write = Level(settings.objective)
        self.read = Level(settings.objective)
        self.by_partition: dict[int, Level] = {}
        """Writes of each partition."""
        self.write_delays = Delays()
        self.read_delays = Delays()
        self.counts: Counter[str] = Counter()
        """produced, produce_errors, consumed, consume_errors, lost, duplicated, delayed"""
        self.last_error = ""
        self._ledgers: dict[int, Ledger] = {}
        # Of their own, so that a fetch that waits holds up neither a record nor a question for the leader.
        self._clusters = [settings.client.cluster() for _ in range(4)]
        asking, writing, reading, self._probing = self._clusters
        producer_id = f"ottla-{uuid.uuid4().hex[:16]}"
        self.leaders = Leaders(settings, asking)
        self.reader = Reader(
            settings,
            reading,
            self.leaders,
            producer_id,
            tell_read=self._was_read,
            tell_passed=lambda partition, offset: self._count_read(self._ledger(partition).passed(offset)),
            tell_rewound=lambda partition, offset: self._ledger(partition).rewound(offset),
            tell_failed=self._fetch_failed,
        )
        self.writer = Writer(
            settings,
            writing,
            self.leaders,
            producer_id,
            partitions=lambda: [each for each in self.reader.positions if each in self.leaders.places],
            tell_sending=lambda partition, index, now_ms: self._ledger(partition).sent(index, now_ms),
            tell=self._was_sent,
        )
        self.commits = CommitProbe(settings, lambda: self.reader.positions)
        self.topics = TopicProbe(settings)

    async def start(self) -> None:
        """Sees to the topic, and begins to read at its end. Raises OttlaError if that cannot be done."""
        await self.leaders.manage()
        await self.reader.seek_to_end()

    async def run(self) -> None:
        jobs: list[Awaitable[None]] = [self.leaders.run(), self.reader.run(), self.writer.run(), self._tick()]
        if self.settings.commit_s:
            jobs.append(self.commits.run(self._probing))
        if self.settings.topic_probe_s:
            jobs.append(self.topics.run(self._probing))
        tasks = [asyncio.ensure_future(job) for job in jobs]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def run_for(self, seconds: float) -> None:
        """A while, and then until what was sent is read, or is late."""
        running = {asyncio.ensure_future(each) for each in (self.leaders.run(), self.reader.run(), self._tick())}
        writing = asyncio.ensure_future(self.writer.run())
        probing: set[asyncio.Future[None]] = set()
        if self.settings.topic_probe_s:
            probing.add(asyncio.ensure_future(self.topics.once(self._probing)))
        try:
            await asyncio.wait({writing}, timeout=seconds)
            await self._stop_writing(writing)
            deadline = time.monotonic() + self.settings.latency_max_s
            while any(each.unread for each in self._ledgers.values()) and time.monotonic() < deadline:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            if self.settings.commit_s:
                await self.commits.once(self._probing)
            if probing:
                await asyncio.wait(probing)
        finally:
            left = [*running, writing, *probing]
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)
        for ledger in self._ledgers.values():
            self._count_read(ledger.tick(int(time.time() * 1000) + int(self.settings.latency_max_s * 1000) + 1))

    async def _stop_writing(self, writing: "asyncio.Future[None]") -> None:
        """No new records; those under way have their time."""
        if writing.done():
            writing.result()
        self.writer.pause()
        await self.writer.finish(self.settings.write_timeout_s + 1.0)
        writing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await writing

    async def close(self) -> None:
        for cluster in self._clusters:
            await cluster.close()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            now_ms = int(time.time() * 1000)
            for ledger in self._ledgers.values():
                self._count_read(ledger.tick(now_ms))

    # What is told by those who work.

    def _ledger(self, partition: int) -> Ledger:
        found = self._ledgers.get(partition)
        if found is None:
            found = self._ledgers[partition] = Ledger(int(self.settings.latency_max_s * 1000))
            # Only its last minute is asked for; a month of each of many partitions would take much room.
            self.by_partition[partition] = Level(self.settings.objective._replace(window_s=RECENT_SECONDS))
        return found

    def _was_sent(self, sent: Sent) -> None:
        now = time.time()
        good = sent.offset is not None
        ledger = self._ledger(sent.partition)
        for level in (self.write, self.by_partition[sent.partition]):
            level.note(int(good), int(not good), now)
        if sent.offset is not None:
            self.counts["produced"] += 1
            self.write_delays.note(sent.delay_ms, now)
            self._count_read(ledger.acknowledged(sent.index, sent.offset))
        else:
            self.counts["produce_errors"] += 1
            self.last_error = f"partition {sent.partition}: {sent.reason}"
            ledger.failed(sent.index)

    def _was_read(self, partition: int, index: int, attempt: int) -> None:
        self.counts["consumed"] += 1
        self._count_read(self._ledger(partition).read(index, int(time.time() * 1000), attempt))

    def _fetch_failed(self, reason: str) -> None:
        self.counts["consume_errors"] += 1
        self.last_error = reason

    def _count_read(self, outcome: Outcome) -> None:
        now = time.time()
        self.read.note(outcome.good, outcome.bad, now)
        for name in ("lost", "duplicated", "delayed"):
            self.counts[name] += getattr(outcome, name)
        for delay_ms in outcome.delays_ms:
            self.read_delays.note(delay_ms, now)

    # How it stands.

    def produce_availability(self, now_s: float) -> float:
        """As Xinfra Monitor has it: on average of the partitions, each over the last minute."""
        shares = [self.partition_availability(each, now_s) for each in self.by_partition]
        return sum(shares) / len(shares) if shares else 0.0

    def partition_availability(self, partition: int, now_s: float) -> float:
        ratio = self.by_partition[partition].recent(now_s).ratio
        return ratio if ratio is not None else float(not self.settings.zero_is_unavailable)

    def consume_availability(self, now_s: float) -> float:
        ratio = self.read.recent(now_s).ratio
        return ratio if ratio is not None else float(not self.settings.zero_is_unavailable)

    def summary(self) -> dict[str, Any]:
        """One document, for --json and for whoever shows it."""
        now = time.time()
        return {
            "name": self.settings.name,
            "topic": self.settings.topic,
            "brokers": self.leaders.brokers,
            "partitions": [
                {
                    "partition": number,
                    "leader": place.leader,
                    "availability": self.partition_availability(number, now) if number in self.by_partition else None,
                }
                for number, place in sorted(self.leaders.places.items())
            ],
            "write": _level(self.write, now),
            "read": _level(self.read, now),
            "produce_availability_avg": self.produce_availability(now),
            "consume_availability_avg": self.consume_availability(now),
            **{
                name: self.counts[name]
                for name in (
                    "produced", "produce_errors", "consumed", "consume_errors", "lost", "duplicated", "delayed",
                )
            },
            "write_delay_ms": self.write_delays.summary(now),
            "read_delay_ms": self.read_delays.summary(now),
            "commits": {
                "done": self.commits.level.good,
                "failed": self.commits.level.bad,
                "delay_ms": self.commits.delays.summary(now),
                "error": self.commits.last_error,
            },
            "topics": {
                "done": self.topics.done,
                "failed": self.topics.failures,
                "creation_ms": self.topics.creation_ms,
                "deletion_ms": self.topics.deletion_ms,
                "error": self.topics.last_error,
            },
            "problem": self.leaders.problem,
            "last_error": self.last_error,
        }  # fmt: skip


def _level(level: Level, now_s: float) -> dict[str, Any]:
    events = level.in_window(now_s)
    return {
        "good": events.good,
        "bad": events.bad,
        "ratio": events.ratio,
        "recent_ratio": level.recent(now_s).ratio,
        "objective": level.objective.ratio,
        "budget_left": level.budget_left(now_s),
        "burn_rate_1h": level.burn_rate(3_600, now_s),
    }
