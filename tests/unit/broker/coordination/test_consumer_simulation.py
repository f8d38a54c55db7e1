"""Every order of events against groups of both protocols at once; what must hold in each of them.

Clients here do what clients do, but late: they lose answers, fall silent, come back, change their minds.
"""

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.chance import SOAK

from ottla.broker.coordination.groups.classic.group import ClassicGroup
from ottla.broker.coordination.groups.consumer import classic_wire
from ottla.broker.coordination.groups.consumer.assignments import NOTHING, Assignment, assignment_of, pairs
from ottla.broker.coordination.groups.consumer.assignors import Candidate, assign_range
from ottla.broker.coordination.groups.consumer.group import ConsumerGroup
from ottla.broker.coordination.groups.events import GroupRules, Joined, Leaver, OffsetToCommit, Synced
from ottla.broker.coordination.shard import encode_entry
from ottla.model.errors import ErrorCode
from ottla.protocol.records import NO_PRODUCER_ID

from .consumer_world import ConsumerWorld
from .group_world import LOST, LogItem, hard_state, reload
from .test_migration import subscription

TOPICS = [{"t": 3}, {"t": 5}, {"t": 3, "u": 2}, {"t": 3, "u": 2, "v": 1}, {"u": 2}]
WISHES: list[dict[str, Any]] = [
    {"topics": ("t",)},
    {"topics": ("t", "u")},
    {"topics": ("u", "v")},
    {"topics": (), "regex": "[tu]"},
    {"topics": ("t",), "regex": "v"},
]
FENCED = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND)


class NewClient:
    """A member of the consumer protocol. `owned` is what it reads right now."""

    def __init__(self, world: "LossyWorld", member_id: str, wish: dict[str, Any], instance_id: str | None) -> None:
        self.world, self.member_id, self.wish, self.instance_id = world, member_id, wish, instance_id
        self.epoch = 0
        self.owned: Assignment = NOTHING
        self.meant: Assignment = NOTHING

    def join(self, lost: bool) -> None:
        self.owned = self.meant = NOTHING
        self.epoch = 0
        answer = self.world.beat_or_lose(
            self.member_id, 0, owned=NOTHING, rebalance_timeout_ms=60_000, instance_id=self.instance_id, **self.wish
        )
        self.take(answer, lost)

    def beat(self, lost: bool, full: bool) -> None:
        details: dict[str, Any] = {"owned": self.owned}
        if full:
            details |= {"rebalance_timeout_ms": 60_000, **self.wish}
        self.take(self.world.beat_or_lose(self.member_id, self.epoch, instance_id=self.instance_id, **details), lost)

    def take(self, answer: Any, lost: bool) -> None:
        if answer == LOST or lost:
            return
        if answer.error in FENCED:
            self.owned = self.meant = NOTHING
            self.epoch = 0
        elif answer.error is ErrorCode.NONE:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.meant = answer.assignment
                # What is new is read from now on; what is to go takes its time.
                self.owned = assignment_of({*pairs(self.owned), *pairs(self.meant)})

    def give_up(self) -> None:
        self.owned = assignment_of(set(pairs(self.owned)) & set(pairs(self.meant)))

    def catch_up(self) -> None:
        self.give_up()
        (self.beat if self.epoch else self._join_again)(False, True)

    def _join_again(self, lost: bool, full: bool) -> None:
        self.join(lost)


