"""The coordinator as its handlers use it: routing, loading, timers, failing logs, the end."""

import asyncio
import random
from typing import Any

import pytest

from ottla.broker.coordination.coordinator import partition_for
from ottla.broker.coordination.groups.consumer.events import ConsumerHeartbeat
from ottla.broker.coordination.groups.events import Leave, Leaver
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import CONSUMER_OFFSETS, NO_TOPIC_ID

from .coordinator_world import Coordinator, run, turns
from .memory_log import MemoryCoordinatorLog


def code_of(future: asyncio.Future[Any]) -> ErrorCode:
    error = future.exception()
    assert isinstance(error, ApiError)
    return error.code


@pytest.mark.parametrize(
    ("group_id", "java_hash"),
    [
        ("", 0),
        ("hello", 99162322),
        ("my-group", -1906497762),
        ("\N{GRINNING FACE}", 1772899),
        ("polygenelubricants", 0),  # hashes to the smallest integer, whose absolute value does not exist
    ],
)
def test_groups_are_on_the_partition_that_java_would_choose(group_id: str, java_hash: int) -> None:
    assert partition_for(group_id, 50) == abs(java_hash) % 50
    assert partition_for(group_id, 7) == abs(java_hash) % 7


def test_a_group_lives_through_join_sync_heartbeat_commit_and_leave() -> None:
    async def scenario() -> None:
        world = Coordinator(MemoryCoordinatorLog(4))
        member_id, generation = await world.stable()
        assert generation == 1
        assert world.groups.heartbeat("g", member_id, None, generation) is ErrorCode.NONE
        assert world.commit(42, member_id=member_id, generation=generation) == [ErrorCode.NONE]
        assert world.committed() == 42
        described = world.groups.describe_group("g")
        assert described is not None
        assert (described.state, described.protocol, len(described.members)) == ("Stable", "range", 1)
        assert described.members[0].assignment == b"mine"
        left = await world.groups.leave(Leave(0, "g", (Leaver(member_id),)))
        assert [error for _, error in left.members] == [ErrorCode.NONE]
        assert [(group.group_id, group.state) for group in world.groups.list_groups()] == [("g", "Empty")]
        world.groups.shutdown()

    run(scenario())


def test_a_restart_brings_back_members_generation_and_offsets() -> None:
    async def scenario() -> None:
        world = Coordinator(MemoryCoordinatorLog(4))
        member_id, generation = await world.stable()
        world.commit(42, member_id=member_id, generation=generation)
        again = world.restarted()
        with pytest.raises(ApiError) as loading:
            again.committed()
        assert loading.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        with pytest.raises(ApiError):
            again.groups.list_groups()
        # A heartbeat is taken on trust meanwhile.
        assert again.groups.heartbeat("g", member_id, None, generation) is ErrorCode.NONE
        await again.groups.wait_loaded()
        assert again.committed() == 42
        assert again.groups.heartbeat("g", member_id, None, generation) is ErrorCode.NONE
        assert again.groups.heartbeat("g", "stranger", None, generation) is ErrorCode.UNKNOWN_MEMBER_ID
        # Sessions run again from the moment of loading.
        again.scheduler.advance(10_001)
        assert again.groups.heartbeat("g", member_id, None, generation) is ErrorCode.UNKNOWN_MEMBER_ID

    run(scenario())


def test_heartbeats_keep_a_member_for_ever() -> None:
    async def scenario() -> None:
        world = Coordinator(MemoryCoordinatorLog())
        member_id, generation = await world.stable()
        for _ in range(50):
            world.scheduler.advance(9000)
            assert world.groups.heartbeat("g", member_id, None, generation) is ErrorCode.NONE
        world.scheduler.advance(10_001)
        assert world.groups.heartbeat("g", member_id, None, generation) is ErrorCode.UNKNOWN_MEMBER_ID

    run(scenario())


def test_who_is_not_the_coordinator_says_so() -> None:
    async def scenario() -> None:
        log = MemoryCoordinatorLog(2)
        log.led = set()
        world = Coordinator(log)
        assert world.groups.heartbeat("g", "m", None, 1) is ErrorCode.NOT_COORDINATOR
        assert world.groups.list_groups() == []
        log.led = {0, 1}  # found out at the next request
        assert world.groups.heartbeat("g", "m", None, 1) is ErrorCode.UNKNOWN_MEMBER_ID
        assert world.groups.heartbeat("", "m", None, 1) is ErrorCode.INVALID_GROUP_ID
        assert world.commit(1, group_id="") == [ErrorCode.NONE]
        with pytest.raises(ApiError) as too_long:
            world.commit(1, group_id="g" * 40_000)
        assert too_long.value.code is ErrorCode.INVALID_GROUP_ID

    run(scenario())


