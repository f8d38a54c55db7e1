"""Messages of initialize_share_group_state. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar
from uuid import UUID

from msgspec import field

from ottla.protocol.schema import NO_UUID, Field, Message, TopLevel


class PartitionData(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition", "int32", 0),
        Field("state_epoch", "int32", 0),
        Field("start_offset", "int64", 0),
    )
    partition: int = 0
    state_epoch: int = 0
    start_offset: int = 0


class InitializeStateData(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", 0),
        Field("partitions", PartitionData, 0, array=True),
    )
    topic_id: UUID = NO_UUID
    partitions: list[PartitionData] = field(default_factory=list[PartitionData])


class InitializeShareGroupStateRequest(TopLevel):
    NAME: ClassVar[str] = "InitializeShareGroupState"
    API_KEY: ClassVar[int] = 83
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", 0),
        Field("topics", InitializeStateData, 0, array=True),
    )
    group_id: str = ""
    topics: list[InitializeStateData] = field(default_factory=list[InitializeStateData])


class PartitionResult(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition", "int32", 0),
        Field("error_code", "int16", 0),
        Field("error_message", "string", 0, nullable_since=0),
    )
    partition: int = 0
    error_code: int = 0
    error_message: str | None = None


class InitializeStateResult(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", 0),
        Field("partitions", PartitionResult, 0, array=True),
    )
    topic_id: UUID = NO_UUID
    partitions: list[PartitionResult] = field(default_factory=list[PartitionResult])


class InitializeShareGroupStateResponse(TopLevel):
    NAME: ClassVar[str] = "InitializeShareGroupState"
    API_KEY: ClassVar[int] = 83
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("results", InitializeStateResult, 0, array=True),
    )
    results: list[InitializeStateResult] = field(default_factory=list[InitializeStateResult])
