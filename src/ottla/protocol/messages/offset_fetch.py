"""Messages of offset_fetch. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar
from uuid import UUID

from msgspec import field

from ottla.protocol.schema import NO_UUID, Field, Message, TopLevel


class OffsetFetchRequestTopics(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 8, until=9),
        Field("topic_id", "uuid", 10),
        Field("partition_indexes", "int32", 8, array=True),
    )
    name: str = ""
    topic_id: UUID = NO_UUID
    partition_indexes: list[int] = field(default_factory=list[int])


class OffsetFetchRequestGroup(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", 8),
        Field("member_id", "string", 9, nullable_since=9),
        Field("member_epoch", "int32", 9),
        Field("topics", OffsetFetchRequestTopics, 8, array=True, nullable_since=8),
    )
    group_id: str = ""
    member_id: str | None = None
    member_epoch: int = -1
    topics: list[OffsetFetchRequestTopics] | None = field(default_factory=list[OffsetFetchRequestTopics])


class OffsetFetchRequestTopic(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 1, until=7),
        Field("partition_indexes", "int32", 1, until=7, array=True),
    )
    name: str = ""
    partition_indexes: list[int] = field(default_factory=list[int])


class OffsetFetchRequest(TopLevel):
    NAME: ClassVar[str] = "OffsetFetch"
    API_KEY: ClassVar[int] = 9
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 10
    FLEXIBLE_FROM: ClassVar[int] = 6
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", 1, until=7),
        Field("groups", OffsetFetchRequestGroup, 8, array=True),
        Field("topics", OffsetFetchRequestTopic, 1, until=7, array=True, nullable_since=2),
        Field("require_stable", "bool", 7),
    )
    group_id: str = ""
    groups: list[OffsetFetchRequestGroup] = field(default_factory=list[OffsetFetchRequestGroup])
    topics: list[OffsetFetchRequestTopic] | None = field(default_factory=list[OffsetFetchRequestTopic])
    require_stable: bool = False


class OffsetFetchResponsePartitions(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 8),
        Field("committed_offset", "int64", 8),
        Field("committed_leader_epoch", "int32", 8),
        Field("metadata", "string", 8, nullable_since=8),
        Field("error_code", "int16", 8),
    )
    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    metadata: str | None = ""
    error_code: int = 0


class OffsetFetchResponseTopics(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 8, until=9),
        Field("topic_id", "uuid", 10),
        Field("partitions", OffsetFetchResponsePartitions, 8, array=True),
    )
    name: str = ""
    topic_id: UUID = NO_UUID
    partitions: list[OffsetFetchResponsePartitions] = field(default_factory=list[OffsetFetchResponsePartitions])


class OffsetFetchResponseGroup(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", 8),
        Field("topics", OffsetFetchResponseTopics, 8, array=True),
        Field("error_code", "int16", 8),
    )
    group_id: str = ""
    topics: list[OffsetFetchResponseTopics] = field(default_factory=list[OffsetFetchResponseTopics])
    error_code: int = 0


class OffsetFetchResponsePartition(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 1, until=7),
        Field("committed_offset", "int64", 1, until=7),
        Field("committed_leader_epoch", "int32", 5, until=7),
        Field("metadata", "string", 1, until=7, nullable_since=1),
        Field("error_code", "int16", 1, until=7),
    )
    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    metadata: str | None = ""
    error_code: int = 0


class OffsetFetchResponseTopic(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 1, until=7),
        Field("partitions", OffsetFetchResponsePartition, 1, until=7, array=True),
    )
    name: str = ""
    partitions: list[OffsetFetchResponsePartition] = field(default_factory=list[OffsetFetchResponsePartition])


class OffsetFetchResponse(TopLevel):
    NAME: ClassVar[str] = "OffsetFetch"
    API_KEY: ClassVar[int] = 9
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 10
    FLEXIBLE_FROM: ClassVar[int] = 6
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 3),
        Field("topics", OffsetFetchResponseTopic, 1, until=7, array=True),
        Field("groups", OffsetFetchResponseGroup, 8, array=True),
        Field("error_code", "int16", 2, until=7),
    )
    throttle_time_ms: int = 0
    topics: list[OffsetFetchResponseTopic] = field(default_factory=list[OffsetFetchResponseTopic])
    groups: list[OffsetFetchResponseGroup] = field(default_factory=list[OffsetFetchResponseGroup])
    error_code: int = 0
