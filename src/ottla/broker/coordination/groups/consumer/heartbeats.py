"""Rules of ConsumerGroupHeartbeat: joining, staying, changing one's mind, leaving."""

from ottla.broker.coordination.effects import Decision, Now, SetTimer
from ottla.broker.coordination.groups.consumer.assignments import NOTHING, is_subset
from ottla.broker.coordination.groups.consumer.events import ConsumerAnswer, ConsumerHeartbeat
from ottla.broker.coordination.groups.consumer.group import ConsumerEntry, ConsumerGroup
from ottla.broker.coordination.groups.consumer.members import (
    JOINING_EPOCH,
    LEAVING_STATIC_EPOCH,
    ConsumerMember,
    MemberState,
)
from ottla.broker.coordination.groups.consumer.subscriptions import Progress
from ottla.broker.coordination.groups.events import GroupRules
from ottla.broker.coordination.patterns import compile_pattern
from ottla.model.errors import ApiError, ErrorCode
from ottla.protocol.consumer_group_records import CurrentKey

SESSION_TIMER = "consumer-session"
REBALANCE_TIMER = "consumer-rebalance"


def check_request(event: ConsumerHeartbeat, rules: GroupRules) -> None:
    """Raises INVALID_REQUEST and the like for what no member may ask."""
    for what, text in (("GroupId", event.group_id), ("InstanceId", event.instance_id), ("RackId", event.rack_id)):
        if text is not None and not text.strip():
            raise ApiError(ErrorCode.INVALID_REQUEST, f"{what} can't be empty.")
    epoch = event.member_epoch
    if (event.brings_own_id or epoch != JOINING_EPOCH) and not event.member_id.strip():
        raise ApiError(ErrorCode.INVALID_REQUEST, "MemberId can't be empty.")
    if epoch == JOINING_EPOCH:
        if event.rebalance_timeout_ms == -1:
            raise ApiError(ErrorCode.INVALID_REQUEST, "RebalanceTimeoutMs must be provided in first request.")
        if event.owned is None or event.owned:
            raise ApiError(ErrorCode.INVALID_REQUEST, "TopicPartitions must be empty when (re-)joining.")
        if event.topics is None and event.regex is None:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
            )
    elif epoch == LEAVING_STATIC_EPOCH:
        if event.instance_id is None:
            raise ApiError(ErrorCode.INVALID_REQUEST, "InstanceId can't be null.")
    elif epoch < LEAVING_STATIC_EPOCH:
        raise ApiError(ErrorCode.INVALID_REQUEST, "MemberEpoch is invalid.")
    if event.assignor is not None and event.assignor not in rules.consumer.assignors:
        raise ApiError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {event.assignor} is not supported. "
            f"Supported assignors: {', '.join(rules.consumer.assignors)}.",
        )
    if event.regex:
        compile_pattern(event.regex)


def on_heartbeat(group: ConsumerGroup, event: ConsumerHeartbeat, now: Now, rules: GroupRules) -> Decision:
    """Raises ApiError if it is refused."""
    is_joining = event.member_epoch == JOINING_EPOCH
    member_id = event.member_id or event.unique
    check_room(group, member_id, rules)
    progress = Progress(group, rules, now.wall)
    before = _find(group, event, member_id, progress)
    after = before.changed(
        instance_id=event.instance_id or before.instance_id,
        rack_id=event.rack_id or before.rack_id,
        rebalance_timeout_ms=before.rebalance_timeout_ms
        if event.rebalance_timeout_ms == -1
        else event.rebalance_timeout_ms,
        assignor=event.assignor or before.assignor,
        topics=before.topics if event.topics is None else tuple(sorted(set(event.topics))),
        regex=before.regex if event.regex is None else event.regex or None,
        client_id=event.client_id,
        client_host=event.client_host,
        classic=None,
    )
    wanted = group.note_sight(before, event.sight)
    member = progress.advance(after, event.owned, wanted=wanted)
    out = Decision(records=[*progress.records])
    times = rules.consumer.times_of(group.group_id)
    out.timers += session_timer(group, member, now, rules)
    if member.state is MemberState.UNREVOKED_PARTITIONS and member != after:
        out.timers.append(_rebalance_timer(group, member, now))
    is_full = is_joining or (
        event.rebalance_timeout_ms != -1
        and event.owned is not None
        and (event.topics is not None or event.regex is not None)
    )
    tells = is_full or member.assigned != before.assigned
    out.reply(
        event.ticket,
        ConsumerAnswer(
            member_id=member_id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=times.heartbeat_interval_ms,
            assignment=member.assigned if tells else None,
        ),
    )
    if progress.epoch != group.epoch:
        out.note(
            f"Group {group.group_id} bumped its group epoch to {progress.epoch} with {len(progress.members)} members"
        )
    return out


