"""Groups that change between the classic and the consumer protocol while their members are at work."""

import pytest

from ottla.broker.coordination.groups.classic.states import State
from ottla.broker.coordination.groups.consumer import classic_wire
from ottla.broker.coordination.groups.consumer.assignments import NOTHING, Assignment
from ottla.broker.coordination.groups.consumer.members import MemberState
from ottla.broker.coordination.groups.events import Leaver, OffsetToCommit
from ottla.model.errors import ErrorCode
from ottla.protocol import codec
from ottla.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription, TopicPartition

from .consumer_world import Client, ConsumerWorld, parts
from .group_world import hard_state, reload


def subscription(*names: str, owned: Assignment = NOTHING, world: ConsumerWorld | None = None) -> bytes:
    message = ConsumerProtocolSubscription(
        topics=list(names),
        owned_partitions=[
            TopicPartition(topic=world.rules.topics.names[topic_id], partitions=sorted(numbers))
            for topic_id, numbers in owned.items()
            if world is not None
        ],
    )
    return b"\x00\x01" + bytes(codec.encode(message, 1))


class ClassicClient:
    """A classic member with a cooperative assignor, as it behaves in either kind of group."""

    def __init__(self, world: ConsumerWorld, *names: str, instance_id: str | None = None) -> None:
        self.world, self.names, self.instance_id = world, names, instance_id
        self.member_id = ""
        self.generation = -1
        self.owned: Assignment = NOTHING

    def join(self) -> int:
        protocols = (("sticky", subscription(*self.names, owned=self.owned, world=self.world)),)
        ticket = self.world.join(self.member_id, protocols=protocols, instance_id=self.instance_id)
        answer = self.world.answers.get(ticket)
        if answer is not None and answer.error is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            ticket = self.world.join(self.member_id, protocols=protocols, instance_id=self.instance_id)
        return ticket

    def rejoin(self) -> None:
        """In a consumer group nothing is parked: join, then sync, then give up what is not one's own."""
        answer = self.world.joined(self.join())
        assert answer.error is ErrorCode.NONE, answer
        self.member_id, self.generation = answer.member_id, answer.generation
        synced = self.world.synced(
            self.world.sync(self.member_id, self.generation, instance_id=self.instance_id, protocol="sticky")
        )
        assert synced.error is ErrorCode.NONE
        self.owned = classic_wire.read_assignment(synced.assignment, self.world.rules.topics)

    def follow(self) -> bool:
        """One heartbeat, and what it asks for. False if it asked for nothing."""
        code = self.world.heartbeat(self.member_id, self.generation, self.instance_id)
        assert code in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS), code
        if code is ErrorCode.REBALANCE_IN_PROGRESS:
            self.rejoin()
        return code is ErrorCode.REBALANCE_IN_PROGRESS


def classic_group(world: ConsumerWorld, count: int = 1, instance_id: str | None = None) -> list[ClassicClient]:
    """A stable classic group whose leader gave everything to the first."""
    clients = [ClassicClient(world, "t", instance_id=instance_id if number == 0 else None) for number in range(count)]
    tickets = [client.join() for client in clients]
    world.wait(world.rules.initial_rebalance_delay_ms * (count + 1))
    for client, ticket in zip(clients, tickets, strict=True):
        answer = world.joined(ticket)
        client.member_id, client.generation = answer.member_id, answer.generation
    everything = parts(t=set(range(4)))
    contents = {client.member_id: NOTHING for client in clients} | {clients[0].member_id: everything}
    shares = tuple(
        (member_id, classic_wire.write_assignment(share, world.rules.topics, 1))
        for member_id, share in contents.items()
    )
    for client in sorted(clients, key=lambda client: world.group.leader == client.member_id):
        world.sync(client.member_id, client.generation, assignments=shares, instance_id=client.instance_id)
        client.owned = contents[client.member_id]
    assert world.group.state is State.STABLE
    return clients


