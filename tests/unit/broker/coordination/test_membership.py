"""Rules of SyncGroup, Heartbeat, LeaveGroup and of silence."""

import pytest

from ottla.broker.coordination.groups.classic.states import State
from ottla.broker.coordination.groups.events import Leaver
from ottla.model.errors import ErrorCode

from .group_world import LOST, World


def completing(world: World, *instances: str | None) -> tuple[list[str], str]:
    """A group that waits for its leader's assignment: all ids, and the leader's."""
    ids = world.stable(*instances)
    for member_id in sorted(ids, key=lambda name: name != world.group.leader):  # the leader first: it may always ask
        world.join(member_id, instance_id=world.group.members[member_id].instance_id)
    assert world.group.state is State.COMPLETING
    assert world.group.leader is not None
    return ids, world.group.leader


def test_assignments_are_handed_out_when_the_leader_has_spoken() -> None:
    world = World()
    ids, leader = completing(world, None, None, None)
    waiting, late = [member_id for member_id in ids if member_id != leader]
    ticket = world.sync(waiting, 2)
    assert ticket in world.open
    led = world.sync(leader, 2, assignments=((leader, b"L"), (waiting, b"W")))
    assert world.synced(led).assignment == b"L"
    assert world.synced(ticket).assignment == b"W"
    assert (world.synced(ticket).protocol_type, world.synced(ticket).protocol) == ("consumer", "range")
    assert world.synced(world.sync(late, 2)).assignment == b""  # the leader left it out
    assert world.group.state is State.STABLE


