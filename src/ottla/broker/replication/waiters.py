"""Fetches that wait for data: told of every append to their partitions, and done when enough has come."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Protocol


class Watched(Protocol):
    """A partition, as far as a waiting fetch is concerned."""

    waiters: "set[FetchWait]"


class FetchWait:
    """One parked fetch. `complete` runs once: when `bytes_missing` have arrived, or at the deadline."""

    __slots__ = ("_complete", "_done", "_loop", "_partitions", "_scheduled", "_timer", "bytes_missing")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        partitions: Iterable[Watched],
        bytes_missing: int,
        wait_ms: int,
        complete: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._complete = complete
        self._done = False
        self._scheduled = False
        self.bytes_missing = bytes_missing
        self._partitions = list(partitions)
        for partition in self._partitions:
            partition.waiters.add(self)
        self._timer = loop.call_later(wait_ms / 1000.0, self.finish)

    def arrived(self, size: int) -> None:
        """Some of the watched partitions' bytes became readable."""
        self.bytes_missing -= size
        if self.bytes_missing <= 0:
            self.finish_soon()

    def finish_soon(self) -> None:
        """Complete at the end of this loop step, so that one request's appends are answered together."""
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self.finish)

    def finish(self) -> None:
        if not self._done:
            self.cancel()
            self._complete()

    def cancel(self) -> None:
        """Wait no more, and tell nobody."""
        self._done = True
        self._timer.cancel()
        for partition in self._partitions:
            partition.waiters.discard(self)
