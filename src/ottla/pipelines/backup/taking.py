"""The task of a run: a range of one partition becomes objects, as rows of Parquet or as the batches that they are."""

import hashlib
import secrets
from collections.abc import AsyncIterator, Iterator
from typing import Any, Literal

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from ottla.client.fetch import Fetched, FetchSettings, OffsetOutOfRange, PartitionFetcher
from ottla.client.settings import client_settings
from ottla.model.names import TopicPartition
from ottla.pipelines.backup import store
from ottla.pipelines.backup.batches import BatchSum, sum_of
from ottla.pipelines.backup.manifest import Kind, StoredObject
from ottla.pipelines.backup.naming import object_path, task_path
from ottla.pipelines.backup.planning import OBJECT_BYTES, Part, PartDone
from ottla.pipelines.backup.store import Place
from ottla.pipelines.backup.sums import RecordSum
from ottla.protocol.records import iterate_batches
from ottla.spark import loop
from ottla.spark.connections import shared_cluster
from ottla.spark.reading.decode import HEADERS_TYPE, Decoder

OBJECT_BYTES_MAX = 2 * OBJECT_BYTES
"""A part whose records are larger than was thought is written as several objects."""
COMPRESSION: Literal["zstd"] = "zstd"

_FIELDS: list[tuple[str, pa.DataType]] = [
    ("topic", pa.string()),
    ("partition", pa.int32()),
    ("offset", pa.int64()),
    ("timestamp", pa.timestamp("us", "UTC")),
    ("timestamp_type", pa.int32()),
    ("key", pa.binary()),
    ("value", pa.binary()),
    ("headers", HEADERS_TYPE),
]
SCHEMA = pa.schema(_FIELDS)
REPEATED: Any = ["topic", "partition", "timestamp_type", "headers.list.element.key"]
"""Columns worth a dictionary; the stubs know only all or none. Values hardly ever come twice: looking for that cost as
much as all the rest of writing."""
WITH_BOUNDS = ["topic", "partition", "offset", "timestamp"]
"""Columns of which readers may want to know the least and the largest value, to leave out what they do not want."""


class TakeTask(msgspec.Struct, frozen=True, kw_only=True):
    backup: str
    kind: Kind
    place: Place
    client: dict[str, str]
    part: Part


def take(task: TakeTask) -> PartDone:
    """Read, write the objects, and note beside them that it is done: a run that goes on skips it."""
    part = task.part
    writing: _Writing = _Rows(task) if task.kind == "parquet" else _Batches(task)
    lost: list[tuple[int, int]] = []
    position = part.start
    while position < part.end:
        try:
            for fetched in _fetches(task, position):
                position = writing.add(fetched)
            break
        except OffsetOutOfRange as error:
            # Retention was quicker: what it took is noted, and the rest is read.
            if error.log_start_offset <= position:
                raise
            gone = min(error.log_start_offset, part.end)
            writing.roll(position)
            lost.append((position, gone))
            position = gone
            writing.skip_to(gone)
    writing.finish(part.end)
    done = PartDone(number=part.number, objects=writing.objects, lost=lost)
    store.write(task.place, task_path(task.backup, part.number), msgspec.json.encode(done))
    return done


def _fetches(task: TakeTask, start: int) -> Iterator[Fetched]:
    """In this thread; the next fetch runs on the loop meanwhile."""
    cluster = shared_cluster(client_settings(task.client))
    at = TopicPartition(task.part.topic, task.part.partition)
    answers = PartitionFetcher(cluster, at, FetchSettings(committed=True)).read(start, task.part.end)
    try:
        while (fetched := loop.run(_next(answers))) is not None:
            yield fetched
    finally:
        loop.run(answers.aclose())


async def _next(answers: AsyncIterator[Fetched]) -> Fetched | None:
    return await anext(answers, None)