def test_losing_the_partition_sends_waiting_members_away() -> None:
    async def scenario() -> None:
        log = MemoryCoordinatorLog()
        world = Coordinator(log)
        parked = world.join((await world.join()).member_id)
        log.led = set()
        world.groups.refresh()
        assert (await parked).error is ErrorCode.NOT_COORDINATOR
        world.scheduler.advance(1_000_000)  # no timer of the lost groups does anything
        log.led = {0}
        world.groups.refresh()
        await world.groups.wait_loaded()
        assert [group.state for group in world.groups.list_groups()] == ["Empty"]

    run(scenario())


def test_shutdown_answers_whoever_waits() -> None:
    async def scenario() -> None:
        world = Coordinator(MemoryCoordinatorLog())
        parked = world.join((await world.join()).member_id)
        world.groups.shutdown()
        assert (await parked).error is ErrorCode.NOT_COORDINATOR
        with pytest.raises(ApiError) as stopped:
            world.join()
        assert stopped.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert world.groups.heartbeat("g", "m", None, 1) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        with pytest.raises(ApiError):
            world.groups.list_groups()

    run(scenario())


@pytest.mark.parametrize(
    ("cause", "told"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_a_commit_that_cannot_be_written_changes_nothing(cause: ErrorCode, told: ErrorCode) -> None:
    async def scenario() -> None:
        world = Coordinator(MemoryCoordinatorLog())
        world.commit(1)
        world.log.failure = ApiError(cause)
        with pytest.raises(ApiError) as refused:
            world.commit(2)
        assert refused.value.code is told
        assert world.committed() == 1

    run(scenario())


def test_joins_and_syncs_that_cannot_be_written_can_be_asked_again() -> None:
    async def scenario() -> None:
        world = Coordinator(MemoryCoordinatorLog())
        world.log.failure = ApiError(ErrorCode.KAFKA_STORAGE_ERROR)
        refused = world.join()
        assert code_of(refused) is ErrorCode.NOT_COORDINATOR
        assert world.groups.describe_group("g") is None
        world.log.failure = None
        member_id = (await world.join()).member_id
        parked = world.join(member_id)
        world.scheduler.advance(3000)
        generation = (await parked).generation
        world.log.failure = ApiError(ErrorCode.NOT_ENOUGH_REPLICAS)
        lost = world.sync(member_id, generation)
        assert code_of(lost) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        world.log.failure = None
        assert (await world.join(member_id)).generation == generation
        assert (await world.sync(member_id, generation)).assignment == b"mine"

    run(scenario())


def test_a_group_that_could_not_be_written_empty_is_written_later() -> None:
    async def scenario() -> None:
        world = Coordinator(MemoryCoordinatorLog())
        member_id, _ = await world.stable()
        world.log.failure = ApiError(ErrorCode.KAFKA_STORAGE_ERROR)
        left = world.groups.leave(Leave(0, "g", (Leaver(member_id),)))
        assert code_of(left) is ErrorCode.NOT_COORDINATOR
        world.scheduler.advance(5000)
        world.log.failure = None
        world.scheduler.advance(5000)
        assert [group.state for group in world.groups.list_groups()] == ["Empty"]
        again = world.restarted()
        await again.groups.wait_loaded()
        assert [group.state for group in again.groups.list_groups()] == ["Empty"]

    run(scenario())


def test_answers_wait_until_the_record_is_committed() -> None:
    async def scenario() -> None:
        world = Coordinator(MemoryCoordinatorLog())
        gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        world.log.gate = gate
        commit = world.commit(1)
        fetch = world.groups.fetch_offsets("g", [("t", 0, NO_TOPIC_ID)])
        assert isinstance(commit, asyncio.Future)
        assert isinstance(fetch, asyncio.Future)
        await turns()
        assert not commit.done()
        assert not fetch.done()
        gate.set_result(None)
        assert await commit == [ErrorCode.NONE]
        (value,) = await fetch
        assert value is not None
        assert value.offset == 1
        world.log.gate = None
        assert world.commit(2) == [ErrorCode.NONE]

    run(scenario())


def test_a_commit_that_takes_too_long_is_answered_and_stays() -> None:
    async def scenario() -> None:
        world = Coordinator(MemoryCoordinatorLog(), offsets_commit_timeout_ms=700)
        gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        world.log.gate = gate
        commit = world.commit(1)
        assert isinstance(commit, asyncio.Future)
        world.scheduler.advance(699)
        assert not commit.done()
        world.scheduler.advance(2)
        assert code_of(commit) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        gate.set_result(None)
        await turns()
        world.log.gate = None
        assert world.committed() == 1

    run(scenario())


def test_what_the_log_loses_after_all_is_forgotten() -> None:
    async def scenario() -> None:
        log = MemoryCoordinatorLog()
        world = Coordinator(log)
        world.commit(1)
        kept = log.copy()
        gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        log.gate = gate
        commit = world.commit(2)
        assert isinstance(commit, asyncio.Future)
        log.batches, log.gate = kept.batches, None  # the new leader never had it
        gate.set_exception(ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        with pytest.raises(ApiError) as lost:
            await commit
        assert lost.value.code is ErrorCode.NOT_COORDINATOR
        await turns()
        await world.groups.wait_loaded()
        assert world.committed() == 1

    run(scenario())


def test_settings_count_from_the_next_request_on() -> None:
    async def scenario() -> None:
        world = Coordinator(MemoryCoordinatorLog(), group_initial_rebalance_delay_ms=0)
        assert (await world.stable())[1] == 1
        world.change_settings(group_min_session_timeout_ms=20_000)
        assert (await world.join()).error is ErrorCode.INVALID_SESSION_TIMEOUT

    run(scenario())


def test_offsets_of_deleted_topics_are_forgotten() -> None:
    async def scenario() -> None:
        world = Coordinator(MemoryCoordinatorLog(3))
        for group_id in ("a", "b", "c", "d"):
            world.commit(1, "t", group_id=group_id)
            world.commit(2, "u", group_id=group_id)
        world.groups.on_topics_deleted(["t"])
        again = world.restarted()
        await again.groups.wait_loaded()
        for group_id in ("a", "b", "c", "d"):
            assert world.committed("t", group_id=group_id) is None
            assert again.committed("t", group_id=group_id) is None
            assert again.committed("u", group_id=group_id) == 2

    run(scenario())


def test_without_its_topic_the_coordinator_knows_nothing() -> None:
    async def scenario() -> None:
        log = MemoryCoordinatorLog()
        world = Coordinator(log)
        world.commit(1)
        log.batches, log.led = [[]], set()
        world.groups.on_topics_deleted([CONSUMER_OFFSETS])
        with pytest.raises(ApiError) as refused:
            world.committed()
        assert refused.value.code is ErrorCode.NOT_COORDINATOR
        assert world.groups.list_groups() == []

    run(scenario())


def test_old_offsets_and_empty_groups_expire() -> None:
    async def scenario() -> None:
        world = Coordinator(MemoryCoordinatorLog(), offsets_retention_minutes=1)
        world.commit(1)
        world.clock.advance(59_999)
        await world.groups.expire()
        assert world.committed() == 1
        world.clock.advance(1)
        await world.groups.expire()
        assert world.committed() is None
        assert world.groups.list_groups() == []
        again = world.restarted()
        await again.groups.wait_loaded()
        assert again.groups.list_groups() == []

    run(scenario())


def test_groups_are_listed_by_state_and_type() -> None:
    async def scenario() -> None:
        world = Coordinator(MemoryCoordinatorLog(4))
        await world.stable()
        world.commit(1, group_id="simple")
        assert {group.group_id for group in world.groups.list_groups()} == {"g", "simple"}
        assert [group.group_id for group in world.groups.list_groups(["sTaBle"])] == ["g"]
        assert [group.protocol_type for group in world.groups.list_groups(["Stable"])] == ["consumer"]
        assert len(world.groups.list_groups(types=["Classic"])) == 2
        assert world.groups.list_groups(types=["consumer"]) == []
        assert world.groups.list_groups(["Stable", "Empty"], ["share"]) == []

    run(scenario())


def test_only_groups_without_members_can_be_deleted() -> None:
    async def scenario() -> None:
        world = Coordinator(MemoryCoordinatorLog(4))
        await world.stable()
        world.commit(1, group_id="simple")
        with pytest.raises(ApiError) as busy:
            world.groups.delete_group("g")
        assert busy.value.code is ErrorCode.NON_EMPTY_GROUP
        with pytest.raises(ApiError) as unknown:
            world.groups.delete_group("nobody")
        assert unknown.value.code is ErrorCode.GROUP_ID_NOT_FOUND
        world.groups.delete_group("simple")
        assert world.groups.describe_group("simple") is None
        again = world.restarted()
        await again.groups.wait_loaded()
        assert [group.group_id for group in again.groups.list_groups()] == ["g"]

    run(scenario())


def test_member_ids_come_from_the_chance_that_was_given() -> None:
    """So that a simulation with the same seed has the same members."""

    async def ids(seed: int) -> tuple[str, str | None]:
        world = Coordinator(MemoryCoordinatorLog(), chance=random.Random(seed))
        await world.groups.wait_loaded()
        joined = (await world.join()).member_id
        beat = ConsumerHeartbeat(
            0, "new", "", 0, rebalance_timeout_ms=1000, topics=("t",), owned={}, brings_own_id=False
        )
        answer = await world.groups.consumer_heartbeat(beat)
        world.groups.shutdown()
        return joined, answer.member_id

    async def test() -> None:
        first = await ids(1)
        assert first == await ids(1)
        other = await ids(2)
        assert first[0] != other[0]
        assert first[1] != other[1]

    run(test())
