"""The transaction coordinator on logs in memory: what is durable when, crashes, markers, time."""

import asyncio
import itertools
from collections.abc import Awaitable
from typing import Any

import msgspec
import pytest

from ottla.broker.coordination import machine_shard
from ottla.broker.coordination.markers import Marker
from ottla.broker.coordination.transaction_runtime import TransactionCoordinator
from ottla.broker.coordination.transactions.events import EPOCH_MAX, End, Init, Step, TransactionalWrite
from ottla.broker.coordination.transactions.loading import LoadedTransactions
from ottla.config.broker import BrokerSettings
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import TopicPartition
from ottla.protocol.records import NewRecord, encode_batch
from ottla.protocol.transaction_records import TransactionState, TransactionValue, encode_transaction_key
from ottla.testing.clock import ManualClock

from .coordinator_world import ManualScheduler, run, turns
from .memory_log import MemoryCoordinatorLog

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
NONE = ErrorCode.NONE
LIMIT = 20_000


class MarkersInMemory:
    """Partitions that note their markers. `refusing` ones raise, `gate` makes all of them wait."""

    def __init__(self, log: MemoryCoordinatorLog) -> None:
        self.written: list[tuple[TopicPartition, Marker]] = []
        self.refusing: set[TopicPartition] = set()
        self.gate: asyncio.Future[None] | None = None
        self.states_when_written: list[TransactionState] = []
        self._log = log

    def write(self, marker: Marker, partition: TopicPartition) -> Awaitable[None] | None:
        if partition in self.refusing:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR)
        known = LoadedTransactions(self._log.read(0)).machine.transactions.values()
        self.states_when_written += [value.state for value in known if value.producer_id == marker.producer_id]
        self.written.append((partition, marker))
        return self.gate


class World:
    def __init__(self, log: MemoryCoordinatorLog | None = None, first_id: int = 100, **settings: Any) -> None:
        self.log = log or MemoryCoordinatorLog(1)
        self.log.epochs = [7]
        self.clock = ManualClock()
        self.scheduler = ManualScheduler(self.clock)
        self.markers = MarkersInMemory(self.log)
        self.settings = BrokerSettings(**settings)
        self._ids = itertools.count(first_id)
        self.coordinator = TransactionCoordinator(
            self.log, lambda: self.settings, self.clock, self.markers, self._allocate, self.scheduler
        )
        self.coordinator.start()

    async def _allocate(self) -> int:
        await asyncio.sleep(0)
        return next(self._ids)

    async def init(self, name: str = "x", producer_id: int = -1, epoch: int = -1, timeout_ms: int = 60_000) -> Step:
        return await self.coordinator.init(Init(name, timeout_ms, producer_id, epoch))

    async def add(self, step: Step, *partitions: TopicPartition, name: str = "x") -> set[ErrorCode]:
        write = TransactionalWrite(name, step.producer_id, step.producer_epoch, partitions or (T0,), add=True)
        answer = self.coordinator.ensure_partitions(write)
        return set((answer if isinstance(answer, dict) else await answer).values())

    async def end(self, step: Step, *, commit: bool = True, version: int = 2, name: str = "x") -> Step:
        return await self.coordinator.end(End(name, step.producer_id, step.producer_epoch, commit, version))

    def value(self, name: str = "x") -> TransactionValue:
        value = self.coordinator.describe(name)
        assert value is not None
        return value

    async def restarted(self) -> "World":
        """What comes up after the process was killed."""
        twin = World(self.log.copy(), 200)
        await twin.coordinator.wait_loaded()
        return twin


async def finished(world: World, state: TransactionState) -> None:
    """Wait for the markers that are written by and by."""
    await asyncio.gather(*world.coordinator._tasks)
    assert world.value().state is state


def test_a_transaction_from_beginning_to_end() -> None:
    async def scenario() -> None:
        world = World()
        step = await world.init()
        assert (step.error, step.producer_id, step.producer_epoch) == (NONE, 100, 0)
        assert await world.add(step, T0, T1) == {NONE}
        assert world.value().state is TransactionState.ONGOING
        ended = await world.end(step)
        assert (ended.error, ended.producer_id, ended.producer_epoch) == (NONE, 100, 1)
        assert world.value().state is TransactionState.COMPLETE_COMMIT
        marker = Marker(100, 1, commit=True, coordinator_epoch=7, transaction_version=2)
        assert sorted(world.markers.written) == [(T0, marker), (T1, marker)]
        # The outcome was in the log before the first marker, and the end of it only after the last.
        assert set(world.markers.states_when_written) == {TransactionState.PREPARE_COMMIT}

    run(scenario())


