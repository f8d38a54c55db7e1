"""Messages of elect_leaders. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar

from msgspec import field

from ottla.protocol.schema import Field, Message, TopLevel


class TopicPartitions(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", 0),
        Field("partitions", "int32", 0, array=True),
    )
    topic: str = ""
    partitions: list[int] = field(default_factory=list[int])


class ElectLeadersRequest(TopLevel):
    NAME: ClassVar[str] = "ElectLeaders"
    API_KEY: ClassVar[int] = 43
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("election_type", "int8", 1),
        Field("topic_partitions", TopicPartitions, 0, array=True, nullable_since=0),
        Field("timeout_ms", "int32", 0),
    )
    election_type: int = 0
    topic_partitions: list[TopicPartitions] | None = field(default_factory=list[TopicPartitions])
    timeout_ms: int = 60000


class PartitionResult(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_id", "int32", 0),
        Field("error_code", "int16", 0),
        Field("error_message", "string", 0, nullable_since=0),
    )
    partition_id: int = 0
    error_code: int = 0
    error_message: str | None = ""


class ReplicaElectionResult(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", 0),
        Field("partition_result", PartitionResult, 0, array=True),
    )
    topic: str = ""
    partition_result: list[PartitionResult] = field(default_factory=list[PartitionResult])


class ElectLeadersResponse(TopLevel):
    NAME: ClassVar[str] = "ElectLeaders"
    API_KEY: ClassVar[int] = 43
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0),
        Field("error_code", "int16", 1),
        Field("replica_election_results", ReplicaElectionResult, 0, array=True),
    )
    throttle_time_ms: int = 0
    error_code: int = 0
    replica_election_results: list[ReplicaElectionResult] = field(default_factory=list[ReplicaElectionResult])
