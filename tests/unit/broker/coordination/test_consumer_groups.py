"""Rules of consumer groups: joining, following, falling behind, leaving."""

from typing import Any

import pytest

from ottla.broker.coordination.groups.consumer.assignments import NOTHING, pairs
from ottla.broker.coordination.groups.consumer.events import Sight
from ottla.broker.coordination.groups.consumer.group import ConsumerState
from ottla.broker.coordination.groups.consumer.members import MemberState
from ottla.broker.coordination.groups.consumer.rules import GroupTimes
from ottla.broker.coordination.groups.events import GroupRules, OffsetToCommit
from ottla.model.errors import ErrorCode

from .consumer_world import ID_OF, Client, ConsumerWorld, parts, settle
from .group_world import hard_state, reload


def test_a_first_member_gets_everything_at_once() -> None:
    world = ConsumerWorld(t=3)
    answer = world.enter("m", "t")
    assert (answer.error, answer.member_epoch, answer.heartbeat_interval_ms) == (ErrorCode.NONE, 1, 5000)
    assert answer.assignment == parts(t={0, 1, 2})
    assert world.consumer_group.state is ConsumerState.STABLE
    quiet = world.beat("m", 1, owned=parts(t={0, 1, 2}))
    assert (quiet.member_epoch, quiet.assignment) == (1, None)


def test_partitions_change_hands_only_after_they_were_given_up() -> None:
    world = ConsumerWorld(t=4)
    first, second = Client(world, "a", "t"), Client(world, "b", "t")
    first.join()
    second.join()
    group = world.consumer_group
    assert second.owned == NOTHING
    assert group.members["b"].state is MemberState.UNRELEASED_PARTITIONS
    told = world.beat("a", 1, owned=first.owned)
    assert told.member_epoch == 1  # it stays in its epoch until it has let go
    assert told.assignment is not None
    assert len(next(iter(told.assignment.values()))) == 2
    assert second.beat() is ErrorCode.NONE
    assert second.owned == NOTHING  # the partitions are still with the first
    first.owned = told.assignment
    assert first.beat() is ErrorCode.NONE
    assert first.epoch == 2
    second.beat()
    assert second.owned == parts(t={0, 1, 2, 3} - set(first.owned[next(iter(first.owned))]))
    settle(world, first, second)
    assert group.state is ConsumerState.STABLE


def test_a_member_that_is_gone_leaves_its_partitions_to_the_others() -> None:
    world = ConsumerWorld(t=4)
    clients = [Client(world, name, "t") for name in "abc"]
    for client in clients:
        client.join()
    settle(world, *clients)
    epoch = world.consumer_group.epoch
    assert clients[0].leave() is ErrorCode.NONE
    assert world.consumer_group.epoch == epoch + 1
    assert world.consumer_group.state.value == "Assigning"
    settle(world, *clients[1:])
    assert sorted(len(c.owned[next(iter(c.owned))]) for c in clients[1:]) == [2, 2]
    for client in clients[1:]:
        client.leave()
    assert world.consumer_group.state is ConsumerState.EMPTY
    world.restart()
    assert world.consumer_group.is_empty


def test_silence_ends_a_membership() -> None:
    world = ConsumerWorld(GroupRules())
    world.set_consumer_rules(times=GroupTimes(session_timeout_ms=10_000, heartbeat_interval_ms=1000))
    client = Client(world, "a", "t")
    client.join()
    for _ in range(3):
        world.wait(9_999)
        assert client.beat() is ErrorCode.NONE
    world.wait(10_000)
    assert client.beat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_who_does_not_give_up_partitions_in_time_is_out() -> None:
    world = ConsumerWorld(t=2)
    slow, second = Client(world, "a", "t"), Client(world, "b", "t")
    slow.join()
    second.join()
    for _ in range(9):
        # It keeps speaking, but it keeps what it has as well.
        world.wait(9_000)
        assert world.beat("a", 1, owned=parts(t={0, 1})).error in (ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID)
        second.beat()
    assert "a" not in world.consumer_group.members
    assert second.owned == parts(t={0, 1})


def test_a_restart_changes_nothing_and_keeps_time() -> None:
    world = ConsumerWorld(t=4)
    first, second = Client(world, "a", "t"), Client(world, "b", "t")
    first.join()
    second.join()
    told = world.beat("a", 1, owned=first.owned)
    before = hard_state(world.machine)
    world.restart()
    assert hard_state(world.machine) == before
    assert world.consumer_group.owners == dict.fromkeys(world.consumer_group.owners, "a")
    assert told.assignment is not None
    first.owned = told.assignment
    settle(world, first, second)
    world.restart()
    world.wait(45_000)
    assert world.consumer_group.is_empty


