"""Rules of JoinGroup, one by one."""

from typing import Any

import pytest

from ottla.broker.coordination.effects import Now
from ottla.broker.coordination.groups.classic.states import State
from ottla.broker.coordination.groups.events import GroupRules, Join
from ottla.model.errors import ErrorCode

from .group_world import LOST, RANGE, World

SUBSCRIPTION = RANGE[0][1]


def test_a_new_dynamic_member_is_asked_to_come_back_with_its_id() -> None:
    world = World()
    first = world.joined(world.join(client_id="app"))
    assert first.error is ErrorCode.MEMBER_ID_REQUIRED
    assert first.member_id.startswith("app-")
    assert world.group.state is State.EMPTY
    world.join(first.member_id)
    assert list(world.group.members) == [first.member_id]


def test_old_clients_get_their_id_with_the_first_join() -> None:
    world = World()
    ticket = world.join(requires_known_id=False)
    world.wait(3000)
    joined = world.joined(ticket)
    assert (joined.error, joined.generation, joined.leader) == (ErrorCode.NONE, 1, joined.member_id)


def test_an_id_that_was_given_but_not_used_lapses() -> None:
    world = World()
    member_id = world.new_member()
    world.wait(10_001)
    assert world.joined(world.join(member_id)).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_round_waits_for_members_that_were_given_an_id() -> None:
    world = World()
    (member_id,) = world.stable(None)
    newcomer = world.new_member()
    ticket = world.join(member_id)  # the leader asks for a rebalance
    assert ticket in world.open
    second = world.join(newcomer)
    assert {world.joined(ticket).generation, world.joined(second).generation} == {2}


@pytest.mark.parametrize("timeout", [5999, 1_800_001])
def test_session_timeouts_have_bounds(timeout: int) -> None:
    world = World()
    assert world.joined(world.join(session_timeout_ms=timeout)).error is ErrorCode.INVALID_SESSION_TIMEOUT
    assert world.machine.groups == {}


def test_the_log_says_between_which_bounds_a_session_timeout_lies() -> None:
    world = World()
    event = Join(
        ticket=1, unique="", group_id="g", member_id="", client_id="app", client_host="/10.0.0.1",
        session_timeout_ms=1, rebalance_timeout_ms=1, protocol_type="consumer", protocols=RANGE,
        instance_id=None, reason=None, requires_known_id=True, can_skip_assignment=True,
    )  # fmt: skip
    (note,) = world.machine.on_join(event, Now(0, 0), GroupRules()).notes
    assert "session.timeout.ms=1 " in note
    assert "group.min.session.timeout.ms=6000" in note
    assert "group.max.session.timeout.ms=1800000" in note


def test_a_member_of_a_group_that_is_gone_starts_over() -> None:
    world = World()
    assert world.joined(world.join("old-id")).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.machine.groups == {}


@pytest.mark.parametrize("details", [{"protocols": ()}, {"protocol_type": ""}])
def test_a_member_must_offer_a_protocol(details: dict[str, Any]) -> None:
    world = World()
    assert world.joined(world.join(**details)).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert world.machine.groups == {}


def test_members_must_have_a_protocol_in_common() -> None:
    world = World()
    world.stable(None)
    other = (("sticky", b""),)
    assert world.joined(world.join(protocols=other)).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert world.joined(world.join(protocol_type="connect")).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert world.joined(world.join(protocols=(*other, *RANGE))).error is ErrorCode.MEMBER_ID_REQUIRED


def test_the_protocol_most_members_prefer_is_chosen_among_those_all_support() -> None:
    world = World()
    x, y, z = (("x", SUBSCRIPTION), ("y", SUBSCRIPTION), ("z", SUBSCRIPTION))
    offers = [(z, x, y), (y, x), (x, y), (y, x, z), (y, x)]
    tickets = [world.join(requires_known_id=False, protocols=protocols) for protocols in offers]
    world.wait(6000)
    # Not all know z, so the first member's vote goes to x: two for x, three for y.
    assert {world.joined(ticket).protocol for ticket in tickets} == {"y"}


def test_only_the_leader_hears_who_is_in_the_group() -> None:
    world = World()
    tickets = [world.join(requires_known_id=False, instance_id=name) for name in ("a", "b", "c")]
    world.wait(20_000)
    answers = [world.joined(ticket) for ticket in tickets]
    leader = answers[0].leader
    assert {answer.leader for answer in answers} == {leader}
    for answer in answers:
        expected = {a.member_id for a in answers} if answer.member_id == leader else set()
        assert {member.member_id for member in answer.members} == expected
    (metadata,) = {member.metadata for answer in answers for member in answer.members}
    assert metadata == SUBSCRIPTION


