"""Messages of consumer_group_heartbeat. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar
from uuid import UUID

from msgspec import field

from ottla.protocol.schema import NO_UUID, Field, Message, TopLevel


class RequestTopicPartitions(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", 0),
        Field("partitions", "int32", 0, array=True),
    )
    topic_id: UUID = NO_UUID
    partitions: list[int] = field(default_factory=list[int])


class ConsumerGroupHeartbeatRequest(TopLevel):
    NAME: ClassVar[str] = "ConsumerGroupHeartbeat"
    API_KEY: ClassVar[int] = 68
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", 0),
        Field("member_id", "string", 0),
        Field("member_epoch", "int32", 0),
        Field("instance_id", "string", 0, nullable_since=0),
        Field("rack_id", "string", 0, nullable_since=0),
        Field("rebalance_timeout_ms", "int32", 0),
        Field("subscribed_topic_names", "string", 0, array=True, nullable_since=0),
        Field("subscribed_topic_regex", "string", 1, nullable_since=1),
        Field("server_assignor", "string", 0, nullable_since=0),
        Field("topic_partitions", RequestTopicPartitions, 0, array=True, nullable_since=0),
    )
    group_id: str = ""
    member_id: str = ""
    member_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    subscribed_topic_names: list[str] | None = None
    subscribed_topic_regex: str | None = None
    server_assignor: str | None = None
    topic_partitions: list[RequestTopicPartitions] | None = field(default_factory=list[RequestTopicPartitions])


class ResponseTopicPartitions(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", 0),
        Field("partitions", "int32", 0, array=True),
    )
    topic_id: UUID = NO_UUID
    partitions: list[int] = field(default_factory=list[int])


class Assignment(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_partitions", ResponseTopicPartitions, 0, array=True),
    )
    topic_partitions: list[ResponseTopicPartitions] = field(default_factory=list[ResponseTopicPartitions])


class ConsumerGroupHeartbeatResponse(TopLevel):
    NAME: ClassVar[str] = "ConsumerGroupHeartbeat"
    API_KEY: ClassVar[int] = 68
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0),
        Field("error_code", "int16", 0),
        Field("error_message", "string", 0, nullable_since=0),
        Field("member_id", "string", 0, nullable_since=0),
        Field("member_epoch", "int32", 0),
        Field("heartbeat_interval_ms", "int32", 0),
        Field("assignment", Assignment, 0, nullable_since=0),
    )
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: Assignment | None = None
