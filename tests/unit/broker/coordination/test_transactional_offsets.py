"""Offsets inside transactions: nothing counts before the marker, and a restart changes nothing about that."""

import asyncio

import pytest

from ottla.broker.coordination import machine_shard as shard_module
from ottla.broker.coordination.groups.classic.states import State
from ottla.broker.coordination.groups.events import GroupRules, OffsetToCommit
from ottla.broker.coordination.loading import LoadedLog
from ottla.model.errors import ApiError, ErrorCode
from ottla.protocol.records import iterate_batches

from .coordinator_world import Coordinator, run, turns
from .group_world import World, hard_state
from .memory_log import MemoryCoordinatorLog

PRODUCER, OTHER = 7, 8


def committed(world: World, partition: int = 0) -> int | None:
    group = world.machine.groups.get("g")
    value = group.offsets.get("t", {}).get(partition) if group else None
    return None if value is None else value.offset


@pytest.mark.parametrize("restarting", [False, True])
@pytest.mark.parametrize("commit", [False, True])
def test_offsets_count_when_their_transaction_is_committed(commit: bool, restarting: bool) -> None:
    world = World()
    world.commit(OffsetToCommit("t", 0, 1))
    assert world.commit(OffsetToCommit("t", 0, 2), producer_id=PRODUCER) == [ErrorCode.NONE]
    if restarting:
        world.restart()
    world.end_transaction(OTHER, commit=True)
    assert committed(world) == 1
    world.end_transaction(PRODUCER, commit=commit)
    assert committed(world) == (2 if commit else 1)
    assert not world.machine.pending.open


@pytest.mark.parametrize("restarting", [False, True])
def test_the_last_record_in_the_log_wins_whatever_the_order_of_the_markers(restarting: bool) -> None:
    world = World()
    world.commit(OffsetToCommit("t", 0, 1), OffsetToCommit("t", 1, 1), producer_id=PRODUCER)
    world.commit(OffsetToCommit("t", 0, 2))  # a plain commit, later in the log
    world.commit(OffsetToCommit("t", 1, 2), producer_id=OTHER)
    world.end_transaction(OTHER, commit=True)
    if restarting:
        world.restart()
    world.end_transaction(PRODUCER, commit=True)
    assert (committed(world), committed(world, 1)) == (2, 2)


def test_a_second_commit_of_the_same_transaction_replaces_the_first() -> None:
    world = World()
    world.commit(OffsetToCommit("t", 0, 1), producer_id=PRODUCER)
    world.commit(OffsetToCommit("t", 0, 2))
    world.commit(OffsetToCommit("t", 0, 3), producer_id=PRODUCER)
    world.end_transaction(PRODUCER, commit=True)
    assert committed(world) == 3


def test_members_commit_in_their_generation_only_but_may_while_it_is_being_assigned() -> None:
    world = World()
    first, second = world.stable(None, None)
    offset = OffsetToCommit("t", 0, 5)
    stale = world.commit(offset, member_id=first, generation=0, producer_id=PRODUCER)
    assert stale is ErrorCode.ILLEGAL_GENERATION
    stranger = world.commit(offset, member_id="x", generation=1, producer_id=PRODUCER)
    assert stranger is ErrorCode.UNKNOWN_MEMBER_ID
    # Clients before version 3 cannot say who they are.
    assert world.commit(offset, producer_id=PRODUCER) == [ErrorCode.NONE]
    leader = world.group.leader
    assert leader is not None
    world.join(leader)
    world.join(second if leader == first else first)
    assert world.group.state is State.COMPLETING
    assert world.commit(offset, member_id=first, generation=2, producer_id=PRODUCER) == [ErrorCode.NONE]


def test_pending_offsets_hold_back_expiry_of_their_partition_and_group() -> None:
    world = World(GroupRules(offsets_retention_ms=1000))
    world.commit(OffsetToCommit("t", 0, 1), OffsetToCommit("t", 1, 1))
    world.commit(OffsetToCommit("t", 0, 2), producer_id=PRODUCER)
    world.wait(2000)
    for _ in range(2):
        for entries in world.machine.expire(world.now, world.rules):
            world.write(entries)
        assert (committed(world), committed(world, 1)) == (1, None)
    world.end_transaction(PRODUCER, commit=False)
    for entries in world.machine.expire(world.now, world.rules):
        world.write(entries)
    assert world.machine.groups == {}


