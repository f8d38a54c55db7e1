"""A search over the records of a topic: over the wire, newest or oldest first, in slices that leave the loop free.

Every partition is read a window at a time, a megabyte or so; what a window holds is searched in a thread. Partitions go
on in step with their records' times, so that matches can be given in order without keeping them: a match is given as
soon as no partition can come up with one that is before it. Memory is bounded by windows, not by the topic.
"""

import asyncio
import functools
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from typing import Any

from ottla.client.cluster import Cluster
from ottla.client.fetch import FetchSettings, PartitionFetcher
from ottla.console.search.batches import Found, Search, Searched
from ottla.console.search.decoding import Decoder
from ottla.console.search.query import Query
from ottla.console.search.ranges import ranges_of
from ottla.console.search.windows import NewestFirst, OldestFirst, Waiting, WindowReader
from ottla.model.names import TopicPartition

AT_ONCE_MAX = 8
"""Partitions whose windows are read at the same time, two of each at most."""
WAIT_MS_MAX = 100
ALL = 2**62

threads = ThreadPoolExecutor(2, thread_name_prefix="search")
"""Of all searches: they take turns, and the threads that others use stay free."""


class End(StrEnum):
    """Why a scan is over."""

    COMPLETE = "complete"
    LIMIT = "limit"
    STOPPED = "stopped"


class Scan:
    """Iterate over it, or over `steps()` to hear of progress without matches too. It can be gone through once."""

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        query: Query,
        decoder: Decoder | None = None,
        *,
        limit: int | None = None,
        committed: bool = True,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        """`limit` is for queries that name none; without either all matches are given."""
        self.topic, self.query = topic, query
        self.limit = query.limit if query.limit is not None else limit
        self.scanned = self.matched = self.bytes_read = self.given = 0
        """Records looked at; those that match; bytes fetched; matches given."""
        self.total = 0
        """Offsets between the bounds when the scan began: no fewer than the records there are."""
        self.covered = 0
        """Of these, how many are dealt with."""
        self.end: End | None = None
        self._cluster = cluster
        self._committed = committed
        self._now_ms = now_ms
        self._matcher = (decoder or Decoder()).matcher(query)
        self._stop = asyncio.Event()

    def stop(self) -> None:
        """At once: what is being fetched is not waited for."""
        self._stop.set()

    async def __aiter__(self) -> AsyncIterator[Found]:
        async for given in self.steps():
            for found in given:
                yield found

    async def steps(self) -> AsyncGenerator[list[Found], None]:
        """Matches as they become known, often none: then the counters have moved."""
        ranges = await ranges_of(self._cluster, self.topic, self.query, self._now_ms(), committed=self._committed)
        self.total = sum(bounds.end - bounds.start for bounds in ranges.values())
        filled = {number: bounds for number, bounds in ranges.items() if bounds.start < bounds.end}
        make = NewestFirst if self.query.order == "newest" else OldestFirst
        readers = [
            make(number, functools.partial(self._fetcher, number), bounds, reads_ahead=len(filled) <= AT_ONCE_MAX)
            for number, bounds in filled.items()
        ]
        try:
            async for found in self._rounds(readers):
                room = None if self.limit is None else self.limit - self.given
                given = found[:room]
                self.given += len(given)
                yield given
                if self._stop.is_set():
                    break
                if self.limit is not None and self.given >= self.limit:
                    self.end = End.LIMIT
                    return
            self.end = End.STOPPED if self._stop.is_set() else End.COMPLETE
        finally:
            for reader in readers:
                await reader.close()

    def _fetcher(self, number: int, size: int) -> PartitionFetcher:
        settings = FetchSettings(
            committed=self._committed, max_bytes=size, partition_max_bytes=size, max_wait_ms=WAIT_MS_MAX
        )
        return PartitionFetcher(self._cluster, TopicPartition(self.topic, number), settings)

    async def _rounds(self, readers: Sequence[WindowReader]) -> AsyncGenerator[list[Found], None]:
        """Each time those partitions go on that hold the others up."""
        waiting = Waiting(newest_first=self.query.order == "newest")
        active = list(readers)
        while active and not self._stop.is_set():
            active.sort(key=lambda reader: waiting.rank(reader.frontier_ms))
            for searched in await self._unless_stopped([self._window(reader) for reader in active[:AT_ONCE_MAX]]):
                self.scanned += searched.scanned
                self.matched += searched.matched
                waiting.add(searched.found)
            self.covered = self.total - sum(reader.left for reader in readers)
            active = [reader for reader in active if reader.left]
            yield waiting.take([reader.frontier_ms for reader in active])

    async def _window(self, reader: WindowReader) -> Searched:
        window = await reader.next_window()
        self.bytes_read += sum(len(answer.records) for answer in window.answers)
        keep = ALL if self.limit is None else self.limit - self.given
        search = Search(reader.partition, self._matcher, window.bounds, keep=keep, keep_last=reader.backwards)
        searched = await asyncio.get_running_loop().run_in_executor(threads, search.go, window.answers, self._committed)
        reader.passed(searched)
        return searched

    async def _unless_stopped(self, windows: Sequence[Coroutine[None, None, Searched]]) -> list[Searched]:
        """All of them; if somebody stops the scan meanwhile, those that are ready."""
        tasks = [asyncio.ensure_future(window) for window in windows]
        stopping = asyncio.ensure_future(self._stop.wait())
        all_done = asyncio.gather(*tasks)
        try:
            either: list[asyncio.Future[Any]] = [all_done, stopping]
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            return [task.result() for task in tasks if task.done()]
        finally:
            for each in (*tasks, stopping):
                each.cancel()
            await asyncio.gather(*tasks, stopping, all_done, return_exceptions=True)