def test_a_new_producer_aborts_what_the_old_one_left_open() -> None:
    async def scenario() -> None:
        world = World()
        old = await world.init()
        await world.add(old)
        new = await world.init()
        assert (new.error, new.producer_id, new.producer_epoch) == (NONE, 100, 2)
        assert world.markers.written == [(T0, Marker(100, 1, False, 7, 2))]
        assert (await world.end(old)).error is ErrorCode.PRODUCER_FENCED
        assert await world.add(old) == {ErrorCode.INVALID_PRODUCER_EPOCH}
        assert await world.add(new) == {NONE}

    run(scenario())


def test_a_zombie_is_not_taken_for_an_older_client_that_replaced_it() -> None:
    """Before version 2 the end of a transaction leaves the epoch, so one epoch back is another producer, no retry."""

    async def scenario() -> None:
        world = World()
        zombie = await world.init()
        new = await world.init()
        assert await world.add(new) == {NONE}
        assert (await world.end(new, version=0)).error is NONE
        assert (new.producer_epoch, world.value().producer_epoch) == (1, 1)
        assert (await world.end(zombie)).error is ErrorCode.PRODUCER_FENCED
        assert (await world.end(new, version=0)).error is NONE  # this one is a retry

    run(scenario())


def test_a_crash_after_the_decision_writes_the_markers_again() -> None:
    async def scenario() -> None:
        world = World()
        world.markers.refusing = {T1}
        step = await world.init()
        await world.add(step, T0, T1)
        assert (await world.end(step)).error is NONE  # the outcome is decided; the markers follow
        assert world.value().state is TransactionState.PREPARE_COMMIT
        assert await world.add(step) == {ErrorCode.INVALID_PRODUCER_EPOCH}
        assert (await world.end(step)).error is ErrorCode.CONCURRENT_TRANSACTIONS
        assert (await world.init()).error is ErrorCode.CONCURRENT_TRANSACTIONS
        reborn = await world.restarted()
        await finished(reborn, TransactionState.COMPLETE_COMMIT)
        assert {partition for partition, _ in reborn.markers.written} == {T0, T1}
        retry = await reborn.end(step)
        assert (retry.error, retry.producer_epoch) == (NONE, 1)
        # The first process, had it only been slow, would go on as well.
        world.markers.refusing = set()
        await finished(world, TransactionState.COMPLETE_COMMIT)
        world.coordinator.shutdown()

    run(scenario())


def test_a_crash_at_each_record_leaves_one_outcome() -> None:
    async def scenario() -> None:
        world = World()
        step = await world.init()
        await world.add(step, T0)
        await world.end(step)
        batches = world.log.batches[0]
        assert len(batches) == 4  # Empty, Ongoing, PrepareCommit, CompleteCommit
        for kept in range(len(batches) + 1):
            log = MemoryCoordinatorLog(1)
            for batch in batches[:kept]:
                log.append(0, bytearray(batch))
            reborn = World(log, 200)
            await reborn.coordinator.wait_loaded()
            markers = {marker.commit for _, marker in reborn.markers.written}
            retried = await reborn.end(step)
            if kept == 0:
                assert retried.error is ErrorCode.INVALID_PRODUCER_ID_MAPPING
            elif kept == 1:
                assert retried.error is ErrorCode.INVALID_TXN_STATE  # nothing was begun
            else:
                assert (retried.error, reborn.value().state) == (NONE, TransactionState.COMPLETE_COMMIT)
            assert markers == ({True} if kept == 3 else set())

    run(scenario())


