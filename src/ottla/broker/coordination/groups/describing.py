"""How groups are listed and described."""

import msgspec

from ottla.broker.coordination.groups.group import Group
from ottla.broker.coordination.groups.states import State

CLASSIC = "classic"


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


def listed(group: Group) -> ListedGroup:
    return ListedGroup(group.group_id, group.protocol_type or "", group.state.value)


def described(group: Group) -> DescribedGroup:
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