class OldClient:
    """A classic member that gives up everything before it joins."""

    def __init__(self, world: "LossyWorld") -> None:
        self.world = world
        self.member_id = ""
        self.generation = -1
        self.owned: Assignment = NOTHING
        self.join_ticket: int | None = None
        self.sync_ticket: int | None = None
        self.leads: Joined | None = None

    def join(self) -> None:
        self.owned, self.generation = NOTHING, -1
        self.sync_ticket = None
        self.join_ticket = self.world.join(self.member_id, protocols=(("range", subscription("t", "u")),))
        self.look()

    def look(self) -> None:
        """Take up what has been answered meanwhile."""
        if LOST in (self.world.answers.get(self.join_ticket or 0), self.world.answers.get(self.sync_ticket or 0)):
            self.join_ticket = self.sync_ticket = None
            self.generation = -1
        answer = self.world.answers.get(self.join_ticket or 0)
        if isinstance(answer, Joined):
            self.join_ticket = None
            if answer.error is ErrorCode.MEMBER_ID_REQUIRED:
                self.member_id = answer.member_id
            elif answer.error is ErrorCode.NONE:
                self.member_id, self.generation, self.leads = answer.member_id, answer.generation, answer
            elif answer.error is ErrorCode.UNKNOWN_MEMBER_ID:
                self.member_id = ""
        answer = self.world.answers.get(self.sync_ticket or 0)
        if isinstance(answer, Synced):
            self.sync_ticket = None
            if answer.error is ErrorCode.NONE:
                self.owned = classic_wire.read_assignment(answer.assignment, self.world.rules.topics)

    def sync(self) -> None:
        shares: tuple[tuple[str, bytes], ...] = ()
        topics = self.world.rules.topics
        if self.leads is not None and self.leads.members:
            wanted = topics.ids_of(("t", "u"))
            members = [Candidate(member.member_id, None, wanted) for member in self.leads.members]
            shares = tuple(
                (name, classic_wire.write_assignment(share, topics, 1))
                for name, share in assign_range(members, topics.partitions).items()
            )
        self.leads = None
        self.sync_ticket = self.world.sync(self.member_id, self.generation, assignments=shares)
        self.look()

    def beat(self) -> None:
        code = self.world.heartbeat(self.member_id, self.generation)
        if code is ErrorCode.REBALANCE_IN_PROGRESS:
            self.join()
        elif code is not ErrorCode.NONE:
            self.owned, self.generation = NOTHING, -1
            if code is ErrorCode.UNKNOWN_MEMBER_ID:
                self.member_id = ""

    def catch_up(self) -> None:
        self.look()
        if self.join_ticket is not None or self.sync_ticket is not None:
            return
        if self.generation < 0:
            self.join()
        elif self.leads is not None:
            self.sync()
        else:
            self.beat()


class LossyWorld(ConsumerWorld):
    def beat_or_lose(self, member_id: str, epoch: int, **details: Any) -> Any:
        try:
            return self.beat(member_id, epoch, **details)
        except AssertionError:
            if not self.appends_fail:
                raise
            return LOST