@pytest.mark.parametrize(
    ("details", "error"),
    [
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol": "sticky"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": "consumer", "protocol": "range"}, ErrorCode.NONE),
        ({"instance_id": "unknown"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_sync_must_fit_the_group(details: dict[str, str], error: ErrorCode) -> None:
    world = World()
    (member_id,) = world.stable(None)
    assert world.synced(world.sync(member_id, 1, **details)).error is error


def test_a_sync_of_another_generation_or_nobody_is_refused() -> None:
    world = World()
    assert world.synced(world.sync("m", 1)).error is ErrorCode.UNKNOWN_MEMBER_ID
    ids, leader = completing(world, None, None)
    assert world.synced(world.sync(leader, 1)).error is ErrorCode.ILLEGAL_GENERATION
    assert world.synced(world.sync("stranger", 2)).error is ErrorCode.UNKNOWN_MEMBER_ID
    world.join(leader, protocols=(("range", b"new"),))
    assert world.group.state is State.PREPARING
    assert world.synced(world.sync(ids[0], 2)).error is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_lost_assignment_can_be_handed_in_again() -> None:
    world = World()
    ids, leader = completing(world, None, None)
    follower = next(member_id for member_id in ids if member_id != leader)
    waiting = world.sync(follower, 2)
    world.appends_fail = True
    led = world.sync(leader, 2, assignments=((leader, b"L"),))
    assert world.answers[waiting] == world.answers[led] == LOST
    assert world.group.state is State.COMPLETING
    world.appends_fail = False
    assert world.joined(world.join(leader)).generation == 2
    assert world.synced(world.sync(leader, 2, assignments=((follower, b"F"),))).error is ErrorCode.NONE
    assert world.synced(world.sync(follower, 2)).assignment == b"F"


def test_members_that_never_sync_are_removed() -> None:
    world = World()
    ids, leader = completing(world, None, None)
    follower = next(member_id for member_id in ids if member_id != leader)
    world.sync(leader, 2)
    for _ in range(8):
        world.wait(7500)
        world.heartbeat(leader, 2)
        world.heartbeat(follower, 2)  # alive, but it does not ask for its share
    assert world.group.state is State.PREPARING
    assert list(world.group.members) == [leader]
    assert world.heartbeat(leader, 2) is ErrorCode.REBALANCE_IN_PROGRESS


def test_members_that_have_synced_are_not_removed_for_it() -> None:
    world = World()
    (member_id,) = world.stable(None)
    for _ in range(20):
        world.wait(7500)
        assert world.heartbeat(member_id, 1) is ErrorCode.NONE


def test_heartbeats_are_answered_by_state() -> None:
    world = World()
    assert world.heartbeat("m", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    _, leader = completing(world, None, None)
    assert world.heartbeat(leader, 2) is ErrorCode.NONE
    assert world.heartbeat(leader, 1) is ErrorCode.ILLEGAL_GENERATION
    assert world.heartbeat("stranger", 2) is ErrorCode.UNKNOWN_MEMBER_ID
    world.join(leader, protocols=(("range", b"new"),))
    assert world.heartbeat(leader, 2) is ErrorCode.REBALANCE_IN_PROGRESS


def test_silence_ends_a_session_and_calls_the_others() -> None:
    world = World()
    silent, alive = world.stable(None, None)
    world.wait(6000)
    world.heartbeat(alive, 1)
    world.wait(5000)
    assert silent not in world.group.members
    assert world.heartbeat(alive, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.joined(world.join(alive)).generation == 2


def test_the_last_member_that_falls_silent_leaves_an_empty_generation() -> None:
    world = World()
    world.stable(None)
    world.wait(10_001)
    assert (world.group.state, world.group.generation) == (State.EMPTY, 2)
    assert world.group.stored is not None
    assert (world.group.stored.protocol_type, world.group.stored.leader) == ("consumer", None)
    world.restart()
    assert (world.group.state, world.group.generation) == (State.EMPTY, 2)


def test_a_parked_join_keeps_a_member_alive() -> None:
    world = World()
    first, second = world.stable(None, None)
    leader = world.group.leader
    assert leader is not None
    ticket = world.join(leader)
    for _ in range(6):
        world.wait(8000)
        world.heartbeat(second if leader == first else first, 1)  # it is busy with its last records
    assert ticket in world.open
    world.join(second if leader == first else first)
    assert world.joined(ticket).generation == 2
    assert len(world.group.members) == 2


def test_a_shorter_session_counts_from_the_join_that_asks_for_it() -> None:
    world = World()
    (member_id,) = world.stable(None, session_timeout_ms=100_000)
    world.joined(world.join(member_id, session_timeout_ms=6000))
    world.sync(member_id, 2)
    world.wait(6001)
    assert world.group.is_empty


def test_leaving_calls_the_others_at_once() -> None:
    world = World()
    first, second = world.stable(None, None)
    left = world.left(world.leave(Leaver(first)))
    assert [error for _, error in left.members] == [ErrorCode.NONE]
    assert world.heartbeat(second, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.heartbeat(first, 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_last_to_leave_leaves_an_empty_group() -> None:
    world = World()
    ids = world.stable(None, "one")
    world.leave(*(Leaver(member_id) for member_id in ids))
    assert (world.group.state, world.group.generation) == (State.EMPTY, 2)


def test_several_members_can_be_removed_each_with_its_own_answer() -> None:
    world = World()
    dynamic, one, two = world.stable(None, "one", "two")
    left = world.left(
        world.leave(
            Leaver("", "one"),  # an administrator knows the instance only
            Leaver("", "three"),
            Leaver(""),
            Leaver("stranger"),
            Leaver(one, "two"),
            Leaver(dynamic),
        )
    )
    assert [error for _, error in left.members] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.NONE,
    ]
    assert list(world.group.members) == [two]


def test_leaving_an_unknown_group_is_an_error_of_each_member() -> None:
    world = World()
    left = world.left(world.leave(Leaver("a"), Leaver("b")))
    assert left.error is ErrorCode.NONE
    assert [error for _, error in left.members] == [ErrorCode.UNKNOWN_MEMBER_ID] * 2


def test_who_leaves_while_waiting_is_answered() -> None:
    world = World()
    ids, leader = completing(world, None, None)
    follower = next(member_id for member_id in ids if member_id != leader)
    waiting = world.sync(follower, 2)
    world.leave(Leaver(follower))
    assert world.synced(waiting).error is ErrorCode.UNKNOWN_MEMBER_ID
    parked = world.join(leader)
    assert world.joined(parked).generation == 3


def test_a_pending_member_that_leaves_does_not_hold_up_the_round() -> None:
    world = World()
    (member_id,) = world.stable(None)
    pending = world.new_member()
    ticket = world.join(member_id)
    assert ticket in world.open
    world.leave(Leaver(pending))
    assert world.joined(ticket).generation == 2


def test_a_pending_member_that_leaves_disturbs_nobody() -> None:
    world = World()
    (member_id,) = world.stable(None)
    world.leave(Leaver(world.new_member()))
    assert world.group.state is State.STABLE
    assert world.heartbeat(member_id, 1) is ErrorCode.NONE


def test_generations_go_on_after_a_restart() -> None:
    world = World()
    (member_id,) = world.stable(None)
    world.join(member_id)
    world.restart()  # generation 2 was never written: it is given out again
    assert world.group.generation == 1
    assert world.synced(world.sync(member_id, 2)).error is ErrorCode.ILLEGAL_GENERATION
    assert world.joined(world.join(member_id)).generation == 2
