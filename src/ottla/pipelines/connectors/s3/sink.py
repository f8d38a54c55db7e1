"""A batch as objects behind the S3 API.

An object appears whole or not at all, and its name follows from writer, batch and task, so an attempt that runs again
replaces its own objects. Notes of the writer are in `_ottla/<writer>/` under the prefix: `begun.json` names the batch
that is being written, `last.json` the last one that is complete, with its objects. A batch that was begun before is
cleared first, and written anew; one that is complete is left as it is.

What a reader sees: a batch in one object appears as a whole. Several objects (`parallel`, `partition_by`) appear one
after the other; a reader that wants whole batches only reads the objects that `last.json` has named.
"""

import gzip
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any, Literal
from urllib.parse import quote

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from ottla.pipelines.connectors.base import Batch, Written
from ottla.pipelines.connectors.durable_files import writer_id
from ottla.pipelines.connectors.moments import Reached, unwatched
from ottla.pipelines.connectors.objects.folders import by_values
from ottla.pipelines.connectors.objects.source import NO_VALUE
from ottla.pipelines.connectors.objects.store import Store, explain, file_system
from ottla.pipelines.connectors.objects.text import line_column
from ottla.pipelines.errors import FatalFailure

_RESULT = "name string, rows long, attempt int"
_SUFFIXES = {"parquet": ".parquet", "json": ".json", "csv": ".csv", "text": ".txt"}
COPY_BYTES = 8 << 20

Codec = Literal["snappy", "zstd", "gzip", "none"]


class BatchStarted(msgspec.Struct, frozen=True):
    batch: int


class LastBatch(msgspec.Struct, frozen=True):
    batch: int
    rows: int
    objects: list[str]


def write_objects(
    frame: DataFrame,
    batch: Batch,
    store: Store,
    *,
    file_format: str,
    partition_by: Sequence[str],
    parallel: bool,
    compression: Codec | None,
    reached: Reached = unwatched,
) -> Written:
    writer = writer_id(batch.query, batch.sink)
    notes = f"{store.root}/_ottla/{writer}"
    name = f"part-{writer}-{batch.id:010d}-"
    try:
        last = _read_note(store, f"{notes}/last.json", LastBatch)
        if last is not None and batch.id <= last.batch:
            return Written(rows=last.rows, already_there=True)
        begun = _read_note(store, f"{notes}/begun.json", BatchStarted)
        if begun is not None and begun.batch == batch.id:
            _delete(store, name, keep=set())
        else:
            _write_note(store, f"{notes}/begun.json", BatchStarted(batch.id))
        reached("begun")
        rows, names, tried_again = _upload(frame, store, name, file_format, partition_by, parallel, compression)
        reached("uploaded")
        if tried_again:
            _delete(store, name, keep=set(names))
        _write_note(store, f"{notes}/last.json", LastBatch(batch.id, rows, sorted(names)))
        reached("noted")
    except OSError as error:
        raise explain(error, store) from error
    return Written(rows=rows)


