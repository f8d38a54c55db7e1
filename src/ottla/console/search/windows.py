"""A partition read a window at a time, forwards or backwards, and matches of several partitions put in order."""

import asyncio
import heapq
import math
from collections.abc import AsyncIterator, Sequence
from typing import ClassVar, NamedTuple, Protocol

from ottla.client.fetch import Fetched, OffsetOutOfRange
from ottla.console.search.batches import Answer, Bounds, Found, Searched
from ottla.model.names import TopicPartition
from ottla.protocol.records import BATCH_OVERHEAD, iterate_batches, read_header

WINDOW_BYTES_MAX = 2 * 1024 * 1024
FIRST_WINDOW_RECORDS = 500
WINDOW_GROWTH = 8
PENDING_BYTES_MAX = 32 * 1024 * 1024
"""Matches that wait for their turn; beyond that they are given before it."""


class Window(NamedTuple):
    """Bytes, which of their offsets are meant, and how many offsets are left after them."""

    answers: Sequence[Answer]
    bounds: Bounds
    left: int


class Fetches(Protocol):
    """What a window needs of a PartitionFetcher."""

    partition: TopicPartition

    def read(self, start: int, end: int) -> AsyncIterator[Fetched]: ...


class WindowReader:
    """Reads one partition. `frontier_ms` is the time that the search has come to; None before the first window."""

    backwards: ClassVar[bool]

    def __init__(self, fetcher: Fetches, bounds: Bounds, *, reads_ahead: bool) -> None:
        self.partition = fetcher.partition.partition
        self.frontier_ms: int | None = None
        self.left = bounds.end - bounds.start
        """Offsets that are not handed out yet."""
        self._fetcher = fetcher
        self._bounds = bounds
        self._reads_ahead = reads_ahead
        self._ahead: asyncio.Task[Window] | None = None

    async def next_window(self) -> Window:
        window = await (self._ahead or self._fetch())
        self._ahead = None
        self.left = window.left
        if self._reads_ahead and window.left:
            self._ahead = asyncio.create_task(self._fetch(), name=f"window of {self._fetcher.partition}")
        return window

    async def close(self) -> None:
        if self._ahead is not None:
            self._ahead.cancel()
            await asyncio.gather(self._ahead, return_exceptions=True)

    def passed(self, searched: Searched) -> None:
        """What was searched moves the frontier, if there was anything."""
        reached = searched.oldest_ms if self.backwards else searched.newest_ms
        if reached is not None:
            self.frontier_ms = reached

    async def _fetch(self) -> Window:
        raise NotImplementedError


class OldestFirst(WindowReader):
    backwards = False

    async def _fetch(self) -> Window:
        at, end = self._bounds.start, self._bounds.end
        while at < end:
            try:
                async for fetched in self._fetcher.read(at, at + 1):
                    self._bounds = self._bounds._replace(start=min(end, fetched.next_offset))
                    bounds = self._bounds._replace(start=at)
                    return Window([_answer(fetched)], bounds, end - self._bounds.start)
            except OffsetOutOfRange as gone:
                if gone.log_start_offset <= at:
                    raise
                at = gone.log_start_offset  # retention was faster
                continue
            break  # nothing is left: compaction took the last offsets
        self._bounds = self._bounds._replace(start=end)
        return Window([], self._bounds, 0)


class NewestFirst(WindowReader):
    """Windows are counted in offsets, backwards from the end, as large as their bytes turn out to be."""

    backwards = True

    def __init__(self, fetcher: Fetches, bounds: Bounds, *, reads_ahead: bool) -> None:
        super().__init__(fetcher, bounds, reads_ahead=reads_ahead)
        self._records = FIRST_WINDOW_RECORDS

    async def _fetch(self) -> Window:
        lowest, end = self._bounds.start, self._bounds.end
        start = max(lowest, end - self._records)
        answers: list[Answer] = []
        try:
            answers = [_answer(fetched) async for fetched in self._fetcher.read(start, end)]
        except OffsetOutOfRange as gone:
            if gone.log_start_offset <= start:
                raise
            lowest = start = min(gone.log_start_offset, end)  # retention was faster
            if start < end:
                answers = [_answer(fetched) async for fetched in self._fetcher.read(start, end)]
        start = max(lowest, min(start, _first_offset(answers, start)))  # the first batch is here as a whole: all of it
        self._records = next_window_records(self._records, end - start, _bytes_below(answers, end))
        self._bounds = self._bounds._replace(start=lowest, end=start)
        return Window(answers, self._bounds._replace(start=start, end=end), start - lowest)


def next_window_records(records: int, offsets: int, size: int) -> int:
    """As many as fill a window by what the last one held, without growing too fast on little evidence."""
    most = records * WINDOW_GROWTH
    if not size:
        return most
    return max(1, min(most, int(WINDOW_BYTES_MAX * 0.9 * offsets / size)))


def _answer(fetched: Fetched) -> Answer:
    return Answer(fetched.records, fetched.aborted)


def _first_offset(answers: Sequence[Answer], otherwise: int) -> int:
    if not answers or len(answers[0].records) < BATCH_OVERHEAD:
        return otherwise
    return read_header(answers[0].records).base_offset


def _bytes_below(answers: Sequence[Answer], end: int) -> int:
    """The last answer may go on behind the window."""
    if not answers:
        return 0
    last = sum(header.size for _, header in iterate_batches(answers[-1].records) if header.base_offset < end)
    return last + sum(len(answer.records) for answer in answers[:-1])


class Waiting:
    """Matches that may not be given yet, because a partition may still have one that comes before them."""

    def __init__(self, *, newest_first: bool) -> None:
        self._sign = -1 if newest_first else 1
        self._heap: list[tuple[int, int, int, Found]] = []
        self._bytes = 0

    def rank(self, frontier_ms: int | None) -> float:
        """Who is to be read next comes first: nobody may pass who is behind."""
        return -math.inf if frontier_ms is None else self._sign * frontier_ms

    def add(self, found: Sequence[Found]) -> None:
        for each in found:
            entry = (self._sign * each.timestamp_ms, self._sign * each.offset, each.partition, each)
            heapq.heappush(self._heap, entry)
            self._bytes += size_of(each)

    def take(self, frontiers: Sequence[int | None]) -> list[Found]:
        """Those that no partition can come before any more, in order."""
        allowed = min(map(self.rank, frontiers), default=math.inf)
        found = []
        while self._heap and (self._heap[0][0] <= allowed or self._bytes > PENDING_BYTES_MAX):
            each = heapq.heappop(self._heap)[3]
            self._bytes -= size_of(each)
            found.append(each)
        return found


def size_of(found: Found) -> int:
    return 200 + len(found.key or b"") + len(found.value or b"")
