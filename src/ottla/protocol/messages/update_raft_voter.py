"""Messages of update_raft_voter. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar
from uuid import UUID

from msgspec import field

from ottla.protocol.schema import NO_UUID, Field, Message, TopLevel


class KRaftVersionFeature(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("min_supported_version", "int16", 0),
        Field("max_supported_version", "int16", 0),
    )
    min_supported_version: int = 0
    max_supported_version: int = 0


class Listener(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0),
        Field("host", "string", 0),
        Field("port", "uint16", 0),
    )
    name: str = ""
    host: str = ""
    port: int = 0


class UpdateRaftVoterRequest(TopLevel):
    NAME: ClassVar[str] = "UpdateRaftVoter"
    API_KEY: ClassVar[int] = 82
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("cluster_id", "string", 0, nullable_since=0),
        Field("current_leader_epoch", "int32", 0),
        Field("voter_id", "int32", 0),
        Field("voter_directory_id", "uuid", 0),
        Field("listeners", Listener, 0, array=True),
        Field("k_raft_version_feature", KRaftVersionFeature, 0),
    )
    cluster_id: str | None = ""
    current_leader_epoch: int = 0
    voter_id: int = 0
    voter_directory_id: UUID = NO_UUID
    listeners: list[Listener] = field(default_factory=list[Listener])
    k_raft_version_feature: KRaftVersionFeature = field(default_factory=lambda: KRaftVersionFeature())


class CurrentLeader(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("leader_id", "int32", 0),
        Field("leader_epoch", "int32", 0),
        Field("host", "string", 0),
        Field("port", "int32", 0),
    )
    leader_id: int = -1
    leader_epoch: int = -1
    host: str = ""
    port: int = 0


class UpdateRaftVoterResponse(TopLevel):
    NAME: ClassVar[str] = "UpdateRaftVoter"
    API_KEY: ClassVar[int] = 82
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0),
        Field("error_code", "int16", 0),
        Field("current_leader", CurrentLeader, 0, tag=0),
    )
    throttle_time_ms: int = 0
    error_code: int = 0
    current_leader: CurrentLeader = field(default_factory=lambda: CurrentLeader())
