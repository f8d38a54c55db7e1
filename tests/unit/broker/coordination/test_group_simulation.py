"""Throw every order of events at the machine; check what must hold in each of them."""

import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.chance import SOAK

from ottla.broker.coordination.groups.classic.group import ClassicGroup
from ottla.broker.coordination.groups.classic.states import State
from ottla.broker.coordination.groups.events import GroupRules, Joined, Leaver, OffsetToCommit, Synced
from ottla.broker.coordination.shard import encode_entry
from ottla.model.errors import ApiError, ErrorCode
from ottla.protocol.coordinator_records import (
    GroupMetadataValue,
    OffsetCommitKey,
    decode_key,
    decode_offset_commit_value,
)
from ottla.protocol.records import NO_PRODUCER_ID

from .group_world import LOST, RANGE, LogItem, Marker, World, hard_state, reload

STICKY = ("sticky", b"\x00\x01\x00\x00\x00\x01\x00\x01u\xff\xff\xff\xff")
PROTOCOLS = st.sampled_from([RANGE, (*RANGE, STICKY), (STICKY, *RANGE)])
PRODUCERS = st.sampled_from([1, 2])
INSTANCES = st.sampled_from(["s1", "s2"])
A_LONG_TIME_MS = 50_000_000.0


class GroupSimulation(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = World(GroupRules(max_size=6))
        self.world.on_answer = self.check_answer
        self.requests: dict[int, tuple[str, int]] = {}
        """Ticket of a sync -> (member, generation)."""
        self.ids: list[str] = []
        self.instance_of: dict[str, str] = {}
        self.generations_of: dict[str, set[int]] = {}
        self.leaders: dict[int, str] = {}
        self.last_generation = 0
        self.last_stored = -1
        self.records_checked, self.hard_before = 0, hard_state(self.world.machine)

    @initialize(members=st.sampled_from([(), (), (None,), (None, "s1"), ("s2", None, None)]))
    def begin(self, members: tuple[str | None, ...]) -> None:
        """Start from a group at work as often as from nothing."""
        for instance in members:
            self.world.join(requires_known_id=False, instance_id=instance)
        self.world.wait(9000)
        self.play_by_the_book(everyone=True)

    # What clients do

    @rule(known=st.booleans(), protocols=PROTOCOLS)
    def join_as_new_member(self, known: bool, protocols: Any) -> None:
        self.world.join(requires_known_id=known, protocols=protocols)

    @rule(instance=INSTANCES, skips=st.booleans(), protocols=PROTOCOLS)
    def start_static_member(self, instance: str, skips: bool, protocols: Any) -> None:
        self.world.join(instance_id=instance, can_skip_assignment=skips, protocols=protocols)

    @precondition(lambda self: self.ids)
    @rule(data=st.data(), protocols=PROTOCOLS, session=st.sampled_from([6000, 30_000]))
    def join_again(self, data: st.DataObject, protocols: Any, session: int) -> None:
        member_id = self.pick(data)
        self.world.join(
            member_id,
            instance_id=self.instance_of.get(member_id),
            protocols=protocols,
            session_timeout_ms=session,
        )

    @precondition(lambda self: self.ids)
    @rule(data=st.data(), offset=st.sampled_from([0, 0, 0, -1, 1]))
    def sync(self, data: st.DataObject, offset: int) -> None:
        group = self.world.machine.groups.get("g")
        self.sync_as(self.pick(data), (group.generation if group else 0) + offset)

    def sync_as(self, member_id: str, generation: int) -> None:
        group = self.world.machine.groups.get("g")
        assignments: tuple[tuple[str, bytes], ...] = ()
        if group is not None and group.leader == member_id:
            assignments = tuple((name, str(generation).encode()) for name in group.members)
        ticket = self.world._ticket + 1
        self.requests[ticket] = (member_id, generation)
        self.world.sync(member_id, generation, instance_id=self.instance_of.get(member_id), assignments=assignments)

    @precondition(lambda self: self.ids)
    @rule(data=st.data(), by_instance=st.booleans())
    def leave(self, data: st.DataObject, by_instance: bool) -> None:
        member_id = self.pick(data)
        instance = self.instance_of.get(member_id)
        self.world.leave(Leaver("" if by_instance and instance else member_id, instance))

    @rule(everyone=st.booleans())
    def play_by_the_book(self, everyone: bool) -> None:
        """The members do what clients do: join again when asked to, and then sync, the leader last."""
        group = self.world.machine.groups.get("g")
        if group is None:
            return
        if group.state is State.PREPARING:
            for member in [m for m in group.members.values() if m.join_ticket is None]:
                self.world.join(member.member_id, instance_id=member.instance_id, protocols=member.protocols)
            self.world.wait(9000)
        if group.state is State.COMPLETING:
            followers = [name for name in group.members if name != group.leader]
            for member_id in followers if everyone else followers[1:]:
                self.sync_as(member_id, group.generation)
            if group.leader is not None:
                self.sync_as(group.leader, group.generation)

    @precondition(lambda self: self.ids)
    @rule(data=st.data())
    def heartbeat(self, data: st.DataObject) -> None:
        member_id = self.pick(data)
        group = self.world.machine.groups.get("g")
        generation = group.generation if group else 0
        code = self.world.heartbeat(member_id, generation, self.instance_of.get(member_id))
        assert (code is ErrorCode.NONE) <= (generation in self.generations_of.get(member_id, set()))

    @rule(data=st.data(), topic=st.sampled_from(["t", "u"]), as_member=st.booleans())
    def commit(self, data: st.DataObject, topic: str, as_member: bool) -> None:
        group = self.world.machine.groups.get("g")
        offset = OffsetToCommit(topic, 0, len(self.world.records))
        if not as_member or not self.ids or group is None:
            was_empty = group is None or group.is_empty
            assert (self.world.commit(offset) == [ErrorCode.NONE]) == was_empty
            return
        member_id = self.pick(data)
        self.world.commit(
            offset, member_id=member_id, generation=group.generation, instance_id=self.instance_of.get(member_id)
        )

    @rule(topic=st.sampled_from(["t", "u"]), producer=PRODUCERS)
    def commit_in_transaction(self, topic: str, producer: int) -> None:
        offset = OffsetToCommit(topic, 0, len(self.world.records))
        assert self.world.commit(offset, producer_id=producer) == [ErrorCode.NONE]

    @rule(producer=PRODUCERS, commit=st.booleans())
    def end_transaction(self, producer: int, commit: bool) -> None:
        self.world.end_transaction(producer, commit=commit)

    # What administrators and time do

    @rule(ms=st.sampled_from([1.0, 500.0, 3000.0, 9000.0, 20_000.0, 70_000.0]))
    def wait(self, ms: float) -> None:
        self.world.wait(ms)

    @precondition(lambda self: self.world.steady > 10_000)
    @rule()
    def delete_group(self) -> None:
        group = self.world.machine.groups.get("g")
        if group is not None and group.is_empty:
            if self.world.write(self.world.machine.delete_group("g")):
                self.forget_generations()
            return
        with pytest.raises(ApiError) as refused:
            self.world.machine.delete_group("g")
        assert refused.value.code is (ErrorCode.GROUP_ID_NOT_FOUND if group is None else ErrorCode.NON_EMPTY_GROUP)

    @rule(retention=st.sampled_from([1, 1_000_000_000]))
    def expire(self, retention: int) -> None:
        self.world.set_rules(offsets_retention_ms=retention)
        for entries in self.world.machine.expire(self.world.now, self.world.rules):
            self.world.write(entries)
        if "g" not in self.world.machine.groups:
            self.forget_generations()

    @rule(size=st.sampled_from([6, 6, 2]))
    def change_max_size(self, size: int) -> None:
        self.world.set_rules(max_size=size)

    @precondition(lambda self: len(self.world.records) % 3 == 0)
    @rule()
    def restart(self) -> None:
        self.world.restart()
        group = self.world.machine.groups.get("g")
        self.last_generation = group.generation if group else 0
        # A generation that was never written is given out again; those who knew it must join again.
        self.leaders = {g: leader for g, leader in self.leaders.items() if g <= self.last_generation}
        for generations in self.generations_of.values():
            generations.intersection_update(range(self.last_generation + 1))

    @rule(fail=st.sampled_from([False, False, True]))
    def disk_changes_its_mind(self, fail: bool) -> None:
        self.world.appends_fail = fail

    # What must hold

    def check_answer(self, ticket: int, result: object) -> None:
        if result == LOST:
            return
        if isinstance(result, Joined):
            if result.error is ErrorCode.MEMBER_ID_REQUIRED:
                self.ids.append(result.member_id)
            elif result.error is ErrorCode.NONE:
                self.check_joined(result)
        elif isinstance(result, Synced) and result.error is ErrorCode.NONE:
            member_id, generation = self.requests[ticket]
            assert generation in self.generations_of[member_id], "an assignment for a generation it has not joined"
            assert result.assignment in (b"", str(generation).encode())

    def check_joined(self, result: Joined) -> None:
        member = self.world.group.members[result.member_id]
        if result.member_id not in self.ids:
            self.ids.append(result.member_id)
        if member.instance_id is not None:
            self.instance_of[result.member_id] = member.instance_id
        self.generations_of.setdefault(result.member_id, set()).add(result.generation)
        leader = self.instance_of.get(result.leader, result.leader)
        assert self.leaders.setdefault(result.generation, leader) == leader, "two leaders of one generation"
        assert bool(result.members) <= (result.leader == result.member_id)
        assert result.protocol in {name for name, _ in member.protocols}

    def forget_generations(self) -> None:
        self.leaders.clear()
        self.generations_of.clear()
        self.last_generation, self.last_stored = 0, -1

    def pick(self, data: st.DataObject) -> str:
        """Mostly one that is a member now, at times one that was or will be."""
        group = self.world.machine.groups.get("g")
        current = list(group.members) if group is not None else []
        return data.draw(st.sampled_from([*current * 3, *self.ids[-3:]]))

    @invariant()
    def every_open_ticket_is_parked_once(self) -> None:
        parked = [
            ticket
            for group in self.world.machine.groups.values()
            for member in group.members.values()
            for ticket in (member.join_ticket, member.sync_ticket)
            if ticket is not None
        ]
        assert sorted(parked) == sorted(self.world.open)

    @invariant()
    def the_log_alone_rebuilds_the_groups(self) -> None:
        live = hard_state(self.world.machine)
        if len(self.world.records) == self.records_checked:
            assert live == self.hard_before, "hard state changed without a record"
            return
        assert hard_state(reload(self.world.records)) == live
        snapshot: list[LogItem] = [(encode_entry(entry, 0), NO_PRODUCER_ID) for entry in self.world.machine.snapshot()]
        assert hard_state(reload(snapshot))[0] == live[0]
        assert newest_committed(self.world.records) == {
            (name, topic): value.offset
            for name, group in self.world.machine.groups.items()
            for topic, partitions in group.offsets.items()
            for value in partitions.values()
        }
        self.records_checked, self.hard_before = len(self.world.records), copy.deepcopy(live)

    @invariant()
    def a_quiet_group_is_what_its_record_says(self) -> None:
        for group in self.world.machine.groups.values():
            if group.state in (State.STABLE, State.EMPTY) and group.stored is not None:
                assert as_if_written(group) == group.stored

    @invariant()
    def generations_only_grow(self) -> None:
        group = self.world.machine.groups.get("g")
        if group is None:
            return
        assert group.generation >= self.last_generation
        self.last_generation = group.generation
        if group.stored is not None:
            assert group.stored.generation >= self.last_stored
            self.last_stored = group.stored.generation

    @invariant()
    def the_books_are_in_order(self) -> None:
        for group in self.world.machine.groups.values():
            members = group.members
            assert group.joining == sum(member.join_ticket is not None for member in members.values())
            assert group.static_members == {m.instance_id: m.member_id for m in members.values() if m.instance_id}
            assert group.leader in members if members else group.leader is None
            assert group.pending_syncs <= members.keys()
            assert not group.pending_joins & members.keys()
            assert (group.state is State.EMPTY) <= (not members)
            assert (group.state in (State.STABLE, State.COMPLETING)) <= bool(members)
            for member in members.values():
                assert member.sync_ticket is None or group.state is State.COMPLETING
                assert member.join_ticket is None or group.state is State.PREPARING

    @invariant()
    def nothing_waits_without_a_timer(self) -> None:
        timers = self.world.timers
        for group in self.world.machine.groups.values():
            name = group.group_id
            assert (group.state is State.PREPARING) <= (("join", name) in timers)
            assert bool(group.pending_syncs) <= (("sync", name, str(group.generation)) in timers)
            for member in group.members.values():
                assert member.is_kept_alive_by_waiting() or ("session", name, member.member_id) in timers
            for pending in group.pending_joins:
                assert ("session", name, pending) in timers

    def teardown(self) -> None:
        """Left alone, every group becomes empty and nobody waits any more."""
        self.world.appends_fail = False
        self.world.wait(A_LONG_TIME_MS)
        assert not self.world.open
        assert all(group.is_empty for group in self.world.machine.groups.values())


def newest_committed(records: list[LogItem]) -> dict[tuple[str, str], int]:
    """Each record either counts by itself or by its transaction's marker; the last in the log that counts wins."""
    committed: dict[tuple[str, str], tuple[int, int]] = {}
    pending: dict[tuple[int, str, str], tuple[int, int]] = {}
    for position, item in enumerate(records):
        if isinstance(item, Marker):
            for owner, group, topic in [key for key in pending if key[0] == item.producer_id]:
                found = pending.pop((owner, group, topic))
                if item.commit:
                    committed[group, topic] = max(found, committed.get((group, topic), (-1, -1)))
            continue
        record, producer = item
        key = decode_key(record.key or b"")
        if not isinstance(key, OffsetCommitKey):
            continue
        name = (key.group, key.topic)
        if record.value is None:
            committed.pop(name, None)
            pending = {key: value for key, value in pending.items() if key[1:] != name}
        elif producer == NO_PRODUCER_ID:
            committed[name] = (position, decode_offset_commit_value(record.value).offset)
        else:
            pending[producer, *name] = (position, decode_offset_commit_value(record.value).offset)
    return {name: offset for name, (_, offset) in committed.items()}


def as_if_written(group: ClassicGroup) -> GroupMetadataValue:
    return group.as_record({member.member_id: member.assignment for member in group.members.values()})


TestGroup = GroupSimulation.TestCase
TestGroup.settings = settings(
    max_examples=3_000 if SOAK else 150, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
