"""Messages of share_fetch. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar
from uuid import UUID

from msgspec import field

from ottla.protocol.schema import NO_UUID, Field, Message, Records, TopLevel


class ForgottenTopic(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", 1),
        Field("partitions", "int32", 1, array=True),
    )
    topic_id: UUID = NO_UUID
    partitions: list[int] = field(default_factory=list[int])


class AcknowledgementBatch(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("first_offset", "int64", 1),
        Field("last_offset", "int64", 1),
        Field("acknowledge_types", "int8", 1, array=True),
    )
    first_offset: int = 0
    last_offset: int = 0
    acknowledge_types: list[int] = field(default_factory=list[int])


class FetchPartition(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 1),
        Field("acknowledgement_batches", AcknowledgementBatch, 1, array=True),
    )
    partition_index: int = 0
    acknowledgement_batches: list[AcknowledgementBatch] = field(default_factory=list[AcknowledgementBatch])


class FetchTopic(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", 1),
        Field("partitions", FetchPartition, 1, array=True),
    )
    topic_id: UUID = NO_UUID
    partitions: list[FetchPartition] = field(default_factory=list[FetchPartition])


class ShareFetchRequest(TopLevel):
    NAME: ClassVar[str] = "ShareFetch"
    API_KEY: ClassVar[int] = 78
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", 1, nullable_since=1),
        Field("member_id", "string", 1, nullable_since=1),
        Field("share_session_epoch", "int32", 1),
        Field("max_wait_ms", "int32", 1),
        Field("min_bytes", "int32", 1),
        Field("max_bytes", "int32", 1),
        Field("max_records", "int32", 1),
        Field("batch_size", "int32", 1),
        Field("share_acquire_mode", "int8", 2),
        Field("is_renew_ack", "bool", 2),
        Field("topics", FetchTopic, 1, array=True),
        Field("forgotten_topics_data", ForgottenTopic, 1, array=True),
    )
    group_id: str | None = None
    member_id: str | None = ""
    share_session_epoch: int = 0
    max_wait_ms: int = 0
    min_bytes: int = 0
    max_bytes: int = 2147483647
    max_records: int = 0
    batch_size: int = 0
    share_acquire_mode: int = 0
    is_renew_ack: bool = False
    topics: list[FetchTopic] = field(default_factory=list[FetchTopic])
    forgotten_topics_data: list[ForgottenTopic] = field(default_factory=list[ForgottenTopic])


class NodeEndpoint(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("node_id", "int32", 1),
        Field("host", "string", 1),
        Field("port", "int32", 1),
        Field("rack", "string", 1, nullable_since=1),
    )
    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None


class AcquiredRecords(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("first_offset", "int64", 1),
        Field("last_offset", "int64", 1),
        Field("delivery_count", "int16", 1),
    )
    first_offset: int = 0
    last_offset: int = 0
    delivery_count: int = 0


class LeaderIdAndEpoch(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("leader_id", "int32", 1),
        Field("leader_epoch", "int32", 1),
    )
    leader_id: int = 0
    leader_epoch: int = 0


class PartitionData(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 1),
        Field("error_code", "int16", 1),
        Field("error_message", "string", 1, nullable_since=1),
        Field("acknowledge_error_code", "int16", 1),
        Field("acknowledge_error_message", "string", 1, nullable_since=1),
        Field("current_leader", LeaderIdAndEpoch, 1),
        Field("records", "records", 1),
        Field("acquired_records", AcquiredRecords, 1, array=True),
    )
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    acknowledge_error_code: int = 0
    acknowledge_error_message: str | None = None
    current_leader: LeaderIdAndEpoch = field(default_factory=lambda: LeaderIdAndEpoch())
    records: Records = None
    acquired_records: list[AcquiredRecords] = field(default_factory=list[AcquiredRecords])


class ShareFetchableTopicResponse(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", 1),
        Field("partitions", PartitionData, 1, array=True),
    )
    topic_id: UUID = NO_UUID
    partitions: list[PartitionData] = field(default_factory=list[PartitionData])


class ShareFetchResponse(TopLevel):
    NAME: ClassVar[str] = "ShareFetch"
    API_KEY: ClassVar[int] = 78
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 1),
        Field("error_code", "int16", 1),
        Field("error_message", "string", 1, nullable_since=1),
        Field("acquisition_lock_timeout_ms", "int32", 1),
        Field("responses", ShareFetchableTopicResponse, 1, array=True),
        Field("node_endpoints", NodeEndpoint, 1, array=True),
    )
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    acquisition_lock_timeout_ms: int = 0
    responses: list[ShareFetchableTopicResponse] = field(default_factory=list[ShareFetchableTopicResponse])
    node_endpoints: list[NodeEndpoint] = field(default_factory=list[NodeEndpoint])
