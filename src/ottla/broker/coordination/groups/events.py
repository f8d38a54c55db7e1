"""What happens to groups, and what is answered. `ticket` names the request that waits for the answer."""

from uuid import UUID

import msgspec

from ottla.broker.coordination.groups.consumer.rules import ConsumerRules
from ottla.broker.coordination.groups.consumer.topics import KnownTopics
from ottla.model.errors import ErrorCode
from ottla.model.names import NO_TOPIC_ID
from ottla.protocol.records import NO_PRODUCER_ID

NO_MEMBER = ""
NO_GENERATION = -1
NO_EXPIRY = -1

Protocols = tuple[tuple[str, bytes], ...]
"""(name, metadata) in the member's order of preference."""


class GroupRules(msgspec.Struct, frozen=True):
    """The settings that groups are decided by, read anew for each event."""

    initial_rebalance_delay_ms: int = 3000
    max_size: int = 0x7FFFFFFF
    min_session_timeout_ms: int = 6000
    max_session_timeout_ms: int = 1_800_000
    offsets_retention_ms: int = 604_800_000
    offset_metadata_max_bytes: int = 4096
    consumer: ConsumerRules = ConsumerRules()
    topics: KnownTopics = msgspec.field(default_factory=KnownTopics)


class Join(msgspec.Struct, frozen=True):
    ticket: int
    group_id: str
    member_id: str
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    unique: str
    """Random text for a new member id: machines do not roll dice."""
    instance_id: str | None = None
    reason: str | None = None
    requires_known_id: bool = True
    can_skip_assignment: bool = True


class JoinedMember(msgspec.Struct, frozen=True):
    member_id: str
    instance_id: str | None
    metadata: bytes


class Joined(msgspec.Struct, frozen=True):
    member_id: str
    error: ErrorCode = ErrorCode.NONE
    generation: int = NO_GENERATION
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = NO_MEMBER
    skip_assignment: bool = False
    members: tuple[JoinedMember, ...] = ()


class Sync(msgspec.Struct, frozen=True):
    ticket: int
    group_id: str
    member_id: str
    generation: int
    instance_id: str | None = None
    protocol_type: str | None = None
    protocol: str | None = None
    assignments: tuple[tuple[str, bytes], ...] = ()


class Synced(msgspec.Struct, frozen=True):
    error: ErrorCode = ErrorCode.NONE
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


class Leaver(msgspec.Struct, frozen=True):
    member_id: str
    instance_id: str | None = None
    reason: str | None = None


class Leave(msgspec.Struct, frozen=True):
    ticket: int
    group_id: str
    members: tuple[Leaver, ...]


class Left(msgspec.Struct, frozen=True):
    """One error for each member of the request, in its order; or one for all of it."""

    error: ErrorCode = ErrorCode.NONE
    members: tuple[tuple[Leaver, ErrorCode], ...] = ()


class OffsetToCommit(msgspec.Struct, frozen=True, gc=False):
    topic: str
    partition: int
    offset: int
    leader_epoch: int = -1
    metadata: str | None = ""
    topic_id: UUID = NO_TOPIC_ID


class Commit(msgspec.Struct, frozen=True):
    group_id: str
    offsets: list[OffsetToCommit]
    member_id: str = NO_MEMBER
    generation: int = NO_GENERATION
    instance_id: str | None = None
    retention_ms: int = NO_EXPIRY
    """How long to keep these offsets: old clients may say so, and then nothing else counts."""
    unknown_group_error: ErrorCode = ErrorCode.ILLEGAL_GENERATION
    """What to answer a member of a group that is not there: it depends on the version of the request."""
    knows_member_epochs: bool = True
    """Whether the version of the request can carry a member's epoch in place of a generation."""
    producer_id: int = NO_PRODUCER_ID
    """Whose transaction these offsets are part of, if any: they count when it is committed."""
    producer_epoch: int = -1

    @property
    def is_transactional(self) -> bool:
        return self.producer_id != NO_PRODUCER_ID
