"""What every coordinator does with its topic: reads the partitions that this broker leads, appends, waits for commits.

Appends are made at once, in the order of the requests; what they change is visible from then on, and answers go out
when the append is committed. Where it is committed at once (one replica) nothing here waits.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from functools import lru_cache
from typing import Any, Generic, TypeVar

from ottla.broker.coordination.counts import CoordinatorCounts
from ottla.broker.coordination.effects import Now
from ottla.broker.coordination.log import CoordinatorLog
from ottla.broker.coordination.machine_shard import MachineShard
from ottla.broker.coordination.scheduler import LoopScheduler, Scheduler
from ottla.config.broker import BrokerSettings
from ottla.model.clock import Clock
from ottla.model.errors import ApiError, ErrorCode, OttlaError
from ottla.protocol.records import Codec

logger = logging.getLogger(__name__)

T = TypeVar("T")
S = TypeVar("S", bound=MachineShard[Any])
L = TypeVar("L")

APPEND_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""What a client of the coordinator is told when the coordinator's own log refuses."""


RELOAD_SECONDS = 0.2
FAILED_RELOAD_SECONDS = 5.0


@lru_cache(maxsize=65_536)
def partition_for(name: str, partition_count: int) -> int:
    """Java's hash of the id of a group or a transaction, made positive as Kafka does: the smallest integer is zero."""
    value = 0
    encoded = name.encode("utf-16-be", "surrogatepass")
    for high, low in zip(encoded[::2], encoded[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    signed = value - 0x1_0000_0000 if value >= 0x8000_0000 else value
    return 0 if signed == -0x8000_0000 else abs(signed) % partition_count


class Coordinator(Generic[S, L]):
    """S is the kind of shard, L what reading a partition's log gives. A subclass says how to make them."""

    def __init__(
        self,
        log: CoordinatorLog,
        settings: Callable[[], BrokerSettings],
        clock: Clock,
        scheduler: Scheduler | None = None,
    ) -> None:
        self._log = log
        self._clock = clock
        self._settings = settings
        self._scheduler = scheduler or LoopScheduler(clock)
        self._shards: dict[int, S] = {}
        self._is_active = False
        self.counts = CoordinatorCounts()
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._last_ticket = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._loader: asyncio.Task[None] | None = None
        self._installing: set[asyncio.Task[None]] = set()

    # What a subclass gives

    def _new_shard(self, partition: int, epoch: int) -> S:
        raise NotImplementedError

    def _read(self, chunks: Iterator[bytes | memoryview]) -> L:
        """What the log says. Runs in a thread."""
        raise NotImplementedError

    def _install(self, shard: S, loaded: L) -> None:
        """The log was read: begin to answer."""
        raise NotImplementedError

    def _removed(self, machine: Any) -> None:
        """This broker does not answer for the machine of a shard any more; whoever waits for it is to be told."""

    def _codec(self) -> Codec:
        return Codec.NONE

    def _commit_timeout_ms(self) -> int:
        raise NotImplementedError

    # Life

    def start(self) -> None:
        """Begin to read the partitions that this broker leads."""
        self._is_active = True
        self.refresh()

    def refresh(self) -> None:
        """Take up partitions that this broker leads now, and drop those it does not. Call it when that changes.

        A partition that it leads in another epoch than before was others' in between: it is read again.
        """
        if not self._is_active:
            return
        led = self._log.led_partitions()
        for partition, shard in list(self._shards.items()):
            if led.get(partition) != shard.epoch:
                del self._shards[partition]
                self._unload(shard)
        for partition in sorted(led.keys() - self._shards.keys()):
            shard = self._shards[partition] = self._new_shard(partition, led[partition])
            if self._is_empty(partition):
                shard.is_to_read = False
                self._install(shard, self._read(iter(())))
        if self._loader is None and any(shard.is_to_read for shard in self._shards.values()):
            self._loader = self._spawn(self._load_all())

    def _is_empty(self, partition: int) -> bool:
        try:
            return self._log.start_offset(partition) == self._log.end_offset(partition)
        except ApiError:
            return False  # reading it meets the same error

    async def wait_loaded(self) -> None:
        while waiting := self._installing | ({self._loader} if self._loader is not None else set()):
            await asyncio.wait(waiting)

    def shutdown(self) -> None:
        """Answer whoever waits, and stop. What was acknowledged is in the log."""
        self._is_active = False
        for task in list(self._tasks):
            task.cancel()
        self._unload_all()
        self._fail(list(self._waiting), ErrorCode.NOT_COORDINATOR)

    @property
    def waiting(self) -> int:
        """How many requests wait for an answer."""
        return len(self._waiting)

    def machines(self) -> list[Any]:
        """Those that this broker answers with."""
        return [shard.machine for shard in self._shards.values() if shard.machine is not None]

    # Shards

    def _shard_of(self, name: str) -> S:
        """The shard that answers for this name."""
        if not self._is_active:
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        count = self._log.partition_count()
        shard = self._shards.get(partition_for(name, count)) if count else None
        if shard is None and count:
            self.refresh()  # the topic may be new
            shard = self._shards.get(partition_for(name, count))
        if shard is None or shard.failed:
            raise ApiError(ErrorCode.NOT_COORDINATOR)
        self._check_led(shard)
        if shard.machine is None:
            raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return shard

    def _check_led(self, shard: S) -> None:
        """Whoever reads may not be told what another broker may have changed."""
        try:
            self._log.check_led(shard.partition, shard.epoch)
        except ApiError as error:
            raise ApiError(ErrorCode.NOT_COORDINATOR, error.message) from error

    def _is_current(self, shard: S) -> bool:
        return self._shards.get(shard.partition) is shard

    async def _load_all(self) -> None:
        """One partition after the other, each in a thread, so that the loop keeps serving what is there."""
        try:
            while shard := next((shard for shard in self._shards.values() if shard.is_to_read), None):
                shard.is_to_read = False
                await self._load(shard)
        finally:
            self._loader = None

    async def _load(self, shard: S) -> None:
        """Read to the log's end: it may end in what the last leader acknowledged and this one does not know yet to be
        committed. It is answered for once it is."""
        began = self._now().steady
        try:
            end = self._log.end_offset(shard.partition)
            chunks = self._log.read(shard.partition, end)
            loaded = await asyncio.to_thread(self._read, chunks)
            if not self._is_current(shard):
                return
            committed = self._log.when_committed(shard.partition, end, shard.epoch)
            self.counts.loaded(self._now().steady - began)
        except (OttlaError, OSError) as error:
            logger.warning(
                "%s-%d: Loading the coordinator's state failed, trying again: %s", shard.TOPIC, shard.partition, error
            )
            shard.failed = True
            self._spawn(self._reload_later(shard, FAILED_RELOAD_SECONDS))
            return
        if committed is None:
            self._install(shard, loaded)
            return
        task = self._spawn(self._install_when(shard, loaded, committed))
        self._installing.add(task)
        task.add_done_callback(self._installing.discard)

    async def _install_when(self, shard: S, loaded: L, committed: Awaitable[None]) -> None:
        try:
            await committed
        except (ApiError, OSError) as error:
            logger.info("%s-%d: Loading the coordinator's state again: %s", shard.TOPIC, shard.partition, error)
            await self._reload_later(shard, RELOAD_SECONDS)
            return
        if self._is_current(shard):
            self._install(shard, loaded)

    def _unload(self, shard: S) -> None:
        shard.is_to_read = False
        for handle in shard.timers.values():
            handle.cancel()
        shard.timers.clear()
        machine, shard.machine = shard.machine, None
        if machine is not None:
            self._removed(machine)
        self._fail(shard.unanswered, ErrorCode.NOT_COORDINATOR)
        shard.unanswered.clear()

    def _unload_all(self) -> None:
        shards = list(self._shards.values())
        self._shards.clear()
        for shard in shards:
            self._unload(shard)

    def _reload(self, shard: S) -> None:
        if self._is_current(shard):
            del self._shards[shard.partition]
            self._unload(shard)
            self.refresh()

    async def _reload_later(self, shard: S, seconds: float) -> None:
        await asyncio.sleep(seconds)
        self._reload(shard)

    # Writing

    def _written(self, shard: S, write: Callable[[], Awaitable[None] | None]) -> None:
        """Write, and follow up the commit."""
        if not self._is_current(shard):
            raise ApiError(ErrorCode.NOT_COORDINATOR)
        try:
            committed = write()
        except ApiError as error:
            raise ApiError(APPEND_ERRORS.get(error.code, error.code), error.message) from error
        if committed is not None:
            shard.last_commit = self._follow(shard, committed)
        self._start_snapshot_if_due(shard)

    def _follow(self, shard: S, committed: Awaitable[None]) -> asyncio.Future[None]:
        """A future for a commit that is under way. If the log loses what we replayed, the shard is read again."""
        future = asyncio.ensure_future(committed)
        if isinstance(future, asyncio.Task):
            self._keep(future)

        def check(done: asyncio.Future[None]) -> None:
            if shard.last_commit is done:
                shard.last_commit = None
            if done.cancelled() or done.exception() is not None:
                self._reload(shard)

        future.add_done_callback(check)
        return future

    def _when_committed(self, shard: S, result: T) -> T | asyncio.Future[T]:
        """The result, once everything that was appended before is committed."""
        if shard.last_commit is None:
            return result
        ticket, answer = self._ticket()
        self._after_commit(shard, [ticket], lambda: self._answer(ticket, result))
        return answer

    def _after_commit(self, shard: S, tickets: list[int], action: Callable[[], object]) -> None:
        future = shard.last_commit
        assert future is not None
        shard.unanswered.update(tickets)
        deadline = self._now().steady + self._commit_timeout_ms()
        timeout = self._scheduler.call_at(
            deadline, lambda: self._fail(tickets, APPEND_ERRORS[ErrorCode.REQUEST_TIMED_OUT])
        )

        def finish(done: asyncio.Future[None]) -> None:
            timeout.cancel()
            shard.unanswered.difference_update(tickets)
            if not self._is_current(shard) or done.cancelled():
                self._fail(tickets, ErrorCode.NOT_COORDINATOR)
            elif (error := done.exception()) is not None:
                code = error.code if isinstance(error, ApiError) else ErrorCode.UNKNOWN_SERVER_ERROR
                self._fail(tickets, APPEND_ERRORS.get(code, code))
            else:
                action()

        future.add_done_callback(finish)

    # Answers

    def _ticket(self) -> tuple[int, asyncio.Future[Any]]:
        self._last_ticket += 1
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[self._last_ticket] = answer
        return self._last_ticket, answer

    def _answer(self, ticket: int, result: object) -> None:
        answer = self._waiting.pop(ticket, None)
        if answer is not None and not answer.done():
            answer.set_result(result)

    def _fail(self, tickets: Iterable[int], code: ErrorCode) -> None:
        for ticket in tickets:
            answer = self._waiting.pop(ticket, None)
            if answer is not None and not answer.done():
                answer.set_exception(ApiError(code))

    # Snapshots, time, tasks

    def _start_snapshot_if_due(self, shard: S) -> None:
        if shard.is_snapshot_due():
            shard.snapshot_running = True
            self._spawn(self._snapshot(shard))

    async def _snapshot(self, shard: S) -> None:
        try:
            for committed in shard.snapshot(self._clock.now_ms(), self._codec()):
                if committed is not None:
                    await committed
                await asyncio.sleep(0)
                if not self._is_current(shard):
                    return
        except ApiError as error:
            logger.warning(
                "%s-%d: Snapshot of the coordinator's state failed, trying later: %s",
                shard.TOPIC,
                shard.partition,
                error,
            )
            shard.put_off_snapshot()
        finally:
            shard.snapshot_running = False

    def _now(self) -> Now:
        return Now(self._clock.monotonic() * 1000.0, self._clock.now_ms())

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._keep(task)
        return task

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