def test_an_empty_group_waits_for_more_members() -> None:
    world = World()
    first = world.join(requires_known_id=False)
    world.wait(2999)
    assert first in world.open
    second = world.join(requires_known_id=False)
    world.wait(1)  # a member came meanwhile: one more delay
    assert {first, second} <= world.open
    world.wait(3000)
    assert not world.open
    assert world.group.generation == 1


def test_the_wait_for_more_members_ends_with_the_rebalance_timeout() -> None:
    world = World()
    for _ in range(12):
        world.join(requires_known_id=False, rebalance_timeout_ms=10_000)
        world.wait(1000)
    assert world.group.generation == 1
    assert world.group.previous_state is not State.EMPTY


def test_without_delay_the_first_round_ends_at_once() -> None:
    world = World(GroupRules(initial_rebalance_delay_ms=0))
    ticket = world.join(requires_known_id=False)
    world.wait(0)
    assert world.joined(ticket).generation == 1


def test_members_that_do_not_join_again_in_time_are_out() -> None:
    world = World()
    first, second = world.stable(None, None, session_timeout_ms=600_000)
    leader = world.group.leader
    assert leader is not None
    other = second if leader == first else first
    ticket = world.join(other, protocols=(("range", b"new"),))
    assert world.heartbeat(leader, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    world.wait(60_000)
    joined = world.joined(ticket)
    assert (joined.generation, joined.leader, len(joined.members)) == (2, other, 1)
    assert world.heartbeat(leader, 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_static_members_that_do_not_join_again_keep_their_place_for_a_session() -> None:
    world = World()
    first, second = world.stable("one", "two", session_timeout_ms=1_000_000)
    leader = world.group.leader
    assert leader is not None
    other = second if leader == first else first
    ticket = world.join(other, instance_id=world.group.members[other].instance_id, protocols=(("range", b"new"),))
    world.wait(60_000)
    joined = world.joined(ticket)
    assert joined.leader == other  # the leader must be one that is here
    assert len(joined.members) == 2
    world.wait(1_000_000)
    assert leader not in world.machine.groups["g"].members


def test_a_follower_that_joins_again_unchanged_is_told_the_generation() -> None:
    world = World()
    ids = world.stable(None, None)
    follower = next(name for name in ids if name != world.group.leader)
    joined = world.joined(world.join(follower))
    assert (joined.error, joined.generation, joined.members) == (ErrorCode.NONE, 1, ())
    assert world.group.state is State.STABLE


def test_a_leader_that_joins_again_calls_for_a_rebalance() -> None:
    world = World()
    ids = world.stable(None, None)
    leader = world.group.leader
    assert leader is not None
    ticket = world.join(leader)
    assert world.group.state is State.PREPARING
    world.join(next(name for name in ids if name != leader))
    assert world.joined(ticket).generation == 2


def test_changed_metadata_calls_for_a_rebalance_also_before_the_sync() -> None:
    world = World()
    (member_id,) = world.stable(None)
    first = world.joined(world.join(member_id))
    assert (first.generation, world.group.state) == (2, State.COMPLETING)
    again = world.joined(world.join(member_id))  # the answer was lost: the same generation
    assert again == first
    changed = world.joined(world.join(member_id, protocols=(("range", b"other"),)))
    assert changed.generation == 3


def test_a_full_group_takes_no_more_members() -> None:
    world = World(GroupRules(max_size=1))
    (member_id,) = world.stable(None)
    refused = world.joined(world.join())
    assert (refused.error, refused.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    assert world.joined(world.join(member_id)).generation == 2  # members may always come back


def test_a_group_that_became_too_big_sheds_members() -> None:
    world = World()
    ids = world.stable(None, None, None)
    world.set_rules(max_size=2)
    world.restart()
    assert world.heartbeat(ids[0], 1) is ErrorCode.REBALANCE_IN_PROGRESS
    tickets = [world.join(member_id) for member_id in ids]
    assert [world.joined(ticket).error for ticket in tickets].count(ErrorCode.GROUP_MAX_SIZE_REACHED) == 1
    assert [world.joined(ticket).generation for ticket in tickets].count(2) == 2
    assert len(world.group.members) == 2


def test_a_restarted_static_member_takes_its_place_without_a_rebalance() -> None:
    world = World()
    old, other = world.stable("one", "two", assignment=b"share")
    joined = world.joined(world.join(instance_id="one"))
    assert (joined.error, joined.generation) == (ErrorCode.NONE, 1)
    assert joined.member_id != old
    assert world.group.state is State.STABLE
    assert world.synced(world.sync(joined.member_id, 1, instance_id="one")).assignment == b"share"
    assert world.heartbeat(other, 1, "two") is ErrorCode.NONE
    # The old process is locked out wherever it names its instance.
    assert world.heartbeat(old, 1, "one") is ErrorCode.FENCED_INSTANCE_ID
    assert world.joined(world.join(old, instance_id="one")).error is ErrorCode.FENCED_INSTANCE_ID
    assert world.synced(world.sync(old, 1, instance_id="one")).error is ErrorCode.FENCED_INSTANCE_ID
    assert world.heartbeat(old, 1) is ErrorCode.UNKNOWN_MEMBER_ID
    world.restart()
    assert world.heartbeat(joined.member_id, 1, "one") is ErrorCode.NONE


@pytest.mark.parametrize("skips", [True, False])
def test_a_restarted_static_leader_need_not_assign_again(skips: bool) -> None:
    world = World()
    (old,) = world.stable("one")
    joined = world.joined(world.join(instance_id="one", can_skip_assignment=skips))
    assert world.group.leader == joined.member_id
    if skips:
        assert (joined.leader, joined.skip_assignment) == (joined.member_id, True)
        assert [member.member_id for member in joined.members] == [joined.member_id]
    else:  # it would assign if it knew that it leads
        assert (joined.leader, joined.skip_assignment, joined.members) == (old, False, ())


def test_a_restarted_static_member_with_another_protocol_calls_for_a_rebalance() -> None:
    world = World()
    both = (*RANGE, ("sticky", SUBSCRIPTION))
    world.stable("one", protocols=both)
    ticket = world.join(instance_id="one", protocols=tuple(reversed(both)))
    assert world.joined(ticket).generation == 2
    assert world.joined(ticket).protocol == "sticky"


def test_a_static_member_restarted_before_the_sync_calls_for_a_rebalance() -> None:
    world = World()
    first, second = world.stable("one", "two")
    leader = world.group.leader
    assert leader is not None
    instance = world.group.members[leader].instance_id
    other_instance = "two" if instance == "one" else "one"
    other = second if leader == first else first
    world.join(leader, instance_id=instance)
    world.join(other, instance_id=other_instance)
    waiting = world.sync(other, 2, instance_id=other_instance)
    ticket = world.join(instance_id=instance)
    assert world.synced(waiting).error is ErrorCode.REBALANCE_IN_PROGRESS
    world.join(other, instance_id=other_instance)
    assert world.joined(ticket).generation == 3


def test_a_static_member_that_starts_twice_fences_the_first() -> None:
    world = World()
    first = world.join(instance_id="one")
    second = world.join(instance_id="one")
    assert world.joined(first).error is ErrorCode.FENCED_INSTANCE_ID
    world.wait(10_000)
    assert world.joined(second).generation == 1
    assert len(world.group.members) == 1


def test_if_the_new_id_of_a_static_member_cannot_be_written_the_old_one_stays() -> None:
    world = World()
    (old,) = world.stable("one")
    world.appends_fail = True
    assert world.answers[world.join(instance_id="one")] == LOST
    world.appends_fail = False
    assert world.heartbeat(old, 1, "one") is ErrorCode.NONE
    assert list(world.group.members) == [old]


def test_a_second_join_of_the_same_member_answers_the_first() -> None:
    world = World()
    member_id = world.new_member()
    first = world.join(member_id)
    second = world.join(member_id)
    assert world.joined(first).error is ErrorCode.REBALANCE_IN_PROGRESS
    world.wait(10_000)
    assert world.joined(second).generation == 1


def test_a_new_member_whose_client_is_gone_is_let_go_in_the_end() -> None:
    world = World()
    first, second = world.stable(None, None, session_timeout_ms=1_800_000, rebalance_timeout_ms=900_000)
    ghost = world.join(requires_known_id=False)
    world.wait(300_001)  # nobody else joins, and the ghost cannot send heartbeats
    assert world.joined(ghost).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert set(world.group.members) == {first, second}