def test_markers_wait_for_the_commit_of_the_decision() -> None:
    async def scenario() -> None:
        world = World()
        step = await world.init()
        await world.add(step)
        gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        world.log.gate = gate
        ending = asyncio.ensure_future(world.end(step))
        await turns()
        assert not ending.done()
        assert world.markers.written == []
        world.log.gate = None
        gate.set_result(None)
        assert (await ending).error is NONE
        await finished(world, TransactionState.COMPLETE_COMMIT)
        assert len(world.markers.written) == 1

    run(scenario())


def test_a_decision_that_the_log_loses_never_was() -> None:
    async def scenario() -> None:
        world = World()
        step = await world.init()
        await world.add(step)
        before = list(world.log.batches[0])
        gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        world.log.gate = gate
        ending = asyncio.ensure_future(world.end(step))
        await turns()
        world.log.gate = None
        world.log.batches[0] = before  # a new leader's log does not have it
        gate.set_exception(ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        with pytest.raises(ApiError) as refusal:
            await ending
        assert refusal.value.code is ErrorCode.NOT_COORDINATOR
        await world.coordinator.wait_loaded()
        assert world.value().state is TransactionState.ONGOING
        assert world.markers.written == []

    run(scenario())


def test_a_log_that_refuses_changes_nothing() -> None:
    async def scenario() -> None:
        world = World()
        step = await world.init()
        world.log.failure = ApiError(ErrorCode.NOT_ENOUGH_REPLICAS)
        assert await world.add(step) == {ErrorCode.COORDINATOR_NOT_AVAILABLE}
        with pytest.raises(ApiError):
            await world.init()
        world.log.failure = None
        assert world.value().state is TransactionState.EMPTY
        assert await world.add(step) == {NONE}

    run(scenario())


def test_many_partitions_are_marked_in_pieces() -> None:
    async def scenario() -> None:
        world = World()
        step = await world.init()
        partitions = [TopicPartition("wide", number) for number in range(350)]
        assert await world.add(step, *partitions) == {NONE}
        assert (await world.end(step, commit=False)).error is NONE
        await finished(world, TransactionState.COMPLETE_ABORT)
        assert sorted(partition for partition, _ in world.markers.written) == partitions

    run(scenario())


def test_markers_that_take_time_hold_up_the_end_and_nothing_else() -> None:
    async def scenario() -> None:
        world = World()
        step = await world.init()
        await world.add(step)
        world.markers.gate = asyncio.get_running_loop().create_future()
        assert (await world.end(step)).error is NONE
        assert world.value().state is TransactionState.PREPARE_COMMIT
        world.markers.gate.set_result(None)
        await finished(world, TransactionState.COMPLETE_COMMIT)
        assert len(world.markers.written) == 1

    run(scenario())


def test_the_next_transaction_waits_a_little_for_the_markers_of_the_last() -> None:
    async def scenario() -> None:
        world = World(add_partitions_to_txn_retry_backoff_max_ms=60_000)
        step = await world.init()
        await world.add(step)
        gate = world.markers.gate = asyncio.get_running_loop().create_future()
        step = await world.end(step)
        adding, fencing = asyncio.ensure_future(world.add(step)), asyncio.ensure_future(world.init())
        await turns()
        assert not adding.done()
        assert not fencing.done()
        world.markers.gate = None
        gate.set_result(None)
        assert {*(await adding), (await fencing).error} == {NONE}
        world.settings = BrokerSettings(add_partitions_to_txn_retry_backoff_max_ms=0)
        world.markers.gate = asyncio.get_running_loop().create_future()
        last = await world.init()
        await world.add(last)
        last = await world.end(last)
        assert await world.add(last) == {ErrorCode.CONCURRENT_TRANSACTIONS}
        assert (await world.init()).error is ErrorCode.CONCURRENT_TRANSACTIONS
        world.coordinator.shutdown()

    run(scenario())


def test_who_goes_on_before_the_markers_are_written_is_not_fenced() -> None:
    async def scenario() -> None:
        world = World()
        world.markers.gate = asyncio.get_running_loop().create_future()
        step = await world.init()
        await world.add(step, T0)
        following = await world.end(step)
        assert world.value().state is TransactionState.PREPARE_COMMIT
        assert (await world.end(following, commit=False)).error is ErrorCode.CONCURRENT_TRANSACTIONS
        ending = asyncio.ensure_future(world.end(following, commit=False))
        await turns()
        world.markers.gate.set_result(None)
        ended = await ending
        assert (ended.error, ended.producer_epoch) == (NONE, following.producer_epoch + 1)

    run(scenario())


def test_verification_only_asks() -> None:
    async def scenario() -> None:
        world = World()
        step = await world.init()
        assert await world.add(step, T0) == {NONE}

        def verify(name: str, producer_id: int, epoch: int, partitions: list[TopicPartition]) -> object:
            write = TransactionalWrite(name, producer_id, epoch, partitions, add=False)
            return world.coordinator.ensure_partitions(write)

        asked = verify("x", step.producer_id, step.producer_epoch, [T0, T1])
        assert asked == {T0: NONE, T1: ErrorCode.TRANSACTION_ABORTABLE}
        assert verify("x", step.producer_id, 9, [T0]) == {T0: ErrorCode.INVALID_PRODUCER_EPOCH}
        assert verify("y", 1, 0, [T0]) == {T0: ErrorCode.INVALID_PRODUCER_ID_MAPPING}
        assert verify("", 1, 0, [T0]) == {T0: ErrorCode.INVALID_REQUEST}
        world.settings = BrokerSettings(transaction_partition_verification_enable=False)
        assert verify("x", step.producer_id, step.producer_epoch, [T1]) == {T1: NONE}

    run(scenario())


def test_time_runs_out() -> None:
    async def scenario() -> None:
        world = World()
        step = await world.init(timeout_ms=1000)
        await world.add(step)
        world.clock.advance(1000)
        await world.coordinator.abort_timed_out()
        assert world.value().state is TransactionState.ONGOING
        world.clock.advance(1)
        await world.coordinator.abort_timed_out()
        assert world.value().state is TransactionState.COMPLETE_ABORT
        assert (await world.end(step)).error is ErrorCode.INVALID_TXN_STATE
        # From version 2 on its producer may abort, which has happened already, and go on in the new epoch.
        aborted = await world.end(step, commit=False)
        assert (aborted.error, aborted.producer_epoch) == (NONE, 1)
        assert await world.add(aborted) == {NONE}

    run(scenario())


def test_a_timeout_must_be_allowed() -> None:
    async def scenario() -> None:
        world = World(transaction_max_timeout_ms=5000)
        for timeout_ms in (0, -1, 5001):
            assert (await world.init(timeout_ms=timeout_ms)).error is ErrorCode.INVALID_TRANSACTION_TIMEOUT
        assert (await world.init(timeout_ms=5000)).error is NONE

    run(scenario())


def test_unused_ids_are_forgotten_for_good() -> None:
    async def scenario() -> None:
        world = World(transactional_id_expiration_ms=1000)
        idle, busy = await world.init("idle"), await world.init("busy")
        assert await world.add(busy, name="busy") == {NONE}
        world.clock.advance(1000)
        await world.coordinator.expire()
        assert [name for name, _ in world.coordinator.list_transactions()] == ["busy"]
        assert await world.add(idle, name="idle") == {ErrorCode.INVALID_PRODUCER_ID_MAPPING}
        assert [name for name, _ in (await world.restarted()).coordinator.list_transactions()] == ["busy"]

    run(scenario())


def test_a_producer_tries_again_while_no_ids_can_be_had() -> None:
    async def scenario() -> None:
        world = World()

        async def refuse() -> int:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "the store is away")

        world.coordinator._allocate_producer_id = refuse
        with pytest.raises(ApiError) as refusal:
            await world.init()
        assert refusal.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        world.coordinator._allocate_producer_id = world._allocate
        assert (await world.init()).error is NONE

    run(scenario())


