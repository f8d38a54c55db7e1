"""Messages of vote. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar
from uuid import UUID

from msgspec import field

from ottla.protocol.schema import NO_UUID, Field, Message, TopLevel


class RequestPartitionData(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 0),
        Field("replica_epoch", "int32", 0),
        Field("replica_id", "int32", 0),
        Field("replica_directory_id", "uuid", 1),
        Field("voter_directory_id", "uuid", 1),
        Field("last_offset_epoch", "int32", 0),
        Field("last_offset", "int64", 0),
        Field("pre_vote", "bool", 2),
    )
    partition_index: int = 0
    replica_epoch: int = 0
    replica_id: int = 0
    replica_directory_id: UUID = NO_UUID
    voter_directory_id: UUID = NO_UUID
    last_offset_epoch: int = 0
    last_offset: int = 0
    pre_vote: bool = False


class RequestTopicData(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", 0),
        Field("partitions", RequestPartitionData, 0, array=True),
    )
    topic_name: str = ""
    partitions: list[RequestPartitionData] = field(default_factory=list[RequestPartitionData])


class VoteRequest(TopLevel):
    NAME: ClassVar[str] = "Vote"
    API_KEY: ClassVar[int] = 52
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("cluster_id", "string", 0, nullable_since=0),
        Field("voter_id", "int32", 1),
        Field("topics", RequestTopicData, 0, array=True),
    )
    cluster_id: str | None = None
    voter_id: int = -1
    topics: list[RequestTopicData] = field(default_factory=list[RequestTopicData])


class NodeEndpoint(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("node_id", "int32", 1),
        Field("host", "string", 1),
        Field("port", "uint16", 1),
    )
    node_id: int = 0
    host: str = ""
    port: int = 0


class ResponsePartitionData(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 0),
        Field("error_code", "int16", 0),
        Field("leader_id", "int32", 0),
        Field("leader_epoch", "int32", 0),
        Field("vote_granted", "bool", 0),
    )
    partition_index: int = 0
    error_code: int = 0
    leader_id: int = 0
    leader_epoch: int = 0
    vote_granted: bool = False


class ResponseTopicData(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", 0),
        Field("partitions", ResponsePartitionData, 0, array=True),
    )
    topic_name: str = ""
    partitions: list[ResponsePartitionData] = field(default_factory=list[ResponsePartitionData])


class VoteResponse(TopLevel):
    NAME: ClassVar[str] = "Vote"
    API_KEY: ClassVar[int] = 52
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", 0),
        Field("topics", ResponseTopicData, 0, array=True),
        Field("node_endpoints", NodeEndpoint, 1, array=True, tag=0),
    )
    error_code: int = 0
    topics: list[ResponseTopicData] = field(default_factory=list[ResponseTopicData])
    node_endpoints: list[NodeEndpoint] = field(default_factory=list[NodeEndpoint])
