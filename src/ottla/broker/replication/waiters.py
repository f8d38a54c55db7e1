"""Who waits for a partition: fetches for records, produces for the replicas.

A fetch watches partitions; each watch is told how many bytes became readable. A produce waits for an offset to be
committed.
"""

import asyncio
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Protocol

from ottla.model.errors import ApiError


class Watch(Protocol):
    """One partition as one fetch, or one session of fetches, looks at it."""

    @property
    def committed_only(self) -> bool:
        """Nothing is readable for it while a transaction is open, and the transaction's end lets go all."""

    def arrived(self, size: int) -> None:
        """So many bytes became readable. None at all: something changed that is worth telling, but not worth waking."""

    def changed(self) -> None:
        """The partition is not what it was: look again now."""


class FetchWait:
    """One parked fetch. When `bytes_missing` have arrived `answer` looks again; at the deadline it must answer.

    `answer(at_deadline)` says how many bytes are still missing, and none once it has answered.
    """

    __slots__ = ("_answer", "_done", "_loop", "_scheduled", "_timer", "bytes_missing")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, bytes_missing: int, wait_ms: int, answer: Callable[[bool], int]
    ) -> None:
        self._loop = loop
        self._answer = answer
        self._done = False
        self._scheduled = False
        self.bytes_missing = bytes_missing
        self._timer = loop.call_later(wait_ms / 1000.0, self.finish)

    def arrived(self, size: int) -> None:
        """Some of the watched partitions' bytes became readable."""
        self.bytes_missing -= size
        if self.bytes_missing <= 0:
            self.finish_soon()

    def finish_soon(self) -> None:
        """Answer at the end of this loop step, so that one request's appends are answered together."""
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._look_again)

    def _look_again(self) -> None:
        if self._done:
            return
        self._scheduled = False
        self.bytes_missing = self._answer(False)
        if self.bytes_missing <= 0:
            self.cancel()

    def finish(self) -> None:
        if not self._done:
            self.cancel()
            self._answer(True)

    def cancel(self) -> None:
        """Wait no more, and tell nobody."""
        self._done = True
        self._timer.cancel()


class CommitWait:
    """Someone waits until everything before `offset` is committed; `done` is told once, with the error if any."""

    __slots__ = ("done", "offset")

    def __init__(self, offset: int, done: Callable[[ApiError | None], None]) -> None:
        self.offset = offset
        self.done: Callable[[ApiError | None], None] | None = done

    def cancel(self) -> None:
        self.done = None

    def finish(self, error: ApiError | None) -> None:
        done, self.done = self.done, None
        if done is not None:
            done(error)


class CommitWaits:
    """Those who wait on one partition, by offset."""

    __slots__ = ("_heap", "_number")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, CommitWait]] = []
        self._number = 0

    def __bool__(self) -> bool:
        return bool(self._heap)

    def __len__(self) -> int:
        return sum(wait.done is not None for _, _, wait in self._heap)

    def add(self, offset: int, done: Callable[[ApiError | None], None]) -> CommitWait:
        wait = CommitWait(offset, done)
        self._number += 1  # those with one offset are answered in the order in which they came
        heappush(self._heap, (offset, self._number, wait))
        return wait

    def reached(self, high_watermark: int) -> None:
        """Answer everyone whose offset is committed."""
        heap = self._heap
        while heap and heap[0][0] <= high_watermark:
            heappop(heap)[2].finish(None)

    def fail(self, error: ApiError) -> None:
        """Answer everyone: what they wait for is not going to happen here."""
        waits, self._heap = sorted(self._heap, key=lambda entry: entry[:2]), []
        for _, _, wait in waits:
            wait.finish(error)
