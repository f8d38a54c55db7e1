"""Messages of alter_partition_reassignments. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar

from msgspec import field

from ottla.protocol.schema import Field, Message, TopLevel


class ReassignablePartition(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 0),
        Field("replicas", "int32", 0, array=True, nullable_since=0),
    )
    partition_index: int = 0
    replicas: list[int] | None = None


class ReassignableTopic(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0),
        Field("partitions", ReassignablePartition, 0, array=True),
    )
    name: str = ""
    partitions: list[ReassignablePartition] = field(default_factory=list[ReassignablePartition])


class AlterPartitionReassignmentsRequest(TopLevel):
    NAME: ClassVar[str] = "AlterPartitionReassignments"
    API_KEY: ClassVar[int] = 45
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("timeout_ms", "int32", 0),
        Field("allow_replication_factor_change", "bool", 1),
        Field("topics", ReassignableTopic, 0, array=True),
    )
    timeout_ms: int = 60000
    allow_replication_factor_change: bool = True
    topics: list[ReassignableTopic] = field(default_factory=list[ReassignableTopic])


class ReassignablePartitionResponse(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 0),
        Field("error_code", "int16", 0),
        Field("error_message", "string", 0, nullable_since=0),
    )
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = ""


class ReassignableTopicResponse(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0),
        Field("partitions", ReassignablePartitionResponse, 0, array=True),
    )
    name: str = ""
    partitions: list[ReassignablePartitionResponse] = field(default_factory=list[ReassignablePartitionResponse])


class AlterPartitionReassignmentsResponse(TopLevel):
    NAME: ClassVar[str] = "AlterPartitionReassignments"
    API_KEY: ClassVar[int] = 45
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0),
        Field("allow_replication_factor_change", "bool", 1),
        Field("error_code", "int16", 0),
        Field("error_message", "string", 0, nullable_since=0),
        Field("responses", ReassignableTopicResponse, 0, array=True),
    )
    throttle_time_ms: int = 0
    allow_replication_factor_change: bool = True
    error_code: int = 0
    error_message: str | None = ""
    responses: list[ReassignableTopicResponse] = field(default_factory=list[ReassignableTopicResponse])
