"""A live tail: what is written to a topic from now on, no more of it than people can read and brokers should send.

Ends of partitions are asked for a few times a second, one request to each broker for all of them. What is new beyond
the bytes that a look may cost is passed over, the newest is read; both are told.
"""

import asyncio
from collections.abc import AsyncGenerator
from typing import NamedTuple

from ottla.client.cluster import Cluster
from ottla.client.fetch import FetchSettings, OffsetOutOfRange, PartitionFetcher
from ottla.client.offsets import LATEST, FoundOffset, list_offsets
from ottla.console.search.batches import Answer, Bounds, Found, Search
from ottla.console.search.decoding import Decoder
from ottla.console.search.query import Query
from ottla.console.search.ranges import chosen_partitions
from ottla.console.search.scanning import threads
from ottla.model.names import TopicPartition

LOOK_SECONDS = 0.5
RECORDS_A_SECOND = 50
LOOK_BYTES_MAX = 2 * 1024 * 1024
RECORDS_A_LOOK_MAX = 20_000
"""Of one partition: what is behind is passed over."""
WAIT_MS_MAX = 50


class Look(NamedTuple):
    """What a look at the ends gave."""

    found: list[Found]
    seen: int
    """Offsets that are new since the look before."""
    skipped: int
    """Of these, how many were not looked at: more is written than the tail may read."""
    matched: int
    """Of those that were looked at; `found` has the newest of them, as many as the rate allows."""


class Tail:
    """Iterate over `looks()`, which goes on until `stop` or until the iterator is closed."""

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        query: Query,
        decoder: Decoder | None = None,
        *,
        records_a_second: float = RECORDS_A_SECOND,
        committed: bool = True,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        self.topic = topic
        self.seen = self.skipped = self.matched = self.given = 0
        self._cluster, self._query, self._committed = cluster, query, committed
        self._matcher = (decoder or Decoder()).matcher(query)
        self._look_seconds = look_seconds
        self._keep = max(1, round(records_a_second * look_seconds))
        self._stop = asyncio.Event()
        self._fetchers: dict[int, PartitionFetcher] = {}

    def stop(self) -> None:
        self._stop.set()

    async def looks(self) -> AsyncGenerator[Look, None]:
        """The first one comes at once and is empty: from then on nothing is missed but what is told as skipped."""
        chosen = await chosen_partitions(self._cluster, self.topic, self._query)
        positions = await self._ends(chosen)
        yield Look([], 0, 0, 0)
        while not await self._stopped_within(self._look_seconds):
            ends = await self._ends(list(positions))
            look = await self._look({number: (positions[number], end) for number, end in ends.items()})
            positions |= ends
            self.seen += look.seen
            self.skipped += look.skipped
            self.matched += look.matched
            self.given += len(look.found)
            yield look

    async def _stopped_within(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._stop.wait(), seconds)
        except TimeoutError:
            return False
        return True

    async def _ends(self, numbers: list[int]) -> dict[int, int]:
        """Of partitions that have a leader now: the others are asked again the next time."""
        wanted = {TopicPartition(self.topic, number): LATEST for number in numbers}
        answers = await list_offsets(self._cluster, wanted, committed=self._committed)
        return {
            partition.partition: answer.offset or 0
            for partition, answer in answers.items()
            if isinstance(answer, FoundOffset)
        }

    async def _look(self, ranges: dict[int, tuple[int, int]]) -> Look:
        moved = {number: span for number, span in ranges.items() if span[0] < span[1]}
        seen = sum(end - start for start, end in moved.values())
        found: list[Found] = []
        looked_at = matched = 0
        budget = LOOK_BYTES_MAX
        for number, (start, end) in sorted(moved.items(), key=lambda each: each[1][1] - each[1][0]):
            if budget <= 0:
                break
            bounds = Bounds(max(start, end - RECORDS_A_LOOK_MAX), end)
            answer = await self._read(number, bounds)
            if answer is None:
                continue
            budget -= len(answer.records)
            search = Search(number, self._matcher, bounds, keep=self._keep, keep_last=True)
            searched = await asyncio.get_running_loop().run_in_executor(threads, search.go, [answer], self._committed)
            found += searched.found
            looked_at += searched.scanned
            matched += searched.matched
        found.sort(key=lambda each: (each.timestamp_ms, each.partition, each.offset))
        return Look(found[-self._keep :], seen, max(0, seen - looked_at), matched)

    async def _read(self, number: int, bounds: Bounds) -> Answer | None:
        """One answer; a tail does not go after what is left behind it."""
        fetcher = self._fetchers.get(number)
        if fetcher is None:
            settings = FetchSettings(
                committed=self._committed,
                max_bytes=LOOK_BYTES_MAX,
                partition_max_bytes=LOOK_BYTES_MAX,
                max_wait_ms=WAIT_MS_MAX,
            )
            partition = TopicPartition(self.topic, number)
            fetcher = self._fetchers[number] = PartitionFetcher(self._cluster, partition, settings)
        try:
            fetched = await fetcher.fetch(bounds.start)
        except OffsetOutOfRange:
            return None  # retention, or records that were deleted: the next look starts at the end
        return Answer(fetched.records, fetched.aborted)
