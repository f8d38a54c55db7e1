"""Messages of create_topics. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar
from uuid import UUID

from msgspec import field

from ottla.protocol.schema import NO_UUID, Field, Message, TopLevel


class CreatableTopicConfig(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 2),
        Field("value", "string", 2, nullable_since=2),
    )
    name: str = ""
    value: str | None = ""


class CreatableReplicaAssignment(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 2),
        Field("broker_ids", "int32", 2, array=True),
    )
    partition_index: int = 0
    broker_ids: list[int] = field(default_factory=list[int])


class CreatableTopic(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 2),
        Field("num_partitions", "int32", 2),
        Field("replication_factor", "int16", 2),
        Field("assignments", CreatableReplicaAssignment, 2, array=True),
        Field("configs", CreatableTopicConfig, 2, array=True),
    )
    name: str = ""
    num_partitions: int = 0
    replication_factor: int = 0
    assignments: list[CreatableReplicaAssignment] = field(default_factory=list[CreatableReplicaAssignment])
    configs: list[CreatableTopicConfig] = field(default_factory=list[CreatableTopicConfig])


class CreateTopicsRequest(TopLevel):
    NAME: ClassVar[str] = "CreateTopics"
    API_KEY: ClassVar[int] = 19
    MIN_VERSION: ClassVar[int] = 2
    MAX_VERSION: ClassVar[int] = 7
    FLEXIBLE_FROM: ClassVar[int] = 5
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topics", CreatableTopic, 2, array=True),
        Field("timeout_ms", "int32", 2),
        Field("validate_only", "bool", 2),
    )
    topics: list[CreatableTopic] = field(default_factory=list[CreatableTopic])
    timeout_ms: int = 60000
    validate_only: bool = False


class CreatableTopicConfigs(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 5),
        Field("value", "string", 5, nullable_since=5),
        Field("read_only", "bool", 5),
        Field("config_source", "int8", 5),
        Field("is_sensitive", "bool", 5),
    )
    name: str = ""
    value: str | None = ""
    read_only: bool = False
    config_source: int = -1
    is_sensitive: bool = False


class CreatableTopicResult(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 2),
        Field("topic_id", "uuid", 7),
        Field("error_code", "int16", 2),
        Field("error_message", "string", 2, nullable_since=2),
        Field("topic_config_error_code", "int16", 5, tag=0),
        Field("num_partitions", "int32", 5),
        Field("replication_factor", "int16", 5),
        Field("configs", CreatableTopicConfigs, 5, array=True, nullable_since=5),
    )
    name: str = ""
    topic_id: UUID = NO_UUID
    error_code: int = 0
    error_message: str | None = ""
    topic_config_error_code: int = 0
    num_partitions: int = -1
    replication_factor: int = -1
    configs: list[CreatableTopicConfigs] | None = field(default_factory=list[CreatableTopicConfigs])


class CreateTopicsResponse(TopLevel):
    NAME: ClassVar[str] = "CreateTopics"
    API_KEY: ClassVar[int] = 19
    MIN_VERSION: ClassVar[int] = 2
    MAX_VERSION: ClassVar[int] = 7
    FLEXIBLE_FROM: ClassVar[int] = 5
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 2),
        Field("topics", CreatableTopicResult, 2, array=True),
    )
    throttle_time_ms: int = 0
    topics: list[CreatableTopicResult] = field(default_factory=list[CreatableTopicResult])
