"""Looks at a cluster again and again, keeps the book on its groups, and sends notices."""

import asyncio
import logging
import time
import uuid
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from ottla.client import admin
from ottla.client.cluster import Cluster
from ottla.client.fetch import FetchSettings, PartitionFetcher
from ottla.client.settings import ClientSettings
from ottla.model.errors import OttlaError
from ottla.model.names import TopicPartition
from ottla.monitoring import metrics
from ottla.monitoring.figures import Figure
from ottla.monitoring.lag.book import GROUPS_AT_ONCE, GroupLag, LagBook
from ottla.monitoring.lag.notices import Notice, NoticeBoard
from ottla.monitoring.lag.notifiers import Notifier, NotSent
from ottla.monitoring.lag.rules import Rules
from ottla.monitoring.looking import Look, look
from ottla.protocol.records import decode_batch, iterate_batches

logger = logging.getLogger(__name__)

REFRESH_SECONDS = 10.0
AGES_PER_LOOK = 50
"""So many records are read at most to learn how old they are; the others wait for the next look."""
AGE_BYTES = 64 * 1024
DIRECTORIES_EVERY = 3
"""Looks between two questions for the brokers' disks."""


class WatchSettings(NamedTuple):
    name: str
    client: ClientSettings
    rules: Rules = Rules()
    refresh_s: float = REFRESH_SECONDS
    allow: str = ""
    deny: str = ""
    directories: bool = True
    """Whether brokers are asked for their disks, too."""


class Directory(NamedTuple):
    broker: int
    path: str
    total_bytes: int
    free_bytes: int


class Notices:
    """Decides and sends, for all clusters."""

    def __init__(self, notifiers: Sequence[Notifier]) -> None:
        self._notifiers = {each.rule.name: each for each in notifiers}
        self._board = NoticeBoard([each.rule for each in notifiers], lambda: str(uuid.uuid4()))
        self.sent: Counter[tuple[str, str]] = Counter()
        self.failed: Counter[tuple[str, str]] = Counter()

    async def tell(self, cluster: str, judged: Sequence[GroupLag], now_ms: int) -> None:
        if not self._notifiers:
            return
        notices: list[Notice] = []
        for group in judged:
            notices += self._board.note(cluster, group, now_ms)
        self._board.keep_only(cluster, (group.group for group in judged))
        await asyncio.gather(*(self._send(notice) for notice in notices))

    async def _send(self, notice: Notice) -> None:
        key = (notice.notifier, notice.kind)
        try:
            await asyncio.to_thread(self._notifiers[notice.notifier].send, notice)
        except NotSent as error:
            self.failed[key] += 1
            logger.warning("Notice of group %s could not be sent by %s: %s", notice.group.group, notice.notifier, error)
        else:
            self.sent[key] += 1
            logger.info("Sent notice (%s) of group %s by %s", notice.kind, notice.group.group, notice.notifier)

    def figures(self) -> list[Figure]:
        return [
            (metrics.NOTICES, [(key, count) for key, count in sorted(self.sent.items())]),
            (metrics.NOTICES_FAILED, [(key, count) for key, count in sorted(self.failed.items())]),
        ]


