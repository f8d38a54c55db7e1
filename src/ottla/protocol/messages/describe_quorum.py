"""Messages of describe_quorum. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar
from uuid import UUID

from msgspec import field

from ottla.protocol.schema import NO_UUID, Field, Message, TopLevel


class RequestPartitionData(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 0),
    )
    partition_index: int = 0


class RequestTopicData(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", 0),
        Field("partitions", RequestPartitionData, 0, array=True),
    )
    topic_name: str = ""
    partitions: list[RequestPartitionData] = field(default_factory=list[RequestPartitionData])


class DescribeQuorumRequest(TopLevel):
    NAME: ClassVar[str] = "DescribeQuorum"
    API_KEY: ClassVar[int] = 55
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topics", RequestTopicData, 0, array=True),
    )
    topics: list[RequestTopicData] = field(default_factory=list[RequestTopicData])


class Listener(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 2),
        Field("host", "string", 2),
        Field("port", "uint16", 2),
    )
    name: str = ""
    host: str = ""
    port: int = 0


class Node(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("node_id", "int32", 2),
        Field("listeners", Listener, 2, array=True),
    )
    node_id: int = 0
    listeners: list[Listener] = field(default_factory=list[Listener])


class ReplicaState(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("replica_id", "int32", 0),
        Field("replica_directory_id", "uuid", 2),
        Field("log_end_offset", "int64", 0),
        Field("last_fetch_timestamp", "int64", 1),
        Field("last_caught_up_timestamp", "int64", 1),
    )
    replica_id: int = 0
    replica_directory_id: UUID = NO_UUID
    log_end_offset: int = 0
    last_fetch_timestamp: int = -1
    last_caught_up_timestamp: int = -1


class ResponsePartitionData(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 0),
        Field("error_code", "int16", 0),
        Field("error_message", "string", 2, nullable_since=2),
        Field("leader_id", "int32", 0),
        Field("leader_epoch", "int32", 0),
        Field("high_watermark", "int64", 0),
        Field("current_voters", ReplicaState, 0, array=True),
        Field("observers", ReplicaState, 0, array=True),
    )
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = ""
    leader_id: int = 0
    leader_epoch: int = 0
    high_watermark: int = 0
    current_voters: list[ReplicaState] = field(default_factory=list[ReplicaState])
    observers: list[ReplicaState] = field(default_factory=list[ReplicaState])


class ResponseTopicData(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", 0),
        Field("partitions", ResponsePartitionData, 0, array=True),
    )
    topic_name: str = ""
    partitions: list[ResponsePartitionData] = field(default_factory=list[ResponsePartitionData])


class DescribeQuorumResponse(TopLevel):
    NAME: ClassVar[str] = "DescribeQuorum"
    API_KEY: ClassVar[int] = 55
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", 0),
        Field("error_message", "string", 2, nullable_since=2),
        Field("topics", ResponseTopicData, 0, array=True),
        Field("nodes", Node, 2, array=True),
    )
    error_code: int = 0
    error_message: str | None = ""
    topics: list[ResponseTopicData] = field(default_factory=list[ResponseTopicData])
    nodes: list[Node] = field(default_factory=list[Node])
