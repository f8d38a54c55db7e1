"""Messages of assign_replicas_to_dirs. Written by tools/generate_messages.py; do not edit."""

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
        Field("topic_id", "uuid", 0),
        Field("partitions", RequestPartitionData, 0, array=True),
    )
    topic_id: UUID = NO_UUID
    partitions: list[RequestPartitionData] = field(default_factory=list[RequestPartitionData])


class RequestDirectoryData(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("id_", "uuid", 0),
        Field("topics", RequestTopicData, 0, array=True),
    )
    id_: UUID = NO_UUID
    topics: list[RequestTopicData] = field(default_factory=list[RequestTopicData])


class AssignReplicasToDirsRequest(TopLevel):
    NAME: ClassVar[str] = "AssignReplicasToDirs"
    API_KEY: ClassVar[int] = 73
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("broker_id", "int32", 0),
        Field("broker_epoch", "int64", 0),
        Field("directories", RequestDirectoryData, 0, array=True),
    )
    broker_id: int = 0
    broker_epoch: int = -1
    directories: list[RequestDirectoryData] = field(default_factory=list[RequestDirectoryData])


class ResponsePartitionData(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 0),
        Field("error_code", "int16", 0),
    )
    partition_index: int = 0
    error_code: int = 0


class ResponseTopicData(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", 0),
        Field("partitions", ResponsePartitionData, 0, array=True),
    )
    topic_id: UUID = NO_UUID
    partitions: list[ResponsePartitionData] = field(default_factory=list[ResponsePartitionData])


class ResponseDirectoryData(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("id_", "uuid", 0),
        Field("topics", ResponseTopicData, 0, array=True),
    )
    id_: UUID = NO_UUID
    topics: list[ResponseTopicData] = field(default_factory=list[ResponseTopicData])


class AssignReplicasToDirsResponse(TopLevel):
    NAME: ClassVar[str] = "AssignReplicasToDirs"
    API_KEY: ClassVar[int] = 73
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0),
        Field("error_code", "int16", 0),
        Field("directories", ResponseDirectoryData, 0, array=True),
    )
    throttle_time_ms: int = 0
    error_code: int = 0
    directories: list[ResponseDirectoryData] = field(default_factory=list[ResponseDirectoryData])
