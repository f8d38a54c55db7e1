"""Messages of add_raft_voter. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar
from uuid import UUID

from msgspec import field

from ottla.protocol.schema import NO_UUID, Field, Message, TopLevel


class Listener(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0),
        Field("host", "string", 0),
        Field("port", "uint16", 0),
    )
    name: str = ""
    host: str = ""
    port: int = 0


class AddRaftVoterRequest(TopLevel):
    NAME: ClassVar[str] = "AddRaftVoter"
    API_KEY: ClassVar[int] = 80
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("cluster_id", "string", 0, nullable_since=0),
        Field("timeout_ms", "int32", 0),
        Field("voter_id", "int32", 0),
        Field("voter_directory_id", "uuid", 0),
        Field("listeners", Listener, 0, array=True),
        Field("ack_when_committed", "bool", 1),
    )
    cluster_id: str | None = ""
    timeout_ms: int = 0
    voter_id: int = 0
    voter_directory_id: UUID = NO_UUID
    listeners: list[Listener] = field(default_factory=list[Listener])
    ack_when_committed: bool = True


class AddRaftVoterResponse(TopLevel):
    NAME: ClassVar[str] = "AddRaftVoter"
    API_KEY: ClassVar[int] = 80
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0),
        Field("error_code", "int16", 0),
        Field("error_message", "string", 0, nullable_since=0),
    )
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
