"""All consumer groups of one partition of `__consumer_offsets`: the second half of the group machine.

A group id names a classic group or a consumer group, never both. The records of a migration take it from one side to
the other; its offsets go along.
"""

from collections.abc import Callable

from ottla.broker.coordination.effects import Decision, Now, SetTimer, TimerKey
from ottla.broker.coordination.groups.classic import joining, rebalancing
from ottla.broker.coordination.groups.classic.group import ClassicGroup
from ottla.broker.coordination.groups.consumer import classic_members, heartbeats, migration
from ottla.broker.coordination.groups.consumer.events import ConsumerAnswer, ConsumerHeartbeat
from ottla.broker.coordination.groups.consumer.group import ConsumerGroup, ConsumerState
from ottla.broker.coordination.groups.consumer.members import JOINING_EPOCH, LEAVING_STATIC_EPOCH, ConsumerMember
from ottla.broker.coordination.groups.events import GroupRules, Join, Joined, Leave, Left, Protocols, Sync, Synced
from ottla.model.errors import ApiError, ErrorCode
from ottla.protocol.consumer_group_records import ConsumerKey, ConsumerValue, GroupEpochKey
from ottla.protocol.coordinator_records import GroupMetadataKey

CONSUMER_TIMERS = frozenset(
    {heartbeats.SESSION_TIMER, heartbeats.REBALANCE_TIMER, classic_members.JOIN_TIMER, classic_members.SYNC_TIMER}
)


