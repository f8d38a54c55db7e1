"""What the tasks of a batch do: encode rows where they are, and write each partition from one task.

Rows are encoded before they are moved, so that a shuffle, or the way to the driver, carries a few large record batches
and not millions of rows.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructType

from ottla.client.producer import TransactionPart
from ottla.client.producer_settings import ProducerSettings
from ottla.model.names import TopicPartition
from ottla.protocol.compression import Codec
from ottla.spark.errors import IndeterminateTransaction
from ottla.spark.kernel.arrow import Column
from ottla.spark.kernel.interface import Int64s
from ottla.spark.worker_heap import freeze_modules
from ottla.spark.writing.beside import Parcels, RowParting, SideWriter, open_all, parted, take_parcels, with_notes
from ottla.spark.writing.copied import runs_of
from ottla.spark.writing.encode import UnfinishedBatch, rows_by_partition
from ottla.spark.writing.rows_to_records import RowEncoding, encode_rows, produce, send_batches

# As objects, not as text: Spark's parser would be asked in every batch.
_INT, _LONG, _STRING = IntegerType(), LongType(), StringType()
ENCODED = (
    StructType()
    .add("task", _INT)
    .add("topic", _STRING)
    .add("partition", _INT)
    .add("record_count", _INT)
    .add("base_timestamp", _LONG)
    .add("max_timestamp", _LONG)
    .add("codec", _INT)
    .add("payload", BinaryType())
    .add("beside", _INT)
)
"""A record batch, or (then `beside` is a number) rows for one of those that take them in the same pass. What has the
same `task` is written by one task, however many there are. One without a payload says that something is left out
(`COLLECTED_BYTES_MAX`)."""


def _written_type(*more: str) -> StructType:
    made = StructType().add("stage", _INT).add("task", _LONG).add("topic", _STRING).add("partition", _INT)
    made.add("records", _LONG)
    for name in more:
        made.add(name, _STRING)
    return made


WRITTEN = _written_type()
WRITTEN_COPIES = _written_type("runs")
WRITTEN_BESIDE = _written_type("notes")
SOURCE_OFFSET = "source_offset"
SPREAD = "ottla.spread"
"""A local property of jobs whose record batches go to other tasks, and not to the driver."""
COLLECTED_BYTES_MAX = 16 * 1024 * 1024
"""So much a task sends to the driver. Few records can be large ones: then the batch is written by tasks after all."""

_ENCODED_TYPES: Mapping[str, pa.DataType] = {
    "task": pa.int32(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "record_count": pa.int32(),
    "base_timestamp": pa.int64(),
    "max_timestamp": pa.int64(),
    "codec": pa.int32(),
    "payload": pa.binary(),
    "beside": pa.int32(),
}
_HEAD = list(_ENCODED_TYPES)[1:-2]


class EncodeTask(NamedTuple):
    """Rows to record batches, each marked with the task that will write it.

    Nothing in it is of one batch: it can be part of a stream's plan, which is made once.
    """

    encoding: RowEncoding
    others: Sequence[RowParting] = ()

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        freeze_modules()
        made = self._made(batches)
        return made if _is_spread() else _collectable(made)

    def _made(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        parcels = Parcels(self.others)
        for full in encode_rows(self._records(batches, parcels), self.encoding):
            if full:
                yield _as_rows(full)
            if parcels.is_full:
                yield _as_parcels(parcels)
        if not parcels.is_empty:
            yield _as_parcels(parcels)

    def _records(self, batches: Iterator[pa.RecordBatch], parcels: Parcels) -> Iterator[pa.RecordBatch]:
        if not self.others:
            yield from batches
            return
        for batch in batches:
            rows, records = parted(batch)
            if rows is not None:
                parcels.add(rows)
            yield records


def _is_spread() -> bool:
    context = TaskContext.get()
    return context is not None and context.getLocalProperty(SPREAD) is not None


def _collectable(made: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What a driver can take. If it is more, nothing of the rest, and a row that says so."""
    left = COLLECTED_BYTES_MAX
    for batch in made:
        left -= batch.nbytes
        if left >= 0:
            yield batch
    if left < 0:
        yield _encoded([[None] for _ in _ENCODED_TYPES])


class WriteEncodedTask(NamedTuple):
    """Record batches to their partitions. No other task has any of these partitions."""

    settings: ProducerSettings
    transaction: TransactionPart | None
    others: Sequence[SideWriter | None] = ()

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        _refuse_second_attempt(self.transaction)
        freeze_modules()
        opened = open_all(self.others)

        def records() -> Iterator[list[UnfinishedBatch]]:
            for batch in batches:
                take_parcels(_parcels(batch), opened)
                yield _as_records(batch.filter(pc.is_null(batch.column("beside"))))

        written = _written(produce(records(), self.settings, self.transaction))
        yield with_notes(written, opened) if opened else written


