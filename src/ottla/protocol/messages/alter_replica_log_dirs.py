"""Messages of alter_replica_log_dirs. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar

from msgspec import field

from ottla.protocol.schema import Field, Message, TopLevel


class AlterReplicaLogDirTopic(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 1),
        Field("partitions", "int32", 1, array=True),
    )
    name: str = ""
    partitions: list[int] = field(default_factory=list[int])


class AlterReplicaLogDir(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("path", "string", 1),
        Field("topics", AlterReplicaLogDirTopic, 1, array=True),
    )
    path: str = ""
    topics: list[AlterReplicaLogDirTopic] = field(default_factory=list[AlterReplicaLogDirTopic])


class AlterReplicaLogDirsRequest(TopLevel):
    NAME: ClassVar[str] = "AlterReplicaLogDirs"
    API_KEY: ClassVar[int] = 34
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("dirs", AlterReplicaLogDir, 1, array=True),
    )
    dirs: list[AlterReplicaLogDir] = field(default_factory=list[AlterReplicaLogDir])


class AlterReplicaLogDirPartitionResult(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 1),
        Field("error_code", "int16", 1),
    )
    partition_index: int = 0
    error_code: int = 0


class AlterReplicaLogDirTopicResult(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("topic_name", "string", 1),
        Field("partitions", AlterReplicaLogDirPartitionResult, 1, array=True),
    )
    topic_name: str = ""
    partitions: list[AlterReplicaLogDirPartitionResult] = field(default_factory=list[AlterReplicaLogDirPartitionResult])


class AlterReplicaLogDirsResponse(TopLevel):
    NAME: ClassVar[str] = "AlterReplicaLogDirs"
    API_KEY: ClassVar[int] = 34
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 1),
        Field("results", AlterReplicaLogDirTopicResult, 1, array=True),
    )
    throttle_time_ms: int = 0
    results: list[AlterReplicaLogDirTopicResult] = field(default_factory=list[AlterReplicaLogDirTopicResult])
