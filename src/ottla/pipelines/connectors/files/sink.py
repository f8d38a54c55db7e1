"""A batch as files in a folder (`publishing` says how they appear), or as lines at the end of one file."""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as sql

from ottla.pipelines.connectors.base import Batch, Written
from ottla.pipelines.connectors.durable_files import flush, flush_folder, read_note, replace_file, writer_id
from ottla.pipelines.connectors.files.publishing import Move, Publication
from ottla.pipelines.connectors.moments import Reached, unwatched
from ottla.pipelines.connectors.objects.text import line_column
from ottla.pipelines.connectors.paths import spark_path

_SPARK_NAME = re.compile(r"part-\d+-[0-9a-f-]{36}(?:-c\d+|\.c\d+)?(?P<suffix>\..+)$")
_CHUNK_BYTES = 1 << 20


def write_folder(
    frame: DataFrame,
    batch: Batch,
    folder: Path,
    *,
    file_format: str,
    partition_by: Sequence[str],
    parallel: bool,
    batch_folders: bool,
    writer_options: dict[str, str],
    reached: Reached = unwatched,
) -> Written:
    publication = Publication(folder, batch.query, batch.sink, reached)
    before = publication.finish_or_prepare(batch.id)
    if before is not None:
        return Written(rows=before.rows, already_there=True)
    counted = Observation()
    frame = _one_file_each(frame, partition_by) if not (parallel or batch_folders) else frame
    writer = frame.observe(counted, sql.count(sql.lit(1)).alias("rows")).write.format(file_format)
    if partition_by:
        writer = writer.partitionBy(*partition_by)
    own_folder = f"batch={publication.writer}-{batch.id:010d}"
    target = publication.staged / own_folder if batch_folders else publication.staged
    writer.options(**writer_options).save(spark_path(target))
    rows = int(counted.get["rows"])
    moves: list[Move] = []
    if rows and batch_folders:
        _drop_what_is_not_data(target)
        moves = [Move(own_folder, own_folder)]
    elif rows:
        moves = list(_moves(publication, batch.id))
    publication.publish(batch.id, rows, moves)
    return Written(rows=rows)


def _one_file_each(frame: DataFrame, partition_by: Sequence[str]) -> DataFrame:
    """One file for the batch, or for each of its folders. A shuffle keeps what comes before it parallel."""
    return frame.repartition(*partition_by) if partition_by else frame.repartition(1)


def _data_files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if path.is_file() and not any(part.startswith(("_", ".")) for part in inside.parts):
            yield path


def _moves(publication: Publication, batch: int) -> Iterator[Move]:
    for number, path in enumerate(_data_files(publication.staged)):
        inside = path.relative_to(publication.staged)
        found = _SPARK_NAME.match(path.name)
        suffix = found["suffix"] if found else "".join(path.suffixes)
        name = f"part-{publication.writer}-{batch:010d}-{number:05d}{suffix}"
        yield Move(staged=str(inside), place=str(inside.with_name(name)))


def _drop_what_is_not_data(folder: Path) -> None:
    keep = set(_data_files(folder))
    for path in [path for path in folder.rglob("*") if path.is_file() and path not in keep]:
        path.unlink()


class _Appended(msgspec.Struct, frozen=True):
    batch: int
    start: int
    """The file's length before the batch: a replay goes back there."""
    rows: int | None
    """None until the whole batch is in the file."""


def append_lines(
    frame: DataFrame,
    batch: Batch,
    path: Path,
    *,
    file_format: str,
    writer_options: dict[str, str],
    reached: Reached = unwatched,
) -> Written:
    """Append a batch to one file, in the frame's order. The file belongs to this sink: nobody else may append.

    The file's length is noted before the first line and a replay cuts the file there, so a crash in the middle leaves
    no line twice. A reader that follows the file may have seen the lines that are cut and come again.
    """
    home = path.with_name(f".{path.name}.ottla")
    home.mkdir(parents=True, exist_ok=True)
    note = home / f"{writer_id(batch.query, batch.sink)}.json"
    known = read_note(note, _Appended)
    if known is not None and known.rows is not None and batch.id <= known.batch:
        return Written(rows=known.rows, already_there=True)
    lines = frame.select(line_column(frame, file_format, writer_options).alias("line"))
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        length = os.fstat(descriptor).st_size
        start = min(known.start, length) if known is not None and known.rows is None else length
        os.ftruncate(descriptor, start)
        replace_file(note, msgspec.json.encode(_Appended(batch=batch.id, start=start, rows=None)))
        reached("noted")
        os.lseek(descriptor, start, os.SEEK_SET)
        rows = _append(descriptor, lines, reached)
    finally:
        os.close(descriptor)
    flush(path)
    flush_folder(path.parent)
    reached("appended")
    replace_file(note, msgspec.json.encode(_Appended(batch=batch.id, start=start, rows=rows)))
    return Written(rows=rows)


def _append(descriptor: int, lines: DataFrame, reached: Reached) -> int:
    rows, waiting = 0, bytearray()
    for row in lines.toLocalIterator(prefetchPartitions=True):
        waiting += row.line.encode() if isinstance(row.line, str) else bytes(row.line or b"")
        waiting += b"\n"
        rows += 1
        if len(waiting) >= _CHUNK_BYTES:
            _write_all(descriptor, waiting)
            waiting.clear()
            reached("appended some")
    _write_all(descriptor, waiting)
    return rows


def _write_all(descriptor: int, content: bytearray) -> None:
    view = memoryview(content)
    try:
        while view:
            view = view[os.write(descriptor, view) :]
    finally:
        view.release()
