"""Messages of list_offsets. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar

from msgspec import field

from ottla.protocol.schema import Field, Message, TopLevel


class ListOffsetsPartition(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 1),
        Field("current_leader_epoch", "int32", 4),
        Field("timestamp", "int64", 1),
    )
    partition_index: int = 0
    current_leader_epoch: int = -1
    timestamp: int = 0


class ListOffsetsTopic(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 1),
        Field("partitions", ListOffsetsPartition, 1, array=True),
    )
    name: str = ""
    partitions: list[ListOffsetsPartition] = field(default_factory=list[ListOffsetsPartition])


class ListOffsetsRequest(TopLevel):
    NAME: ClassVar[str] = "ListOffsets"
    API_KEY: ClassVar[int] = 2
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 11
    FLEXIBLE_FROM: ClassVar[int] = 6
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("replica_id", "int32", 1),
        Field("isolation_level", "int8", 2),
        Field("topics", ListOffsetsTopic, 1, array=True),
        Field("timeout_ms", "int32", 10),
    )
    replica_id: int = 0
    isolation_level: int = 0
    topics: list[ListOffsetsTopic] = field(default_factory=list[ListOffsetsTopic])
    timeout_ms: int = 0


class ListOffsetsPartitionResponse(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 1),
        Field("error_code", "int16", 1),
        Field("timestamp", "int64", 1),
        Field("offset", "int64", 1),
        Field("leader_epoch", "int32", 4),
    )
    partition_index: int = 0
    error_code: int = 0
    timestamp: int = -1
    offset: int = -1
    leader_epoch: int = -1


class ListOffsetsTopicResponse(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 1),
        Field("partitions", ListOffsetsPartitionResponse, 1, array=True),
    )
    name: str = ""
    partitions: list[ListOffsetsPartitionResponse] = field(default_factory=list[ListOffsetsPartitionResponse])


class ListOffsetsResponse(TopLevel):
    NAME: ClassVar[str] = "ListOffsets"
    API_KEY: ClassVar[int] = 2
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 11
    FLEXIBLE_FROM: ClassVar[int] = 6
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 2),
        Field("topics", ListOffsetsTopicResponse, 1, array=True),
    )
    throttle_time_ms: int = 0
    topics: list[ListOffsetsTopicResponse] = field(default_factory=list[ListOffsetsTopicResponse])
