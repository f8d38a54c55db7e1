"""Messages of list_partition_reassignments. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar

from msgspec import field

from ottla.protocol.schema import Field, Message, TopLevel


class ListPartitionReassignmentsTopics(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0),
        Field("partition_indexes", "int32", 0, array=True),
    )
    name: str = ""
    partition_indexes: list[int] = field(default_factory=list[int])


class ListPartitionReassignmentsRequest(TopLevel):
    NAME: ClassVar[str] = "ListPartitionReassignments"
    API_KEY: ClassVar[int] = 46
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("timeout_ms", "int32", 0),
        Field("topics", ListPartitionReassignmentsTopics, 0, array=True, nullable_since=0),
    )
    timeout_ms: int = 60000
    topics: list[ListPartitionReassignmentsTopics] | None = field(default_factory=list[ListPartitionReassignmentsTopics])


class OngoingPartitionReassignment(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 0),
        Field("replicas", "int32", 0, array=True),
        Field("adding_replicas", "int32", 0, array=True),
        Field("removing_replicas", "int32", 0, array=True),
    )
    partition_index: int = 0
    replicas: list[int] = field(default_factory=list[int])
    adding_replicas: list[int] = field(default_factory=list[int])
    removing_replicas: list[int] = field(default_factory=list[int])


class OngoingTopicReassignment(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0),
        Field("partitions", OngoingPartitionReassignment, 0, array=True),
    )
    name: str = ""
    partitions: list[OngoingPartitionReassignment] = field(default_factory=list[OngoingPartitionReassignment])


class ListPartitionReassignmentsResponse(TopLevel):
    NAME: ClassVar[str] = "ListPartitionReassignments"
    API_KEY: ClassVar[int] = 46
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0),
        Field("error_code", "int16", 0),
        Field("error_message", "string", 0, nullable_since=0),
        Field("topics", OngoingTopicReassignment, 0, array=True),
    )
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    topics: list[OngoingTopicReassignment] = field(default_factory=list[OngoingTopicReassignment])