class BothProtocols(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = LossyWorld(GroupRules(max_size=5, initial_rebalance_delay_ms=500), t=3)
        self.new: dict[str, NewClient] = {}
        self.old: list[OldClient] = []
        self.counter = 0
        self.last_epochs: dict[str, int] = {}
        self.last_group_epoch = 0
        self.last_group: ConsumerGroup | None = None
        self.records_checked = 0

    @initialize(old=st.integers(0, 2), new=st.integers(0, 3))
    def begin(self, old: int, new: int) -> None:
        for _ in range(old):
            self.start_old()
        self.everybody_catches_up(3)
        for number in range(new):
            self.start_new(WISHES[number], None, False)

    # Members come, follow and go

    @precondition(lambda self: len(self.new) < 5)
    @rule(wish=st.sampled_from(WISHES), instance=st.sampled_from([None, None, "s"]), lost=st.booleans())
    def start_new(self, wish: dict[str, Any], instance: str | None, lost: bool) -> None:
        self.counter += 1
        name = f"new{self.counter}"
        self.new[name] = NewClient(self.world, name, wish, instance)
        self.new[name].join(lost)

    @precondition(lambda self: len(self.old) < 3)
    @rule()
    def start_old(self) -> None:
        self.old.append(OldClient(self.world))
        self.old[-1].catch_up()
        self.old[-1].catch_up()

    @precondition(lambda self: self.new)
    @rule(data=st.data(), lost=st.sampled_from([False, False, True]), full=st.booleans(), giving=st.booleans())
    def heartbeat(self, data: st.DataObject, lost: bool, full: bool, giving: bool) -> None:
        client = self.pick(data)
        if giving:
            client.give_up()
        if client.epoch > 0:
            client.beat(lost, full)
        else:
            client.join(lost)

    @precondition(lambda self: self.new)
    @rule(data=st.data(), wish=st.sampled_from(WISHES))
    def change_subscription(self, data: st.DataObject, wish: dict[str, Any]) -> None:
        client = self.pick(data)
        client.wish = {"regex": "", **wish}
        if client.epoch > 0:
            client.beat(False, True)

    @precondition(lambda self: self.new)
    @rule(data=st.data(), kind=st.sampled_from(["leave", "leave for a while", "crash", "rejoin"]))
    def stop_new(self, data: st.DataObject, kind: str) -> None:
        client = self.pick(data)
        if kind == "rejoin":
            client.join(False)
            return
        if kind != "crash":
            client.owned = NOTHING
            epoch = -2 if kind == "leave for a while" and client.instance_id else -1
            self.world.beat_or_lose(client.member_id, epoch, instance_id=client.instance_id)
        client.owned = NOTHING
        del self.new[client.member_id]

    @precondition(lambda self: self.old)
    @rule(index=st.integers(0, 2), kind=st.sampled_from(["follow", "follow", "follow", "leave", "crash"]))
    def classic_member(self, index: int, kind: str) -> None:
        client = self.old[index % len(self.old)]
        if kind == "follow":
            client.catch_up()
            return
        self.old.remove(client)
        client.owned = NOTHING
        if kind == "leave" and client.member_id:
            self.world.leave(Leaver(client.member_id))

    @rule(rounds=st.integers(1, 3))
    def everybody_catches_up(self, rounds: int) -> None:
        for _ in range(rounds):
            for client in self.clients():
                client.catch_up()
            self.world.wait(600)

    def time_passes(self) -> None:
        """Everybody who is still there speaks often enough."""
        for _ in range(12):
            for client in self.clients():
                client.catch_up()
            self.world.wait(5000)

    @rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        offset = OffsetToCommit("t", 0, len(self.world.records))
        if self.new:
            client = self.pick(data)
            self.world.commit(offset, member_id=client.member_id, generation=client.epoch)
        else:
            self.world.commit(offset)

    # The world around them

    @rule(sizes=st.sampled_from(TOPICS))
    def change_topics(self, sizes: dict[str, int]) -> None:
        self.world.set_topics(**sizes)

    @rule(up=st.booleans(), down=st.booleans())
    def change_policy(self, up: bool, down: bool) -> None:
        self.world.set_consumer_rules(can_upgrade=up, can_downgrade=down)

    @rule(ms=st.sampled_from([500.0, 6000.0, 30_000.0, 61_000.0]))
    def wait(self, ms: float) -> None:
        self.world.wait(ms)

    @rule(fail=st.sampled_from([False, False, True]))
    def disk_changes_its_mind(self, fail: bool) -> None:
        self.world.appends_fail = fail

    @rule()
    def restart(self) -> None:
        for client in self.old:
            if client.join_ticket is not None or client.sync_ticket is not None:
                client.join_ticket = client.sync_ticket = None
                client.generation = -1
        self.world.restart()
        self.last_group = self.world.machine.consumer.groups.get("g")

    def clients(self) -> "list[NewClient | OldClient]":
        return [*self.new.values(), *self.old]

    def pick(self, data: st.DataObject) -> NewClient:
        return data.draw(st.sampled_from(list(self.new.values())))

    # What must hold

    def members(self) -> set[str]:
        group = self.world.machine.find("g")
        return set() if group is None else set(group.members)

    @invariant()
    def no_partition_is_read_by_two_members(self) -> None:
        members = self.members()
        readers: dict[Any, str] = {}
        for client in self.clients():
            if client.member_id in members:
                for pair in pairs(client.owned):
                    assert pair not in readers, f"{pair} is read by {readers[pair]} and {client.member_id}"
                    readers[pair] = client.member_id

    @invariant()
    def a_group_is_of_one_kind(self) -> None:
        assert not self.world.machine.groups.keys() & self.world.machine.consumer.groups.keys()

    @invariant()
    def epochs_only_grow(self) -> None:
        group = self.world.machine.consumer.groups.get("g")
        if group is not self.last_group:  # the group was given up, and there may be another of its name
            self.last_epochs.clear()
            self.last_group_epoch = 0
            self.last_group = group
        if group is None:
            return
        assert group.epoch >= self.last_group_epoch
        assert group.assignment_epoch <= group.epoch
        self.last_group_epoch = group.epoch
        for member in group.members.values():
            assert member.epoch <= group.assignment_epoch
            if member.epoch >= 0:
                assert member.epoch >= self.last_epochs.get(member.member_id, 0)
                self.last_epochs[member.member_id] = member.epoch

    @invariant()
    def the_books_are_in_order(self) -> None:
        group = self.world.machine.consumer.groups.get("g")
        if group is None:
            return
        owned = [
            (pair, member.member_id)
            for member in group.members.values()
            for partitions in (member.assigned, member.revoking)
            for pair in pairs(partitions)
        ]
        assert len({pair for pair, _ in owned}) == len(owned), "a partition is with two members"
        assert group.owners == dict(owned)
        assert group.static_members == {m.instance_id: m.member_id for m in group.members.values() if m.instance_id}
        assert group.targets.keys() <= group.members.keys()
        assert group.awaited_joins | group.awaited_syncs <= group.members.keys()
        targets = [pair for target in group.targets.values() for pair in pairs(target)]
        assert len(targets) == len(set(targets))
        timers = self.world.timers
        for member in group.members.values():
            assert ("consumer-session", "g", member.member_id) in timers

    @precondition(lambda self: len(self.world.records) > self.records_checked + 20)
    @invariant()
    def the_log_alone_rebuilds_the_groups(self) -> None:
        live = hard_state(self.world.machine)
        assert hard_state(reload(self.world.records)) == live
        snapshot: list[LogItem] = [(encode_entry(entry, 0), NO_PRODUCER_ID) for entry in self.world.machine.snapshot()]
        assert hard_state(reload(snapshot))[0] == live[0]
        self.records_checked = len(self.world.records)

    def teardown(self) -> None:
        """Once the world stands still, members that follow have everything between them, and soon."""
        self.world.appends_fail = False
        self.world.set_consumer_rules(can_upgrade=True, can_downgrade=True)
        self.world.wait(600)
        for client in self.new.values():
            client.instance_id = None
            client.epoch = 0
        for old in self.old:  # in a classic group it is the clients who notice new partitions
            old.owned, old.generation = NOTHING, -1
        self.everybody_catches_up(3)
        self.time_passes()  # whoever crashed is missed by now
        self.everybody_catches_up(8)
        self.the_log_alone_rebuilds_the_groups()
        self.no_partition_is_read_by_two_members()
        group = self.world.machine.find("g")
        if group is None or not (self.new or self.old):
            return
        assert self.members() == {client.member_id for client in self.clients()}
        topics = self.world.rules.topics
        names = {"t", "u"} if isinstance(group, ClassicGroup) else group.subscribed_names()
        everything = {
            (topic.topic_id, number)
            for name, topic in topics.by_name.items()
            if name in names
            for number in range(topic.partitions)
        }
        read = {pair for client in self.clients() for pair in pairs(client.owned)}
        assert read == everything


TestBothProtocols = BothProtocols.TestCase
TestBothProtocols.settings = settings(
    max_examples=3_000 if SOAK else 150, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
