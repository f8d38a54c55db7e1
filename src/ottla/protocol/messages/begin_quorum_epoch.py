"""Messages of begin_quorum_epoch. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar
from uuid import UUID

from msgspec import field

from ottla.protocol.schema import NO_UUID, Field, Message, TopLevel


class LeaderEndpoint(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 1),
        Field("host", "string", 1),
        Field("port", "uint16", 1),
    )
    name: str = ""
    host: str = ""
    port: int = 0


class RequestPartitionData(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 0),
        Field("voter_directory_id", "uuid", 1),
        Field("leader_id", "int32", 0),
        Field("leader_epoch", "int32", 0),
    )
    partition_index: int = 0
    voter_directory_id: UUID = NO_UUID
    leader_id: int = 0
    leader_epoch: int = 0


class RequestTopicData(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", 0),
        Field("partitions", RequestPartitionData, 0, array=True),
    )
    topic_name: str = ""
    partitions: list[RequestPartitionData] = field(default_factory=list[RequestPartitionData])


class BeginQuorumEpochRequest(TopLevel):
    NAME: ClassVar[str] = "BeginQuorumEpoch"
    API_KEY: ClassVar[int] = 53
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("cluster_id", "string", 0, nullable_since=0),
        Field("voter_id", "int32", 1),
        Field("topics", RequestTopicData, 0, array=True),
        Field("leader_endpoints", LeaderEndpoint, 1, array=True),
    )
    cluster_id: str | None = None
    voter_id: int = -1
    topics: list[RequestTopicData] = field(default_factory=list[RequestTopicData])
    leader_endpoints: list[LeaderEndpoint] = field(default_factory=list[LeaderEndpoint])


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
    )
    partition_index: int = 0
    error_code: int = 0
    leader_id: int = 0
    leader_epoch: int = 0


class ResponseTopicData(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", 0),
        Field("partitions", ResponsePartitionData, 0, array=True),
    )
    topic_name: str = ""
    partitions: list[ResponsePartitionData] = field(default_factory=list[ResponsePartitionData])


class BeginQuorumEpochResponse(TopLevel):
    NAME: ClassVar[str] = "BeginQuorumEpoch"
    API_KEY: ClassVar[int] = 53
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", 0),
        Field("topics", ResponseTopicData, 0, array=True),
        Field("node_endpoints", NodeEndpoint, 1, array=True, tag=0),
    )
    error_code: int = 0
    topics: list[ResponseTopicData] = field(default_factory=list[ResponseTopicData])
    node_endpoints: list[NodeEndpoint] = field(default_factory=list[NodeEndpoint])
