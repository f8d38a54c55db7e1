"""How groups are listed and described."""

import msgspec

from ottla.broker.coordination.groups.classic.group import ClassicGroup
from ottla.broker.coordination.groups.classic.states import State
from ottla.broker.coordination.groups.consumer.assignments import NOTHING, Assignment
from ottla.broker.coordination.groups.consumer.group import CONSUMER_PROTOCOL, ConsumerGroup
from ottla.broker.coordination.groups.consumer.members import ConsumerMember
from ottla.broker.coordination.groups.consumer.subscriptions import preferred_assignor
from ottla.broker.coordination.groups.events import GroupRules

CLASSIC, CONSUMER = "classic", "consumer"


class ListedGroup(msgspec.Struct, frozen=True):
    group_id: str
    protocol_type: str
    state: str
    group_type: str = CLASSIC


class DescribedMember(msgspec.Struct, frozen=True):
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


class DescribedGroup(msgspec.Struct, frozen=True):
    group_id: str
    state: str
    protocol_type: str = ""
    protocol: str = ""
    members: tuple[DescribedMember, ...] = ()


class DescribedConsumerMember(msgspec.Struct, frozen=True):
    member: ConsumerMember
    topics: tuple[str, ...]
    target: Assignment


class DescribedConsumerGroup(msgspec.Struct, frozen=True):
    group_id: str
    state: str
    epoch: int
    assignment_epoch: int
    assignor: str
    members: tuple[DescribedConsumerMember, ...]


def described_consumer(group: ConsumerGroup, rules: GroupRules) -> DescribedConsumerGroup:
    return DescribedConsumerGroup(
        group.group_id,
        group.state.value,
        group.epoch,
        max(group.assignment_epoch, 0),
        preferred_assignor(group.members.values(), rules),
        tuple(
            DescribedConsumerMember(member, member.topics, group.targets.get(member.member_id, NOTHING))
            for member in group.members.values()
        ),
    )


def listed(group: ClassicGroup | ConsumerGroup) -> ListedGroup:
    if isinstance(group, ConsumerGroup):
        return ListedGroup(group.group_id, CONSUMER_PROTOCOL, group.state.value, CONSUMER)
    return ListedGroup(group.group_id, group.protocol_type or "", group.state.value)


def described(group: ClassicGroup) -> DescribedGroup:
    """Subscriptions are only told of a stable group: before that the protocol may still change."""
    protocol = (group.protocol or "") if group.state is State.STABLE else ""
    return DescribedGroup(
        group.group_id,
        group.state.value,
        group.protocol_type or "",
        protocol,
        tuple(
            DescribedMember(
                member.member_id, member.instance_id, member.client_id, member.client_host,
                member.metadata_for(protocol) if protocol else b"", member.assignment,
            )
            for member in group.members.values()
        ),
    )  # fmt: skip


def missing(group_id: str) -> DescribedGroup:
    return DescribedGroup(group_id, State.DEAD.value)
