"""Messages of read_share_group_state_summary. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar
from uuid import UUID

from msgspec import field

from ottla.protocol.schema import NO_UUID, Field, Message, TopLevel


class PartitionData(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition", "int32", 0),
        Field("leader_epoch", "int32", 0),
    )
    partition: int = 0
    leader_epoch: int = 0


class ReadStateSummaryData(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", 0),
        Field("partitions", PartitionData, 0, array=True),
    )
    topic_id: UUID = NO_UUID
    partitions: list[PartitionData] = field(default_factory=list[PartitionData])


class ReadShareGroupStateSummaryRequest(TopLevel):
    NAME: ClassVar[str] = "ReadShareGroupStateSummary"
    API_KEY: ClassVar[int] = 87
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", 0),
        Field("topics", ReadStateSummaryData, 0, array=True),
    )
    group_id: str = ""
    topics: list[ReadStateSummaryData] = field(default_factory=list[ReadStateSummaryData])


class PartitionResult(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition", "int32", 0),
        Field("error_code", "int16", 0),
        Field("error_message", "string", 0, nullable_since=0),
        Field("state_epoch", "int32", 0),
        Field("leader_epoch", "int32", 0),
        Field("start_offset", "int64", 0),
        Field("delivery_complete_count", "int32", 1),
    )
    partition: int = 0
    error_code: int = 0
    error_message: str | None = None
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = -1


class ReadStateSummaryResult(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", 0),
        Field("partitions", PartitionResult, 0, array=True),
    )
    topic_id: UUID = NO_UUID
    partitions: list[PartitionResult] = field(default_factory=list[PartitionResult])


class ReadShareGroupStateSummaryResponse(TopLevel):
    NAME: ClassVar[str] = "ReadShareGroupStateSummary"
    API_KEY: ClassVar[int] = 87
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("results", ReadStateSummaryResult, 0, array=True),
    )
    results: list[ReadStateSummaryResult] = field(default_factory=list[ReadStateSummaryResult])
