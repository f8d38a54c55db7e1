"""Stored objects read back: checked against the manifest, as rows or as batches; and the task of `verify`."""

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ottla.model.names import TopicPartition
from ottla.pipelines.backup import store
from ottla.pipelines.backup.batches import BatchSum, Walk, sum_of
from ottla.pipelines.backup.manifest import DamagedBackup, StoredObject
from ottla.pipelines.backup.store import Place
from ottla.pipelines.backup.sums import RecordSum
from ottla.protocol.errors import CorruptBatch
from ottla.spark.reading.decode import Decoder


class ObjectTask(msgspec.Struct, frozen=True, kw_only=True):
    place: Place
    at: TopicPartition
    stored: StoredObject


class CutTask(msgspec.Struct, frozen=True, kw_only=True):
    place: Place
    at: TopicPartition
    stored: StoredObject
    until_ms: int


class Verified(NamedTuple):
    path: str
    bytes: int
    records: int
    problems: list[str]


def checked_content(place: Place, stored: StoredObject) -> bytes:
    """An object's bytes. DamagedBackup if they are not those that were written."""
    content = store.read(place, stored.path)
    if len(content) != stored.bytes:
        raise DamagedBackup(f"{stored.path} has {len(content)} bytes, and was written with {stored.bytes}")
    if hashlib.sha256(content).hexdigest() != stored.sha256:
        raise DamagedBackup(f"{stored.path} fails its checksum: it was changed after it was written")
    return content


def check_object(task: ObjectTask) -> StoredObject:
    """Its bytes are those that were written; what they mean is for `verify`."""
    checked_content(task.place, task.stored)
    return task.stored


def rows_of(content: bytes, stored: StoredObject) -> Iterator[pa.RecordBatch]:
    """The records of a Parquet object."""
    try:
        with pq.ParquetFile(pa.BufferReader(content)) as parquet:
            yield from parquet.iter_batches(use_threads=False)
    except (pa.ArrowInvalid, OSError) as error:
        raise DamagedBackup(f"{stored.path} cannot be read as Parquet: {error}") from error


def verify_object(task: ObjectTask) -> Verified:
    """Read it back and compare everything that the manifest says of it."""
    stored = task.stored
    try:
        content = checked_content(task.place, stored)
        found = _summed(content, stored)
    except (DamagedBackup, CorruptBatch) as error:
        return Verified(stored.path, 0, 0, [str(error)])
    problems = []
    if isinstance(found, RecordSum) and found.digest() != stored.content:
        problems.append(f"{stored.path}: the hash over its records is not the one in the manifest")
    if not found.in_order:
        problems.append(f"{stored.path}: its offsets do not only go up")
    for what, have, want in (
        ("records", found.records, stored.records), ("first offset", found.first, stored.first),
        ("last offset", found.last, stored.last),
    ):  # fmt: skip
        if have != want:
            problems.append(f"{stored.path}: {what} {have}, and the manifest has {want}")
    return Verified(stored.path, stored.bytes, stored.records, problems)


def _summed(content: bytes, stored: StoredObject) -> RecordSum | BatchSum:
    if stored.kind == "raw":
        return sum_of(content, stored.aborted, stored.start)
    found = RecordSum()
    for batch in rows_of(content, stored):
        found.add(batch)
    return found


def find_cut(task: CutTask) -> tuple[TopicPartition, int | None]:
    """The offset of the first record that is later than a time."""
    content = checked_content(task.place, task.stored)
    for batch in _records(content, task.at, task.stored):
        times = batch.column("timestamp").cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_numpy() // 1000
        later = np.flatnonzero(times > task.until_ms)
        if len(later):
            return task.at, int(batch.column("offset")[int(later[0])].as_py())
    return task.at, None


def _records(content: bytes, at: TopicPartition, stored: StoredObject) -> Iterator[pa.RecordBatch]:
    if stored.kind == "parquet":
        yield from rows_of(content, stored)
        return
    for found in Walk(stored.aborted).batches(content):
        if found.counts:
            yield from batch_rows(content, found.position, at, found.header.base_offset, found.header.next_offset)


def batch_rows(content: bytes, position: int, at: TopicPartition, start: int, end: int) -> Iterator[pa.RecordBatch]:
    """The records of one raw batch from `start` up to `end`, whoever's transaction they are of."""
    decoder = Decoder(*at, start, end, include_headers=True, committed=False, check_crcs=False)
    size = int.from_bytes(content[position + 8 : position + 12], "big") + 12
    yield from decoder.feed(memoryview(content)[position : position + size])
    last = decoder.flush()
    if last is not None:
        yield last
