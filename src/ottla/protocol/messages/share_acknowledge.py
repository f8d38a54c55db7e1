"""Messages of share_acknowledge. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar
from uuid import UUID

from msgspec import field

from ottla.protocol.schema import NO_UUID, Field, Message, TopLevel


class AcknowledgementBatch(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("first_offset", "int64", 1),
        Field("last_offset", "int64", 1),
        Field("acknowledge_types", "int8", 1, array=True),
    )
    first_offset: int = 0
    last_offset: int = 0
    acknowledge_types: list[int] = field(default_factory=list[int])


class AcknowledgePartition(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 1),
        Field("acknowledgement_batches", AcknowledgementBatch, 1, array=True),
    )
    partition_index: int = 0
    acknowledgement_batches: list[AcknowledgementBatch] = field(default_factory=list[AcknowledgementBatch])


class AcknowledgeTopic(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", 1),
        Field("partitions", AcknowledgePartition, 1, array=True),
    )
    topic_id: UUID = NO_UUID
    partitions: list[AcknowledgePartition] = field(default_factory=list[AcknowledgePartition])


class ShareAcknowledgeRequest(TopLevel):
    NAME: ClassVar[str] = "ShareAcknowledge"
    API_KEY: ClassVar[int] = 79
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", 1, nullable_since=1),
        Field("member_id", "string", 1, nullable_since=1),
        Field("share_session_epoch", "int32", 1),
        Field("is_renew_ack", "bool", 2),
        Field("topics", AcknowledgeTopic, 1, array=True),
    )
    group_id: str | None = None
    member_id: str | None = ""
    share_session_epoch: int = 0
    is_renew_ack: bool = False
    topics: list[AcknowledgeTopic] = field(default_factory=list[AcknowledgeTopic])


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
        Field("current_leader", LeaderIdAndEpoch, 1),
    )
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    current_leader: LeaderIdAndEpoch = field(default_factory=lambda: LeaderIdAndEpoch())


class ShareAcknowledgeTopicResponse(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", 1),
        Field("partitions", PartitionData, 1, array=True),
    )
    topic_id: UUID = NO_UUID
    partitions: list[PartitionData] = field(default_factory=list[PartitionData])


class ShareAcknowledgeResponse(TopLevel):
    NAME: ClassVar[str] = "ShareAcknowledge"
    API_KEY: ClassVar[int] = 79
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 1),
        Field("error_code", "int16", 1),
        Field("error_message", "string", 1, nullable_since=1),
        Field("acquisition_lock_timeout_ms", "int32", 2),
        Field("responses", ShareAcknowledgeTopicResponse, 1, array=True),
        Field("node_endpoints", NodeEndpoint, 1, array=True),
    )
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    acquisition_lock_timeout_ms: int = 0
    responses: list[ShareAcknowledgeTopicResponse] = field(default_factory=list[ShareAcknowledgeTopicResponse])
    node_endpoints: list[NodeEndpoint] = field(default_factory=list[NodeEndpoint])
