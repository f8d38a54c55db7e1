"""A partition read a window at a time, forwards or backwards, and matches of several partitions put in order."""

import asyncio
import heapq
import math
from collections.abc import AsyncIterator, Callable, Sequence
from typing import ClassVar, NamedTuple, Protocol

from ottla.client.fetch import Fetched, OffsetOutOfRange
from ottla.console.search.batches import Answer, Bounds, Found, Searched
from ottla.protocol.records import BATCH_OVERHEAD, iterate_batches, read_header

FETCH_SIZES = tuple(64 * 1024 * 2**power for power in range(6))
"""What a fetch may ask for, up to 2 MB: as much as holds the records of a window."""
WINDOW_RECORDS = 20_000
"""Searching so many takes a tenth of a second at worst: so often there is something to tell, or time to stop."""
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

    def read(self, start: int, end: int) -> AsyncIterator[Fetched]: ...


class WindowReader:
    """Reads one partition. `frontier_ms` is the time that the search has come to; None before the first window."""

    backwards: ClassVar[bool]

    def __init__(
        self, partition: int, fetcher_of: Callable[[int], Fetches], bounds: Bounds, *, reads_ahead: bool
    ) -> None:
        """`fetcher_of` makes who fetches so many bytes at a time."""
        self.partition = partition
        self.frontier_ms: int | None = None
        self.left = bounds.end - bounds.start
        """Offsets that are not handed out yet."""
        self._bounds = bounds
        self._reads_ahead = reads_ahead
        self._ahead: asyncio.Task[Window] | None = None
        self._fetcher_of = fetcher_of
        self._fetchers: dict[int, Fetches] = {}
        self._size = FETCH_SIZES[1]

    @property
    def _fetcher(self) -> Fetches:
        found = self._fetchers.get(self._size)
        if found is None:
            found = self._fetchers[self._size] = self._fetcher_of(self._size)
        return found

    def _learn(self, records: int, size: int) -> None:
        """So many records took so many bytes: the next fetch asks for those of a window."""
        if records and size:
            wanted = WINDOW_RECORDS * size / records
            self._size = next((each for each in FETCH_SIZES if each >= wanted), FETCH_SIZES[-1])

    async def next_window(self) -> Window:
        window = await (self._ahead or self._fetch())
        self._ahead = None
        self.left = window.left
        if self._reads_ahead and window.left:
            self._ahead = asyncio.create_task(self._fetch(), name=f"window of partition {self.partition}")
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
                    self._learn(_records_in(fetched), len(fetched.records))
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

    def __init__(
        self, partition: int, fetcher_of: Callable[[int], Fetches], bounds: Bounds, *, reads_ahead: bool
    ) -> None:
        super().__init__(partition, fetcher_of, bounds, reads_ahead=reads_ahead)
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
        size = _bytes_below(answers, end)
        self._learn(end - start, size)
        self._records = next_window_records(self._records, end - start, size, self._size)
        self._bounds = self._bounds._replace(start=lowest, end=start)
        return Window(answers, self._bounds._replace(start=start, end=end), start - lowest)


def next_window_records(records: int, offsets: int, size: int, fetch_size: int) -> int:
    """As many as fill a fetch by what the last window held, without growing too fast on little evidence."""
    most = records * WINDOW_GROWTH
    if not size:
        return most
    return max(1, min(most, int(fetch_size * 0.9 * offsets / size)))


def _records_in(fetched: Fetched) -> int:
    return sum(max(0, header.record_count) for _, header in iterate_batches(fetched.records))


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
