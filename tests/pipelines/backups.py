"""What tests of backups share: records of every kind, and a place with who is told about it."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Producer
from tests.committed import Record, read_committed

from ottla.client.settings import client_settings
from ottla.model.names import TopicPartition as At
from ottla.pipelines.backup import store
from ottla.pipelines.backup.batches import Walk
from ottla.pipelines.backup.catalogue import Catalogue, read_catalogue
from ottla.pipelines.backup.manifest import Kind, Manifest
from ottla.pipelines.backup.restore_plan import RestoreRequest
from ottla.pipelines.backup.restoring import Restored, RestoreOptions, plan_restore, run_restore
from ottla.pipelines.backup.running import RunOptions, run_backup
from ottla.pipelines.backup.store import Place
from ottla.pipelines.backup.verifying import Verification, verify
from ottla.pipelines.backup.work import Here, Tasks
from ottla.protocol.records import BATCH_OVERHEAD
from ottla.spark.connections import shared_cluster
from ottla.testing.load import quiet

EARLY = int(time.time() - 3_600) * 1_000
"""Another time than that of the writing, and none that a broker which looks after old segments would delete."""


def contents(bootstrap: str, topic: str, partition: int = 0) -> list[tuple[object, ...]]:
    return [each.content() for each in read_committed(bootstrap, topic, partition)]


def send(
    bootstrap: str,
    topic: str,
    numbers: Sequence[int],
    *,
    partition: int = 0,
    end: str | None = None,
    later_ms: int = 0,
    settings: dict[str, str | int | float | bool] | None = None,
) -> None:
    """With and without keys, values and headers, at times of their own; `end` is commit or abort of a transaction."""
    given: dict[str, str | int | float | bool] = {"bootstrap.servers": bootstrap, "linger.ms": 1, **(settings or {})}
    if end:
        given["transactional.id"] = f"{topic}-{partition}"
    producer = Producer(given, logger=quiet)
    if end:
        producer.init_transactions()
        producer.begin_transaction()
    for number in numbers:
        key = None if number % 5 == 0 else b"" if number % 5 == 1 else b"k%d" % number
        value = None if number % 7 == 0 else b"" if number % 7 == 1 else b"v%d" % number
        headers: list[tuple[str, bytes | None]] = [("b", b"1"), ("a", None), ("b", b"")] if number % 3 == 0 else []
        producer.produce(topic, value, key, partition, timestamp=EARLY + number + later_ms, headers=headers)
    assert producer.flush(30) == 0
    if end:
        producer.abort_transaction() if end == "abort" else producer.commit_transaction()


@dataclass
class Backups:
    """Backups of one cluster in one place."""

    place: Place
    bootstrap: str
    tasks: Tasks = field(default_factory=Here)
    said: list[str] = field(default_factory=list)
    moved_bytes: int = 0

    def take(self, topics: str, kind: Kind = "parquet", **changes: Any) -> Manifest:
        options = RunOptions(self.place, {"bootstrap.servers": self.bootstrap}, topics, kind=kind)
        manifest = run_backup(options._replace(**changes), self.open_tasks, self)
        assert manifest is not None
        return manifest

    def options(self, target: str, request: RestoreRequest, **changes: Any) -> RestoreOptions:
        return RestoreOptions(self.place, {"bootstrap.servers": target}, request)._replace(**changes)

    def restore(self, manifest: Manifest, target: str, request: RestoreRequest, **changes: Any) -> Restored:
        options = self.options(target, request, **changes)
        return run_restore(options, plan_restore(options, manifest), self.open_tasks, self)

    def verify(self) -> Verification:
        return verify(self.place, self.catalogue().manifests, self.open_tasks, self)

    def catalogue(self) -> Catalogue:
        return read_catalogue(self.place)

    @contextmanager
    def open_tasks(self, _: int) -> Iterator[Tasks]:
        yield self.tasks

    # Who is told how far a run is.

    def begin(self, what: str, parts: int, bytes_: int) -> None:
        self.said.append(f"{what}: {parts} parts")

    def moved(self, *, records: int, bytes_: int) -> None:
        self.moved_bytes += bytes_

    def say(self, text: str) -> None:
        self.said.append(text)


def cluster_at(bootstrap: str) -> Any:
    return shared_cluster(client_settings({"bootstrap.servers": bootstrap}))


def first_unread(found: Sequence[Record], offset: int) -> list[tuple[object, ...]]:
    return [each.content() for each in found if each.offset >= offset]


def content_of(backups: Backups, manifest: Manifest) -> bytes:
    return b"".join(store.read(backups.place, stored.path) for _, stored in manifest.objects())


BatchLine = tuple[int, int, int, int, int, bytes]
"""Codec, first offset, how many records, the first and the largest time, and the bytes behind the header."""


def log_of(backups: Backups, manifest: Manifest) -> list[BatchLine]:
    found: list[BatchLine] = []
    for _, stored in manifest.objects():
        content = store.read(backups.place, stored.path)
        for each in Walk(stored.aborted).batches(content):
            header = each.header
            records = content[each.position + BATCH_OVERHEAD : each.position + header.size]
            times = header.base_timestamp, header.max_timestamp
            found.append((header.codec, header.base_offset, header.record_count, *times, records))
    return found


__all__ = [
    "EARLY", "At", "Backups", "cluster_at", "content_of", "contents", "first_unread", "log_of", "send",
]  # fmt: skip