class WriteCopiesTask(NamedTuple):
    """Rows to their partitions at once; each has its partition and a `source_offset`, and it tells where each went."""

    encoding: RowEncoding
    transaction: TransactionPart | None

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        _refuse_second_attempt(self.transaction)
        freeze_modules()
        sources: dict[TopicPartition, list[Int64s]] = {}

        def watched() -> Iterator[pa.RecordBatch]:
            for batch in batches:
                offsets = batch.column(SOURCE_OFFSET).to_numpy()
                topics, partitions = batch.column("topic").dictionary_encode(), batch.column("partition").to_numpy()
                for topic, partition, rows in rows_by_partition(topics, partitions):
                    sources.setdefault(TopicPartition(topic, partition), []).append(offsets[rows])
                yield batch

        sent = send_batches(encode_rows(watched(), self.encoding), self.encoding.settings, self.transaction)
        runs = {at: runs_of(np.concatenate(parts), sent.appended.get(at, [])) for at, parts in sources.items()}
        written = _written(sent.record_counts)
        said: Column = pa.array([json.dumps(runs.get(at)) for at in sent.record_counts] or ["[]"], pa.string())
        yield written.append_column("runs", said)


def _refuse_second_attempt(transaction: TransactionPart | None) -> None:
    """The first attempt may have written, or may still write, in the same transaction with the same sequences."""
    context = TaskContext.get()
    if transaction is not None and context is not None and context.attemptNumber() > 0:
        raise IndeterminateTransaction(
            f"task {context.partitionId()} runs for the second time in one transaction; its first failure is in the "
            "executor's log. The batch is aborted and written again"
        )


def _as_rows(batches: list[UnfinishedBatch]) -> pa.RecordBatch:
    values = [
        [_task_of(batch) for batch in batches],
        *([getattr(batch, name) for batch in batches] for name in _HEAD),
        [bytes(batch.payload) for batch in batches],
        [None] * len(batches),
    ]
    return _encoded(values)


def _as_parcels(parcels: Parcels) -> pa.RecordBatch:
    taken = parcels.take()
    nothing = [None] * len(taken)
    tasks, numbers, payloads = ([parcel[column] for parcel in taken] for column in range(3))
    return _encoded([tasks, *(nothing for _ in _HEAD), payloads, numbers])


def _encoded(values: Sequence[Sequence[object]]) -> pa.RecordBatch:
    columns: list[Column] = [pa.array(items, kind) for items, kind in zip(values, _ENCODED_TYPES.values(), strict=True)]
    return pa.RecordBatch.from_arrays(columns, names=list(_ENCODED_TYPES))


def _parcels(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.Buffer]]:
    payloads = batch.column("payload")
    for index, number in enumerate(batch.column("beside").to_pylist()):
        if number is not None:
            yield number, payloads[index].as_buffer()


def _task_of(batch: UnfinishedBatch) -> int:
    """Neighbouring partitions go to different tasks; topics start at different ones. The same in every process."""
    return sum(batch.topic.encode()) + batch.partition


def _as_records(rows: pa.RecordBatch) -> list[UnfinishedBatch]:
    columns = {name: rows.column(name).to_pylist() for name in _HEAD}
    payloads = rows.column("payload")
    return [
        UnfinishedBatch(topic, partition, count, base, highest, memoryview(payloads[index].as_buffer()), Codec(codec))
        for index, (topic, partition, count, base, highest, codec) in enumerate(zip(*columns.values(), strict=True))
    ]


def _written(counts: dict[TopicPartition, int]) -> pa.RecordBatch:
    """One row for each partition, or one that says that there was nothing to write."""
    context = TaskContext.get()
    assert context is not None, "this runs inside a task"
    rows = [(partition.topic, partition.partition, count) for partition, count in counts.items()] or [("", -1, 0)]
    columns: list[Column] = [
        pa.array([context.stageId()] * len(rows), pa.int32()),
        pa.array([context.taskAttemptId()] * len(rows), pa.int64()),
        pa.array([topic for topic, _, _ in rows], pa.string()),
        pa.array([partition for _, partition, _ in rows], pa.int32()),
        pa.array([count for _, _, count in rows], pa.int64()),
    ]
    return pa.RecordBatch.from_arrays(columns, names=["stage", "task", "topic", "partition", "records"])
