"""Replicas on their way from one log directory of this broker to another, while they serve.

The work is done in `storage/copies.py`; here is who asks for it, how many run at a time and how fast. A move that the
broker's end interrupts is taken up again at the next start.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import TypeVar

from ottla.broker.quotas.rates import ByteQuota
from ottla.broker.storage.copies import CHUNK_BYTES, LogCopy, future_name
from ottla.broker.storage.log import Log
from ottla.broker.storage.manager import LogManager
from ottla.config.broker import BrokerSettings
from ottla.model.clock import Clock
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import TopicPartition

logger = logging.getLogger(__name__)

T = TypeVar("T")

CHUNKS_AT_A_TIME = 8
"""In one visit to a worker thread, when nothing limits the speed."""
LAST_CHUNKS_MAX = 2
"""So much is copied on the event loop's thread in the end, so that nothing is appended meanwhile."""
WAIT_SECONDS_MAX = 1.0


class ReplicaMoves:
    def __init__(
        self,
        logs: LogManager,
        settings: Callable[[], BrokerSettings],
        clock: Clock,
        on_moved: Callable[[Log], None],
    ) -> None:
        self._logs = logs
        self._settings = settings
        self._clock = clock
        self._on_moved = on_moved
        static = settings()
        self._places = asyncio.Semaphore(static.num_replica_alter_log_dirs_threads or len(static.data_dirs))
        self._quota = ByteQuota(
            lambda: settings().replica_alter_log_dirs_io_max_bytes_per_second,
            static.alter_log_dirs_replication_quota_window_num,
            static.alter_log_dirs_replication_quota_window_size_seconds,
        )
        self._tasks: dict[TopicPartition, asyncio.Task[None]] = {}

    # -- asking

    def request(self, tp: TopicPartition, path: str, *, assigned: bool) -> None:
        """Move a replica to the log directory at `path`, or say in an ApiError why not.

        `assigned` tells whether the cluster has given this partition to this broker. One that is not here yet is
        told as REPLICA_NOT_AVAILABLE, and will be created there when it comes.
        """
        future_name(tp)
        target = self._logs.directory_at(path)
        if target is None:
            raise ApiError(ErrorCode.LOG_DIR_NOT_FOUND, f"{path} is not one of the log directories of this broker")
        if target.failure is not None:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, target.failure)
        under_way = self._logs.moves.get(tp)
        if under_way is not None and under_way.target is not target:
            self._cancel(tp)
        source, offline = self._logs.get(tp), [place.failure for place in self._logs.dirs if place.failure is not None]
        if source is None:
            if assigned and offline:
                raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, offline[0])
            self._logs.prefer(tp, target)
            raise ApiError(ErrorCode.REPLICA_NOT_AVAILABLE, f"{tp} is not on this broker")
        if source.failure is not None:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, source.failure)
        if self._logs.directory_of(tp) is target or tp in self._logs.moves:
            return
        if offline:  # it may hold a copy of this very partition
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, offline[0])
        self._start(tp, self._logs.begin_move(tp, target))

    def resume(self) -> None:
        """Go on with what the last run began."""
        for tp, move in self._logs.moves.items():
            self._start(tp, move)
        for tp, target in self._logs.interrupted_moves:
            if self._logs.get(tp) is None or target.failure is not None:
                continue
            try:
                self._start(tp, self._logs.begin_move(tp, target))
            except ApiError as error:
                logger.warning("%s: Cannot resume moving the replica to log directory %s: %s", tp, target.path, error)
        self._logs.interrupted_moves.clear()

    async def stop(self) -> None:
        """Leave every move as it is; the next start goes on with it."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        self._tasks.clear()

    def _cancel(self, tp: TopicPartition) -> None:
        self._logs.end_move(tp)
        task = self._tasks.get(tp)
        if task is not None:
            task.cancel()

    # -- doing

    def _start(self, tp: TopicPartition, move: LogCopy) -> None:
        before = self._tasks.get(tp)
        task = asyncio.create_task(self._run_after(before, move), name=f"move {tp}")
        self._tasks[tp] = task

        def forget(done: asyncio.Task[None]) -> None:
            if self._tasks.get(tp) is done:
                del self._tasks[tp]

        task.add_done_callback(forget)

    async def _run_after(self, before: "asyncio.Task[None] | None", move: LogCopy) -> None:
        if before is not None:
            await asyncio.wait([before])
        tp = move.source.tp
        logger.info("%s: Moving the replica from log directory %s to %s", tp, move.home.path, move.target.path)
        try:
            async with self._places:
                if await self._copy_all(move):
                    await _finish(self._conclude(move))
                    logger.info(
                        "%s: The future replica in log directory %s is the current one now", tp, move.target.path
                    )
        except (ApiError, OSError) as error:
            logger.warning("%s: Moving the replica to log directory %s failed: %s", tp, move.target.path, error)
            if self._logs.moves.get(tp) is move:
                self._logs.end_move(tp)

    async def _copy_all(self, move: LogCopy) -> bool:
        """True once the copy has taken the log's place, False when the move was given up."""
        await in_thread(lambda: _let_cleaning_end(move.source))
        flushed = False
        while self._still_wanted(move):
            await self._wait_for_quota()
            move.take_note()
            try:
                count = await in_thread(lambda: self._advance(move))
            except ApiError:
                if move.source.cut_to is not None and self._still_wanted(move):
                    continue  # the log was cut under the copying
                raise
            self._quota.note(count, self._clock.monotonic())
            if not self._still_wanted(move):
                return False
            if count >= self._visit_bytes():
                flushed = False
            elif not flushed:
                await in_thread(move.flush)
                await in_thread(lambda: move.target.write_checkpoints(self._logs.high_watermark))
                flushed = True
            elif self._take_over(move):
                return True
        return False

    def _still_wanted(self, move: LogCopy) -> bool:
        if self._logs.moves.get(move.source.tp) is not move:
            return False
        failure = move.source.failure or move.copy.failure
        if failure is not None:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, failure)
        return True

    async def _wait_for_quota(self) -> None:
        while (wait := self._quota.seconds_to_wait(self._clock.monotonic())) > 0:  # noqa: ASYNC110 (no event tells)
            await asyncio.sleep(min(wait, WAIT_SECONDS_MAX))

    def _advance(self, move: LogCopy) -> int:
        visit_bytes = self._visit_bytes()
        copied = 0
        while True:
            count = move.advance(self._clock.now_ms(), min(CHUNK_BYTES, visit_bytes))
            copied += count
            if not count or copied >= visit_bytes:
                return copied

    def _visit_bytes(self) -> int:
        limit = self._settings().replica_alter_log_dirs_io_max_bytes_per_second
        return max(1, min(CHUNKS_AT_A_TIME * CHUNK_BYTES, limit))

    def _take_over(self, move: LogCopy) -> bool:
        """On the loop's thread: copy the last records and swap, unless there are too many of them."""
        for _ in range(LAST_CHUNKS_MAX):
            move.take_note()
            self._quota.note(move.advance(self._clock.now_ms()), self._clock.monotonic())
            if move.is_complete:
                self._on_moved(self._logs.finish_move(move.source.tp))
                return True
        return False

    async def _conclude(self, move: LogCopy) -> None:
        """The copy serves; make it last and let the old directory go, whatever becomes of this task."""
        await in_thread(move.make_durable)
        self._logs.retire_old_directory(move.source.tp)
        await in_thread(move.forget_mark)


def _let_cleaning_end(source: Log) -> None:
    """Wait for a cleaning that is swapping segments right now; from here on none does."""
    with source.maintenance:
        pass


async def in_thread(work: Callable[[], T]) -> T:
    """Run in a worker to the end, even if the caller is cancelled meanwhile: the disk must not be left half-way."""
    return await _finish(asyncio.to_thread(work))


async def _finish(work: Coroutine[None, None, T]) -> T:
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise
