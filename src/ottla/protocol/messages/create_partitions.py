"""Messages of create_partitions. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar

from msgspec import field

from ottla.protocol.schema import Field, Message, TopLevel


class CreatePartitionsAssignment(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("broker_ids", "int32", 0, array=True),
    )
    broker_ids: list[int] = field(default_factory=list[int])


class CreatePartitionsTopic(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0),
        Field("count", "int32", 0),
        Field("assignments", CreatePartitionsAssignment, 0, array=True, nullable_since=0),
    )
    name: str = ""
    count: int = 0
    assignments: list[CreatePartitionsAssignment] | None = field(default_factory=list[CreatePartitionsAssignment])


class CreatePartitionsRequest(TopLevel):
    NAME: ClassVar[str] = "CreatePartitions"
    API_KEY: ClassVar[int] = 37
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 3
    FLEXIBLE_FROM: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topics", CreatePartitionsTopic, 0, array=True),
        Field("timeout_ms", "int32", 0),
        Field("validate_only", "bool", 0),
    )
    topics: list[CreatePartitionsTopic] = field(default_factory=list[CreatePartitionsTopic])
    timeout_ms: int = 0
    validate_only: bool = False


class CreatePartitionsTopicResult(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0),
        Field("error_code", "int16", 0),
        Field("error_message", "string", 0, nullable_since=0),
    )
    name: str = ""
    error_code: int = 0
    error_message: str | None = None


class CreatePartitionsResponse(TopLevel):
    NAME: ClassVar[str] = "CreatePartitions"
    API_KEY: ClassVar[int] = 37
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 3
    FLEXIBLE_FROM: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0),
        Field("results", CreatePartitionsTopicResult, 0, array=True),
    )
    throttle_time_ms: int = 0
    results: list[CreatePartitionsTopicResult] = field(default_factory=list[CreatePartitionsTopicResult])