def test_an_answer_that_was_lost_is_given_again() -> None:
    world = ConsumerWorld(t=4)
    first = Client(world, "a", "t")
    first.join()
    world.set_topics(t=6)
    lost = world.beat("a", 1, owned=first.owned)
    assert lost.member_epoch == 2
    again = world.beat("a", 1, owned=first.owned, topics=("t",), rebalance_timeout_ms=60_000)
    assert (again.error, again.member_epoch, again.assignment) == (ErrorCode.NONE, 2, parts(t=set(range(6))))


@pytest.mark.parametrize("epoch", [0, 1, 9])
def test_an_epoch_from_another_time_is_fenced_but_a_rejoin_is_not(epoch: int) -> None:
    world = ConsumerWorld(t=4)
    client = Client(world, "a", "t")
    client.join()
    for count in (5, 6, 7):
        world.set_topics(t=count)
        client.beat()
    assert client.epoch == 4
    if epoch == 0:
        assert client.join() is ErrorCode.NONE
        assert client.owned == parts(t=set(range(7)))
    else:
        assert world.beat("a", epoch, owned=client.owned).error is ErrorCode.FENCED_MEMBER_EPOCH


def test_strangers_are_told_so() -> None:
    world = ConsumerWorld()
    assert world.beat("m", 1).error is ErrorCode.GROUP_ID_NOT_FOUND
    world.enter("m", "t")
    assert world.beat("x", 1).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.beat("m", 1, instance_id="i").error is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.beat("x", -1).error is ErrorCode.UNKNOWN_MEMBER_ID


JOIN: dict[str, Any] = {"rebalance_timeout_ms": 1000, "owned": NOTHING, "topics": ("t",)}


@pytest.mark.parametrize(
    ("member_id", "epoch", "details", "error"),
    [
        ("", 0, JOIN, ErrorCode.INVALID_REQUEST),
        ("m", 0, JOIN | {"rebalance_timeout_ms": -1}, ErrorCode.INVALID_REQUEST),
        ("m", 0, JOIN | {"owned": None}, ErrorCode.INVALID_REQUEST),
        ("m", 0, JOIN | {"owned": parts(t={0})}, ErrorCode.INVALID_REQUEST),
        ("m", 0, JOIN | {"topics": None}, ErrorCode.INVALID_REQUEST),
        ("m", 0, JOIN | {"instance_id": " "}, ErrorCode.INVALID_REQUEST),
        ("m", 0, JOIN | {"rack_id": ""}, ErrorCode.INVALID_REQUEST),
        ("m", 0, JOIN | {"assignor": "mine"}, ErrorCode.UNSUPPORTED_ASSIGNOR),
        ("m", 0, JOIN | {"regex": "("}, ErrorCode.INVALID_REGULAR_EXPRESSION),
        ("m", -2, {}, ErrorCode.INVALID_REQUEST),
        ("m", -3, {}, ErrorCode.INVALID_REQUEST),
        ("", 0, JOIN | {"brings_own_id": False}, ErrorCode.NONE),
    ],
)
def test_what_may_not_be_asked(member_id: str, epoch: int, details: dict[str, Any], error: ErrorCode) -> None:
    world = ConsumerWorld()
    answer = world.beat(member_id, epoch, **details)
    assert answer.error is error
    assert ("g" in world.machine.consumer.groups) == (error is ErrorCode.NONE)


def test_new_topics_and_partitions_are_assigned_when_members_speak() -> None:
    world = ConsumerWorld(t=1)
    client = Client(world, "a", "t", "u")
    client.join()
    assert client.owned == parts(t={0})
    world.set_topics(t=2, u=1)
    client.beat()
    assert client.owned == parts(t={0, 1}, u={0})
    epoch = client.epoch
    world.set_topics(t=2, u=1, v=3)  # nobody asked for v
    client.beat()
    assert client.epoch == epoch
    world.set_topics(u=1)
    client.beat()
    assert client.owned == parts(u={0})


def test_patterns_are_evaluated_here() -> None:
    world = ConsumerWorld(t=1, u=1)
    client = Client(world, "a", regex="t|v.*")
    client.join()
    assert client.owned == parts(t={0})
    world.set_topics(t=1, u=1, v=2)
    client.beat()
    assert client.owned == parts(t={0}, v={0, 1})
    assert world.consumer_group.regexes["t|v.*"].topics == ["t", "v"]
    assert world.consumer_group.is_subscribed_to("v")
    world.restart()
    changed = world.beat("a", client.epoch, regex="u", owned=client.owned)
    assert changed.assignment == NOTHING
    assert list(world.consumer_group.regexes) == ["u"]
    client.leave()
    assert world.consumer_group.regexes == {}