def settle(world: ConsumerWorld, classics: list[ClassicClient], *consumers: Client) -> None:
    for _ in range(20):
        before = len(world.records)
        moved = [client.follow() for client in classics]
        for consumer in consumers:
            assert consumer.beat() is ErrorCode.NONE
        if not any(moved) and len(world.records) == before:
            return
    raise AssertionError("the group did not settle")


def test_a_rolling_upgrade_and_back() -> None:
    world = ConsumerWorld(t=4)
    (classic,) = classic_group(world)
    world.commit(OffsetToCommit("t", 0, 7), member_id=classic.member_id, generation=classic.generation)
    consumer = Client(world, "new", "t")
    assert consumer.join() is ErrorCode.NONE
    assert "g" not in world.machine.groups
    assert consumer.owned == NOTHING  # everything is still with the classic member
    settle(world, [classic], consumer)
    assert (len(classic.owned[next(iter(classic.owned))]), len(consumer.owned[next(iter(consumer.owned))])) == (2, 2)
    assert not set(classic.owned[next(iter(classic.owned))]) & set(consumer.owned[next(iter(consumer.owned))])
    assert world.consumer_group.offsets["t"][0].offset == 7
    world.restart()
    settle(world, [classic], consumer)
    offset = OffsetToCommit("t", 0, 8)
    assert world.commit(offset, member_id=classic.member_id, generation=classic.generation) == [ErrorCode.NONE]
    stale = world.commit(offset, member_id=classic.member_id, generation=classic.generation - 1)
    assert stale is ErrorCode.ILLEGAL_GENERATION
    # Back again: when the last member of the new protocol goes, the rest is a classic group in a rebalance.
    assert consumer.leave() is ErrorCode.NONE
    assert "g" not in world.machine.consumer.groups
    assert world.group.state is State.PREPARING
    assert world.group.offsets["t"][0].offset == 8
    assert hard_state(reload(world.records)) == hard_state(world.machine)
    ticket = classic.join()
    assert world.joined(ticket).error is ErrorCode.NONE
    assert world.joined(ticket).leader == classic.member_id


def test_the_last_classic_member_leaves_a_pure_consumer_group() -> None:
    world = ConsumerWorld(t=4)
    (classic,) = classic_group(world)
    consumer = Client(world, "new", "t")
    consumer.join()
    settle(world, [classic], consumer)
    left = world.left(world.leave(Leaver(classic.member_id)))
    assert [error for _, error in left.members] == [ErrorCode.NONE]
    settle(world, [], consumer)
    assert consumer.owned == parts(t=set(range(4)))
    assert [member.is_classic for member in world.consumer_group.members.values()] == [False]


def test_members_that_wait_in_a_rebalance_are_sent_to_join_anew() -> None:
    world = ConsumerWorld(t=4)
    first, second = classic_group(world, 2)
    parked = (first if world.group.leader == first.member_id else second).join()
    assert parked not in world.answers
    Client(world, "new", "t").join()
    assert world.joined(parked).error is ErrorCode.REBALANCE_IN_PROGRESS
    assert not world.open


@pytest.mark.parametrize("policy", [{"can_upgrade": False}, {"max_size": 0}])
def test_an_upgrade_that_is_not_allowed_leaves_the_group_as_it_is(policy: dict[str, int]) -> None:
    world = ConsumerWorld(t=4)
    (classic,) = classic_group(world)
    world.set_consumer_rules(**policy)
    assert world.enter("new", "t").error is ErrorCode.GROUP_ID_NOT_FOUND
    assert world.heartbeat(classic.member_id, classic.generation) is ErrorCode.NONE


def test_a_group_of_another_kind_is_not_upgraded() -> None:
    world = ConsumerWorld(t=4)
    world.stable(None, protocol_type="connect")
    assert world.enter("new", "t").error is ErrorCode.GROUP_ID_NOT_FOUND