class _Writing:
    """Objects of one part, one after the other. Each is made in memory, and stored as a whole."""

    def __init__(self, task: TakeTask) -> None:
        self._task = task
        self._at = TopicPartition(task.part.topic, task.part.partition)
        self._start = task.part.start
        self.objects: list[StoredObject] = []

    def add(self, fetched: Fetched) -> int:
        """Take what counts of an answer; the offset that it reaches up to."""
        raise NotImplementedError

    def skip_to(self, offset: int) -> None:
        """The log begins here now."""
        self._start = offset

    def roll(self, end: int) -> None:
        """Store what there is as the offsets up to `end`."""
        if end > self._start:
            self.objects.append(self._stored(self._start, end))
            self._start = end

    def finish(self, end: int) -> None:
        self.roll(end)

    def _stored(self, start: int, end: int) -> StoredObject:
        raise NotImplementedError

    def _put(self, content: memoryview, start: int, end: int, found: RecordSum | BatchSum) -> StoredObject:
        path = object_path(self._task.backup, self._at, start, secrets.token_hex(4), self._task.kind)
        store.write(self._task.place, path, content)
        of_rows = found if isinstance(found, RecordSum) else None
        of_batches = found if isinstance(found, BatchSum) else BatchSum()
        return StoredObject(
            path=path, kind=self._task.kind, sha256=hashlib.sha256(content).hexdigest(), bytes=len(content),
            records=found.records, start=start, end=end, first=found.first, last=found.last,
            content=None if of_rows is None else of_rows.digest(), max_timestamp=found.max_timestamp,
            batch_bytes_max=of_batches.batch_bytes_max if of_rows is None else of_rows.record_bytes_max,
            aborted=of_batches.aborted,
        )  # fmt: skip


class _Rows(_Writing):
    def __init__(self, task: TakeTask) -> None:
        super().__init__(task)
        self._decoder = self._decode_from(task.part.start)
        self._begin()

    def _decode_from(self, start: int) -> Decoder:
        return Decoder(*self._at, start, self._task.part.end, include_headers=True, committed=True)

    def _begin(self) -> None:
        self._sink = pa.BufferOutputStream()
        self._writer = pq.ParquetWriter(
            self._sink, SCHEMA, compression=COMPRESSION, use_dictionary=REPEATED, write_statistics=WITH_BOUNDS
        )
        self._sum = RecordSum()

    def add(self, fetched: Fetched) -> int:
        for batch in self._decoder.feed(fetched.records, fetched.aborted):
            self._write(batch)
        if self._sink.tell() > OBJECT_BYTES_MAX:
            self._flush()
            self.roll(self._decoder.next_offset)
        return self._decoder.next_offset

    def skip_to(self, offset: int) -> None:
        super().skip_to(offset)
        self._decoder = self._decode_from(offset)

    def roll(self, end: int) -> None:
        self._flush()
        super().roll(end)

    def _flush(self) -> None:
        last = self._decoder.flush()
        if last is not None:
            self._write(last)

    def _write(self, batch: pa.RecordBatch) -> None:
        renamed = batch.rename_columns([name.replace("timestampType", "timestamp_type") for name in batch.schema.names])
        rows = renamed.select(SCHEMA.names)
        self._sum.add(rows)
        self._writer.write_batch(rows)

    def _stored(self, start: int, end: int) -> StoredObject:
        self._writer.close()
        content: Any = self._sink.getvalue()
        stored = self._put(memoryview(content), start, end, self._sum)
        self._begin()
        return stored


class _Batches(_Writing):
    """Batches as they lie in the log: transactions, their markers, codecs and all."""

    def __init__(self, task: TakeTask) -> None:
        super().__init__(task)
        self._next = task.part.start
        self._opens = task.part.opens
        self._content = bytearray()
        self._aborted: set[tuple[int, int]] = set()

    def add(self, fetched: Fetched) -> int:
        end = self._task.part.end
        for position, header in iterate_batches(fetched.records):
            if header.next_offset <= self._next:
                continue
            if header.base_offset >= end:
                self._next = end
                break
            if header.base_offset >= self._next or self._opens:
                self._content += memoryview(fetched.records)[position : position + header.size]
            self._opens = False
            self._next = header.next_offset
        self._aborted |= set(fetched.aborted)
        if len(self._content) > OBJECT_BYTES_MAX:
            self.roll(min(self._next, end))
        return min(self._next, end)

    def skip_to(self, offset: int) -> None:
        super().skip_to(offset)
        self._next = offset
        self._opens = True

    def _stored(self, start: int, end: int) -> StoredObject:
        content = memoryview(bytes(self._content))
        found = sum_of(content, sorted(self._aborted), start)  # which checks every batch's CRC
        stored = self._put(content, start, end, found)
        self._content = bytearray()
        self._aborted = set(found.left)
        return stored