def _upload(
    frame: DataFrame,
    store: Store,
    name: str,
    file_format: str,
    partition_by: Sequence[str],
    parallel: bool,
    compression: Codec | None,
) -> tuple[int, list[str], bool]:
    if file_format != "parquet":
        line = line_column(frame.drop(*partition_by), file_format, {})
        frame = frame.select(*[sql.col(f"`{column}`") for column in partition_by], line.alias("line"))
    if not parallel:
        frame = frame.repartition(*partition_by) if partition_by else frame.repartition(1)
    writing = _Writing(store, name, file_format, tuple(partition_by), compression)

    def upload(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        done = writing.run(batches)
        context = TaskContext.get()
        attempt = context.attemptNumber() if context else 0
        yield pa.RecordBatch.from_pydict(
            {
                "name": pa.array([path for path, _ in done], pa.string()),
                "rows": pa.array([rows for _, rows in done], pa.int64()),
                "attempt": pa.array([attempt] * len(done), pa.int32()),
            }
        )

    results = frame.mapInArrow(upload, _RESULT).collect()
    names = [result.name for result in results]
    return sum(result.rows for result in results), names, any(result.attempt for result in results)


class _Writing:
    """One task's objects. Each is made in a file of the worker first, so that an object is never a part of one."""

    def __init__(
        self, store: Store, name: str, file_format: str, partition_by: tuple[str, ...], compression: Codec | None
    ) -> None:
        self._store = store
        self._name = name
        self._format = file_format
        self._partition_by = partition_by
        self._compression = compression

    def run(self, batches: Iterator[pa.RecordBatch]) -> list[tuple[str, int]]:
        context = TaskContext.get()
        task = context.partitionId() if context else 0
        done: list[tuple[str, int]] = []
        with tempfile.TemporaryDirectory(prefix="ottla-s3-") as folder, ExitStack() as stack:
            files: dict[str, _ObjectFile] = {}
            for batch in batches:
                for where, part in _by_folder(batch, self._partition_by):
                    if where not in files:
                        path = os.path.join(folder, str(len(files)))
                        files[where] = stack.enter_context(_ObjectFile(path, self._format, self._compression))
                    files[where].write(part)
            for where, file in files.items():
                file.close()
                suffix = _SUFFIXES[self._format] + (".gz" if self._packs_lines else "")
                target = f"{self._store.root}/{where}{self._name}{task:05d}{suffix}"
                _copy(self._store, file.path, target)
                done.append((target, file.rows))
        return done

    @property
    def _packs_lines(self) -> bool:
        return self._format != "parquet" and self._compression == "gzip"


class _ObjectFile:
    def __init__(self, path: str, file_format: str, compression: Codec | None) -> None:
        self.path = path
        self.rows = 0
        self._parquet = file_format == "parquet"
        self._compression = compression
        self._lines: Any = None
        self._writer: pq.ParquetWriter | None = None

    def __enter__(self) -> "_ObjectFile":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def write(self, batch: pa.RecordBatch) -> None:
        self.rows += batch.num_rows
        if self._parquet:
            if self._writer is None:
                self._writer = pq.ParquetWriter(self.path, batch.schema, compression=self._compression or "snappy")
            self._writer.write_batch(batch)
            return
        if self._lines is None:
            self._lines = (gzip.open if self._compression == "gzip" else open)(self.path, "wb")
        lines = batch.column(0).cast(pa.binary()).to_pylist()
        self._lines.write(b"\n".join(line or b"" for line in lines) + b"\n")

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        if self._lines is not None:
            self._lines.close()
            self._lines = None


def _by_folder(batch: pa.RecordBatch, partition_by: Sequence[str]) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The rows of each folder (`item=book/`), without the columns that the folder stands for."""
    for values, rows in by_values(batch, partition_by):
        where = "".join(
            f"{quote(name, safe='')}={NO_VALUE if value is None else quote(value, safe=' ')}/"
            for name, value in zip(partition_by, values, strict=True)
        )
        yield where, rows.drop_columns(list(partition_by))


def _copy(store: Store, path: str, target: str) -> None:
    system = file_system(store.s3)
    with open(path, "rb") as source, system.open_output_stream(target, compression=None) as sink:
        while block := source.read(COPY_BYTES):
            sink.write(block)


def _read_note(store: Store, path: str, kind: type[Any]) -> Any:
    try:
        with file_system(store.s3).open_input_stream(path) as stream:
            return msgspec.json.decode(stream.readall(), type=kind)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as error:
        raise FatalFailure(
            f"s3://{path} is not what this sink wrote ({error}): delete it if nobody needs it"
        ) from error


def _write_note(store: Store, path: str, note: msgspec.Struct) -> None:
    with file_system(store.s3).open_output_stream(path) as stream:
        stream.write(msgspec.json.encode(note))


def _delete(store: Store, name: str, keep: set[str]) -> None:
    """What another attempt at this batch left behind. It takes a listing, hence only where there was one."""
    system = file_system(store.s3)
    selector = fs.FileSelector(store.root, recursive=True, allow_not_found=True)
    for info in system.get_file_info(selector):
        if info.type == fs.FileType.File and info.base_name.startswith(name) and info.path not in keep:
            system.delete_file(info.path)
