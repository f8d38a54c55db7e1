"""Messages of alter_share_group_offsets. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar
from uuid import UUID

from msgspec import field

from ottla.protocol.schema import NO_UUID, Field, Message, TopLevel


class AlterShareGroupOffsetsRequestPartition(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 0),
        Field("start_offset", "int64", 0),
    )
    partition_index: int = 0
    start_offset: int = 0


class AlterShareGroupOffsetsRequestTopic(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", 0),
        Field("partitions", AlterShareGroupOffsetsRequestPartition, 0, array=True),
    )
    topic_name: str = ""
    partitions: list[AlterShareGroupOffsetsRequestPartition] = field(default_factory=list[AlterShareGroupOffsetsRequestPartition])


class AlterShareGroupOffsetsRequest(TopLevel):
    NAME: ClassVar[str] = "AlterShareGroupOffsets"
    API_KEY: ClassVar[int] = 91
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", 0),
        Field("topics", AlterShareGroupOffsetsRequestTopic, 0, array=True),
    )
    group_id: str = ""
    topics: list[AlterShareGroupOffsetsRequestTopic] = field(default_factory=list[AlterShareGroupOffsetsRequestTopic])


class AlterShareGroupOffsetsResponsePartition(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 0),
        Field("error_code", "int16", 0),
        Field("error_message", "string", 0, nullable_since=0),
    )
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None


class AlterShareGroupOffsetsResponseTopic(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", 0),
        Field("topic_id", "uuid", 0),
        Field("partitions", AlterShareGroupOffsetsResponsePartition, 0, array=True),
    )
    topic_name: str = ""
    topic_id: UUID = NO_UUID
    partitions: list[AlterShareGroupOffsetsResponsePartition] = field(default_factory=list[AlterShareGroupOffsetsResponsePartition])


class AlterShareGroupOffsetsResponse(TopLevel):
    NAME: ClassVar[str] = "AlterShareGroupOffsets"
    API_KEY: ClassVar[int] = 91
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0),
        Field("error_code", "int16", 0),
        Field("error_message", "string", 0, nullable_since=0),
        Field("responses", AlterShareGroupOffsetsResponseTopic, 0, array=True),
    )
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    responses: list[AlterShareGroupOffsetsResponseTopic] = field(default_factory=list[AlterShareGroupOffsetsResponseTopic])
