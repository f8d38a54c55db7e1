"""Messages of delete_records. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar

from msgspec import field

from ottla.protocol.schema import Field, Message, TopLevel


class DeleteRecordsPartition(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 0),
        Field("offset", "int64", 0),
    )
    partition_index: int = 0
    offset: int = 0


class DeleteRecordsTopic(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0),
        Field("partitions", DeleteRecordsPartition, 0, array=True),
    )
    name: str = ""
    partitions: list[DeleteRecordsPartition] = field(default_factory=list[DeleteRecordsPartition])


class DeleteRecordsRequest(TopLevel):
    NAME: ClassVar[str] = "DeleteRecords"
    API_KEY: ClassVar[int] = 21
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topics", DeleteRecordsTopic, 0, array=True),
        Field("timeout_ms", "int32", 0),
    )
    topics: list[DeleteRecordsTopic] = field(default_factory=list[DeleteRecordsTopic])
    timeout_ms: int = 0


class DeleteRecordsPartitionResult(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 0),
        Field("low_watermark", "int64", 0),
        Field("error_code", "int16", 0),
    )
    partition_index: int = 0
    low_watermark: int = 0
    error_code: int = 0


class DeleteRecordsTopicResult(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0),
        Field("partitions", DeleteRecordsPartitionResult, 0, array=True),
    )
    name: str = ""
    partitions: list[DeleteRecordsPartitionResult] = field(default_factory=list[DeleteRecordsPartitionResult])


class DeleteRecordsResponse(TopLevel):
    NAME: ClassVar[str] = "DeleteRecords"
    API_KEY: ClassVar[int] = 21
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0),
        Field("topics", DeleteRecordsTopicResult, 0, array=True),
    )
    throttle_time_ms: int = 0
    topics: list[DeleteRecordsTopicResult] = field(default_factory=list[DeleteRecordsTopicResult])
