"""Rules of committed offsets."""

from uuid import UUID

import pytest

from ottla.broker.coordination.groups import offsets
from ottla.broker.coordination.groups.classic.states import State
from ottla.broker.coordination.groups.events import GroupRules, Leaver, OffsetToCommit
from ottla.model.errors import ApiError, ErrorCode

from .group_world import World

ID, OTHER_ID = UUID(int=1), UUID(int=2)
DAY_MS = 86_400_000


def expire(world: World) -> None:
    for entries in world.machine.expire(world.now, world.rules):
        world.write(entries)


def committed(world: World, topic: str = "t", partition: int = 0) -> int | None:
    value = offsets.find(world.group, topic, partition) if "g" in world.machine.groups else None
    return None if value is None else value.offset


def test_members_commit_in_their_generation_only() -> None:
    world = World()
    (member_id,) = world.stable("one")
    offset = OffsetToCommit("t", 0, 5)
    assert world.commit(offset, member_id=member_id, generation=1, instance_id="one") == [ErrorCode.NONE]
    assert world.commit(offset, member_id=member_id, generation=2) is ErrorCode.ILLEGAL_GENERATION
    assert world.commit(offset, member_id="stranger", generation=1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.commit(offset, member_id="x", generation=1, instance_id="one") is ErrorCode.FENCED_INSTANCE_ID
    assert world.commit(offset) is ErrorCode.UNKNOWN_MEMBER_ID  # an outsider, while members are at work
    assert committed(world) == 5


def test_commits_while_the_group_changes() -> None:
    world = World()
    first, second = world.stable(None, None)
    leader = world.group.leader
    assert leader is not None
    offset = OffsetToCommit("t", 0, 5)
    world.join(leader)
    # Members finish their work of the old generation while the new one is prepared ...
    assert world.commit(offset, member_id=first, generation=1) == [ErrorCode.NONE]
    world.join(second if leader == first else first)
    assert world.group.state is State.COMPLETING
    # ... but in the new one nobody knows yet what it owns.
    assert world.commit(offset, member_id=first, generation=2) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_commit_is_as_good_as_a_heartbeat() -> None:
    world = World()
    (member_id,) = world.stable(None)
    for number in range(5):
        world.wait(9000)
        assert world.commit(OffsetToCommit("t", 0, number), member_id=member_id, generation=1) == [ErrorCode.NONE]


def test_whoever_assigns_its_own_partitions_commits_to_a_group_without_members() -> None:
    world = World()
    assert world.commit(OffsetToCommit("t", 0, 1)) == [ErrorCode.NONE]
    assert world.group.is_simple
    assert world.commit(OffsetToCommit("t", 0, 2), member_id="any") == [ErrorCode.NONE]
    world.restart()
    assert committed(world) == 2


@pytest.mark.parametrize("error", [ErrorCode.ILLEGAL_GENERATION, ErrorCode.GROUP_ID_NOT_FOUND])
def test_a_member_of_an_unknown_group_hears_what_its_version_understands(error: ErrorCode) -> None:
    world = World()
    answer = world.commit(OffsetToCommit("t", 0, 1), member_id="m", generation=1, unknown_group_error=error)
    assert answer is error
    assert world.machine.groups == {}


def test_metadata_has_a_limit_for_each_partition() -> None:
    world = World(GroupRules(offset_metadata_max_bytes=3))
    answer = world.commit(
        OffsetToCommit("t", 0, 1, metadata="abcd"), OffsetToCommit("t", 1, 2, metadata="abc"), OffsetToCommit("t", 2, 3)
    )
    assert answer == [ErrorCode.OFFSET_METADATA_TOO_LARGE, ErrorCode.NONE, ErrorCode.NONE]
    assert (committed(world), committed(world, partition=1)) == (None, 2)


def test_all_that_is_committed_comes_back() -> None:
    world = World()
    world.commit(OffsetToCommit("t", 3, 7, 9, "note", ID), OffsetToCommit("t", 4, 8, -1, None))
    world.restart()
    value = offsets.find(world.group, "t", 3)
    assert value is not None
    assert (value.offset, value.leader_epoch, value.metadata, value.topic_id) == (7, 9, "note", ID)
    empty = offsets.find(world.group, "t", 4)
    assert empty is not None
    assert empty.metadata == ""


def test_offsets_of_an_earlier_topic_of_the_same_name_are_not_told() -> None:
    world = World()
    world.commit(OffsetToCommit("t", 0, 7, topic_id=ID), OffsetToCommit("t", 1, 8))
    assert offsets.find(world.group, "t", 0, ID) is not None
    assert offsets.find(world.group, "t", 0, OTHER_ID) is None
    assert offsets.find(world.group, "t", 0) is not None
    assert offsets.find(world.group, "t", 1, OTHER_ID) is not None  # committed without an id: nobody knows


def test_offsets_of_topics_that_the_group_reads_cannot_be_deleted() -> None:
    world = World()
    (member_id,) = world.stable(None)  # subscribed to t
    for topic in ("t", "u"):
        world.commit(OffsetToCommit(topic, 0, 1), member_id=member_id, generation=1)
    deleted = world.machine.delete_offsets("g", [("t", 0), ("u", 0), ("u", 9)])
    assert deleted.errors == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.NONE, ErrorCode.NONE]
    world.write(deleted.records)
    assert (committed(world, "t"), committed(world, "u")) == (1, None)


