"""A world for the pure machine: a log in memory, timers, a clock moved by hand, and tickets that are counted."""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from ottla.broker.coordination.effects import Decision, Now, TimerKey
from ottla.broker.coordination.groups.classic.group import ClassicGroup
from ottla.broker.coordination.groups.events import (
    Commit,
    GroupRules,
    Join,
    Joined,
    Leave,
    Leaver,
    Left,
    OffsetToCommit,
    Sync,
    Synced,
)
from ottla.broker.coordination.groups.machine import GroupMachine
from ottla.broker.coordination.groups.offsets import Entry
from ottla.broker.coordination.loading import LoadedLog
from ottla.broker.coordination.shard import encode_entry
from ottla.model.errors import ApiError, ErrorCode
from ottla.protocol.coordinator_records import OffsetCommitKey, OffsetCommitValue
from ottla.protocol.records import NO_PRODUCER_ID, NewRecord, encode_batch

from .memory_log import MARKER_KEY, MARKER_VALUE

LOST = "the record was lost"
START_WALL_MS = 1_700_000_000_000

RANGE: tuple[tuple[str, bytes], ...] = (("range", b"\x00\x01\x00\x00\x00\x01\x00\x01t\xff\xff\xff\xff"),)
"""One protocol whose metadata is a subscription to topic t."""


class Marker(NamedTuple):
    """The end of a producer's transaction."""

    producer_id: int
    commit: bool


LogItem = tuple[NewRecord, int] | Marker
"""A record and the producer whose transaction it is part of (-1: none), or the marker that ends one."""


def reload(records: list[LogItem]) -> GroupMachine:
    loaded = LoadedLog()
    loaded.replay(_batch(item, offset) for offset, item in enumerate(records))
    assert not loaded.foreign
    return loaded.machine


def _batch(item: LogItem, offset: int) -> bytes:
    if isinstance(item, Marker):
        record = NewRecord(MARKER_KEY.pack(0, item.commit), MARKER_VALUE.pack(0, 0), 1)
        return bytes(
            encode_batch(
                [record], base_offset=offset, producer_id=item.producer_id, producer_epoch=0, base_sequence=-1,
                transactional=True, control=True,
            )
        )  # fmt: skip
    record, producer_id = item
    if producer_id == NO_PRODUCER_ID:
        return bytes(encode_batch([record], base_offset=offset))
    return bytes(
        encode_batch(
            [record], base_offset=offset, producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True
        )
    )


def hard_state(machine: GroupMachine) -> tuple[object, ...]:
    """All that a restart must bring back. A group with neither record nor offsets is not in the log."""
    groups = {
        group_id: (group.stored, group.offsets)
        for group_id, group in machine.groups.items()
        if group.stored is not None or group.offsets
    }
    consumers = {
        group_id: ({(type(key), key): value for key, value in group.as_records()}, group.offsets)
        for group_id, group in machine.consumer.groups.items()
    }
    return (groups, consumers), machine.pending.as_data(), set(machine.pending.open)


