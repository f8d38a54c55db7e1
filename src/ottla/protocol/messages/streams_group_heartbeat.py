"""Messages of streams_group_heartbeat. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar

from msgspec import field

from ottla.protocol.schema import Field, Message, TopLevel


class TaskOffset(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("subtopology_id", "string", 0),
        Field("partition", "int32", 0),
        Field("offset", "int64", 0),
    )
    subtopology_id: str = ""
    partition: int = 0
    offset: int = 0


class RequestEndpoint(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("host", "string", 0),
        Field("port", "uint16", 0),
    )
    host: str = ""
    port: int = 0


class RequestTaskIds(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("subtopology_id", "string", 0),
        Field("partitions", "int32", 0, array=True),
    )
    subtopology_id: str = ""
    partitions: list[int] = field(default_factory=list[int])


class CopartitionGroup(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("source_topics", "int16", 0, array=True),
        Field("source_topic_regex", "int16", 0, array=True),
        Field("repartition_source_topics", "int16", 0, array=True),
    )
    source_topics: list[int] = field(default_factory=list[int])
    source_topic_regex: list[int] = field(default_factory=list[int])
    repartition_source_topics: list[int] = field(default_factory=list[int])


class KeyValue(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("key", "string", 0),
        Field("value", "string", 0),
    )
    key: str = ""
    value: str = ""


class TopicInfo(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0),
        Field("partitions", "int32", 0),
        Field("replication_factor", "int16", 0),
        Field("topic_configs", KeyValue, 0, array=True),
    )
    name: str = ""
    partitions: int = 0
    replication_factor: int = 0
    topic_configs: list[KeyValue] = field(default_factory=list[KeyValue])


class Subtopology(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("subtopology_id", "string", 0),
        Field("source_topics", "string", 0, array=True),
        Field("source_topic_regex", "string", 0, array=True),
        Field("state_changelog_topics", TopicInfo, 0, array=True),
        Field("repartition_sink_topics", "string", 0, array=True),
        Field("repartition_source_topics", TopicInfo, 0, array=True),
        Field("copartition_groups", CopartitionGroup, 0, array=True),
    )
    subtopology_id: str = ""
    source_topics: list[str] = field(default_factory=list[str])
    source_topic_regex: list[str] = field(default_factory=list[str])
    state_changelog_topics: list[TopicInfo] = field(default_factory=list[TopicInfo])
    repartition_sink_topics: list[str] = field(default_factory=list[str])
    repartition_source_topics: list[TopicInfo] = field(default_factory=list[TopicInfo])
    copartition_groups: list[CopartitionGroup] = field(default_factory=list[CopartitionGroup])


class Topology(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("epoch", "int32", 0),
        Field("subtopologies", Subtopology, 0, array=True),
    )
    epoch: int = 0
    subtopologies: list[Subtopology] = field(default_factory=list[Subtopology])


class StreamsGroupHeartbeatRequest(TopLevel):
    NAME: ClassVar[str] = "StreamsGroupHeartbeat"
    API_KEY: ClassVar[int] = 88
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("group_id", "string", 0),
        Field("member_id", "string", 0),
        Field("member_epoch", "int32", 0),
        Field("endpoint_information_epoch", "int32", 0),
        Field("instance_id", "string", 0, nullable_since=0),
        Field("rack_id", "string", 0, nullable_since=0),
        Field("rebalance_timeout_ms", "int32", 0),
        Field("topology", Topology, 0, nullable_since=0),
        Field("active_tasks", RequestTaskIds, 0, array=True, nullable_since=0),
        Field("standby_tasks", RequestTaskIds, 0, array=True, nullable_since=0),
        Field("warmup_tasks", RequestTaskIds, 0, array=True, nullable_since=0),
        Field("process_id", "string", 0, nullable_since=0),
        Field("user_endpoint", RequestEndpoint, 0, nullable_since=0),
        Field("client_tags", KeyValue, 0, array=True, nullable_since=0),
        Field("task_offsets", TaskOffset, 0, array=True, nullable_since=0),
        Field("task_end_offsets", TaskOffset, 0, array=True, nullable_since=0),
        Field("shutdown_application", "bool", 0),
    )
    group_id: str = ""
    member_id: str = ""
    member_epoch: int = 0
    endpoint_information_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    topology: Topology | None = None
    active_tasks: list[RequestTaskIds] | None = field(default_factory=list[RequestTaskIds])
    standby_tasks: list[RequestTaskIds] | None = field(default_factory=list[RequestTaskIds])
    warmup_tasks: list[RequestTaskIds] | None = field(default_factory=list[RequestTaskIds])
    process_id: str | None = None
    user_endpoint: RequestEndpoint | None = None
    client_tags: list[KeyValue] | None = field(default_factory=list[KeyValue])
    task_offsets: list[TaskOffset] | None = field(default_factory=list[TaskOffset])
    task_end_offsets: list[TaskOffset] | None = field(default_factory=list[TaskOffset])
    shutdown_application: bool = False


class TopicPartition(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", 0),
        Field("partitions", "int32", 0, array=True),
    )
    topic: str = ""
    partitions: list[int] = field(default_factory=list[int])


class ResponseEndpoint(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("host", "string", 0),
        Field("port", "uint16", 0),
    )
    host: str = ""
    port: int = 0


class EndpointToPartitions(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("user_endpoint", ResponseEndpoint, 0),
        Field("active_partitions", TopicPartition, 0, array=True),
        Field("standby_partitions", TopicPartition, 0, array=True),
    )
    user_endpoint: ResponseEndpoint = field(default_factory=lambda: ResponseEndpoint())
    active_partitions: list[TopicPartition] = field(default_factory=list[TopicPartition])
    standby_partitions: list[TopicPartition] = field(default_factory=list[TopicPartition])


class ResponseTaskIds(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("subtopology_id", "string", 0),
        Field("partitions", "int32", 0, array=True),
    )
    subtopology_id: str = ""
    partitions: list[int] = field(default_factory=list[int])


class Status(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("status_code", "int8", 0),
        Field("status_detail", "string", 0),
    )
    status_code: int = 0
    status_detail: str = ""


class StreamsGroupHeartbeatResponse(TopLevel):
    NAME: ClassVar[str] = "StreamsGroupHeartbeat"
    API_KEY: ClassVar[int] = 88
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0),
        Field("error_code", "int16", 0),
        Field("error_message", "string", 0, nullable_since=0),
        Field("member_id", "string", 0),
        Field("member_epoch", "int32", 0),
        Field("heartbeat_interval_ms", "int32", 0),
        Field("acceptable_recovery_lag", "int32", 0),
        Field("task_offset_interval_ms", "int32", 0),
        Field("status", Status, 0, array=True, nullable_since=0),
        Field("active_tasks", ResponseTaskIds, 0, array=True, nullable_since=0),
        Field("standby_tasks", ResponseTaskIds, 0, array=True, nullable_since=0),
        Field("warmup_tasks", ResponseTaskIds, 0, array=True, nullable_since=0),
        Field("endpoint_information_epoch", "int32", 0),
        Field("partitions_by_user_endpoint", EndpointToPartitions, 0, array=True, nullable_since=0),
    )
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    member_id: str = ""
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    acceptable_recovery_lag: int = 0
    task_offset_interval_ms: int = 0
    status: list[Status] | None = field(default_factory=list[Status])
    active_tasks: list[ResponseTaskIds] | None = field(default_factory=list[ResponseTaskIds])
    standby_tasks: list[ResponseTaskIds] | None = field(default_factory=list[ResponseTaskIds])
    warmup_tasks: list[ResponseTaskIds] | None = field(default_factory=list[ResponseTaskIds])
    endpoint_information_epoch: int = 0
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = field(default_factory=list[EndpointToPartitions])
