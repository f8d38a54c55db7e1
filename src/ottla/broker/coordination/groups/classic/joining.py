"""Rules of JoinGroup: who may come in, under which id, and whether that means a rebalance."""

import msgspec

from ottla.broker.coordination.effects import Decision, Now
from ottla.broker.coordination.groups.classic import rebalancing
from ottla.broker.coordination.groups.classic.group import SESSION_TIMER, ClassicGroup
from ottla.broker.coordination.groups.classic.members import NEW_MEMBER_JOIN_TIMEOUT_MS, Member, joining
from ottla.broker.coordination.groups.classic.states import State
from ottla.broker.coordination.groups.events import NO_MEMBER, GroupRules, Join, Joined
from ottla.model.errors import ErrorCode
from ottla.protocol.coordinator_records import GroupMetadataKey, MemberMetadata


def on_join(group: ClassicGroup, event: Join, now: Now, rules: GroupRules) -> Decision:
    out = Decision()
    if not _has_room(group, event.member_id, rules):
        group.remove(event.member_id, out)
        out.reply(event.ticket, Joined(NO_MEMBER, ErrorCode.GROUP_MAX_SIZE_REACHED))
        rebalancing.maybe_complete(group, now, out)
    elif not group.supports(event.protocol_type, event.protocols):
        out.reply(event.ticket, Joined(event.member_id, ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
    elif event.member_id != NO_MEMBER:
        _join_known(group, event, now, rules, out)
    elif event.instance_id is None:
        _join_new_dynamic(group, event, now, rules, out)
    elif event.instance_id in group.static_members:
        _join_static_again(group, event, now, rules, out)
    else:
        _add(group, event, _new_member_id(event), now, rules, out)
    return out


def _new_member_id(event: Join) -> str:
    return f"{event.client_id if event.instance_id is None else event.instance_id}-{event.unique}"


def _reason(event: Join) -> str:
    return f"client reason: {event.reason or 'not provided'}"


def _has_room(group: ClassicGroup, member_id: str, rules: GroupRules) -> bool:
    member = group.members.get(member_id)
    if group.state is State.PREPARING:
        # Counting those who wait, not all members, lets a group that became too big shed the last to come back.
        return (member is not None and member.join_ticket is not None) or group.joining < rules.max_size
    if group.state in (State.COMPLETING, State.STABLE):
        return member is not None or len(group.members) < rules.max_size
    return True


def _join_new_dynamic(group: ClassicGroup, event: Join, now: Now, rules: GroupRules, out: Decision) -> None:
    member_id = _new_member_id(event)
    if not event.requires_known_id:
        _add(group, event, member_id, now, rules, out)
        return
    # Asking the client to come back with its id keeps a client that gives up early from leaving ghosts behind.
    group.pending_joins.add(member_id)
    out.timer((SESSION_TIMER, group.group_id, member_id), now.steady + event.session_timeout_ms)
    out.reply(event.ticket, Joined(member_id, ErrorCode.MEMBER_ID_REQUIRED))


def _add(group: ClassicGroup, event: Join, member_id: str, now: Now, rules: GroupRules, out: Decision) -> None:
    member = joining(event, member_id)
    if not group.members:
        group.protocol_type = event.protocol_type
    if group.state is State.PREPARING and group.previous_state is State.EMPTY:
        group.new_member_added = True
    group.add(member)
    group.touch(member, now, out, NEW_MEMBER_JOIN_TIMEOUT_MS)
    rebalancing.prepare_or_complete(group, f"new member {member_id}; {_reason(event)}", now, rules, out)


def _join_known(group: ClassicGroup, event: Join, now: Now, rules: GroupRules, out: Decision) -> None:
    member_id = event.member_id
    if member_id in group.pending_joins:
        if event.instance_id is not None:  # the id was given to a dynamic member
            out.reply(event.ticket, Joined(member_id, ErrorCode.UNKNOWN_MEMBER_ID))
        else:
            _add(group, event, member_id, now, rules, out)
        return
    error = group.check_member(member_id, event.instance_id)
    if error or group.is_empty:
        # In an empty group the id is from an earlier life: the client starts over.
        out.reply(event.ticket, Joined(member_id, error or ErrorCode.UNKNOWN_MEMBER_ID))
        return
    member = group.members[member_id]
    changed = member.protocols != event.protocols
    # A stable group's leader may ask for a rebalance by joining again, for reasons only it sees (new partitions).
    if group.state is State.PREPARING or changed or (group.state is State.STABLE and group.is_leader(member_id)):
        _update(group, member, event, out)
        what = "changed its metadata" if changed else "joins again"
        rebalancing.prepare_or_complete(group, f"member {member_id} {what}; {_reason(event)}", now, rules, out)
    else:
        # It missed our answer: the generation it asks for is the current one.
        out.reply(event.ticket, group.joined(member_id))


def _update(group: ClassicGroup, member: Member, event: Join, out: Decision) -> None:
    group.set_protocols(member, event.protocols)
    member.rebalance_timeout_ms = event.rebalance_timeout_ms
    member.session_timeout_ms = event.session_timeout_ms
    group.park_join(member, event.ticket, out)


def _join_static_again(group: ClassicGroup, event: Join, now: Now, rules: GroupRules, out: Decision) -> None:
    """A static member was restarted: it takes its place again, if possible without disturbing the others."""
    assert event.instance_id is not None
    old = group.members[group.static_members[event.instance_id]]
    new_id = _new_member_id(event)
    if group.state is State.STABLE and group.would_select(old, event.protocols) == group.protocol:
        _swap_in_stable(group, old, new_id, event, now, out)
        return
    was_completing = group.state is State.COMPLETING
    member = group.replace_static(old, new_id, out)
    _update(group, member, event, out)
    group.touch(member, now, out)
    reason = f"static member {event.instance_id} is now {new_id}; {_reason(event)}"
    if was_completing:
        # The leader may be working on an assignment for the old id, which nobody would receive.
        rebalancing.prepare(group, reason, now, rules, out)
    else:
        rebalancing.prepare_or_complete(group, reason, now, rules, out)


def _swap_in_stable(group: ClassicGroup, old: Member, new_id: str, event: Join, now: Now, out: Decision) -> None:
    """Write the group with the new id; it is swapped in when the record is replayed, and not if that fails."""
    old_id, old_leader = old.member_id, group.leader
    record = group.as_record({member.member_id: member.assignment for member in group.members.values()})
    swapped = tuple(
        _renamed(member, new_id, event, group.protocol) if member.member_id == old_id else member
        for member in record.members
    )
    leader = new_id if old_leader == old_id else old_leader
    record = msgspec.structs.replace(record, members=swapped, leader=leader)
    out.records.append((GroupMetadataKey(group.group_id), record))
    out.tickets_if_lost.append(event.ticket)

    def afterwards() -> Decision:
        follow_up = Decision()
        member = group.members[new_id]
        group.set_protocols(member, event.protocols)
        group.touch(member, now, follow_up)
        if event.can_skip_assignment:
            # A leader that knows of skipping learns that it leads and need not assign anew.
            answer = group.joined(new_id, skip_assignment=group.is_leader(new_id))
        else:
            # An older client that is told it leads would assign: it hears the leader's former name instead.
            answer = msgspec.structs.replace(group.joined(new_id), leader=old_leader or NO_MEMBER, members=())
        follow_up.reply(event.ticket, answer)
        return follow_up

    out.then = afterwards


def _renamed(record: MemberMetadata, new_id: str, event: Join, protocol: str | None) -> MemberMetadata:
    return msgspec.structs.replace(
        record,
        member_id=new_id,
        session_timeout_ms=event.session_timeout_ms,
        rebalance_timeout_ms=event.rebalance_timeout_ms,
        subscription=next((metadata for name, metadata in event.protocols if name == protocol), b""),
    )
