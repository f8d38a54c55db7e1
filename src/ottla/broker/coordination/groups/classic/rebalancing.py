"""From one generation to the next: calling the members together, waiting for them, and closing the round."""

from ottla.broker.coordination.effects import Decision, Now, SetTimer
from ottla.broker.coordination.groups.classic.group import JOIN_TIMER, SYNC_TIMER, ClassicGroup
from ottla.broker.coordination.groups.classic.states import State
from ottla.broker.coordination.groups.events import GroupRules, Synced
from ottla.model.errors import ErrorCode
from ottla.protocol.coordinator_records import GroupMetadataKey

RETRY_MS = 1000
"""If the record of an empty generation cannot be written, it is tried again after this time."""


def prepare(group: ClassicGroup, reason: str, now: Now, rules: GroupRules, out: Decision) -> None:
    """Call all members to join again."""
    if group.state is State.COMPLETING:
        for member in group.members.values():
            member.assignment = b""
            if group.answer_sync(member, Synced(ErrorCode.REBALANCE_IN_PROGRESS), out):
                group.touch(member, now, out)
    group.pending_syncs.clear()
    is_initial = group.is_empty
    group.become(State.PREPARING, now.wall)
    out.note(f"Preparing to rebalance group {group.group_id} with old generation {group.generation}: {reason}")
    if is_initial:
        # Nobody is in a hurry yet: give the other members of a starting application time to arrive.
        group.new_member_added = False
        group.initial_delay_ms = rules.initial_rebalance_delay_ms
        group.initial_remaining_ms = max(group.rebalance_timeout_ms() - group.initial_delay_ms, 0)
        out.timers.append(_join_timer(group, now, group.initial_delay_ms))
    elif group.has_all_joined():
        complete(group, now, out)
    else:
        out.timers.append(_join_timer(group, now, group.rebalance_timeout_ms()))


def prepare_or_complete(group: ClassicGroup, reason: str, now: Now, rules: GroupRules, out: Decision) -> None:
    if group.state is State.PREPARING:
        maybe_complete(group, now, out)
    else:
        prepare(group, reason, now, rules, out)


def maybe_complete(group: ClassicGroup, now: Now, out: Decision) -> None:
    """Close the round early if everybody is here; a first round always lasts its full delay."""
    is_initial = group.previous_state is State.EMPTY
    if group.state is State.PREPARING and not is_initial and group.has_all_joined():
        complete(group, now, out)


def on_join_timer(group: ClassicGroup, now: Now, rules: GroupRules, out: Decision) -> None:
    if group.state is not State.PREPARING:
        return
    is_initial = group.previous_state is State.EMPTY
    if is_initial and group.new_member_added and group.initial_remaining_ms > 0:
        group.new_member_added = False
        delay_ms = min(rules.initial_rebalance_delay_ms, group.initial_remaining_ms)
        group.initial_remaining_ms = max(group.initial_remaining_ms - group.initial_delay_ms, 0)
        group.initial_delay_ms = delay_ms
        out.timers.append(_join_timer(group, now, delay_ms))
    else:
        complete(group, now, out)


def complete(group: ClassicGroup, now: Now, out: Decision) -> None:
    """Close the round: who has joined is the next generation. Static members keep their place for a session."""
    absent = [m.member_id for m in group.members.values() if m.join_ticket is None and not m.is_static]
    for member_id in absent:
        group.remove(member_id, out)
    if absent:
        out.note(
            f"Group {group.group_id} removed members that did not join in the rebalance timeout: {', '.join(absent)}"
        )
    if not group.members:
        # Only replay makes the group empty; if the record is lost, the timer brings us back here.
        out.records.append((GroupMetadataKey(group.group_id), group.as_empty_record(now)))
        out.timers_if_lost.append(_join_timer(group, now, RETRY_MS))
        out.note(f"Group {group.group_id} with generation {group.generation + 1} is now empty")
        out.rebalances += 1
        return
    if not group.elect_joined_leader():
        # Only static members are left, and none came. Their sessions decide; until then ask again.
        out.timers.append(_join_timer(group, now, group.rebalance_timeout_ms()))
        return
    _start_generation(group, now, out)


def _join_timer(group: ClassicGroup, now: Now, delay_ms: int) -> SetTimer:
    return SetTimer((JOIN_TIMER, group.group_id), now.steady + delay_ms)


def _start_generation(group: ClassicGroup, now: Now, out: Decision) -> None:
    group.generation += 1
    group.protocol = group.select_protocol()
    group.refresh_subscriptions()
    group.become(State.COMPLETING, now.wall)
    out.rebalances += 1
    out.note(f"Stabilized group {group.group_id} generation {group.generation} with {len(group.members)} members")
    for member in group.members.values():
        group.answer_join(member, group.joined(member.member_id), out)
        member.is_new = False
        group.touch(member, now, out)
    group.pending_syncs = set(group.members)
    out.timer((SYNC_TIMER, group.group_id, str(group.generation)), now.steady + group.rebalance_timeout_ms())