def check_room(group: ConsumerGroup, member_id: str, rules: GroupRules) -> None:
    if len(group.members) >= rules.consumer.max_size and member_id not in group.members:
        raise ApiError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {rules.consumer.max_size} members.",
        )


def _find(group: ConsumerGroup, event: ConsumerHeartbeat, member_id: str, progress: Progress) -> ConsumerMember:
    """The member that speaks, as it is known; a new one if it joins."""
    if event.member_epoch == JOINING_EPOCH:
        owner = group.static_member(event.instance_id)
        if owner is not None and owner.member_id != member_id:
            if not owner.is_classic and owner.epoch != LEAVING_STATIC_EPOCH:
                raise ApiError(
                    ErrorCode.UNRELEASED_INSTANCE_ID,
                    f"Static member {member_id} with instance id {event.instance_id} cannot join the group because "
                    f"the instance id is owned by {owner.member_id} member.",
                )
            return take_over(owner, member_id, progress)
        known = group.members.get(member_id)
        if known is None:
            return ConsumerMember(member_id)
        if owner is not None and owner.epoch == LEAVING_STATIC_EPOCH:
            return known.changed(epoch=JOINING_EPOCH, previous_epoch=JOINING_EPOCH)
        return known  # it was fenced or lost its memory, and says that it has let go of everything
    member = group.member(member_id, event.instance_id)
    _check_epoch(member, event)
    return member


def take_over(owner: ConsumerMember, member_id: str, progress: Progress) -> ConsumerMember:
    """A static member comes back under another id: the place is its own."""
    successor = owner.changed(member_id=member_id, epoch=JOINING_EPOCH, previous_epoch=JOINING_EPOCH)
    progress.replace(owner, successor)
    return successor


def _check_epoch(member: ConsumerMember, event: ConsumerHeartbeat) -> None:
    if event.member_epoch == member.epoch:
        return
    # The answer with the newer epoch may have been lost: then the member has nothing that is not its own.
    was_lost = (
        event.member_epoch < member.epoch
        and event.member_epoch == member.previous_epoch
        and event.owned is not None
        and is_subset(event.owned, member.assigned)
    )
    if not was_lost:
        relation = "greater" if event.member_epoch > member.epoch else "smaller"
        raise ApiError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The consumer group member has a {relation} member epoch ({event.member_epoch}) than the one known by "
            f"the group coordinator ({member.epoch}). The member must abandon all its partitions and rejoin.",
        )


# Leaving


def leave_static(group: ConsumerGroup, member: ConsumerMember, event: ConsumerHeartbeat) -> Decision:
    """The instance will be back within a session: its place and its partitions are kept."""
    gone = member.changed(epoch=LEAVING_STATIC_EPOCH, revoking=NOTHING)
    out = Decision(records=[(CurrentKey(group.group_id, member.member_id), gone.as_current_record())])
    out.reply(event.ticket, ConsumerAnswer(member_id=member.member_id, member_epoch=LEAVING_STATIC_EPOCH))
    return out


def removal(group: ConsumerGroup, members: list[ConsumerMember], now: Now, rules: GroupRules) -> list[ConsumerEntry]:
    """Members are gone: the others get a new epoch, and new targets when the next of them speaks."""
    progress = Progress(group, rules, now.wall)
    for member in members:
        progress.remove(member.member_id)
    progress.refresh(changed=True)
    return progress.records


# Timers


def session_timer(group: ConsumerGroup, member: ConsumerMember, now: Now, rules: GroupRules) -> list[SetTimer]:
    if member.classic is not None:
        timeout_ms = member.classic.session_timeout_ms
    else:
        timeout_ms = rules.consumer.times_of(group.group_id).session_timeout_ms
    return [SetTimer((SESSION_TIMER, group.group_id, member.member_id), now.steady + timeout_ms)]


def _rebalance_timer(group: ConsumerGroup, member: ConsumerMember, now: Now) -> SetTimer:
    key = (REBALANCE_TIMER, group.group_id, member.member_id, str(member.epoch))
    return SetTimer(key, now.steady + member.rebalance_timeout_ms)


def timers_after_loading(group: ConsumerGroup, now: Now, rules: GroupRules) -> list[SetTimer]:
    timers = []
    for member in group.members.values():
        timers += session_timer(group, member, now, rules)
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            timers.append(_rebalance_timer(group, member, now))
    return timers


def is_overdue(group: ConsumerGroup, member_id: str, epoch: int) -> bool:
    """Whether a member that was told to give up partitions has not moved since."""
    member = group.members.get(member_id)
    return member is not None and member.epoch == epoch and member.state is MemberState.UNREVOKED_PARTITIONS
