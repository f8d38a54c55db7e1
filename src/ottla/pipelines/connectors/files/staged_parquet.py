"""Parquet files of one task, or of the driver, written from Arrow as the rows come by on their way to topics.

Where they are written aside, and how they come to be seen, is `publishing`'s matter. Names of folders are Spark's own.
"""

import os
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    MapType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from ottla.pipelines.connectors.files.publishing import Move, Publication
from ottla.pipelines.connectors.objects.folders import by_values

CODECS = {"snappy": ".snappy", "zstd": ".zstd", "gzip": ".gz", "none": "", "uncompressed": ""}
"""Spark's names of codecs, and what they put into names of files."""

WAITING_BYTES = 64 * 1024 * 1024
"""How much of a task's rows waits before it is written."""
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_NUMBER_MAX = 2**31 - 1
_ESCAPED = re.compile(r"[\x00-\x1f\"#%'*/:=?\\{\[\]^\x7f]")
_PLAIN = (
    StringType, BinaryType, BooleanType, IntegralType, FloatType, DoubleType, DecimalType, DateType, TimestampType,
    TimestampNTZType,
)  # fmt: skip
_FOLDERS = (StringType, IntegralType, BooleanType, DateType)


class StagedFile(msgspec.Struct, frozen=True):
    staged: str
    """Below the folder of the run."""
    place: str
    """Below the published folder."""
    rows: int


def can_be_staged(row: StructType, partition_by: Sequence[str]) -> bool:
    """Whether Arrow writes these types as Spark does. Others are left to Spark."""
    folders = all(isinstance(row[name].dataType, _FOLDERS) for name in partition_by if name in row.names)
    return folders and set(partition_by) < set(row.names) and _is_known(row)


def _is_known(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        return bool(kind.fields) and all(_is_known(field.dataType) for field in kind.fields)
    if isinstance(kind, ArrayType):
        return _is_known(kind.elementType)
    if isinstance(kind, MapType):
        return _is_known(kind.keyType) and _is_known(kind.valueType)
    return isinstance(kind, _PLAIN)


@dataclass(frozen=True)
class StageParquet:
    """What whoever writes is given: where to write, and how."""

    folder: str
    partition_by: tuple[str, ...]
    codec: str
    name: str
    """With a place for the number of the task."""

    def __call__(self) -> "StagedParquet":
        return StagedParquet(self)


@dataclass(frozen=True)
class ParquetParting:
    """One file for each folder: whoever has rows of it sends them to the same task."""

    partition_by: tuple[str, ...]
    parallel: bool = False
    """Each task writes its own files, also where they go to the same folder."""

    def __call__(self, rows: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
        if self.parallel:
            context = TaskContext.get()
            yield (context.partitionId() if context else 0), rows
            return
        for where, part in _by_folder(rows, self.partition_by):
            yield zlib.crc32(where.encode()) & _NUMBER_MAX, part


class StagedParquet:
    """The files of one attempt at a task, one for each folder."""

    def __init__(self, stage: StageParquet) -> None:
        context = TaskContext.get()
        self._attempt = f"attempt-{context.taskAttemptId() if context else 0}"
        self._name = stage.name.format(task=context.partitionId() if context else 0)
        self._stage = stage
        self._writers: dict[str, pq.ParquetWriter] = {}
        self._rows: dict[str, int] = {}
        self._waiting: dict[str, list[pa.RecordBatch]] = {}
        self._waiting_bytes = 0

    def add(self, rows: pa.RecordBatch) -> None:
        """What is written at a time is a group of rows in the file, and readers are slow with many small ones."""
        for where, part in _by_folder(rows, self._stage.partition_by):
            self._waiting.setdefault(where, []).append(part.drop_columns(list(self._stage.partition_by)))
            self._waiting_bytes += part.nbytes
        if self._waiting_bytes >= WAITING_BYTES:
            self._write()

    def done(self) -> str:
        self._write()
        for writer in self._writers.values():
            writer.close()
        files = [
            StagedFile(os.path.join(self._attempt, place), place, rows)
            for place, rows in ((self._place(where), rows) for where, rows in self._rows.items())
        ]
        return msgspec.json.encode(files).decode()

    def _write(self) -> None:
        for where, parts in self._waiting.items():
            table = pa.Table.from_batches(parts)
            schema = pa.schema([field.with_nullable(True) for field in table.schema])
            writer = self._writers.get(where)
            if writer is None:
                writer = self._writers[where] = self._open(where, schema)
            writer.write_table(table.cast(schema))
            self._rows[where] = self._rows.get(where, 0) + table.num_rows
        self._waiting.clear()
        self._waiting_bytes = 0

    def _open(self, where: str, schema: pa.Schema) -> pq.ParquetWriter:
        path = Path(self._stage.folder, self._attempt, self._place(where))
        path.parent.mkdir(parents=True, exist_ok=True)
        codec: Any = "none" if self._stage.codec == "uncompressed" else self._stage.codec
        return pq.ParquetWriter(path, schema, compression=codec)

    def _place(self, where: str) -> str:
        return os.path.join(where, self._name)


class PublishBeside:
    """The driver's side: where each run of a batch stages its files, and how those of the last one come to be seen."""

    def __init__(self, publication: Publication, batch: int, partition_by: tuple[str, ...], codec: str) -> None:
        self._publication = publication
        self._batch = batch
        self._partition_by = partition_by
        self._codec = codec
        self._run = 0
        self.rows = 0

    def task(self, run: int) -> StageParquet:
        """Each run has a folder of its own: what still writes for an earlier one is not in the way."""
        self._run = run
        name = f"part-{self._publication.writer}-{self._batch:010d}-{{task:05d}}{CODECS[self._codec]}.parquet"
        folder = str(self._publication.staged / f"run-{run}")
        return StageParquet(folder, self._partition_by, self._codec, name)

    def publish(self, notes: Sequence[str]) -> None:
        """What those who wrote have said is staged."""
        staged = [file for note in notes for file in msgspec.json.decode(note, type=list[StagedFile])]
        self.rows = sum(file.rows for file in staged)
        moves = [Move(staged=f"run-{self._run}/{file.staged}", place=file.place) for file in staged]
        self._publication.publish(self._batch, self.rows, moves)


def _by_folder(rows: pa.RecordBatch, partition_by: Sequence[str]) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The rows of each folder (`item=book`)."""
    for values, part in by_values(rows, partition_by):
        folders = [f"{_escaped(name)}={_value(text)}" for name, text in zip(partition_by, values, strict=True)]
        yield "/".join(folders), part


def _value(text: str | None) -> str:
    return _escaped(text) if text else _NO_VALUE


def _escaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", text)
