"""Rules of SyncGroup, Heartbeat and LeaveGroup, and of members that fall silent."""

from ottla.broker.coordination.effects import Decision, Now, SetTimer
from ottla.broker.coordination.groups.classic import rebalancing
from ottla.broker.coordination.groups.classic.group import SESSION_TIMER, ClassicGroup
from ottla.broker.coordination.groups.classic.states import State
from ottla.broker.coordination.groups.events import NO_MEMBER, GroupRules, Leave, Leaver, Left, Sync, Synced
from ottla.model.errors import ErrorCode
from ottla.protocol.coordinator_records import GroupMetadataKey


def on_sync(group: ClassicGroup, event: Sync, now: Now) -> Decision:
    out = Decision()
    error = _check_sync(group, event)
    if error:
        out.reply(event.ticket, Synced(error))
        return out
    group.pending_syncs.discard(event.member_id)
    member = group.members[event.member_id]
    if group.state is State.STABLE:
        out.reply(event.ticket, Synced(ErrorCode.NONE, group.protocol_type, group.protocol, member.assignment))
        return out
    group.park_sync(member, event.ticket, out)
    if group.is_leader(event.member_id):
        _assign(group, dict(event.assignments), now, out)
    return out


def _check_sync(group: ClassicGroup, event: Sync) -> ErrorCode:
    if group.is_empty:
        return ErrorCode.UNKNOWN_MEMBER_ID
    error = group.check_member(event.member_id, event.instance_id)
    if error:
        return error
    if event.generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if _differs(event.protocol_type, group.protocol_type) or _differs(event.protocol, group.protocol):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return ErrorCode.REBALANCE_IN_PROGRESS if group.state is State.PREPARING else ErrorCode.NONE


def _differs(asked: str | None, actual: str | None) -> bool:
    return asked is not None and actual is not None and asked != actual


def _assign(group: ClassicGroup, assignments: dict[str, bytes], now: Now, out: Decision) -> None:
    """The leader has spoken: write it, and when it is replayed the group is stable. Lost, everybody may ask again."""
    out.records.append((GroupMetadataKey(group.group_id), group.as_record(assignments)))
    for member in group.members.values():
        result = Synced(ErrorCode.NONE, group.protocol_type, group.protocol, assignments.get(member.member_id, b""))
        if group.answer_sync(member, result, out):
            group.touch(member, now, out)


def on_sync_timer(group: ClassicGroup, generation: int, now: Now, rules: GroupRules, out: Decision) -> None:
    """Members that joined but never asked for their assignment hold partitions that nobody reads."""
    if generation != group.generation or group.state not in (State.COMPLETING, State.STABLE):
        return
    silent = sorted(group.pending_syncs)
    if silent:
        for member_id in silent:
            group.remove(member_id, out)
        rebalancing.prepare(group, f"no sync from {', '.join(silent)}", now, rules, out)


def heartbeat(
    group: ClassicGroup, member_id: str, instance_id: str | None, generation: int, now: Now
) -> tuple[ErrorCode, SetTimer | None]:
    error = group.check_member(member_id, instance_id)
    if error:
        return error, None
    if generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION, None
    timer = group.extend_session(group.members[member_id], now)
    return (ErrorCode.REBALANCE_IN_PROGRESS if group.state is State.PREPARING else ErrorCode.NONE), timer


def on_session_timer(group: ClassicGroup, member_id: str, now: Now, rules: GroupRules, out: Decision) -> None:
    if member_id in group.pending_joins:
        group.pending_joins.remove(member_id)
        if group.state is State.PREPARING and group.has_all_joined():
            rebalancing.complete(group, now, out)
        return
    member = group.members.get(member_id)
    if member is None:
        return
    member.timer_at = None
    if member.deadline > now.steady:
        member.timer_at = member.deadline
        out.timers.append(SetTimer((SESSION_TIMER, group.group_id, member_id), member.deadline))
    elif not member.is_kept_alive_by_waiting():
        group.remove(member_id, out)
        if group.state is not State.PREPARING:
            rebalancing.prepare(group, f"session of {member_id} timed out", now, rules, out)
        elif group.has_all_joined():
            rebalancing.complete(group, now, out)


def on_leave(group: ClassicGroup, event: Leave, now: Now, rules: GroupRules) -> Decision:
    out = Decision()
    before = set(group.members)
    results = tuple((leaver, _remove(group, leaver, out)) for leaver in event.members)
    out.reply(event.ticket, Left(members=results))
    gone = sorted(before - group.members.keys())
    if group.state is State.PREPARING:
        rebalancing.maybe_complete(group, now, out)
    elif gone:
        reasons = {leaver.reason or "not provided" for leaver in event.members}
        reason = f"{', '.join(gone)} left; client reason: {', '.join(sorted(reasons))}"
        rebalancing.prepare(group, reason, now, rules, out)
    return out


def _remove(group: ClassicGroup, leaver: Leaver, out: Decision) -> ErrorCode:
    member_id = leaver.member_id
    if member_id == NO_MEMBER:
        # An administrator names a static member by its instance alone.
        owner = group.static_members.get(leaver.instance_id) if leaver.instance_id is not None else None
        if owner is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        member_id = owner
    elif member_id not in group.pending_joins:
        error = group.check_member(member_id, leaver.instance_id)
        if error:
            return error
    group.remove(member_id, out)
    return ErrorCode.NONE
