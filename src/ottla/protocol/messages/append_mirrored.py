"""Messages of append_mirrored, which is Ottla's own API: written by hand, unlike its neighbours."""

from typing import ClassVar

from msgspec import field

from ottla.protocol.schema import Field, Message, Records, TopLevel


class MirroredPartition(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("index", "int32", 0),
        Field("fetch_offset", "int64", 0),
        Field("log_start_offset", "int64", 0),
        Field("records", "records", 0, nullable_since=0),
    )
    index: int = 0
    fetch_offset: int = 0
    """From where the source was read: it has nothing between this offset and the first batch."""
    log_start_offset: int = -1
    """Where the source's log begins; -1 leaves the beginning as it is."""
    records: Records = None


class MirroredTopic(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0),
        Field("source", "string", 0),
        Field("partitions", MirroredPartition, 0, array=True),
    )
    name: str = ""
    source: str = ""
    """What `mirror.source` of the topic must be."""
    partitions: list[MirroredPartition] = field(default_factory=list[MirroredPartition])


class AppendMirroredRequest(TopLevel):
    NAME: ClassVar[str] = "AppendMirrored"
    API_KEY: ClassVar[int] = 20_000
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("timeout_ms", "int32", 0),
        Field("topics", MirroredTopic, 0, array=True),
    )
    timeout_ms: int = 0
    topics: list[MirroredTopic] = field(default_factory=list[MirroredTopic])


class MirroredPartitionResult(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("index", "int32", 0),
        Field("error_code", "int16", 0),
        Field("error_message", "string", 0, nullable_since=0),
        Field("log_start_offset", "int64", 0),
        Field("log_end_offset", "int64", 0),
    )
    index: int = 0
    error_code: int = 0
    error_message: str | None = None
    log_start_offset: int = -1
    log_end_offset: int = -1


class MirroredTopicResult(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0),
        Field("partitions", MirroredPartitionResult, 0, array=True),
    )
    name: str = ""
    partitions: list[MirroredPartitionResult] = field(default_factory=list[MirroredPartitionResult])


class AppendMirroredResponse(TopLevel):
    NAME: ClassVar[str] = "AppendMirrored"
    API_KEY: ClassVar[int] = 20_000
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0),
        Field("topics", MirroredTopicResult, 0, array=True),
    )
    throttle_time_ms: int = 0
    topics: list[MirroredTopicResult] = field(default_factory=list[MirroredTopicResult])
