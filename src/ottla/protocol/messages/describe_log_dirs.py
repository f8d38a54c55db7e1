"""Messages of describe_log_dirs. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar

from msgspec import field

from ottla.protocol.schema import Field, Message, TopLevel


class DescribableLogDirTopic(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic", "string", 1),
        Field("partitions", "int32", 1, array=True),
    )
    topic: str = ""
    partitions: list[int] = field(default_factory=list[int])


class DescribeLogDirsRequest(TopLevel):
    NAME: ClassVar[str] = "DescribeLogDirs"
    API_KEY: ClassVar[int] = 35
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 5
    FLEXIBLE_FROM: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topics", DescribableLogDirTopic, 1, array=True, nullable_since=1),
    )
    topics: list[DescribableLogDirTopic] | None = field(default_factory=list[DescribableLogDirTopic])


class DescribeLogDirsPartition(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 1),
        Field("partition_size", "int64", 1),
        Field("offset_lag", "int64", 1),
        Field("is_future_key", "bool", 1),
    )
    partition_index: int = 0
    partition_size: int = 0
    offset_lag: int = 0
    is_future_key: bool = False


class DescribeLogDirsTopic(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 1),
        Field("partitions", DescribeLogDirsPartition, 1, array=True),
    )
    name: str = ""
    partitions: list[DescribeLogDirsPartition] = field(default_factory=list[DescribeLogDirsPartition])


class DescribeLogDirsResult(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("error_code", "int16", 1),
        Field("log_dir", "string", 1),
        Field("topics", DescribeLogDirsTopic, 1, array=True),
        Field("total_bytes", "int64", 4),
        Field("usable_bytes", "int64", 4),
        Field("is_cordoned", "bool", 5),
    )
    error_code: int = 0
    log_dir: str = ""
    topics: list[DescribeLogDirsTopic] = field(default_factory=list[DescribeLogDirsTopic])
    total_bytes: int = -1
    usable_bytes: int = -1
    is_cordoned: bool = False


class DescribeLogDirsResponse(TopLevel):
    NAME: ClassVar[str] = "DescribeLogDirs"
    API_KEY: ClassVar[int] = 35
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 5
    FLEXIBLE_FROM: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 1),
        Field("error_code", "int16", 3),
        Field("results", DescribeLogDirsResult, 1, array=True),
    )
    throttle_time_ms: int = 0
    error_code: int = 0
    results: list[DescribeLogDirsResult] = field(default_factory=list[DescribeLogDirsResult])