def sees(who: str, *names: str, version: int = 1) -> Sight:
    return Sight((who, "host", version), lambda name: name in names)


def test_patterns_find_only_what_their_member_may_know_of() -> None:
    """Another member with the same pattern, who may know more, does not change that."""
    world = ConsumerWorld(t=2, u=2, v=1)
    alice = Client(world, "a", regex=".*", sight=sees("alice", "t", "u"))
    bob = Client(world, "b", regex=".*", sight=sees("bob", "u", "v"))
    for client in (alice, bob):
        client.join()
    world_of = {"a": {"t", "u"}, "b": {"u", "v"}}
    for _ in range(5):
        for client, sight in ((alice, alice.details["sight"]), (bob, bob.details["sight"])):
            client._take(world.beat(client.member_id, client.epoch, owned=client.owned, sight=sight))
    for client in (alice, bob):
        assert {ID_OF[name] for name in world_of[client.member_id]} >= set(client.owned)
    everything = [pair for client in (alice, bob) for pair in pairs(client.owned)]
    assert sorted(everything) == sorted(pairs(parts(t={0, 1}, u={0, 1}, v={0})))
    assert world.consumer_group.regexes[".*"].topics == ["t", "u", "v"]


def test_a_right_that_is_given_or_withdrawn_counts_at_the_next_heartbeat() -> None:
    world = ConsumerWorld(t=1, u=1)
    client = Client(world, "a", regex=".*", sight=sees("alice", "t"))
    client.join()
    assert client.owned == parts(t={0})
    epoch = client.epoch
    client._take(world.beat("a", client.epoch, owned=client.owned, sight=sees("alice", "t")))
    assert client.epoch == epoch
    client._take(world.beat("a", client.epoch, owned=client.owned, sight=sees("alice", "t", "u", version=2)))
    assert client.owned == parts(t={0}, u={0})
    client._take(world.beat("a", client.epoch, owned=client.owned, sight=sees("alice", "u", version=3)))
    assert client.owned == parts(u={0})
    assert world.consumer_group.regexes[".*"].topics == ["u"]


def test_of_members_that_were_not_heard_of_patterns_find_nothing_more() -> None:
    """The group was read from its log: whose pattern it is nobody knows yet."""
    world = ConsumerWorld(t=1)
    client = Client(world, "a", regex=".*", sight=sees("alice", "t", "u"))
    other = Client(world, "b", "t")
    client.join()
    other.join()
    world.restart()
    world.set_topics(t=1, u=1)
    other.beat()
    assert world.consumer_group.regexes[".*"].topics == ["t"]
    client._take(world.beat("a", client.epoch, owned=client.owned, sight=sees("alice", "t", "u")))
    assert world.consumer_group.regexes[".*"].topics == ["t", "u"]


def test_the_assignor_that_most_members_want_is_used() -> None:
    world = ConsumerWorld(t=2, u=2)
    wishes = {"a": "range", "b": "range", "c": "uniform"}
    clients = [Client(world, name, "t", "u", assignor=wish) for name, wish in wishes.items()]
    for client in clients:
        client.join()
    settle(world, *clients)
    assert [client.owned for client in clients] == [parts(t={0}, u={0}), parts(t={1}, u={1}), NOTHING]


def test_a_full_group_takes_nobody() -> None:
    world = ConsumerWorld()
    world.set_consumer_rules(max_size=1)
    assert world.enter("a").error is ErrorCode.NONE
    assert world.enter("b").error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert world.beat("a", 1).error is ErrorCode.NONE


def test_a_protocol_that_is_switched_off_is_not_served() -> None:
    world = ConsumerWorld()
    world.set_consumer_rules(is_enabled=False)
    assert world.enter("a").error is ErrorCode.UNSUPPORTED_VERSION


# Static members


def test_a_static_member_finds_its_place_kept() -> None:
    world = ConsumerWorld(t=4)
    static, other = Client(world, "a", "t", instance_id="i"), Client(world, "b", "t")
    static.join()
    other.join()
    settle(world, static, other)
    epoch, had = world.consumer_group.epoch, static.owned
    assert static.leave(-2) is ErrorCode.NONE
    settle(world, other)
    successor = Client(world, "a2", "t", instance_id="i")
    assert successor.join() is ErrorCode.NONE
    assert (successor.owned, world.consumer_group.epoch) == (had, epoch)
    assert static.world.beat("a", epoch, instance_id="i").error is ErrorCode.FENCED_INSTANCE_ID
    world.restart()
    settle(world, successor, other)


