"""Backups made up for tests of what is decided about them."""

from collections.abc import Sequence

from ottla.pipelines.backup.manifest import (
    Manifest,
    PartitionBackup,
    StoredObject,
    TopicBackup,
    partition_sum,
)


def stored(start: int, end: int, *, records: int | None = None, run: str = "r", max_timestamp: int = 0) -> StoredObject:
    count = end - start if records is None else records
    return StoredObject(
        path=f"data/{run}/t/0/{start:020d}-{end}.parquet", kind="parquet", sha256=f"{start:x}{end:x}", bytes=10,
        records=count, start=start, end=end, first=start if count else -1, last=end - 1 if count else -1, content="c",
        max_timestamp=max_timestamp,
    )  # fmt: skip


def partition(*objects: StoredObject, log_start: int = 0, end: int | None = None, number: int = 0) -> PartitionBackup:
    return PartitionBackup(
        partition=number, log_start=log_start, end=objects[-1].end if end is None else end, objects=[*objects],
        sha256=partition_sum(objects),
    )  # fmt: skip


def topic(*partitions: PartitionBackup, name: str = "t", topic_id: str = "id", **configs: str) -> TopicBackup:
    return TopicBackup(
        name=name, topic_id=topic_id, replication_factor=3, partitions=[*partitions],
        configs={key.replace("_", "."): value for key, value in configs.items()},
    )  # fmt: skip


def manifest(topics: Sequence[TopicBackup], *, backup: str = "20261117T100000.000Z", taken_ms: int = 1) -> Manifest:
    return Manifest(
        id=backup, parent=None, kind="parquet", cluster_id="c", selection=".*", begun_ms=taken_ms, taken_ms=taken_ms,
        topics=[*topics], groups=[],
    )  # fmt: skip
