"""One member of a consumer group: what it asked for, and how far it is on the way to what it shall have."""

from enum import IntEnum

import msgspec

from ottla.broker.coordination.groups.consumer import assignments
from ottla.broker.coordination.groups.consumer.assignments import NOTHING, Assignment
from ottla.broker.coordination.groups.events import Protocols
from ottla.protocol.consumer_group_records import ClassicMemberMetadata, ClassicProtocol, CurrentValue, MemberValue

JOINING_EPOCH = 0
LEAVING_EPOCH = -1
LEAVING_STATIC_EPOCH = -2


class MemberState(IntEnum):
    """How a member stands to its target. The numbers are those of the records."""

    STABLE = 0
    """It has what it shall have."""
    UNREVOKED_PARTITIONS = 1
    """It must first give up partitions, and say so."""
    UNRELEASED_PARTITIONS = 2
    """Something it shall have is still with another member."""
    UNKNOWN = 127
    """Written by a newer coordinator: the member starts over."""


class ClassicSide(msgspec.Struct, frozen=True):
    """What is known of a member that speaks the classic protocol in a consumer group."""

    session_timeout_ms: int
    protocols: Protocols


class ConsumerMember(msgspec.Struct, frozen=True):
    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: tuple[str, ...] = ()
    regex: str | None = None
    rebalance_timeout_ms: int = -1
    assignor: str | None = None
    classic: ClassicSide | None = None
    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: Assignment = NOTHING
    revoking: Assignment = NOTHING

    @property
    def is_classic(self) -> bool:
        return self.classic is not None

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == epoch

    def changed(self, **changes: object) -> "ConsumerMember":
        return msgspec.structs.replace(self, **changes)

    # To and from records

    def as_member_record(self) -> MemberValue:
        classic = None
        if self.classic is not None:
            classic = ClassicMemberMetadata(
                self.classic.session_timeout_ms,
                [ClassicProtocol(name, metadata) for name, metadata in self.classic.protocols],
            )
        return MemberValue(
            instance_id=self.instance_id,
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            subscribed_topic_names=list(self.topics),
            subscribed_topic_regex=self.regex,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            server_assignor=self.assignor,
            classic_member_metadata=classic,
        )

    def as_current_record(self) -> CurrentValue:
        return CurrentValue(
            member_epoch=self.epoch,
            previous_member_epoch=self.previous_epoch,
            state=self.state,
            assigned_partitions=assignments.to_record(self.assigned),
            partitions_pending_revocation=assignments.to_record(self.revoking),
        )

    def with_member_record(self, value: MemberValue) -> "ConsumerMember":
        classic = value.classic_member_metadata
        return self.changed(
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topics=tuple(value.subscribed_topic_names),
            regex=value.subscribed_topic_regex,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            assignor=value.server_assignor,
            classic=None
            if classic is None
            else ClassicSide(
                classic.session_timeout_ms,
                tuple((protocol.name, protocol.metadata) for protocol in classic.supported_protocols),
            ),
        )

    def with_current_record(self, value: CurrentValue) -> "ConsumerMember":
        known = value.state in MemberState.__members__.values()
        return self.changed(
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=MemberState(value.state) if known else MemberState.UNKNOWN,
            assigned=assignments.from_record(value.assigned_partitions),
            revoking=assignments.from_record(value.partitions_pending_revocation),
        )