def test_offsets_of_a_group_whose_subscriptions_cannot_be_known_cannot_be_deleted() -> None:
    world = World()
    world.stable(None, protocol_type="connect")
    with pytest.raises(ApiError) as refused:
        world.machine.delete_offsets("g", [("t", 0)])
    assert refused.value.code is ErrorCode.NON_EMPTY_GROUP
    with pytest.raises(ApiError) as unknown:
        world.machine.delete_offsets("nobody", [("t", 0)])
    assert unknown.value.code is ErrorCode.GROUP_ID_NOT_FOUND


def test_offsets_of_a_simple_group_age_one_by_one() -> None:
    world = World()
    world.commit(OffsetToCommit("t", 0, 1))
    world.wait(3 * DAY_MS)
    world.commit(OffsetToCommit("t", 1, 1))
    world.wait(4 * DAY_MS)
    expire(world)
    assert (committed(world), committed(world, partition=1)) == (None, 1)
    world.wait(3 * DAY_MS)
    expire(world)
    assert "g" not in world.machine.groups


def test_offsets_of_a_group_age_together_once_it_is_empty() -> None:
    world = World()
    (member_id,) = world.stable(None, session_timeout_ms=1_800_000)
    world.commit(OffsetToCommit("t", 0, 1), member_id=member_id, generation=1)
    for _ in range(8 * 72):
        world.wait(DAY_MS / 72)
        world.heartbeat(member_id, 1)
    expire(world)
    assert committed(world) == 1  # members are at work
    world.leave(Leaver(member_id))
    world.wait(7 * DAY_MS - 1)
    expire(world)
    assert committed(world) == 1
    world.wait(1)
    expire(world)
    assert "g" not in world.machine.groups
    world.restart()
    assert world.machine.groups == {}


def test_offsets_of_topics_that_are_no_longer_read_age_while_members_are_at_work() -> None:
    world = World()
    (member_id,) = world.stable(None, session_timeout_ms=1_800_000)  # subscribed to t
    for topic in ("t", "u"):
        world.commit(OffsetToCommit(topic, 0, 1), member_id=member_id, generation=1)
    for _ in range(7 * 72):
        world.wait(DAY_MS / 72)
        world.heartbeat(member_id, 1)
    expire(world)
    assert (committed(world, "t"), committed(world, "u")) == (1, None)


def test_nothing_ages_where_subscriptions_are_not_known_or_change() -> None:
    world = World(GroupRules(offsets_retention_ms=1))
    (member_id,) = world.stable(None, protocol_type="connect", protocols=(("range", b"opaque"),))
    world.commit(OffsetToCommit("u", 0, 1), member_id=member_id, generation=1)
    world.wait(1000)
    expire(world)
    assert committed(world, "u") == 1


def test_a_retention_that_the_client_asked_for_counts_alone() -> None:
    world = World()
    world.commit(OffsetToCommit("t", 0, 1), retention_ms=1000)
    world.restart()
    world.wait(999)
    expire(world)
    assert committed(world) == 1
    world.wait(1)
    expire(world)
    assert committed(world) is None


def test_an_empty_group_without_offsets_is_let_go() -> None:
    world = World()
    (member_id,) = world.stable(None)
    expire(world)
    assert "g" in world.machine.groups
    world.leave(Leaver(member_id))
    pending = world.new_member()
    expire(world)
    assert "g" in world.machine.groups  # somebody is about to come back
    world.leave(Leaver(pending))
    expire(world)
    assert "g" not in world.machine.groups
