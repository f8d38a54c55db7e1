"""Parquet files of one task, written from Arrow as the rows come by on their way to topics.

Where they are written aside, and how they come to be seen, is `publishing`'s matter. Names of folders are Spark's own.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
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

CODECS = {"snappy": ".snappy", "zstd": ".zstd", "gzip": ".gz", "none": "", "uncompressed": ""}
"""Spark's names of codecs, and what they put into names of files."""

_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
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
    """What a task is sent: where to write, and how."""

    folder: str
    partition_by: tuple[str, ...]
    codec: str
    name: str

    def __call__(self) -> "StagedParquet":
        return StagedParquet(self)


class StagedParquet:
    """The files of one attempt at a task, one for each folder."""

    def __init__(self, stage: StageParquet) -> None:
        context = TaskContext.get()
        self._attempt = f"attempt-{context.taskAttemptId() if context else 0}"
        self._stage = stage
        self._writers: dict[str, pq.ParquetWriter] = {}
        self._schemas: dict[str, pa.Schema] = {}
        self._rows: dict[str, int] = {}

    def add(self, rows: pa.RecordBatch) -> None:
        for where, part in by_folder(rows, self._stage.partition_by):
            writer = self._writers.get(where)
            if writer is None:
                writer = self._writers[where] = self._open(where, part.schema)
            writer.write_batch(_as_schema(part, self._schemas[where]))
            self._rows[where] = self._rows.get(where, 0) + part.num_rows

    def done(self) -> str:
        for writer in self._writers.values():
            writer.close()
        files = [
            StagedFile(os.path.join(self._attempt, place), place, rows)
            for place, rows in ((self._place(where), rows) for where, rows in self._rows.items())
        ]
        return msgspec.json.encode(files).decode()

    def _open(self, where: str, schema: pa.Schema) -> pq.ParquetWriter:
        path = Path(self._stage.folder, self._attempt, self._place(where))
        path.parent.mkdir(parents=True, exist_ok=True)
        self._schemas[where] = pa.schema([field.with_nullable(True) for field in schema])
        codec: Any = "none" if self._stage.codec == "uncompressed" else self._stage.codec
        return pq.ParquetWriter(path, self._schemas[where], compression=codec)

    def _place(self, where: str) -> str:
        return os.path.join(where, self._stage.name)


class PublishBeside:
    """The driver's side: where each run of a batch stages its files, and how those of the last one come to be seen."""

    def __init__(self, publication: Publication, batch: int, partition_by: tuple[str, ...], codec: str) -> None:
        self._publication = publication
        self._batch = batch
        self._partition_by = partition_by
        self._codec = codec
        self._run = 0
        self.rows = 0

    def task(self, run: int) -> Callable[[], StagedParquet]:
        """Each run has a folder of its own: what still writes for an earlier one is not in the way."""
        self._run = run
        name = f"part-{self._publication.writer}-{self._batch:010d}-00000{CODECS[self._codec]}.parquet"
        return StageParquet(str(self._publication.staged / f"run-{run}"), self._partition_by, self._codec, name)

    def publish(self, notes: Sequence[str]) -> None:
        """What one task has said is staged."""
        staged = [file for note in notes for file in msgspec.json.decode(note, type=list[StagedFile])]
        self.rows = sum(file.rows for file in staged)
        moves = [Move(staged=f"run-{self._run}/{file.staged}", place=file.place) for file in staged]
        self._publication.publish(self._batch, self.rows, moves)


def _as_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(batch.columns, schema=schema)


def by_folder(rows: pa.RecordBatch, partition_by: Sequence[str]) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The rows of each folder (`item=book`), without the columns that the folder stands for."""
    if not partition_by:
        yield "", rows
        return
    rest = rows.drop_columns(list(partition_by))
    texts = [pc.cast(rows.column(name), pa.string()).to_pylist() for name in partition_by]
    places: dict[tuple[str | None, ...], list[int]] = {}
    for index, values in enumerate(zip(*texts, strict=True)):
        places.setdefault(values, []).append(index)
    for values, indexes in places.items():
        folders = [f"{_escaped(name)}={_value(text)}" for name, text in zip(partition_by, values, strict=True)]
        yield os.path.join(*folders), rest.take(pa.array(indexes))


def _value(text: str | None) -> str:
    return _escaped(text) if text else _NO_VALUE


def _escaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", text)