def test_used_up_epochs_change_the_id() -> None:
    async def scenario() -> None:
        world = World()
        step = await world.init()
        machine = world.coordinator._shards[0].machine
        assert machine is not None
        world.coordinator._write(world.coordinator._shards[0], "x", _with_epoch(machine.transactions["x"], 32_766))
        last = Step(producer_id=step.producer_id, producer_epoch=32_766)
        assert await world.add(last) == {NONE}
        ended = await world.end(last)
        assert (ended.error, ended.producer_id, ended.producer_epoch) == (NONE, 101, 0)
        assert world.markers.written == [(T0, Marker(100, 32_767, True, 7, 2))]
        retried = await world.end(last)
        assert (retried.error, retried.producer_id, retried.producer_epoch) == (NONE, 101, 0)
        reborn = await world.restarted()
        assert (await reborn.end(last)).producer_id == 101

    run(scenario())


def _with_epoch(value: TransactionValue, epoch: int) -> TransactionValue:
    return TransactionValue(value.producer_id, epoch, value.timeout_ms, value.state, updated_ms=value.updated_ms)


def test_the_next_id_waits_for_the_markers_of_the_last() -> None:
    """As the epochs are used up the producer goes on with another id, which is nobody's until the end is complete."""

    async def scenario() -> None:
        world = World()
        step = await world.init()
        machine = world.coordinator._shards[0].machine
        assert machine is not None
        last = msgspec.structs.replace(world.value(), producer_epoch=EPOCH_MAX - 1)
        machine.replay("x", last)
        exhausted = Step(producer_id=step.producer_id, producer_epoch=EPOCH_MAX - 1)
        assert await world.add(exhausted, T0) == {NONE}
        world.markers.gate = asyncio.get_running_loop().create_future()
        following = await world.end(exhausted)
        assert (following.producer_id, following.producer_epoch) == (101, 0)
        assert await world.add(following, T1) == {ErrorCode.CONCURRENT_TRANSACTIONS}
        assert (await world.end(following, commit=False)).error is ErrorCode.CONCURRENT_TRANSACTIONS
        world.markers.gate.set_result(None)
        await asyncio.gather(*world.coordinator._tasks)
        assert await world.add(following, T1) == {NONE}

    run(scenario())


