"""All groups of one partition of `__consumer_offsets`, as a state machine.

Two kinds of method, and no third:
  on_*, commit, heartbeat, ...   read state and return what is to be done; they may change soft state.
  replay                         applies one record. It is the only writer of hard state, so groups loaded from the
                                 log are the same as groups that lived through the events.
"""

from collections.abc import Iterable, Iterator

from ottla.broker.coordination.effects import Decision, Now, SetTimer, TimerKey
from ottla.broker.coordination.groups import offsets
from ottla.broker.coordination.groups.classic import joining, membership, rebalancing
from ottla.broker.coordination.groups.classic.group import JOIN_TIMER, SESSION_TIMER, SYNC_TIMER, ClassicGroup
from ottla.broker.coordination.groups.classic.states import State
from ottla.broker.coordination.groups.consumer.machine import CONSUMER_TIMERS, ConsumerGroups
from ottla.broker.coordination.groups.events import Commit, GroupRules, Join, Joined, Leave, Left, Sync, Synced
from ottla.broker.coordination.groups.offset_book import OffsetBook
from ottla.broker.coordination.groups.offsets import AnyGroup, Committed, Entry, Value
from ottla.broker.coordination.groups.pending import PendingOffsets
from ottla.model.errors import ApiError, ErrorCode
from ottla.protocol.consumer_group_records import ConsumerKey
from ottla.protocol.coordinator_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    Key,
    OffsetCommitKey,
    OffsetCommitValue,
    OtherKey,
)

COMMIT_RECORD_OVERHEAD_BYTES = 60
MEMBER_RECORD_OVERHEAD_BYTES = 60
CONSUMER_RECORD_BYTES = 40


