"""Messages of write_share_group_state. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar
from uuid import UUID

from msgspec import field

from ottla.protocol.schema import NO_UUID, Field, Message, TopLevel


class StateBatch(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("first_offset", "int64", 0),
        Field("last_offset", "int64", 0),
        Field("delivery_state", "int8", 0),
        Field("delivery_count", "int16", 0),
    )
    first_offset: int = 0
    last_offset: int = 0
    delivery_state: int = 0
    delivery_count: int = 0


class PartitionData(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition", "int32", 0),
        Field("state_epoch", "int32", 0),
        Field("leader_epoch", "int32", 0),
        Field("start_offset", "int64", 0),
        Field("delivery_complete_count", "int32", 1),
        Field("state_batches", StateBatch, 0, array=True),
    )
    partition: int = 0
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = -1
    state_batches: list[StateBatch] = field(default_factory=list[StateBatch])


class WriteStateData(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", 0),
        Field("partitions", PartitionData, 0, array=True),
    )
    topic_id: UUID = NO_UUID
    partitions: list[PartitionData] = field(default_factory=list[PartitionData])


class WriteShareGroupStateRequest(TopLevel):
    NAME: ClassVar[str] = "WriteShareGroupState"
    API_KEY: ClassVar[int] = 85
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", 0),
        Field("topics", WriteStateData, 0, array=True),
    )
    group_id: str = ""
    topics: list[WriteStateData] = field(default_factory=list[WriteStateData])


class PartitionResult(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition", "int32", 0),
        Field("error_code", "int16", 0),
        Field("error_message", "string", 0, nullable_since=0),
    )
    partition: int = 0
    error_code: int = 0
    error_message: str | None = None


class WriteStateResult(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", 0),
        Field("partitions", PartitionResult, 0, array=True),
    )
    topic_id: UUID = NO_UUID
    partitions: list[PartitionResult] = field(default_factory=list[PartitionResult])


class WriteShareGroupStateResponse(TopLevel):
    NAME: ClassVar[str] = "WriteShareGroupState"
    API_KEY: ClassVar[int] = 85
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("results", WriteStateResult, 0, array=True),
    )
    results: list[WriteStateResult] = field(default_factory=list[WriteStateResult])