class World:
    def __init__(self, rules: GroupRules | None = None) -> None:
        self.rules = rules or GroupRules()
        self.machine = GroupMachine()
        self.steady = 0.0
        self.records: list[LogItem] = []
        self.timers: dict[TimerKey, float] = {}
        self.open: set[int] = set()
        self.answers: dict[int, Any] = {}
        self.appends_fail = False
        self.on_answer: Callable[[int, object], None] = lambda ticket, result: None
        self._ticket = 0

    @property
    def now(self) -> Now:
        return Now(self.steady, START_WALL_MS + int(self.steady))

    @property
    def group(self) -> ClassicGroup:
        return self.machine.groups["g"]

    # Requests. Those that may be parked return their ticket; `answers` has the answer once there is one.

    def join(self, member_id: str = "", **details: Any) -> int:
        event = Join(
            ticket=self._request(),
            group_id=details.pop("group_id", "g"),
            member_id=member_id,
            client_id=details.pop("client_id", "client"),
            client_host="/127.0.0.1",
            session_timeout_ms=details.pop("session_timeout_ms", 10_000),
            rebalance_timeout_ms=details.pop("rebalance_timeout_ms", 60_000),
            protocol_type=details.pop("protocol_type", "consumer"),
            protocols=details.pop("protocols", RANGE),
            unique=str(self._ticket),
            **details,
        )
        self.perform(self.machine.on_join(event, self.now, self.rules))
        return event.ticket

    def sync(self, member_id: str, generation: int, **details: Any) -> int:
        event = Sync(self._request(), details.pop("group_id", "g"), member_id, generation, **details)
        self.perform(self.machine.on_sync(event, self.now, self.rules))
        return event.ticket

    def leave(self, *leavers: Leaver, group_id: str = "g") -> int:
        event = Leave(self._request(), group_id, leavers)
        self.perform(self.machine.on_leave(event, self.now, self.rules))
        return event.ticket

    def heartbeat(self, member_id: str, generation: int, instance_id: str | None = None) -> ErrorCode:
        code, timers = self.machine.heartbeat("g", member_id, instance_id, generation, self.now, self.rules)
        self.timers.update({timer.key: timer.at for timer in timers})
        return code

    def commit(self, *offsets: OffsetToCommit, **details: Any) -> list[ErrorCode] | ErrorCode:
        event = Commit(details.pop("group_id", "g"), list(offsets), **details)
        try:
            committed, timer = self.machine.commit(event, self.now, self.rules)
        except ApiError as error:
            return error.code
        if timer is not None:
            self.timers[timer.key] = timer.at
        self.write(committed.records, event.producer_id)
        return committed.errors

    def end_transaction(self, producer_id: int, *, commit: bool) -> None:
        self.records.append(Marker(producer_id, commit))
        self.machine.replay_marker(producer_id, commit=commit)

    # What the runtime does

    def perform(self, decision: Decision) -> None:
        step: Decision | None = decision
        while step is not None:
            if step.records and not self.write(step.records):  # type: ignore[arg-type]
                for ticket in [*(reply.ticket for reply in step.replies), *step.tickets_if_lost]:
                    self._answer(ticket, LOST)
                self.timers.update({timer.key: timer.at for timer in step.timers_if_lost})
                return
            self.timers.update({timer.key: timer.at for timer in step.timers})
            for ticket, result in step.replies:
                self._answer(ticket, result)
            step = step.then() if step.then is not None else None

    def write(self, entries: list[Entry], producer_id: int = NO_PRODUCER_ID) -> bool:
        if self.appends_fail:
            return False
        for key, value in entries:
            if producer_id == NO_PRODUCER_ID:
                self.machine.replay(key, value)
            else:
                assert isinstance(key, OffsetCommitKey)
                assert isinstance(value, OffsetCommitValue)
                self.machine.pending.begin(producer_id, len(self.records), 0)
                self.machine.replay_pending(producer_id, key, value)
            self.records.append((encode_entry((key, value), self.now.wall), producer_id))
        return True

    def wait(self, ms: float) -> None:
        """Let time pass; timers fire in order, at their time."""
        end = self.steady + ms
        while due := [(at, key) for key, at in self.timers.items() if at <= end]:
            at, key = min(due)
            del self.timers[key]
            self.steady = max(self.steady, at)
            self.perform(self.machine.on_timer(key, self.now, self.rules))
        self.steady = end

    def restart(self) -> None:
        """The process dies: what was parked is never answered, what is in the log is all there is."""
        self.machine = reload(self.records)
        self.timers.clear()
        self.open.clear()
        self.perform(self.machine.on_loaded(self.now, self.rules))

    # Shorthand for tests that are not about joining

    def joined(self, ticket: int) -> Joined:
        answer = self.answers[ticket]
        assert isinstance(answer, Joined)
        return answer

    def synced(self, ticket: int) -> Synced:
        answer = self.answers[ticket]
        assert isinstance(answer, Synced)
        return answer

    def left(self, ticket: int) -> Left:
        answer = self.answers[ticket]
        assert isinstance(answer, Left)
        return answer

    def new_member(self, **details: Any) -> str:
        """First step of a join: the id that the coordinator gives."""
        answer = self.joined(self.join(**details))
        assert answer.error is ErrorCode.MEMBER_ID_REQUIRED
        return answer.member_id

    def stable(self, *instances: str | None, assignment: bytes = b"all", **details: Any) -> list[str]:
        """A stable group with a member for each argument: an instance id, or None for a dynamic member."""
        tickets = [
            self.join(instance_id=instance, **details)
            if instance is not None
            else self.join(self.new_member(**details), **details)
            for instance in instances
        ]
        self.wait(self.rules.initial_rebalance_delay_ms * (len(instances) + 1))
        ids = [self.joined(ticket).member_id for ticket in tickets]
        self.sync_all(ids, assignment)
        return ids

    def sync_all(self, ids: list[str], assignment: bytes = b"all") -> None:
        generation = self.group.generation
        leader = self.group.leader
        assert leader is not None
        followers = [self.sync(member_id, generation) for member_id in ids if member_id != leader]
        led = self.sync(leader, generation, assignments=tuple((member_id, assignment) for member_id in ids))
        assert all(self.synced(ticket).error is ErrorCode.NONE for ticket in [*followers, led])

    def set_rules(self, **changes: int) -> None:
        self.rules = msgspec.structs.replace(self.rules, **changes)

    def _request(self) -> int:
        self._ticket += 1
        self.open.add(self._ticket)
        return self._ticket

    def _answer(self, ticket: int, result: object) -> None:
        self.open.remove(ticket)  # KeyError: a ticket was answered twice
        self.answers[ticket] = result
        self.on_answer(ticket, result)
