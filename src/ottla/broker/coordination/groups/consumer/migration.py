"""From the classic protocol to the consumer protocol and back, while members are at work.

A classic group becomes a consumer group when the first member of the new protocol joins it; its classic members stay
and are told to join again. When the last member of the new protocol has gone, the group becomes classic again, and its
members are called to a rebalance.
"""

from ottla.broker.coordination.groups.classic.group import ClassicGroup
from ottla.broker.coordination.groups.classic.members import Member
from ottla.broker.coordination.groups.consumer import classic_wire
from ottla.broker.coordination.groups.consumer.assignments import assignment_of, pairs
from ottla.broker.coordination.groups.consumer.group import CONSUMER_PROTOCOL, ConsumerGroup
from ottla.broker.coordination.groups.consumer.members import ClassicSide, ConsumerMember
from ottla.broker.coordination.groups.events import GroupRules, Join, Protocols
from ottla.model.errors import ApiError, ErrorCode
from ottla.protocol.coordinator_records import GroupMetadataValue, MemberMetadata
from ottla.protocol.errors import MalformedMessage


def can_upgrade(group: ClassicGroup, rules: GroupRules) -> bool:
    consumer = rules.consumer
    return consumer.can_upgrade and group.uses_consumer_protocol and len(group.members) <= consumer.max_size


def upgraded(group: ClassicGroup, rules: GroupRules) -> ConsumerGroup:
    """The consumer group that a classic one would be: every member has what it was last assigned."""
    result = ConsumerGroup(group.group_id)
    try:
        for member in group.members.values():
            _put_upgraded(result, group, member, rules)
    except MalformedMessage as error:
        raise ApiError(
            ErrorCode.GROUP_ID_NOT_FOUND, f"Cannot upgrade the classic group {group.group_id}: {error}."
        ) from None
    result.epoch = result.assignment_epoch = group.generation
    result.metadata_hash = rules.topics.fingerprint(result.subscribed_names())
    return result


def _put_upgraded(result: ConsumerGroup, group: ClassicGroup, member: Member, rules: GroupRules) -> None:
    metadata = member.metadata_for(group.protocol) or member.protocols[0][1]
    subscription = classic_wire.read_subscription(metadata)
    # Two members cannot have the same partition here, whatever their leader thought.
    assigned = {
        topic_id: free
        for topic_id, partitions in classic_wire.read_assignment(member.assignment, rules.topics).items()
        if (free := frozenset(number for number in partitions if result.is_free(topic_id, number)))
    }
    result.targets[member.member_id] = assigned
    result.put(
        ConsumerMember(
            member_id=member.member_id,
            instance_id=member.instance_id,
            rack_id=subscription.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            topics=tuple(sorted(set(subscription.topics))),
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            classic=ClassicSide(member.session_timeout_ms, member.protocols),
            epoch=group.generation,
            previous_epoch=group.generation,
            assigned=assigned,
        )
    )


def can_downgrade(group: ConsumerGroup, without: str, rules: GroupRules) -> bool:
    """Whether only classic members would be left without this one."""
    left = len(group.members) - 1
    return (
        rules.consumer.can_downgrade
        and group.all_classic_except(without)
        and 0 < left <= rules.max_size
        and _has_common([m.classic for m in group.members.values() if m.member_id != without])
    )


def can_downgrade_with(group: ConsumerGroup, owner: ConsumerMember, event: Join, rules: GroupRules) -> bool:
    """Whether only classic members are left once this static one has come back as one of them."""
    others = [m.classic for m in group.members.values() if m.member_id != owner.member_id]
    return (
        rules.consumer.can_downgrade
        and group.all_classic_except(owner.member_id)
        and len(group.members) <= rules.max_size
        and group.supports(event.protocol_type, (name for name, _ in event.protocols))
        and _has_common([*others, ClassicSide(event.session_timeout_ms, event.protocols)])
    )


def _has_common(sides: list[ClassicSide | None]) -> bool:
    return bool(set.intersection(*({name for name, _ in side.protocols} for side in sides if side is not None)))


def downgraded(
    group: ConsumerGroup, rules: GroupRules, now_wall: int, *, leaving: str | None = None, joining: Join | None = None
) -> GroupMetadataValue:
    """The classic group that is left when a member leaves, or when a static one comes back as a classic member."""
    sides: dict[str, ClassicSide] = {}
    for member in group.members.values():
        if joining is not None and member.instance_id == joining.instance_id:
            sides[member.member_id] = ClassicSide(joining.session_timeout_ms, joining.protocols)
        elif member.member_id != leaving:
            assert member.classic is not None
            sides[member.member_id] = member.classic
    protocol = _chosen(list(sides.values()))
    return GroupMetadataValue(
        protocol_type=CONSUMER_PROTOCOL,
        generation=group.epoch,
        protocol=protocol,
        leader=next(iter(sides)),
        members=tuple(
            _as_classic(group, group.members[member_id], side, protocol, rules) for member_id, side in sides.items()
        ),
        state_timestamp=now_wall,
    )


def _chosen(sides: list[ClassicSide]) -> str:
    common = set.intersection(*({name for name, _ in side.protocols} for side in sides))
    votes: dict[str, int] = {}
    for side in sides:
        favourite = next(name for name, _ in side.protocols if name in common)
        votes[favourite] = votes.get(favourite, 0) + 1
    return max(votes, key=lambda name: votes[name])


def _as_classic(
    group: ConsumerGroup, member: ConsumerMember, side: ClassicSide, protocol: str, rules: GroupRules
) -> MemberMetadata:
    metadata = dict(side.protocols)[protocol]
    # What it may be reading, not what it was to read: should the group be upgraded again before everybody has followed,
    # nothing of this is free.
    had = assignment_of({*pairs(member.assigned), *pairs(member.revoking)})
    return MemberMetadata(
        member_id=member.member_id,
        client_id=member.client_id,
        client_host=member.client_host,
        session_timeout_ms=side.session_timeout_ms,
        subscription=metadata,
        assignment=classic_wire.write_assignment(had, rules.topics, classic_wire.version_of(metadata)),
        group_instance_id=member.instance_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
    )


def protocols_of(group: ConsumerGroup) -> dict[str, Protocols]:
    """The record of a classic group keeps only the chosen protocol; these are all that its members offered."""
    return {member.member_id: member.classic.protocols for member in group.members.values() if member.classic}
