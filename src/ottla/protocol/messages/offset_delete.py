"""Messages of offset_delete. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar

from msgspec import field

from ottla.protocol.schema import Field, Message, TopLevel


class OffsetDeleteRequestPartition(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 0),
    )
    partition_index: int = 0


class OffsetDeleteRequestTopic(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0),
        Field("partitions", OffsetDeleteRequestPartition, 0, array=True),
    )
    name: str = ""
    partitions: list[OffsetDeleteRequestPartition] = field(default_factory=list[OffsetDeleteRequestPartition])


class OffsetDeleteRequest(TopLevel):
    NAME: ClassVar[str] = "OffsetDelete"
    API_KEY: ClassVar[int] = 47
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int] = 32768
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", 0),
        Field("topics", OffsetDeleteRequestTopic, 0, array=True),
    )
    group_id: str = ""
    topics: list[OffsetDeleteRequestTopic] = field(default_factory=list[OffsetDeleteRequestTopic])


class OffsetDeleteResponsePartition(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 0),
        Field("error_code", "int16", 0),
    )
    partition_index: int = 0
    error_code: int = 0


class OffsetDeleteResponseTopic(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0),
        Field("partitions", OffsetDeleteResponsePartition, 0, array=True),
    )
    name: str = ""
    partitions: list[OffsetDeleteResponsePartition] = field(default_factory=list[OffsetDeleteResponsePartition])


class OffsetDeleteResponse(TopLevel):
    NAME: ClassVar[str] = "OffsetDelete"
    API_KEY: ClassVar[int] = 47
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int] = 32768
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", 0),
        Field("throttle_time_ms", "int32", 0),
        Field("topics", OffsetDeleteResponseTopic, 0, array=True),
    )
    error_code: int = 0
    throttle_time_ms: int = 0
    topics: list[OffsetDeleteResponseTopic] = field(default_factory=list[OffsetDeleteResponseTopic])