def test_deleting_a_group_or_a_topic_deletes_what_is_pending_for_it() -> None:
    world = World()
    world.commit(OffsetToCommit("t", 0, 1), producer_id=PRODUCER)
    world.commit(OffsetToCommit("u", 0, 1))
    world.write(world.machine.delete_topics(["t"]))
    world.restart()
    assert world.machine.pending.as_data() == {}
    world.commit(OffsetToCommit("t", 1, 1), producer_id=PRODUCER)
    world.write(world.machine.delete_group("g"))
    world.restart()
    world.end_transaction(PRODUCER, commit=True)
    assert world.machine.groups == {}


def test_the_coordinator_hides_unstable_offsets_until_the_marker() -> None:
    async def scenario() -> None:
        world = Coordinator(MemoryCoordinatorLog())
        world.commit(1)
        world.commit(2, producer_id=PRODUCER, producer_epoch=3)
        assert ("t", 0) in world.groups.unstable("g")
        assert ("t", 1) not in world.groups.unstable("g")
        assert world.committed() == 1
        again = world.restarted()
        with pytest.raises(ApiError) as loading:
            again.groups.complete_transaction(0, PRODUCER, 3, commit=True, coordinator_epoch=0)
        assert loading.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        await again.groups.wait_loaded()
        assert ("t", 0) in again.groups.unstable("g")
        again.groups.complete_transaction(0, PRODUCER, 3, commit=True, coordinator_epoch=0)
        assert ("t", 0) not in again.groups.unstable("g")
        assert again.committed() == 2
        last = again.restarted()
        await last.groups.wait_loaded()
        assert last.committed() == 2
        with pytest.raises(ApiError) as elsewhere:
            last.groups.complete_transaction(1, PRODUCER, 3, commit=True, coordinator_epoch=0)
        assert elsewhere.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER

    run(scenario())


def test_a_marker_that_cannot_be_written_changes_nothing() -> None:
    async def scenario() -> None:
        log = MemoryCoordinatorLog()
        world = Coordinator(log)
        world.commit(2, producer_id=PRODUCER, producer_epoch=3)
        log.failure = ApiError(ErrorCode.INVALID_PRODUCER_EPOCH)
        with pytest.raises(ApiError):
            world.groups.complete_transaction(0, PRODUCER, 2, commit=True, coordinator_epoch=0)
        assert world.committed() is None
        assert ("t", 0) in world.groups.unstable("g")

    run(scenario())


def test_snapshots_carry_open_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_module, "SNAPSHOT_LOG_BYTES_MIN", 4000)
    monkeypatch.setattr(shard_module, "RECORDS_PER_BATCH_MAX", 3)

    def loaded(log: MemoryCoordinatorLog) -> LoadedLog:
        result = LoadedLog()
        result.replay(log.read(0))
        return result

    async def scenario() -> None:
        log = MemoryCoordinatorLog()
        world = Coordinator(log)
        starts = set()
        for number in range(600):
            producer = PRODUCER + number % 3
            # The same partitions in transactions and outside of them, in ever new orders.
            world.commit(number, partition=number % 5)
            world.commit(10_000 + number, partition=number % 7, producer_id=producer, producer_epoch=0)
            if number % 4 == 3:
                done = PRODUCER + number // 4 % 3
                world.groups.complete_transaction(0, done, 0, commit=number % 8 == 3, coordinator_epoch=0)
            if number == 300:
                # From here on one transaction stays open: nothing from its first record on may go.
                world.commit(77, partition=99, producer_id=OTHER + 90, producer_epoch=0)
            live = world.groups._shards[0].machine
            assert live is not None
            assert hard_state(loaded(log).machine) == hard_state(live)
            starts.add(log.start_offset(0))
            await asyncio.sleep(0)
        await turns(50)
        assert len(starts) > 3
        held = {header.producer_id for batch in log.read(0) for _, header in iterate_batches(batch)}
        assert OTHER + 90 in held
        world.groups.complete_transaction(0, OTHER + 90, 0, commit=True, coordinator_epoch=0)
        again = world.restarted()
        await again.groups.wait_loaded()
        assert again.committed(partition=99) == 77

    run(scenario())
