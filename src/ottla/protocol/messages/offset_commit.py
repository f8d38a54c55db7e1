"""Messages of offset_commit. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar
from uuid import UUID

from msgspec import field

from ottla.protocol.schema import NO_UUID, Field, Message, TopLevel


class OffsetCommitRequestPartition(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 2),
        Field("committed_offset", "int64", 2),
        Field("committed_leader_epoch", "int32", 6),
        Field("committed_metadata", "string", 2, nullable_since=2),
    )
    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    committed_metadata: str | None = ""


class OffsetCommitRequestTopic(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 2, until=9),
        Field("topic_id", "uuid", 10),
        Field("partitions", OffsetCommitRequestPartition, 2, array=True),
    )
    name: str = ""
    topic_id: UUID = NO_UUID
    partitions: list[OffsetCommitRequestPartition] = field(default_factory=list[OffsetCommitRequestPartition])


class OffsetCommitRequest(TopLevel):
    NAME: ClassVar[str] = "OffsetCommit"
    API_KEY: ClassVar[int] = 8
    MIN_VERSION: ClassVar[int] = 2
    MAX_VERSION: ClassVar[int] = 10
    FLEXIBLE_FROM: ClassVar[int] = 8
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", 2),
        Field("generation_id_or_member_epoch", "int32", 2),
        Field("member_id", "string", 2),
        Field("retention_time_ms", "int64", 2, until=4),
        Field("group_instance_id", "string", 7, nullable_since=7),
        Field("topics", OffsetCommitRequestTopic, 2, array=True),
    )
    group_id: str = ""
    generation_id_or_member_epoch: int = -1
    member_id: str = ""
    retention_time_ms: int = -1
    group_instance_id: str | None = None
    topics: list[OffsetCommitRequestTopic] = field(default_factory=list[OffsetCommitRequestTopic])


class OffsetCommitResponsePartition(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 2),
        Field("error_code", "int16", 2),
    )
    partition_index: int = 0
    error_code: int = 0


class OffsetCommitResponseTopic(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 2, until=9),
        Field("topic_id", "uuid", 10),
        Field("partitions", OffsetCommitResponsePartition, 2, array=True),
    )
    name: str = ""
    topic_id: UUID = NO_UUID
    partitions: list[OffsetCommitResponsePartition] = field(default_factory=list[OffsetCommitResponsePartition])


class OffsetCommitResponse(TopLevel):
    NAME: ClassVar[str] = "OffsetCommit"
    API_KEY: ClassVar[int] = 8
    MIN_VERSION: ClassVar[int] = 2
    MAX_VERSION: ClassVar[int] = 10
    FLEXIBLE_FROM: ClassVar[int] = 8
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 3),
        Field("topics", OffsetCommitResponseTopic, 2, array=True),
    )
    throttle_time_ms: int = 0
    topics: list[OffsetCommitResponseTopic] = field(default_factory=list[OffsetCommitResponseTopic])
