"""Messages of remove_raft_voter. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar
from uuid import UUID

from ottla.protocol.schema import NO_UUID, Field, TopLevel


class RemoveRaftVoterRequest(TopLevel):
    NAME: ClassVar[str] = "RemoveRaftVoter"
    API_KEY: ClassVar[int] = 81
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("cluster_id", "string", 0, nullable_since=0),
        Field("voter_id", "int32", 0),
        Field("voter_directory_id", "uuid", 0),
    )
    cluster_id: str | None = ""
    voter_id: int = 0
    voter_directory_id: UUID = NO_UUID


class RemoveRaftVoterResponse(TopLevel):
    NAME: ClassVar[str] = "RemoveRaftVoter"
    API_KEY: ClassVar[int] = 81
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0),
        Field("error_code", "int16", 0),
        Field("error_message", "string", 0, nullable_since=0),
    )
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
