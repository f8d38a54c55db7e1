"""Messages of describe_producers. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar

from msgspec import field

from ottla.protocol.schema import Field, Message, TopLevel


class TopicRequest(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0),
        Field("partition_indexes", "int32", 0, array=True),
    )
    name: str = ""
    partition_indexes: list[int] = field(default_factory=list[int])


class DescribeProducersRequest(TopLevel):
    NAME: ClassVar[str] = "DescribeProducers"
    API_KEY: ClassVar[int] = 61
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topics", TopicRequest, 0, array=True),
    )
    topics: list[TopicRequest] = field(default_factory=list[TopicRequest])


class ProducerState(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("producer_id", "int64", 0),
        Field("producer_epoch", "int32", 0),
        Field("last_sequence", "int32", 0),
        Field("last_timestamp", "int64", 0),
        Field("coordinator_epoch", "int32", 0),
        Field("current_txn_start_offset", "int64", 0),
    )
    producer_id: int = 0
    producer_epoch: int = 0
    last_sequence: int = -1
    last_timestamp: int = -1
    coordinator_epoch: int = 0
    current_txn_start_offset: int = -1


class PartitionResponse(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 0),
        Field("error_code", "int16", 0),
        Field("error_message", "string", 0, nullable_since=0),
        Field("active_producers", ProducerState, 0, array=True),
    )
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    active_producers: list[ProducerState] = field(default_factory=list[ProducerState])


class TopicResponse(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0),
        Field("partitions", PartitionResponse, 0, array=True),
    )
    name: str = ""
    partitions: list[PartitionResponse] = field(default_factory=list[PartitionResponse])


class DescribeProducersResponse(TopLevel):
    NAME: ClassVar[str] = "DescribeProducers"
    API_KEY: ClassVar[int] = 61
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0),
        Field("topics", TopicResponse, 0, array=True),
    )
    throttle_time_ms: int = 0
    topics: list[TopicResponse] = field(default_factory=list[TopicResponse])
