"""Messages of describe_share_group_offsets. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar
from uuid import UUID

from msgspec import field

from ottla.protocol.schema import NO_UUID, Field, Message, TopLevel


class DescribeShareGroupOffsetsRequestTopic(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", 0),
        Field("partitions", "int32", 0, array=True),
    )
    topic_name: str = ""
    partitions: list[int] = field(default_factory=list[int])


class DescribeShareGroupOffsetsRequestGroup(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", 0),
        Field("topics", DescribeShareGroupOffsetsRequestTopic, 0, array=True, nullable_since=0),
    )
    group_id: str = ""
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = field(default_factory=list[DescribeShareGroupOffsetsRequestTopic])


class DescribeShareGroupOffsetsRequest(TopLevel):
    NAME: ClassVar[str] = "DescribeShareGroupOffsets"
    API_KEY: ClassVar[int] = 90
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("groups", DescribeShareGroupOffsetsRequestGroup, 0, array=True),
    )
    groups: list[DescribeShareGroupOffsetsRequestGroup] = field(default_factory=list[DescribeShareGroupOffsetsRequestGroup])


class DescribeShareGroupOffsetsResponsePartition(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 0),
        Field("start_offset", "int64", 0),
        Field("leader_epoch", "int32", 0),
        Field("lag", "int64", 1),
        Field("error_code", "int16", 0),
        Field("error_message", "string", 0, nullable_since=0),
    )
    partition_index: int = 0
    start_offset: int = 0
    leader_epoch: int = 0
    lag: int = -1
    error_code: int = 0
    error_message: str | None = None


class DescribeShareGroupOffsetsResponseTopic(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", 0),
        Field("topic_id", "uuid", 0),
        Field("partitions", DescribeShareGroupOffsetsResponsePartition, 0, array=True),
    )
    topic_name: str = ""
    topic_id: UUID = NO_UUID
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = field(default_factory=list[DescribeShareGroupOffsetsResponsePartition])


class DescribeShareGroupOffsetsResponseGroup(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", 0),
        Field("topics", DescribeShareGroupOffsetsResponseTopic, 0, array=True),
        Field("error_code", "int16", 0),
        Field("error_message", "string", 0, nullable_since=0),
    )
    group_id: str = ""
    topics: list[DescribeShareGroupOffsetsResponseTopic] = field(default_factory=list[DescribeShareGroupOffsetsResponseTopic])
    error_code: int = 0
    error_message: str | None = None


class DescribeShareGroupOffsetsResponse(TopLevel):
    NAME: ClassVar[str] = "DescribeShareGroupOffsets"
    API_KEY: ClassVar[int] = 90
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0),
        Field("groups", DescribeShareGroupOffsetsResponseGroup, 0, array=True),
    )
    throttle_time_ms: int = 0
    groups: list[DescribeShareGroupOffsetsResponseGroup] = field(default_factory=list[DescribeShareGroupOffsetsResponseGroup])