class ConsumerGroups:
    def __init__(
        self, classic: dict[str, ClassicGroup], join_classic: Callable[[Join, Now, GroupRules], Decision]
    ) -> None:
        self.groups: dict[str, ConsumerGroup] = {}
        self._classic = classic
        self._join_classic = join_classic

    # Members of the consumer protocol

    def on_heartbeat(self, event: ConsumerHeartbeat, now: Now, rules: GroupRules) -> Decision:
        try:
            if not rules.consumer.is_enabled:
                raise ApiError(ErrorCode.UNSUPPORTED_VERSION, "The consumer group protocol is not enabled.")
            heartbeats.check_request(event, rules)
            if event.member_epoch < JOINING_EPOCH:
                return self._leave(event, now, rules)
            group = self.groups.get(event.group_id)
            if group is not None:
                return heartbeats.on_heartbeat(group, event, now, rules)
            return self._found_group(event, now, rules)
        except ApiError as error:
            return _reply(event.ticket, ConsumerAnswer(error.code, error.message, member_id=event.member_id or None))

    def _found_group(self, event: ConsumerHeartbeat, now: Now, rules: GroupRules) -> Decision:
        """The first member of the new protocol in a group that is new, empty, or at work with the classic one."""
        if event.member_epoch != JOINING_EPOCH:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {event.group_id} not found.")
        classic = self._classic.get(event.group_id)
        if classic is None:
            return heartbeats.on_heartbeat(ConsumerGroup(event.group_id), event, now, rules)
        tombstone = (GroupMetadataKey(event.group_id), None)
        if not classic.members:
            out = heartbeats.on_heartbeat(ConsumerGroup(event.group_id), event, now, rules)
            out.records.insert(0, tombstone)
            return out
        if not migration.can_upgrade(classic, rules):
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {event.group_id} is not a consumer group.")
        future = migration.upgraded(classic, rules)
        out = heartbeats.on_heartbeat(future, event, now, rules)
        out.records[:0] = [tombstone, *future.as_records()]
        for member in classic.members.values():
            # Whatever they wait for will not come: they are to join what the group is now.
            classic.answer_join(member, Joined(member.member_id, ErrorCode.REBALANCE_IN_PROGRESS), out)
            classic.answer_sync(member, Synced(ErrorCode.REBALANCE_IN_PROGRESS), out)
        for consumer in future.members.values():
            out.timers += heartbeats.session_timer(future, consumer, now, rules)
        out.note(
            f"Group {event.group_id} upgraded from the classic to the consumer protocol at group epoch {future.epoch}"
        )
        return out

    def _leave(self, event: ConsumerHeartbeat, now: Now, rules: GroupRules) -> Decision:
        group = self.groups.get(event.group_id)
        if group is None:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {event.group_id} not found.")
        member = group.member(event.member_id, event.instance_id)
        if event.member_epoch == LEAVING_STATIC_EPOCH:
            return heartbeats.leave_static(group, member, event)
        out = self._remove(group, [member], now, rules, f"{member.member_id} left")
        out.reply(event.ticket, ConsumerAnswer(member_id=member.member_id, member_epoch=event.member_epoch))
        return out

    # Classic members of consumer groups

    def on_join(self, group: ConsumerGroup, event: Join, now: Now, rules: GroupRules) -> Decision:
        try:
            if group.is_empty:
                return self._give_up_empty(group, event, now, rules)
            owner = group.static_member(event.instance_id)
            comes_back = owner is not None and not event.member_id and not owner.is_classic
            if owner is not None and comes_back and migration.can_downgrade_with(group, owner, event, rules):
                return self._downgrade_with(group, event, now, rules)
            return classic_members.on_join(group, event, now, rules)
        except ApiError as error:
            return _reply(event.ticket, Joined(event.member_id, error.code))

    def on_sync(self, group: ConsumerGroup, event: Sync, now: Now, rules: GroupRules) -> Decision:
        try:
            return classic_members.on_sync(group, event, now, rules)
        except ApiError as error:
            return _reply(event.ticket, Synced(error.code))

    def heartbeat(
        self,
        group: ConsumerGroup,
        member_id: str,
        instance_id: str | None,
        generation: int,
        now: Now,
        rules: GroupRules,
    ) -> tuple[ErrorCode, list[SetTimer]]:
        try:
            return classic_members.heartbeat(group, member_id, instance_id, generation, now, rules)
        except ApiError as error:
            return error.code, []

    def on_leave(self, group: ConsumerGroup, event: Leave, now: Now, rules: GroupRules) -> Decision:
        gone, answer = classic_members.leavers(group, event)
        out = Decision()
        if gone:
            out = self._remove(group, gone, now, rules, f"{', '.join(m.member_id for m in gone)} left")
        out.reply(event.ticket, answer)
        return out

    # Time

    def on_timer(self, key: TimerKey, now: Now, rules: GroupRules) -> Decision:
        kind, group_id, member_id, *details = key
        group = self.groups.get(group_id)
        member = None if group is None else group.members.get(member_id)
        if group is None or member is None:
            return Decision()
        if kind == heartbeats.SESSION_TIMER:
            return self._remove(group, [member], now, rules, f"session of {member_id} timed out")
        if kind == heartbeats.REBALANCE_TIMER:
            is_overdue = heartbeats.is_overdue(group, member_id, int(details[0]))
        else:
            is_overdue = classic_members.is_overdue(group, kind, member_id)
        if is_overdue:
            return self._remove(group, [member], now, rules, f"{member_id} did not follow in time")
        return Decision()

    def on_loaded(self, now: Now, rules: GroupRules) -> list[SetTimer]:
        return [timer for group in self.groups.values() for timer in heartbeats.timers_after_loading(group, now, rules)]

    # Going

    def _remove(
        self, group: ConsumerGroup, gone: list[ConsumerMember], now: Now, rules: GroupRules, reason: str
    ) -> Decision:
        leaving = gone[0].member_id
        retry = [SetTimer((heartbeats.SESSION_TIMER, group.group_id, m.member_id), now.steady + 1000) for m in gone]
        if len(gone) == 1 and migration.can_downgrade(group, leaving, rules):
            out = self._downgrade(group, now, rules, leaving)
        else:
            out = Decision(records=[*heartbeats.removal(group, gone, now, rules)])
        out.timers_if_lost += retry
        out.note(f"Group {group.group_id} rebalances: {reason}")
        return out

    def _downgrade(self, group: ConsumerGroup, now: Now, rules: GroupRules, leaving: str) -> Decision:
        record = migration.downgraded(group, rules, now.wall, leaving=leaving)
        out = Decision(records=[*group.as_tombstones(), (GroupMetadataKey(group.group_id), record)])
        offered = migration.protocols_of(group)

        def rebalance() -> Decision:
            follow_up = Decision()
            classic = self._adopt_protocols(group.group_id, offered, now, follow_up)
            rebalancing.prepare(classic, "downgraded to the classic protocol", now, rules, follow_up)
            return follow_up

        out.then = rebalance
        return out

    def _downgrade_with(self, group: ConsumerGroup, event: Join, now: Now, rules: GroupRules) -> Decision:
        """The last member of the new protocol comes back with the classic one, to its place in a classic group."""
        record = migration.downgraded(group, rules, now.wall, joining=event)
        out = Decision(records=[*group.as_tombstones(), (GroupMetadataKey(group.group_id), record)])
        out.tickets_if_lost.append(event.ticket)
        offered = migration.protocols_of(group)

        was_stable = group.state is ConsumerState.STABLE

        def join() -> Decision:
            first = Decision()
            classic = self._adopt_protocols(group.group_id, offered, now, first)
            if not was_stable:
                rebalancing.prepare(classic, "downgraded to the classic protocol", now, rules, first)
            first.then = lambda: joining.on_join(classic, event, now, rules)
            return first

        out.then = join
        return out

    def _adopt_protocols(self, group_id: str, offered: dict[str, Protocols], now: Now, out: Decision) -> ClassicGroup:
        classic = self._classic[group_id]
        for member in classic.members.values():
            if member.member_id in offered:
                classic.set_protocols(member, offered[member.member_id])
            classic.touch(member, now, out)
        return classic

    def _give_up_empty(self, group: ConsumerGroup, event: Join, now: Now, rules: GroupRules) -> Decision:
        """Nobody is left: who comes with the classic protocol finds a classic group."""
        out = Decision(records=[*group.as_tombstones()])
        out.tickets_if_lost.append(event.ticket)
        out.then = lambda: self._join_classic(event, now, rules)
        return out

    # Replay

    def replay(self, key: ConsumerKey, value: ConsumerValue | None) -> None:
        group = self.groups.get(key.group)
        if group is None:
            if value is None:
                return
            group = self.groups[key.group] = ConsumerGroup(key.group)
            classic = self._classic.pop(key.group, None)
            if classic is not None:
                group.offsets = classic.offsets
        if isinstance(key, GroupEpochKey) and value is None:
            del self.groups[key.group]
            if group.offsets:
                self._classic[key.group] = ClassicGroup(key.group)
                self._classic[key.group].offsets = group.offsets
            return
        group.replay(key, value)


def _reply(ticket: int, result: ConsumerAnswer | Joined | Synced | Left) -> Decision:
    out = Decision()
    out.reply(ticket, result)
    return out
