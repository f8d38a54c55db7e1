"""Fetches that wait for data: told of every append to their partitions, and done when enough has come."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Protocol


class Watched(Protocol):
    """A partition, as far as a waiting fetch is concerned."""

    waiters: "set[FetchWait]"


class FetchWait:
    """One parked fetch. When `bytes_missing` have arrived `answer` looks again; at the deadline it must answer.

    `answer(at_deadline)` says how many bytes are still missing, and none once it has answered. What counts as arrived
    is what became readable: for `committed_only` nothing does while a transaction is open, and its end lets go all.
    """

    __slots__ = (
        "_answer", "_done", "_loop", "_partitions", "_scheduled", "_timer", "bytes_missing", "committed_only",
    )  # fmt: skip

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        partitions: Iterable[Watched],
        bytes_missing: int,
        wait_ms: int,
        answer: Callable[[bool], int],
        *,
        committed_only: bool = False,
    ) -> None:
        self._loop = loop
        self._answer = answer
        self.committed_only = committed_only
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
        for partition in self._partitions:
            partition.waiters.discard(self)