class Watch:
    """One cluster. `run` goes on until it is cancelled; `once` is one look."""

    def __init__(self, settings: WatchSettings, notices: Notices | None = None) -> None:
        self.settings = settings
        self.book = LagBook(settings.rules, allow=settings.allow, deny=settings.deny)
        self.judged: tuple[GroupLag, ...] = ()
        """All groups, as they were at the last look."""
        self.last: Look | None = None
        self.error = ""
        """Why the last look failed as a whole, if it did."""
        self.looks = self.looks_failed = 0
        self.look_seconds = 0.0
        self.directories: list[Directory] = []
        self._notices = notices
        self._cluster = settings.client.cluster()

    async def close(self) -> None:
        await self._cluster.close()

    async def run(self) -> None:
        while True:
            started = time.monotonic()
            await self.once()
            await asyncio.sleep(max(0.0, self.settings.refresh_s - (time.monotonic() - started)))

    async def once(self) -> None:
        """A look that fails as a whole is told and counted, and leaves the book as it is."""
        started = time.monotonic()
        self.looks += 1
        try:
            seen = await look(self._cluster)
        except OttlaError as error:
            self.looks_failed += 1
            self.error = str(error)
            logger.warning("Cluster %s could not be looked at: %s", self.settings.name, error)
            return
        finally:
            self.look_seconds = time.monotonic() - started
        if seen.failures:
            self.looks_failed += 1
            logger.warning("Cluster %s could be seen in part only: %s", self.settings.name, "; ".join(seen.failures))
        now_ms = int(time.time() * 1000)
        self.error = ""
        for _ in self.book.noting(seen.reading, now_ms):
            await asyncio.sleep(0)
        self.last = seen
        await self._judge(now_ms)
        await self._learn_ages()
        if self.settings.directories and self.looks % DIRECTORIES_EVERY == 1:
            self.directories = await directories(self._cluster)
        if self._notices is not None and self.looks >= self.settings.rules.intervals:
            # Before that no window is full, and everybody who is behind would look as if they stood still.
            await self._notices.tell(self.settings.name, self.judged, now_ms)

    async def _judge(self, now_ms: int) -> None:
        """Thousands of groups take a while, and records are sent at their times on the same loop."""
        judged = []
        for position, name in enumerate(self.book.groups):
            group = self.book.group(name, now_ms)
            if group is not None:
                judged.append(group)
            if position % GROUPS_AT_ONCE == GROUPS_AT_ONCE - 1:
                await asyncio.sleep(0)
        self.judged = tuple(judged)

    async def _learn_ages(self) -> None:
        wanted = self.book.without_age(self.judged)[:AGES_PER_LOOK]
        told = await asyncio.gather(*(self._written_ms(*each) for each in wanted))
        for (partition, offset), written_ms in zip(wanted, told, strict=True):
            if written_ms is not None:
                self.book.note_age(partition, offset, written_ms)

    async def _written_ms(self, partition: TopicPartition, offset: int) -> int | None:
        settings = FetchSettings(committed=False, partition_max_bytes=AGE_BYTES, max_wait_ms=0)
        try:
            fetched = await PartitionFetcher(self._cluster, partition, settings).fetch(offset)
            for position, header in iterate_batches(fetched.records):
                if header.last_offset >= offset:
                    records = [] if header.is_control else decode_batch(fetched.records, position)
                    times = (record.timestamp for record in records if record.offset >= offset)
                    return next(times, header.max_timestamp)
        except OttlaError as error:  # deleted meanwhile, or not ours to read: its age stays unknown
            logger.debug("Age of %s at %d is not known: %s", partition, offset, error)
        return None

    def figures(self) -> list[Figure]:
        name = (self.settings.name,)
        places = self.last.places.values() if self.last is not None else ()
        rows = [((*name, str(each.broker), each.path), each) for each in self.directories]
        return [
            (metrics.LOOKS, [(name, self.looks)]),
            (metrics.LOOKS_FAILED, [(name, self.looks_failed)]),
            (metrics.LOOK_SECONDS, [(name, self.look_seconds)]),
            (metrics.BROKERS, [(name, len(self.last.brokers) if self.last is not None else 0)]),
            (metrics.LEADERLESS, [(name, sum(place.leader is None for place in places))]),
            (metrics.UNDER_REPLICATED, [(name, sum(len(p.in_sync) < len(p.replicas) for p in places))]),
            (metrics.DIRECTORY_TOTAL, [(labels, each.total_bytes) for labels, each in rows]),
            (metrics.DIRECTORY_FREE, [(labels, each.free_bytes) for labels, each in rows]),
        ]


async def directories(cluster: Cluster) -> list[Directory]:
    """The disks of all brokers that tell them."""

    async def ask(node: int) -> list[Directory]:
        try:
            found = await admin.describe_log_dirs(cluster, node, {})
        except OttlaError as error:
            logger.debug("Broker %d does not tell its log directories: %s", node, error)
            return []
        return [
            Directory(node, each.log_dir, each.total_bytes, each.usable_bytes)
            for each in found
            if not each.error_code and each.total_bytes >= 0
        ]

    told = await asyncio.gather(*(ask(node) for node in sorted(cluster.brokers)))
    return [each for of_broker in told for each in of_broker]