def test_before_it_is_read_and_after_it_is_gone() -> None:
    async def scenario() -> None:
        world = World()
        await world.init()
        slow = World(world.log.copy())
        with pytest.raises(ApiError) as refusal:
            await slow.init()
        assert refusal.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        with pytest.raises(ApiError):
            slow.coordinator.list_transactions()
        await slow.coordinator.wait_loaded()
        assert (await slow.init()).error is NONE
        slow.log.led.clear()
        slow.coordinator.refresh()
        with pytest.raises(ApiError) as refusal:
            await slow.init()
        assert refusal.value.code is ErrorCode.NOT_COORDINATOR
        slow.coordinator.shutdown()
        with pytest.raises(ApiError) as refusal:
            await slow.init()
        assert refusal.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE

    run(scenario())


def test_the_log_is_kept_short_and_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_shard, "SNAPSHOT_LOG_BYTES_MIN", LIMIT)
    monkeypatch.setattr(machine_shard, "RECORDS_PER_BATCH_MAX", 3)

    async def scenario() -> None:
        world = World()
        for _ in range(60):
            for name in "abcdefgh":
                step = await world.init(name)
                assert await world.add(step, name=name) == {NONE}
                await turns(1)
                found = (await world.restarted()).coordinator
                assert dict(found.list_transactions()) == dict(world.coordinator.list_transactions())
                found.shutdown()
        assert world.log.start_offset(0) > 0
        assert sum(map(len, world.log.batches[0])) < 5 * LIMIT

    run(scenario())


def test_records_of_other_kinds_are_carried_along(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log that a later broker wrote may hold what this one does not understand: it must not lose it."""
    monkeypatch.setattr(machine_shard, "SNAPSHOT_LOG_BYTES_MIN", 2000)

    async def scenario() -> None:
        log = MemoryCoordinatorLog(1)
        other, broken = b"\x00\x09other", encode_transaction_key("broken")
        log.append(0, encode_batch([NewRecord(other, b"kept", 1), NewRecord(broken, b"\x00\x63", 1)]))
        log.append(0, encode_batch([NewRecord(b"\x00\x08gone", b"x", 1), NewRecord(b"\x00\x08gone", None, 1)]))
        world = World(log)
        await world.coordinator.wait_loaded()
        assert world.coordinator.list_transactions() == []
        for _ in range(30):
            assert (await world.init()).error is NONE
            await turns()
        assert log.start_offset(0) > 0
        assert LoadedTransactions(log.read(0)).foreign == {other: b"kept", broken: b"\x00\x63"}

    run(scenario())
