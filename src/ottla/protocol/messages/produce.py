"""Messages of produce. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar
from uuid import UUID

from msgspec import field

from ottla.protocol.schema import NO_UUID, Field, Message, Records, TopLevel


class PartitionProduceData(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("index", "int32", 3),
        Field("records", "records", 3, nullable_since=3),
    )
    index: int = 0
    records: Records = None


class TopicProduceData(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 3, until=12),
        Field("topic_id", "uuid", 13),
        Field("partition_data", PartitionProduceData, 3, array=True),
    )
    name: str = ""
    topic_id: UUID = NO_UUID
    partition_data: list[PartitionProduceData] = field(default_factory=list[PartitionProduceData])


class ProduceRequest(TopLevel):
    NAME: ClassVar[str] = "Produce"
    API_KEY: ClassVar[int] = 0
    MIN_VERSION: ClassVar[int] = 3
    MAX_VERSION: ClassVar[int] = 13
    FLEXIBLE_FROM: ClassVar[int] = 9
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("transactional_id", "string", 3, nullable_since=3),
        Field("acks", "int16", 3),
        Field("timeout_ms", "int32", 3),
        Field("topic_data", TopicProduceData, 3, array=True),
    )
    transactional_id: str | None = None
    acks: int = 0
    timeout_ms: int = 0
    topic_data: list[TopicProduceData] = field(default_factory=list[TopicProduceData])


class NodeEndpoint(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("node_id", "int32", 10),
        Field("host", "string", 10),
        Field("port", "int32", 10),
        Field("rack", "string", 10, nullable_since=10),
    )
    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None


class LeaderIdAndEpoch(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("leader_id", "int32", 10),
        Field("leader_epoch", "int32", 10),
    )
    leader_id: int = -1
    leader_epoch: int = -1


class BatchIndexAndErrorMessage(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("batch_index", "int32", 8),
        Field("batch_index_error_message", "string", 8, nullable_since=8),
    )
    batch_index: int = 0
    batch_index_error_message: str | None = None


class PartitionProduceResponse(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("index", "int32", 3),
        Field("error_code", "int16", 3),
        Field("base_offset", "int64", 3),
        Field("log_append_time_ms", "int64", 3),
        Field("log_start_offset", "int64", 5),
        Field("record_errors", BatchIndexAndErrorMessage, 8, array=True),
        Field("error_message", "string", 8, nullable_since=8),
        Field("current_leader", LeaderIdAndEpoch, 10, tag=0),
    )
    index: int = 0
    error_code: int = 0
    base_offset: int = 0
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    record_errors: list[BatchIndexAndErrorMessage] = field(default_factory=list[BatchIndexAndErrorMessage])
    error_message: str | None = None
    current_leader: LeaderIdAndEpoch = field(default_factory=lambda: LeaderIdAndEpoch())


class TopicProduceResponse(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 3, until=12),
        Field("topic_id", "uuid", 13),
        Field("partition_responses", PartitionProduceResponse, 3, array=True),
    )
    name: str = ""
    topic_id: UUID = NO_UUID
    partition_responses: list[PartitionProduceResponse] = field(default_factory=list[PartitionProduceResponse])


class ProduceResponse(TopLevel):
    NAME: ClassVar[str] = "Produce"
    API_KEY: ClassVar[int] = 0
    MIN_VERSION: ClassVar[int] = 3
    MAX_VERSION: ClassVar[int] = 13
    FLEXIBLE_FROM: ClassVar[int] = 9
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("responses", TopicProduceResponse, 3, array=True),
        Field("throttle_time_ms", "int32", 3),
        Field("node_endpoints", NodeEndpoint, 10, array=True, tag=0),
    )
    responses: list[TopicProduceResponse] = field(default_factory=list[TopicProduceResponse])
    throttle_time_ms: int = 0
    node_endpoints: list[NodeEndpoint] = field(default_factory=list[NodeEndpoint])
