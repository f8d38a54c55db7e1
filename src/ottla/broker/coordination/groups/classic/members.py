"""One member of a group as the coordinator sees it while it lives."""

import msgspec

from ottla.broker.coordination.groups.events import Join, Protocols
from ottla.protocol.coordinator_records import MemberMetadata

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""A first join may be parked for longer than a session lasts, and its client cannot send heartbeats meanwhile.
Those whose client went away are let go after this time, so that retries do not pile up members."""


class Member(msgspec.Struct):
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    # Soft: which request of this member is parked, and when its session ends.
    join_ticket: int | None = None
    sync_ticket: int | None = None
    is_new: bool = False
    """It waits for its first generation: a parked join does not keep it alive for ever."""
    deadline: float = 0.0
    """The session ends here (steady ms). Heartbeats only move this number; the timer looks at it when it fires."""
    timer_at: float | None = None
    """When the timer that was set will fire, None after it did."""

    @property
    def is_static(self) -> bool:
        return self.instance_id is not None

    def is_kept_alive_by_waiting(self) -> bool:
        return not self.is_new and (self.join_ticket is not None or self.sync_ticket is not None)

    def metadata_for(self, protocol: str | None) -> bytes:
        for name, metadata in self.protocols:
            if name == protocol:
                return metadata
        return b""

    def vote(self, candidates: set[str]) -> str:
        """The member's favourite among the protocols that everybody supports."""
        return next(name for name, _ in self.protocols if name in candidates)

    def as_record(self, protocol: str | None, assignment: bytes) -> MemberMetadata:
        return MemberMetadata(
            member_id=self.member_id,
            client_id=self.client_id,
            client_host=self.client_host,
            session_timeout_ms=self.session_timeout_ms,
            subscription=self.metadata_for(protocol),
            assignment=assignment,
            group_instance_id=self.instance_id,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
        )


def joining(event: Join, member_id: str) -> Member:
    return Member(
        member_id=member_id,
        instance_id=event.instance_id,
        client_id=event.client_id,
        client_host=event.client_host,
        session_timeout_ms=event.session_timeout_ms,
        rebalance_timeout_ms=event.rebalance_timeout_ms,
        protocols=event.protocols,
        join_ticket=event.ticket,
        is_new=True,
    )


def from_record(record: MemberMetadata, protocol: str | None) -> Member:
    return Member(
        member_id=record.member_id,
        instance_id=record.group_instance_id,
        client_id=record.client_id,
        client_host=record.client_host,
        session_timeout_ms=record.session_timeout_ms,
        rebalance_timeout_ms=rebalance_timeout_of(record),
        protocols=protocols_of(record, protocol),
        assignment=record.assignment,
    )


def rebalance_timeout_of(record: MemberMetadata) -> int:
    """Members of the oldest clients have none of their own."""
    return record.session_timeout_ms if record.rebalance_timeout_ms == -1 else record.rebalance_timeout_ms


def protocols_of(record: MemberMetadata, protocol: str | None) -> Protocols:
    """Only the chosen protocol is stored: the others come back when the member joins again."""
    return ((protocol or "", record.subscription),)
