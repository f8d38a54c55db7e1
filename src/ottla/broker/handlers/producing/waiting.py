"""Produces that are appended but not settled: they wait for the replicas, and for the disk where a topic asks for it.

A waiting produce holds up nothing: the connection's next requests go on, and nothing runs until the last of what it
waits for has happened, or its time is up.
"""

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from ottla.broker.handlers.context import Parked, Response
from ottla.broker.handlers.producing.packing import PartitionOutcome, failed
from ottla.broker.replication.partition import Partition
from ottla.broker.replication.waiters import CommitWait
from ottla.model.errors import ApiError, ErrorCode


class Unsettled(NamedTuple):
    """An append that may not be acknowledged yet, and where its outcome stands."""

    outcomes: list[PartitionOutcome]
    position: int
    partition: Partition
    offset: int


class Acknowledgement:
    """The answer to one produce request, given when every append of it is settled."""

    __slots__ = ("_expired", "_left", "_respond", "_timer", "_waits", "parked")

    def __init__(
        self, unsettled: list[Unsettled], *, replicated: bool, timeout_ms: int, respond: Callable[[], Response]
    ) -> None:
        self.parked = Parked(holds_connection=False)
        self.parked.abandon = self._abandon
        self._respond = respond
        self._waits: dict[int, tuple[Unsettled, CommitWait]] = {}
        self._left = len(unsettled)
        self._expired = False
        self._timer: asyncio.TimerHandle | None = None
        loop = asyncio.get_running_loop()
        for each in unsettled:
            if each.partition.flush_due:
                task = loop.create_task(self._flush(each, replicated=replicated))
                _running.add(task)
                task.add_done_callback(_running.discard)
            else:
                self._wait(each)
        if self._left:
            self._timer = loop.call_later(max(timeout_ms, 0) / 1000.0, self._expire)

    def _wait(self, each: Unsettled) -> None:
        def done(error: ApiError | None) -> None:
            self._waits.pop(key, None)
            self._settled(each, error)

        key = id(each)
        try:
            wait = each.partition.on_committed(each.offset, done)
        except ApiError as error:
            self._settled(each, error)
            return
        if wait is None:
            self._settled(each, None)
        elif self._expired:
            wait.cancel()
            self._settled(each, _timed_out())
        else:
            self._waits[key] = (each, wait)

    async def _flush(self, each: Unsettled, *, replicated: bool) -> None:
        try:
            await each.partition.flush_to(each.offset)
        except ApiError as error:
            self._settled(each, error)
            return
        if replicated:
            self._wait(each)
        else:
            self._settled(each, None)

    def _settled(self, each: Unsettled, error: ApiError | None) -> None:
        if error is not None:
            outcomes, position, _, _ = each
            outcomes[position] = failed(outcomes[position].partition, error)
        self._left -= 1
        if not self._left:
            if self._timer is not None:
                self._timer.cancel()
            self.parked.resolve(self._respond())

    def _expire(self) -> None:
        """Not every replica got it in time. It stays in the log; whether it will be committed is open."""
        self._expired = True
        waits, self._waits = self._waits, {}
        for each, wait in waits.values():
            wait.cancel()
            self._settled(each, _timed_out())

    def _abandon(self) -> None:
        """The client has gone."""
        if self._timer is not None:
            self._timer.cancel()
        for _, wait in self._waits.values():
            wait.cancel()
        self._waits.clear()


async def awaited(outcome: Response | Parked) -> Response:
    """For whoever had to wait for something else before it could append, and holds the connection anyway."""
    if not isinstance(outcome, Parked):
        return outcome
    done: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
    outcome.when_resolved(done.set_result)
    return await done


def _timed_out() -> ApiError:
    return ApiError(ErrorCode.REQUEST_TIMED_OUT, "the replicas did not get the records within the request's time")


_running: set["asyncio.Task[None]"] = set()
"""The loop holds tasks only weakly: without this one could vanish half-way."""
