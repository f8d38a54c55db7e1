"""Following one file: what is read when, decided without Spark; then the same on Spark."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import StructType

from ottla.pipelines.connectors.base import RECORD, SourceContext
from ottla.pipelines.connectors.files.connector import FilesSource, FilesSourceOptions
from ottla.pipelines.connectors.files.tail import FilePosition, Tailing, TailReader, end_of_lines, next_end
from ottla.pipelines.errors import FatalFailure


class Reader:
    """Reads as Spark would: an end, then what lies before it."""

    def __init__(self, path: Path, max_rows: int | None = None) -> None:
        self.path = path
        self.at = FilePosition()
        self.max_rows = max_rows
        self.reader = TailReader(Tailing(path=str(path)), StructType(RECORD.fields))

    def plan(self) -> list[Any]:
        end = next_end(str(self.path), self.at, self.max_rows)
        before = {"inode": self.at.inode, "generation": self.at.generation, "position": self.at.position}
        after = {"inode": end.inode, "generation": end.generation, "position": end.position}
        self.at = end
        return list(self.reader.partitions(before, after))

    def read(self, planned: list[Any]) -> list[bytes]:
        return [row["value"] for part in planned for batch in self.reader.read(part) for row in batch.to_pylist()]

    def lines(self) -> list[bytes]:
        return self.read(self.plan())


def append(path: Path, text: bytes) -> None:
    with open(path, "ab") as file:
        file.write(text)


def test_lines_as_they_are_appended(tmp_path: Path) -> None:
    path = tmp_path / "log"
    reader = Reader(path)
    assert reader.lines() == []  # it is not there yet
    append(path, b"one\ntw")
    assert reader.lines() == [b"one"]
    assert reader.lines() == []
    append(path, b"o\r\n\nthree\r")
    assert reader.lines() == [b"two", b""]
    append(path, b"\n")
    assert reader.lines() == [b"three"]


def test_at_most_so_many_lines(tmp_path: Path) -> None:
    path = tmp_path / "log"
    append(path, b"a\nb\nc\nd\ne")
    reader = Reader(path, max_rows=3)
    assert [reader.lines(), reader.lines(), reader.lines()] == [[b"a", b"b", b"c"], [b"d"], []]


def test_a_file_that_was_rotated_is_read_to_its_end_and_then_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "log"
    append(path, b"a\nb\n")
    reader = Reader(path)
    assert reader.lines() == [b"a", b"b"]
    append(path, b"c\nd")
    os.rename(path, tmp_path / "log.1")
    append(path, b"e\n")
    assert reader.lines() == [b"c", b"d"]
    assert reader.lines() == [b"e"]
    assert reader.at.generation == 1


def test_a_file_that_became_shorter_is_read_from_its_start(tmp_path: Path) -> None:
    path = tmp_path / "log"
    append(path, b"a\nb\n")
    reader = Reader(path)
    assert reader.lines() == [b"a", b"b"]
    os.truncate(path, 0)
    assert reader.lines() == []
    append(path, b"c\n")
    assert reader.lines() == [b"c"]
    append(path, b"d\n")
    assert reader.lines() == [b"d"]


def test_what_is_gone_before_it_is_read_is_told(tmp_path: Path) -> None:
    path = tmp_path / "log"
    append(path, b"a\nb\n")
    reader = Reader(path)
    planned = reader.plan()
    os.truncate(path, 2)
    with pytest.raises(FatalFailure, match="2 bytes that were there are gone"):
        reader.read(planned)
    path.unlink()
    with pytest.raises(FatalFailure, match="was replaced before it was read"):
        reader.read(planned)


@given(st.lists(st.sampled_from([b"a", b"bb", b"\n", b"\r", b"\r\n"]), max_size=40).map(b"".join), st.integers(1, 5))
def test_an_end_is_always_the_end_of_a_line(tmp_path_factory: pytest.TempPathFactory, text: bytes, rows: int) -> None:
    path = tmp_path_factory.mktemp("ends") / "file"
    path.write_bytes(text)
    whole = end_of_lines(str(path), 0, len(text), None, final=False)
    few = end_of_lines(str(path), 0, len(text), rows, final=False)
    assert text[:few].splitlines() == text[:whole].splitlines()[:rows]
    assert whole == 0 or text[whole - 1 : whole] in (b"\n", b"\r")


def test_on_spark_with_resuming(
    tmp_path: Path, source_context: Callable[..., SourceContext], drain: Callable[..., list[Any]]
) -> None:
    path = tmp_path / "log.txt"
    source = FilesSource(FilesSourceOptions(files="log.txt", tail=True))
    assert source.problems() == []
    frame = source.stream(source_context(max_records=2))
    append(path, b"a\nb\nc\npart")
    sizes: list[int] = []
    rows = drain(frame, batches=sizes)
    assert [(bytes(row.value), row.offset, row.topic) for row in rows] == [
        (b"a", 0, str(path)),
        (b"b", 2, str(path)),
        (b"c", 4, str(path)),
    ]
    assert sizes == [2, 1]
    append(path, b"ial\n")
    assert [bytes(row.value) for row in drain(frame)] == [b"partial"]
    assert [bytes(row.value) for row in source.table(source_context()).collect()] == [b"a", b"b", b"c", b"partial"]


def test_tail_refuses_what_does_not_go_with_it() -> None:
    source = FilesSource(FilesSourceOptions(files="x", tail=True, pattern="*.log", header=True, max_files=2))
    assert [problem.split(":")[0] for problem in source.problems()] == ["pattern", "max_files", "header"]
