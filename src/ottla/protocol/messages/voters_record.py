"""Messages of voters_record. Written by tools/generate_messages.py; do not edit."""

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


class Endpoint(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0),
        Field("host", "string", 0),
        Field("port", "uint16", 0),
    )
    name: str = ""
    host: str = ""
    port: int = 0


class Voter(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("voter_id", "int32", 0),
        Field("voter_directory_id", "uuid", 0),
        Field("endpoints", Endpoint, 0, array=True),
        Field("k_raft_version_feature", KRaftVersionFeature, 0),
    )
    voter_id: int = 0
    voter_directory_id: UUID = NO_UUID
    endpoints: list[Endpoint] = field(default_factory=list[Endpoint])
    k_raft_version_feature: KRaftVersionFeature = field(default_factory=lambda: KRaftVersionFeature())


class VotersRecord(TopLevel):
    NAME: ClassVar[str] = "VotersRecord"
    API_KEY: ClassVar[int] = -1
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("version", "int16", 0),
        Field("voters", Voter, 0, array=True),
    )
    version: int = 0
    voters: list[Voter] = field(default_factory=list[Voter])
