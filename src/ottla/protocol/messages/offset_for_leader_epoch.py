"""Messages of offset_for_leader_epoch. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar

from msgspec import field

from ottla.protocol.schema import Field, Message, TopLevel


class OffsetForLeaderPartition(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition", "int32", 2),
        Field("current_leader_epoch", "int32", 2),
        Field("leader_epoch", "int32", 2),
    )
    partition: int = 0
    current_leader_epoch: int = -1
    leader_epoch: int = 0


class OffsetForLeaderTopic(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", 2),
        Field("partitions", OffsetForLeaderPartition, 2, array=True),
    )
    topic: str = ""
    partitions: list[OffsetForLeaderPartition] = field(default_factory=list[OffsetForLeaderPartition])


class OffsetForLeaderEpochRequest(TopLevel):
    NAME: ClassVar[str] = "OffsetForLeaderEpoch"
    API_KEY: ClassVar[int] = 23
    MIN_VERSION: ClassVar[int] = 2
    MAX_VERSION: ClassVar[int] = 4
    FLEXIBLE_FROM: ClassVar[int] = 4
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("replica_id", "int32", 3),
        Field("topics", OffsetForLeaderTopic, 2, array=True),
    )
    replica_id: int = -2
    topics: list[OffsetForLeaderTopic] = field(default_factory=list[OffsetForLeaderTopic])


class EpochEndOffset(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", 2),
        Field("partition", "int32", 2),
        Field("leader_epoch", "int32", 2),
        Field("end_offset", "int64", 2),
    )
    error_code: int = 0
    partition: int = 0
    leader_epoch: int = -1
    end_offset: int = -1


class OffsetForLeaderTopicResult(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", 2),
        Field("partitions", EpochEndOffset, 2, array=True),
    )
    topic: str = ""
    partitions: list[EpochEndOffset] = field(default_factory=list[EpochEndOffset])


class OffsetForLeaderEpochResponse(TopLevel):
    NAME: ClassVar[str] = "OffsetForLeaderEpoch"
    API_KEY: ClassVar[int] = 23
    MIN_VERSION: ClassVar[int] = 2
    MAX_VERSION: ClassVar[int] = 4
    FLEXIBLE_FROM: ClassVar[int] = 4
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 2),
        Field("topics", OffsetForLeaderTopicResult, 2, array=True),
    )
    throttle_time_ms: int = 0
    topics: list[OffsetForLeaderTopicResult] = field(default_factory=list[OffsetForLeaderTopicResult])
