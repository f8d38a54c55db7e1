"""Following one growing file, as Kafka's file source does: each line is a record as soon as its end is written.

An offset is a position in bytes, with the file's inode and a generation that counts how often the file was replaced. A
line without an end waits. Where Kafka's connector loses lines without a word, this one goes on:

- a file that is not there yet is waited for;
- a file that was renamed and made anew (rotation) is read to its end under its new name, if that is in the same folder,
  the last line too, and then the new one from its start;
- a file that became shorter (truncation) is read from its start;
- lines that were planned but are gone when they are read stop the query with a message.
"""

import os
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from ottla.pipelines.connectors.objects.lines import complete_until, cut, cut_stream
from ottla.pipelines.connectors.objects.source import record_batch
from ottla.pipelines.connectors.options import from_spark
from ottla.pipelines.errors import FatalFailure

BLOCK_BYTES = 1 << 20


class Tailing(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    max_rows: int | None = None


class FilePosition(msgspec.Struct, frozen=True, kw_only=True):
    """A place in the file's history."""

    inode: int = 0
    """0: the file has not been seen yet."""
    generation: int = 0
    position: int = 0


class ByteRange(InputPartition):
    def __init__(self, inode: int, start: int, end: int) -> None:
        super().__init__((inode, start, end))
        self.inode = inode
        self.start = start
        self.end = end


class TailDataSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "ottla_tail"

    def streamReader(self, schema: StructType) -> "TailReader":  # noqa: N802
        return TailReader(from_spark(self.options, Tailing), schema)


class TailReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, tailing: Tailing, schema: StructType) -> None:
        self._tailing = tailing
        self._schema = schema
        self._bound: tuple[int, int] | None = None
        """Inode and size of the file when a run over what is there now began."""

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return msgspec.to_builtins(FilePosition())  # type: ignore[no-any-return]

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self._tailing.max_rows) if self._tailing.max_rows else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._bound = _inode_and_size(self._tailing.path) or (0, 0)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        rows_max = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        end = next_end(self._tailing.path, msgspec.convert(start, FilePosition), rows_max, self._bound)
        return msgspec.to_builtins(end)  # type: ignore[no-any-return]

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        before, after = msgspec.convert(start, FilePosition), msgspec.convert(end, FilePosition)
        first = before.position if before.generation == after.generation else 0
        return [ByteRange(after.inode, first, after.position)] if after.position > first else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, ByteRange)
        arrow = to_arrow_schema(self._schema, timezone="UTC", prefers_large_types=False)
        path = self._tailing.path
        for content, starts in cut_stream(_stretch(path, partition), partition.start):
            yield record_batch(content, starts, path, None, arrow)


def next_end(
    path: str, start: FilePosition, rows_max: int | None, bound: tuple[int, int] | None = None
) -> FilePosition:
    """How far a batch that begins at `start` may read now; `start` itself if there is nothing complete."""
    now = _inode_and_size(path)
    if start.inode and (now is None or now[0] != start.inode):
        rotated = _path_of_inode(path, start.inode)
        rest = os.stat(rotated).st_size if rotated else 0
        if rotated and rest > start.position:
            position = end_of_lines(rotated, start.position, rest, rows_max, final=True)
            return FilePosition(inode=start.inode, generation=start.generation, position=position)
    if now is None:
        return start
    inode, size = now
    begin = start
    if inode != start.inode:
        begin = FilePosition(inode=inode, generation=start.generation + (1 if start.inode else 0))
    elif size < start.position:
        begin = FilePosition(inode=inode, generation=start.generation + 1)
    if bound is not None:
        size = min(size, bound[1]) if inode == bound[0] else 0
    if size <= begin.position:
        return start
    position = end_of_lines(path, begin.position, size, rows_max, final=False)
    return (
        start
        if position == begin.position
        else FilePosition(inode=inode, generation=begin.generation, position=position)
    )


def _inode_and_size(path: str) -> tuple[int, int] | None:
    try:
        state = os.stat(path)
    except FileNotFoundError:
        return None
    return state.st_ino, state.st_size


def _path_of_inode(path: str, inode: int) -> str | None:
    """The file itself, or what it was renamed to within its folder."""
    folder = os.path.dirname(path)
    try:
        entries = list(os.scandir(folder))
    except FileNotFoundError:
        return None
    for entry in entries:
        if entry.is_file() and entry.inode() == inode:
            return entry.path
    return None


def end_of_lines(path: str, start: int, size: int, rows_max: int | None, *, final: bool) -> int:
    """Where the last complete line in [start, size) ends, or the one that fills `rows_max`."""
    if rows_max is None:
        return size if final else _last_end(path, start, size)
    rows, position, rest = 0, start, b""
    with open(path, "rb") as file:
        file.seek(start)
        while rows < rows_max:
            block = file.read(min(BLOCK_BYTES, size - position - len(rest)))
            lines = cut(rest + block, final=final and not block)
            if rows + len(lines.content) > rows_max:
                return position + int(lines.starts[rows_max - rows])
            rows += len(lines.content)
            position += lines.used
            rest = (rest + block)[lines.used :]
            if not block:
                break
    return position


def _last_end(path: str, start: int, size: int) -> int:
    """Look for a line's end backwards: a long file is not read for it."""
    end = size
    with open(path, "rb") as file:
        while end > start:
            begin = max(start, end - BLOCK_BYTES)
            file.seek(begin)
            block = file.read(end - begin)
            found = complete_until(block) if end == size else 1 + max(block.rfind(b"\n"), block.rfind(b"\r"))
            if found:
                return begin + found
            end = begin
    return start


def _stretch(path: str, stretch: ByteRange) -> Iterator[bytes]:
    place = _path_of_inode(path, stretch.inode)
    if place is None:
        raise FatalFailure(f"{path} was replaced before it was read; its old content is not in its folder any more")
    with open(place, "rb") as file:
        file.seek(stretch.start)
        left = stretch.end - stretch.start
        while left:
            block = file.read(min(BLOCK_BYTES, left))
            if not block:
                raise FatalFailure(f"{path} became shorter while it was read: {left} bytes that were there are gone")
            left -= len(block)
            yield block
