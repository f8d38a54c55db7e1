"""Messages of fetch_snapshot. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar
from uuid import UUID

from msgspec import field

from ottla.protocol.schema import NO_UUID, Field, Message, Records, TopLevel


class RequestSnapshotId(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("end_offset", "int64", 0),
        Field("epoch", "int32", 0),
    )
    end_offset: int = 0
    epoch: int = 0


class RequestPartitionSnapshot(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition", "int32", 0),
        Field("current_leader_epoch", "int32", 0),
        Field("snapshot_id", RequestSnapshotId, 0),
        Field("position", "int64", 0),
        Field("replica_directory_id", "uuid", 1, tag=0),
    )
    partition: int = 0
    current_leader_epoch: int = 0
    snapshot_id: RequestSnapshotId = field(default_factory=lambda: RequestSnapshotId())
    position: int = 0
    replica_directory_id: UUID = NO_UUID


class RequestTopicSnapshot(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0),
        Field("partitions", RequestPartitionSnapshot, 0, array=True),
    )
    name: str = ""
    partitions: list[RequestPartitionSnapshot] = field(default_factory=list[RequestPartitionSnapshot])


class FetchSnapshotRequest(TopLevel):
    NAME: ClassVar[str] = "FetchSnapshot"
    API_KEY: ClassVar[int] = 59
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("cluster_id", "string", 0, nullable_since=0, tag=0),
        Field("replica_id", "int32", 0),
        Field("max_bytes", "int32", 0),
        Field("topics", RequestTopicSnapshot, 0, array=True),
    )
    cluster_id: str | None = None
    replica_id: int = -1
    max_bytes: int = 2147483647
    topics: list[RequestTopicSnapshot] = field(default_factory=list[RequestTopicSnapshot])


class NodeEndpoint(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("node_id", "int32", 1),
        Field("host", "string", 1),
        Field("port", "uint16", 1),
    )
    node_id: int = 0
    host: str = ""
    port: int = 0


class LeaderIdAndEpoch(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("leader_id", "int32", 0),
        Field("leader_epoch", "int32", 0),
    )
    leader_id: int = 0
    leader_epoch: int = 0


class ResponseSnapshotId(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("end_offset", "int64", 0),
        Field("epoch", "int32", 0),
    )
    end_offset: int = 0
    epoch: int = 0


class ResponsePartitionSnapshot(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("index", "int32", 0),
        Field("error_code", "int16", 0),
        Field("snapshot_id", ResponseSnapshotId, 0),
        Field("current_leader", LeaderIdAndEpoch, 0, tag=0),
        Field("size", "int64", 0),
        Field("position", "int64", 0),
        Field("unaligned_records", "records", 0),
    )
    index: int = 0
    error_code: int = 0
    snapshot_id: ResponseSnapshotId = field(default_factory=lambda: ResponseSnapshotId())
    current_leader: LeaderIdAndEpoch = field(default_factory=lambda: LeaderIdAndEpoch())
    size: int = 0
    position: int = 0
    unaligned_records: Records = None


class ResponseTopicSnapshot(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0),
        Field("partitions", ResponsePartitionSnapshot, 0, array=True),
    )
    name: str = ""
    partitions: list[ResponsePartitionSnapshot] = field(default_factory=list[ResponsePartitionSnapshot])


class FetchSnapshotResponse(TopLevel):
    NAME: ClassVar[str] = "FetchSnapshot"
    API_KEY: ClassVar[int] = 59
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0),
        Field("error_code", "int16", 0),
        Field("topics", ResponseTopicSnapshot, 0, array=True),
        Field("node_endpoints", NodeEndpoint, 1, array=True, tag=0),
    )
    throttle_time_ms: int = 0
    error_code: int = 0
    topics: list[ResponseTopicSnapshot] = field(default_factory=list[ResponseTopicSnapshot])
    node_endpoints: list[NodeEndpoint] = field(default_factory=list[NodeEndpoint])
