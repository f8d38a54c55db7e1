"""Messages of alter_partition. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar
from uuid import UUID

from msgspec import field

from ottla.protocol.schema import NO_UUID, Field, Message, TopLevel


class BrokerState(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("broker_id", "int32", 3),
        Field("broker_epoch", "int64", 3),
    )
    broker_id: int = 0
    broker_epoch: int = -1


class RequestPartitionData(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 2),
        Field("leader_epoch", "int32", 2),
        Field("new_isr", "int32", 2, until=2, array=True),
        Field("new_isr_with_epochs", BrokerState, 3, array=True),
        Field("leader_recovery_state", "int8", 2),
        Field("partition_epoch", "int32", 2),
    )
    partition_index: int = 0
    leader_epoch: int = 0
    new_isr: list[int] = field(default_factory=list[int])
    new_isr_with_epochs: list[BrokerState] = field(default_factory=list[BrokerState])
    leader_recovery_state: int = 0
    partition_epoch: int = 0


class RequestTopicData(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", 2),
        Field("partitions", RequestPartitionData, 2, array=True),
    )
    topic_id: UUID = NO_UUID
    partitions: list[RequestPartitionData] = field(default_factory=list[RequestPartitionData])


class AlterPartitionRequest(TopLevel):
    NAME: ClassVar[str] = "AlterPartition"
    API_KEY: ClassVar[int] = 56
    MIN_VERSION: ClassVar[int] = 2
    MAX_VERSION: ClassVar[int] = 3
    FLEXIBLE_FROM: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("broker_id", "int32", 2),
        Field("broker_epoch", "int64", 2),
        Field("topics", RequestTopicData, 2, array=True),
    )
    broker_id: int = 0
    broker_epoch: int = -1
    topics: list[RequestTopicData] = field(default_factory=list[RequestTopicData])


class ResponsePartitionData(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 2),
        Field("error_code", "int16", 2),
        Field("leader_id", "int32", 2),
        Field("leader_epoch", "int32", 2),
        Field("isr", "int32", 2, array=True),
        Field("leader_recovery_state", "int8", 2),
        Field("partition_epoch", "int32", 2),
    )
    partition_index: int = 0
    error_code: int = 0
    leader_id: int = 0
    leader_epoch: int = 0
    isr: list[int] = field(default_factory=list[int])
    leader_recovery_state: int = 0
    partition_epoch: int = 0


class ResponseTopicData(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_id", "uuid", 2),
        Field("partitions", ResponsePartitionData, 2, array=True),
    )
    topic_id: UUID = NO_UUID
    partitions: list[ResponsePartitionData] = field(default_factory=list[ResponsePartitionData])


class AlterPartitionResponse(TopLevel):
    NAME: ClassVar[str] = "AlterPartition"
    API_KEY: ClassVar[int] = 56
    MIN_VERSION: ClassVar[int] = 2
    MAX_VERSION: ClassVar[int] = 3
    FLEXIBLE_FROM: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 2),
        Field("error_code", "int16", 2),
        Field("topics", ResponseTopicData, 2, array=True),
    )
    throttle_time_ms: int = 0
    error_code: int = 0
    topics: list[ResponseTopicData] = field(default_factory=list[ResponseTopicData])