class GroupMachine:
    def __init__(self) -> None:
        self.groups: dict[str, ClassicGroup] = {}
        """Classic groups, and those that only keep offsets."""
        self.consumer = ConsumerGroups(self.groups, self.on_join)
        self.pending = PendingOffsets()

    # Members

    def on_join(self, event: Join, now: Now, rules: GroupRules) -> Decision:
        if not rules.min_session_timeout_ms <= event.session_timeout_ms <= rules.max_session_timeout_ms:
            return _refuse_session_timeout(event, rules)
        consumer = self.consumer.groups.get(event.group_id)
        if consumer is not None:
            return self.consumer.on_join(consumer, event, now, rules)
        group = self.groups.get(event.group_id)
        if group is not None:
            return joining.on_join(group, event, now, rules)
        if event.member_id:
            return _reply(event.ticket, Joined(event.member_id, ErrorCode.UNKNOWN_MEMBER_ID))
        if not (event.protocol_type and event.protocols):
            return _reply(event.ticket, Joined(event.member_id, ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
        created: Entry = (GroupMetadataKey(event.group_id), GroupMetadataValue("", 0, None, None, (), now.wall))
        return Decision(
            records=[created],
            tickets_if_lost=[event.ticket],
            then=lambda: joining.on_join(self.groups[event.group_id], event, now, rules),
        )

    def on_sync(self, event: Sync, now: Now, rules: GroupRules) -> Decision:
        consumer = self.consumer.groups.get(event.group_id)
        if consumer is not None:
            return self.consumer.on_sync(consumer, event, now, rules)
        group = self.groups.get(event.group_id)
        if group is None:
            return _reply(event.ticket, Synced(ErrorCode.UNKNOWN_MEMBER_ID))
        return membership.on_sync(group, event, now)

    def on_leave(self, event: Leave, now: Now, rules: GroupRules) -> Decision:
        consumer = self.consumer.groups.get(event.group_id)
        if consumer is not None:
            return self.consumer.on_leave(consumer, event, now, rules)
        group = self.groups.get(event.group_id)
        if group is None:
            unknown = tuple((leaver, ErrorCode.UNKNOWN_MEMBER_ID) for leaver in event.members)
            return _reply(event.ticket, Left(members=unknown))
        return membership.on_leave(group, event, now, rules)

    def heartbeat(
        self, group_id: str, member_id: str, instance_id: str | None, generation: int, now: Now, rules: GroupRules
    ) -> tuple[ErrorCode, list[SetTimer]]:
        group = self.groups.get(group_id)
        if group is not None:
            code, timer = membership.heartbeat(group, member_id, instance_id, generation, now)
            return code, [] if timer is None else [timer]
        consumer = self.consumer.groups.get(group_id)
        if consumer is None:
            return ErrorCode.UNKNOWN_MEMBER_ID, []
        return self.consumer.heartbeat(consumer, member_id, instance_id, generation, now, rules)

    def on_timer(self, key: TimerKey, now: Now, rules: GroupRules) -> Decision:
        out = Decision()
        kind, group_id, *details = key
        group = self.groups.get(group_id)
        if kind in CONSUMER_TIMERS:
            return self.consumer.on_timer(key, now, rules)
        if group is None:
            return out
        if kind == SESSION_TIMER:
            membership.on_session_timer(group, details[0], now, rules, out)
        elif kind == JOIN_TIMER:
            rebalancing.on_join_timer(group, now, rules, out)
        elif kind == SYNC_TIMER:
            membership.on_sync_timer(group, int(details[0]), now, rules, out)
        return out

    # The life of the whole partition

    def on_loaded(self, now: Now, rules: GroupRules) -> Decision:
        """Sessions run from now on: while nobody was here to listen, nobody could be late."""
        out = Decision()
        out.timers += self.consumer.on_loaded(now, rules)
        for group in self.groups.values():
            for member in group.members.values():
                group.touch(member, now, out)
            if len(group.members) > rules.max_size:
                size = len(group.members)
                rebalancing.prepare(group, f"{size} members are more than group.max.size", now, rules, out)
        return out

    def on_unloaded(self, error: ErrorCode, now: Now) -> Decision:
        """Another broker answers for these groups, or none does: whoever waits here must go and ask."""
        out = Decision()
        for group in self.groups.values():
            for member in group.members.values():
                group.answer_join(member, Joined(member.member_id, error), out)
                group.answer_sync(member, Synced(error), out)
            group.become(State.DEAD, now.wall)
        return out

    # Offsets

    def commit(self, event: Commit, now: Now, rules: GroupRules) -> tuple[Committed, SetTimer | None]:
        group = self.groups.get(event.group_id)
        consumer = self.consumer.groups.get(event.group_id)
        timer = None
        if consumer is not None:
            error = offsets.check_consumer_commit(consumer, event)
            if error:
                raise ApiError(error)
        elif group is None:
            if event.generation >= 0:
                raise ApiError(event.unknown_group_error)
        else:
            error = offsets.check_commit(group, event)
            if error:
                raise ApiError(error)
            if not event.is_transactional and (group.state is State.STABLE or group.state is State.PREPARING):
                timer = group.extend_session(group.members[event.member_id], now)
        return offsets.commit(event, now.wall, rules), timer

    def delete_offsets(self, group_id: str, partitions: Iterable[tuple[str, int]]) -> Committed:
        group = self._existing(group_id)
        error = offsets.check_delete(group)
        if error:
            raise ApiError(error)
        return offsets.delete(group, partitions)

    def expire(self, now: Now, rules: GroupRules) -> Iterator[list[Entry]]:
        """What to drop, group by group, so that the caller can take breaths in between."""
        pending = self.pending
        for group in self.all_groups():
            if self.find(group.group_id) is not group:
                continue
            records, nothing_left = offsets.expire(group, pending, now.wall, rules.offsets_retention_ms)
            is_idle = group.is_empty and not (isinstance(group, ClassicGroup) and group.pending_joins)
            if nothing_left and is_idle and not pending.of_group(group.group_id):
                records += _tombstones(group)
            if records:
                yield records

    def delete_topics(self, topics: Iterable[str]) -> list[Entry]:
        gone = dict.fromkeys(key for topic in topics for key in self.pending.of_topic(topic))
        gone.update(
            (key, None)
            for group in self.all_groups()
            for topic in topics
            for key in offsets.committed_keys(group, topic)
        )
        return [(key, None) for key in gone]

    # Administration

    def delete_group(self, group_id: str) -> list[Entry]:
        group = self._existing(group_id)
        if not group.is_empty:
            raise ApiError(ErrorCode.NON_EMPTY_GROUP)
        return [*offsets.delete_all(group, self.pending), *_tombstones(group)]

    def all_groups(self) -> list[AnyGroup]:
        return [*self.groups.values(), *self.consumer.groups.values()]

    def find(self, group_id: str) -> AnyGroup | None:
        return self.groups.get(group_id) or self.consumer.groups.get(group_id)

    def _existing(self, group_id: str) -> AnyGroup:
        group = self.find(group_id)
        if group is None:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return group

    # Replay

    def replay(self, key: Key | ConsumerKey, value: Value | None) -> None:
        if isinstance(key, OffsetCommitKey):
            book: OffsetBook | None = self.groups.get(key.group) or self.consumer.groups.get(key.group)
            if value is not None:
                assert isinstance(value, OffsetCommitValue)
                if book is None:
                    book = self.groups[key.group] = ClassicGroup(key.group)
                book.put_offset(key.topic, key.partition, value)
                if self.pending.open:
                    self.pending.overtake(key)
                return
            if book is not None:
                book.drop_offset(key.topic, key.partition)
            self.pending.forget(key)
        elif isinstance(key, GroupMetadataKey):
            if value is None:
                self._drop(key.group)
                return
            assert isinstance(value, GroupMetadataValue)
            group = self.groups.get(key.group)
            if group is None:
                group = self.groups[key.group] = ClassicGroup(key.group)
            group.adopt(value)
        elif not isinstance(key, OtherKey):
            assert value is None or not isinstance(value, GroupMetadataValue | OffsetCommitValue)
            self.consumer.replay(key, value)

    def replay_pending(self, producer_id: int, key: OffsetCommitKey, value: OffsetCommitValue) -> None:
        """One record of a transactional batch."""
        self.pending.put(producer_id, key, value)

    def replay_marker(self, producer_id: int, *, commit: bool) -> None:
        for key, value in self.pending.end(producer_id, commit=commit):
            book: OffsetBook | None = self.find(key.group)
            if book is None:
                book = self.groups[key.group] = ClassicGroup(key.group)
            book.put_offset(key.topic, key.partition, value)

    def _drop(self, group_id: str) -> None:
        """The group is gone, but offsets are only dropped by name: a group that moved to a newer protocol (on a
        Kafka broker, before its files came here) leaves this record and keeps its offsets."""
        group = self.groups.pop(group_id, None)
        if group is not None and group.offsets:
            simple = self.groups[group_id] = ClassicGroup(group_id)
            simple.offsets = group.offsets

    # Snapshots

    def snapshot(self) -> Iterator[Entry]:
        """Every live record, as it is when it is asked for: records written meanwhile do no harm."""
        for group_id in [*self.groups, *self.consumer.groups]:
            group = self.find(group_id)
            if group is None:
                continue
            if isinstance(group, ClassicGroup):
                if group.stored is not None:
                    yield GroupMetadataKey(group_id), group.stored
            else:
                for key in group.record_keys():
                    current = group.value_of(key) if self.find(group_id) is group else None
                    if current is not None:
                        yield key, current
            for topic in list(group.offsets):
                for partition in list(group.offsets.get(topic, ())):
                    value = group.offsets.get(topic, {}).get(partition)
                    if value is not None and self.find(group_id) is group:
                        yield OffsetCommitKey(group_id, topic, partition), value

    def snapshot_size_bytes(self) -> int:
        """About how many bytes a snapshot takes."""
        total = 0
        for consumer in self.consumer.groups.values():
            total += sum(CONSUMER_RECORD_BYTES + len(str(entry)) // 2 for entry in consumer.as_records())
        for group_id, group in [*self.groups.items(), *self.consumer.groups.items()]:
            if isinstance(group, ClassicGroup) and group.stored is not None:
                total += len(group_id) + COMMIT_RECORD_OVERHEAD_BYTES
                for member in group.stored.members:
                    total += MEMBER_RECORD_OVERHEAD_BYTES + len(member.member_id) + len(member.client_id)
                    total += len(member.subscription) + len(member.assignment)
            for topic, partitions in group.offsets.items():
                each = COMMIT_RECORD_OVERHEAD_BYTES + len(group_id) + len(topic)
                total += each * len(partitions) + sum(len(value.metadata) for value in partitions.values())
        return total


def _tombstones(group: AnyGroup) -> list[Entry]:
    return [(GroupMetadataKey(group.group_id), None)] if isinstance(group, ClassicGroup) else [*group.as_tombstones()]


def _refuse_session_timeout(event: Join, rules: GroupRules) -> Decision:
    out = _reply(event.ticket, Joined(event.member_id, ErrorCode.INVALID_SESSION_TIMEOUT))
    out.note(
        f"Group {event.group_id}: client {event.client_id} at {event.client_host} may not join: "
        f"session.timeout.ms={event.session_timeout_ms} is not between "
        f"group.min.session.timeout.ms={rules.min_session_timeout_ms} and "
        f"group.max.session.timeout.ms={rules.max_session_timeout_ms}"
    )
    return out


def _reply(ticket: int, result: object) -> Decision:
    out = Decision()
    out.reply(ticket, result)
    return out