def test_without_downgrade_the_classic_members_stay_where_they_are() -> None:
    world = ConsumerWorld(t=4)
    (classic,) = classic_group(world)
    consumer = Client(world, "new", "t")
    consumer.join()
    settle(world, [classic], consumer)
    world.set_consumer_rules(can_downgrade=False)
    consumer.leave()
    settle(world, [classic])
    assert classic.owned == parts(t=set(range(4)))


def test_empty_groups_change_sides_freely() -> None:
    world = ConsumerWorld(t=4)
    world.commit(OffsetToCommit("t", 0, 1))  # a group that only keeps offsets
    consumer = Client(world, "new", "t")
    consumer.join()
    assert world.consumer_group.offsets["t"][0].offset == 1
    consumer.leave()
    (classic,) = classic_group(world)
    assert world.group.offsets["t"][0].offset == 1
    world.leave(Leaver(classic.member_id))
    assert consumer.join() is ErrorCode.NONE
    assert world.consumer_group.offsets["t"][0].offset == 1
    assert hard_state(reload(world.records)) == hard_state(world.machine)


def test_a_static_member_changes_sides_and_keeps_its_partitions() -> None:
    world = ConsumerWorld(t=4)
    (classic,) = classic_group(world, instance_id="i")
    consumer = Client(world, "new", "t", instance_id="i")
    assert consumer.join() is ErrorCode.NONE  # no leave is needed: the classic protocol has none for static members
    assert consumer.owned == parts(t=set(range(4)))
    assert world.heartbeat(classic.member_id, classic.generation, "i") is ErrorCode.FENCED_INSTANCE_ID
    back = ClassicClient(world, "t", instance_id="i")
    answer = world.joined(back.join())
    assert answer.error is ErrorCode.NONE
    assert world.group.state is State.STABLE
    synced = world.synced(world.sync(answer.member_id, answer.generation, instance_id="i"))
    assert classic_wire.read_assignment(synced.assignment, world.rules.topics) == parts(t=set(range(4)))
    assert hard_state(reload(world.records)) == hard_state(world.machine)


def test_classic_members_are_bound_to_the_rules_of_a_consumer_group() -> None:
    world = ConsumerWorld(t=4)
    (classic,) = classic_group(world)
    consumer = Client(world, "new", "t")
    consumer.join()
    member_id, generation = classic.member_id, classic.generation
    assert world.heartbeat(member_id, generation) is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.heartbeat(member_id, generation + 9) is ErrorCode.ILLEGAL_GENERATION
    assert world.heartbeat("new", consumer.epoch) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.synced(world.sync(member_id, generation)).error is ErrorCode.REBALANCE_IN_PROGRESS
    other_kind = world.joined(world.join(member_id, protocol_type="connect"))
    assert other_kind.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    nothing_in_common = world.joined(world.join(protocols=(("range", subscription("t")),)))
    assert nothing_in_common.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    malformed = world.joined(world.join("x", protocols=(("sticky", b"\x00"),)))
    assert malformed.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("stage", ["never joins", "never syncs"])
def test_classic_members_that_do_not_follow_are_let_go(stage: str) -> None:
    world = ConsumerWorld(t=4)
    (classic,) = classic_group(world)
    consumer = Client(world, "new", "t")
    consumer.join()
    if stage == "never syncs":
        answer = world.joined(classic.join())
        classic.generation = answer.generation
    for _ in range(8):
        world.wait(9_000)
        consumer.beat()
        world.heartbeat(classic.member_id, classic.generation)
    assert list(world.consumer_group.members) == ["new"]
    settle(world, [], consumer)
    assert consumer.owned == parts(t=set(range(4)))


def test_an_eager_member_gives_up_everything_by_joining() -> None:
    world = ConsumerWorld(t=4)
    (classic,) = classic_group(world)
    consumer = Client(world, "new", "t")
    consumer.join()
    classic.owned = NOTHING  # it revokes all before it joins
    classic.rejoin()
    assert world.consumer_group.members[classic.member_id].state is MemberState.STABLE
    consumer.beat()
    assert len(next(iter(consumer.owned.values()))) == 2
