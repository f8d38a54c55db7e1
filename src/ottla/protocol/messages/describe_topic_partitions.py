"""Messages of describe_topic_partitions. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar
from uuid import UUID

from msgspec import field

from ottla.protocol.schema import NO_UUID, Field, Message, TopLevel


class RequestCursor(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", 0),
        Field("partition_index", "int32", 0),
    )
    topic_name: str = ""
    partition_index: int = 0


class TopicRequest(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0),
    )
    name: str = ""


class DescribeTopicPartitionsRequest(TopLevel):
    NAME: ClassVar[str] = "DescribeTopicPartitions"
    API_KEY: ClassVar[int] = 75
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topics", TopicRequest, 0, array=True),
        Field("response_partition_limit", "int32", 0),
        Field("cursor", RequestCursor, 0, nullable_since=0),
    )
    topics: list[TopicRequest] = field(default_factory=list[TopicRequest])
    response_partition_limit: int = 2000
    cursor: RequestCursor | None = None


class ResponseCursor(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", 0),
        Field("partition_index", "int32", 0),
    )
    topic_name: str = ""
    partition_index: int = 0


class DescribeTopicPartitionsResponsePartition(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", 0),
        Field("partition_index", "int32", 0),
        Field("leader_id", "int32", 0),
        Field("leader_epoch", "int32", 0),
        Field("replica_nodes", "int32", 0, array=True),
        Field("isr_nodes", "int32", 0, array=True),
        Field("eligible_leader_replicas", "int32", 0, array=True, nullable_since=0),
        Field("last_known_elr", "int32", 0, array=True, nullable_since=0),
        Field("offline_replicas", "int32", 0, array=True),
    )
    error_code: int = 0
    partition_index: int = 0
    leader_id: int = 0
    leader_epoch: int = -1
    replica_nodes: list[int] = field(default_factory=list[int])
    isr_nodes: list[int] = field(default_factory=list[int])
    eligible_leader_replicas: list[int] | None = None
    last_known_elr: list[int] | None = None
    offline_replicas: list[int] = field(default_factory=list[int])


class DescribeTopicPartitionsResponseTopic(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", 0),
        Field("name", "string", 0, nullable_since=0),
        Field("topic_id", "uuid", 0),
        Field("is_internal", "bool", 0),
        Field("partitions", DescribeTopicPartitionsResponsePartition, 0, array=True),
        Field("topic_authorized_operations", "int32", 0),
    )
    error_code: int = 0
    name: str | None = ""
    topic_id: UUID = NO_UUID
    is_internal: bool = False
    partitions: list[DescribeTopicPartitionsResponsePartition] = field(default_factory=list[DescribeTopicPartitionsResponsePartition])
    topic_authorized_operations: int = -2147483648


class DescribeTopicPartitionsResponse(TopLevel):
    NAME: ClassVar[str] = "DescribeTopicPartitions"
    API_KEY: ClassVar[int] = 75
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0),
        Field("topics", DescribeTopicPartitionsResponseTopic, 0, array=True),
        Field("next_cursor", ResponseCursor, 0, nullable_since=0),
    )
    throttle_time_ms: int = 0
    topics: list[DescribeTopicPartitionsResponseTopic] = field(default_factory=list[DescribeTopicPartitionsResponseTopic])
    next_cursor: ResponseCursor | None = None