def test_an_instance_that_is_in_use_is_not_given_away() -> None:
    world = ConsumerWorld()
    first = Client(world, "a", "t", instance_id="i")
    first.join()
    assert world.enter("b", "t", instance_id="i").error is ErrorCode.UNRELEASED_INSTANCE_ID
    first.leave(-1)
    assert world.enter("b", "t", instance_id="i").error is ErrorCode.NONE


def test_a_static_member_that_stays_away_is_let_go() -> None:
    world = ConsumerWorld()
    client = Client(world, "a", "t", instance_id="i")
    client.join()
    client.leave(-2)
    world.wait(45_000)
    assert world.consumer_group.is_empty
    assert world.consumer_group.static_members == {}


# Offsets


def test_a_member_that_has_not_heard_of_its_new_epoch_commits_what_stayed_its_own() -> None:
    """KIP-1251: its heartbeat was answered, the answer is on its way, and it commits before it leaves."""
    world = ConsumerWorld(t=4)
    first, second = Client(world, "a", "t"), Client(world, "b", "t")
    first.join()
    before = first.epoch
    second.join()
    settle(world, first, second)
    kept, given = first.owned[ID_OF["t"]], second.owned[ID_OF["t"]]
    assert first.epoch > before

    def commit(who: str, partition: int, epoch: int) -> list[ErrorCode] | ErrorCode:
        return world.commit(OffsetToCommit("t", partition, 5, topic_id=ID_OF["t"]), member_id=who, generation=epoch)

    assert commit("a", min(kept), before) == [ErrorCode.NONE]
    assert commit("a", min(given), before) is ErrorCode.STALE_MEMBER_EPOCH, "it is another's by now"
    assert commit("a", min(kept), before - 1) is ErrorCode.STALE_MEMBER_EPOCH, "it was not its own then"
    assert commit("a", min(kept), first.epoch + 1) is ErrorCode.STALE_MEMBER_EPOCH
    world.restart()
    assert commit("a", min(kept), before) == [ErrorCode.NONE]
    second.leave()
    settle(world, first)
    assert commit("a", min(given), before) is ErrorCode.STALE_MEMBER_EPOCH, "it came back later"
    assert commit("a", min(given), first.epoch) == [ErrorCode.NONE]


def test_members_commit_with_their_epoch() -> None:
    world = ConsumerWorld()
    world.enter("a")
    offset = OffsetToCommit("t", 0, 5)
    assert world.commit(offset, member_id="a", generation=1) == [ErrorCode.NONE]
    assert world.commit(offset, member_id="a", generation=2) is ErrorCode.STALE_MEMBER_EPOCH
    assert world.commit(offset, member_id="x", generation=1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.commit(offset) is ErrorCode.UNKNOWN_MEMBER_ID
    old = world.commit(offset, member_id="a", generation=1, knows_member_epochs=False)
    assert old is ErrorCode.UNSUPPORTED_VERSION
    in_transaction = world.commit(offset, member_id="a", generation=2, producer_id=1)
    assert in_transaction is ErrorCode.ILLEGAL_GENERATION
    assert world.commit(OffsetToCommit("t", 0, 6), member_id="a", generation=1, producer_id=1) == [ErrorCode.NONE]
    world.end_transaction(1, commit=True)
    assert world.consumer_group.offsets["t"][0].offset == 6
    world.restart()
    assert world.consumer_group.offsets["t"][0].offset == 6


def test_a_group_that_is_deleted_is_gone_with_everything() -> None:
    world = ConsumerWorld()
    client = Client(world, "a", regex="t")
    client.join()
    world.commit(OffsetToCommit("t", 0, 5), member_id="a", generation=1)
    with pytest.raises(Exception, match="NON_EMPTY_GROUP"):
        world.machine.delete_group("g")
    client.leave()
    world.write(world.machine.delete_group("g"))
    assert hard_state(world.machine)[0] == ({}, {})
    assert hard_state(reload(world.records))[0] == ({}, {})


def test_offsets_age_by_their_commit_except_for_topics_that_are_read() -> None:
    world = ConsumerWorld(t=1, u=1)
    world.set_rules(offsets_retention_ms=1000)
    client = Client(world, "a", "t")
    client.join()
    for topic in ("t", "u"):
        world.commit(OffsetToCommit(topic, 0, 5), member_id="a", generation=1)
    world.wait(2000)
    for entries in world.machine.expire(world.now, world.rules):
        world.write(entries)
    assert list(world.consumer_group.offsets) == ["t"]
    client.leave()
    for entries in world.machine.expire(world.now, world.rules):
        world.write(entries)
    assert "g" not in world.machine.consumer.groups
