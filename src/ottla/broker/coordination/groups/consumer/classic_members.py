"""Classic members of a consumer group: JoinGroup, SyncGroup, Heartbeat and LeaveGroup where the broker assigns.

Nobody leads and nobody waits: a join is answered at once with the member's epoch as its generation, and the sync after
it with what the member has. A heartbeat tells it to join again whenever there is a next step to take.
"""

from ottla.broker.coordination.effects import Decision, Now, SetTimer
from ottla.broker.coordination.groups.consumer import classic_wire, heartbeats
from ottla.broker.coordination.groups.consumer.group import CONSUMER_PROTOCOL, ConsumerGroup
from ottla.broker.coordination.groups.consumer.members import ClassicSide, ConsumerMember, MemberState
from ottla.broker.coordination.groups.consumer.subscriptions import Progress
from ottla.broker.coordination.groups.events import (
    NO_MEMBER,
    GroupRules,
    Join,
    Joined,
    Leave,
    Leaver,
    Left,
    Sync,
    Synced,
)
from ottla.model.errors import ApiError, ErrorCode
from ottla.protocol.errors import MalformedMessage

JOIN_TIMER = "consumer-join"
SYNC_TIMER = "consumer-sync"


def on_join(group: ConsumerGroup, event: Join, now: Now, rules: GroupRules) -> Decision:
    """Raises ApiError if it is refused."""
    member_id = event.member_id or event.unique
    heartbeats.check_room(group, member_id, rules)
    if not group.supports(event.protocol_type, (name for name, _ in event.protocols)):
        raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    out = Decision()
    if event.member_id == NO_MEMBER and event.instance_id is None and event.requires_known_id:
        out.reply(event.ticket, Joined(member_id, ErrorCode.MEMBER_ID_REQUIRED))
        return out
    try:
        subscription = classic_wire.read_subscription(event.protocols[0][1])
    except MalformedMessage:
        raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL) from None
    progress = Progress(group, rules, now.wall)
    before = _find(group, event, member_id, progress)
    after = before.changed(
        instance_id=event.instance_id or before.instance_id,
        rack_id=subscription.rack_id or before.rack_id,
        rebalance_timeout_ms=event.rebalance_timeout_ms,
        assignor=None,
        topics=tuple(sorted(set(subscription.topics))),
        regex=None,
        client_id=event.client_id,
        client_host=event.client_host,
        classic=ClassicSide(event.session_timeout_ms, event.protocols),
    )
    member = progress.advance(after, classic_wire.owned_by(subscription, rules.topics))
    out.records += progress.records
    out.timers += heartbeats.session_timer(group, member, now, rules)
    sync_key = (SYNC_TIMER, group.group_id, member_id)
    out.timers.append(SetTimer(sync_key, now.steady + event.rebalance_timeout_ms))

    def await_sync() -> Decision:
        group.awaited_joins.discard(member_id)
        group.awaited_syncs.add(member_id)
        return Decision()

    out.then = await_sync
    out.reply(
        event.ticket,
        Joined(
            member_id=member_id,
            generation=member.epoch,
            protocol_type=CONSUMER_PROTOCOL,
            protocol=event.protocols[0][0],
        ),
    )
    return out


def _find(group: ConsumerGroup, event: Join, member_id: str, progress: Progress) -> ConsumerMember:
    owner = group.static_member(event.instance_id)
    if event.instance_id is None or (owner is None and event.member_id == NO_MEMBER):
        return group.members.get(member_id) or ConsumerMember(member_id)
    if event.member_id != NO_MEMBER:
        return group.member(member_id, event.instance_id)
    assert owner is not None
    return heartbeats.take_over(owner, member_id, progress)


def on_sync(group: ConsumerGroup, event: Sync, now: Now, rules: GroupRules) -> Decision:
    member = _classic_member(group, event.member_id, event.instance_id)
    assert member.classic is not None
    if event.generation != member.epoch:
        raise ApiError(ErrorCode.ILLEGAL_GENERATION)
    protocol, metadata = member.classic.protocols[0]
    if (event.protocol_type or CONSUMER_PROTOCOL) != CONSUMER_PROTOCOL or (event.protocol or protocol) != protocol:
        raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    out = Decision()
    if group.epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
        out.timers += _await_join(group, member, now)
        out.reply(event.ticket, Synced(ErrorCode.REBALANCE_IN_PROGRESS))
        return out
    group.awaited_syncs.discard(member.member_id)
    out.timers += heartbeats.session_timer(group, member, now, rules)
    content = classic_wire.write_assignment(member.assigned, rules.topics, classic_wire.version_of(metadata))
    out.reply(event.ticket, Synced(ErrorCode.NONE, event.protocol_type, event.protocol, content))
    return out


def heartbeat(
    group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int, now: Now, rules: GroupRules
) -> tuple[ErrorCode, list[SetTimer]]:
    member = _classic_member(group, member_id, instance_id)
    if generation != member.epoch:
        raise ApiError(ErrorCode.ILLEGAL_GENERATION)
    timers = heartbeats.session_timer(group, member, now, rules)
    can_take_more = member.state is MemberState.UNRELEASED_PARTITIONS and not group.waits_for_others(member)
    if member.epoch < group.epoch or member.state is MemberState.UNREVOKED_PARTITIONS or can_take_more:
        return ErrorCode.REBALANCE_IN_PROGRESS, [*timers, *_await_join(group, member, now)]
    return ErrorCode.NONE, timers


def leavers(group: ConsumerGroup, event: Leave) -> tuple[list[ConsumerMember], Left]:
    """Who leaves, and the answer."""
    gone: dict[str, ConsumerMember] = {}
    results = []
    for leaver in event.members:
        try:
            member = _leaver(group, leaver)
            gone[member.member_id] = member
            results.append((leaver, ErrorCode.NONE))
        except ApiError as error:
            results.append((leaver, error.code))
    return list(gone.values()), Left(members=tuple(results))


def _leaver(group: ConsumerGroup, leaver: Leaver) -> ConsumerMember:
    if leaver.member_id == NO_MEMBER and leaver.instance_id is not None:
        # An administrator names a static member by its instance alone.
        owner = group.static_member(leaver.instance_id)
        if owner is None or not owner.is_classic:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
        return owner
    return _classic_member(group, leaver.member_id, leaver.instance_id)


def _classic_member(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
    member = group.member(member_id, instance_id)
    if not member.is_classic:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} does not use the classic protocol.")
    return member


def _await_join(group: ConsumerGroup, member: ConsumerMember, now: Now) -> list[SetTimer]:
    """It has been told to join again: the time for that runs from the first time it was told."""
    if member.member_id in group.awaited_joins:
        return []
    group.awaited_joins.add(member.member_id)
    return [SetTimer((JOIN_TIMER, group.group_id, member.member_id), now.steady + member.rebalance_timeout_ms)]


def is_overdue(group: ConsumerGroup, kind: str, member_id: str) -> bool:
    """Whether a timer has found a member that did not do what it was told."""
    return member_id in (group.awaited_joins if kind == JOIN_TIMER else group.awaited_syncs)
