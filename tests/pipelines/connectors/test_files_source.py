"""Folders as a source: new files as they appear, each once, as records or columns."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ottla.pipelines.connectors.base import Batch, SourceContext
from ottla.pipelines.connectors.files.connector import FilesSink, FilesSinkOptions, FilesSource, FilesSourceOptions
from ottla.pipelines.connectors.objects.found_log import FoundLog
from ottla.pipelines.connectors.objects.source import folder_values
from ottla.pipelines.connectors.objects.store import StoredObject
from ottla.pipelines.errors import FatalFailure


def source(**options: Any) -> FilesSource:
    made = FilesSource(FilesSourceOptions(**options))
    assert made.problems() == []
    return made


def test_new_files_of_a_folder_once_each(
    tmp_path: Path, source_context: Callable[..., SourceContext], drain: Callable[..., list[Any]]
) -> None:
    folder = tmp_path / "in"
    frame = source(files="in", pattern="*.csv*", header=True, max_files=1).stream(source_context())
    assert drain(frame) == []  # the folder may come later
    (folder / "deep").mkdir(parents=True)
    (folder / "a.csv").write_text("id,name\n1,ann\n2,bob")
    (folder / "deep" / "b.csv.gz").write_bytes(gzip.compress(b"id,name\n3,cleo\n"))
    (folder / "_hidden.csv").write_text("no\n")
    (folder / "other.txt").write_text("no\n")
    sizes: list[int] = []
    rows = drain(frame, batches=sizes)
    assert sorted(bytes(row.value) for row in rows) == [b"1,ann", b"2,bob", b"3,cleo"]
    assert sorted(sizes) == [1, 2]
    assert {row.offset for row in rows if row.topic.endswith("a.csv")} == {8, 14}
    assert all(row.timestamp is not None and row.key is None for row in rows)
    (folder / "a.csv").write_text("id,name\n1,changed\n")  # a file that was read stays read
    (folder / "c.csv").write_text("id,name\n")
    assert drain(frame) == []


def test_a_table_of_files(tmp_path: Path, source_context: Callable[..., SourceContext]) -> None:
    (tmp_path / "one.txt").write_text("a\n\nb\n")
    rows = source(files="one.txt").table(source_context()).orderBy("offset").collect()
    assert [bytes(row.value) for row in rows] == [b"a", b"", b"b"]
    assert source(files="nothing").table(source_context()).count() == 0


def test_parquet_gives_columns_also_those_of_folders(
    spark: SparkSession,
    tmp_path: Path,
    source_context: Callable[..., SourceContext],
    drain: Callable[..., list[Any]],
    batch: Callable[..., Batch],
) -> None:
    with pytest.raises(FatalFailure, match="no Parquet file in lake to learn the columns from; give a `schema`"):
        source(files="lake", format="parquet").stream(source_context())
    sink = FilesSink(FilesSinkOptions(files="lake", format="parquet", partition_by=("item",)))
    given = [(1, "a/b"), (2, None), (3, "c d")]
    sink.write(spark.createDataFrame(given, "id int, item string"), batch(0))
    frame = source(files="lake", format="parquet").stream(source_context())
    assert sorted(map(tuple, drain(frame))) == given
    sink.write(spark.createDataFrame([(4, "a/b")], "id int, item string"), batch(1))
    assert [tuple(row) for row in drain(frame)] == [(4, "a/b")]
    rows = source(files="lake", format="parquet", schema="item STRING, id BIGINT").table(source_context())
    assert rows.columns == ["item", "id"]
    assert rows.count() == 4


def test_a_file_that_is_gone_stops_the_query(
    tmp_path: Path, source_context: Callable[..., SourceContext], drain: Callable[..., list[Any]]
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("a\n")
    context = source_context()
    FoundLog(context.state_dir / "found" / "in.jsonl").extend(
        lambda: [StoredObject(str(tmp_path / "in" / "lost.txt"), 3, 0)]
    )
    with pytest.raises(Exception, match=r"lost\.txt is gone: it was deleted after it was found"):
        drain(source(files="in").stream(context))


def entries(*names: str) -> list[StoredObject]:
    return [StoredObject(name, 1, 0) for name in names]


def test_what_was_found_keeps_its_place(tmp_path: Path) -> None:
    path = tmp_path / "found.jsonl"
    log = FoundLog(path)
    assert log.extend(lambda: entries("b", "a")) == 2
    assert log.extend(lambda: entries("a", "b")) == 2
    other = FoundLog(path)  # another query with the same source
    assert other.extend(lambda: entries("0", "a")) == 3
    assert log.extend(lambda: entries("1")) == 4
    assert [found.path for found in FoundLog(path).between(1, 4)] == ["a", "0", "1"]


def test_a_line_that_a_crash_cut_off_is_written_again(tmp_path: Path) -> None:
    path = tmp_path / "found.jsonl"
    FoundLog(path).extend(lambda: entries("a", "b"))
    path.write_bytes(path.read_bytes()[:-3])
    log = FoundLog(path)
    assert log.extend(lambda: entries("a", "b", "c")) == 3
    assert [found.path for found in FoundLog(path).between(0, 3)] == ["a", "b", "c"]


def test_a_lost_list_is_told(tmp_path: Path) -> None:
    with pytest.raises(FatalFailure, match="shorter than the checkpoint says: it was lost"):
        FoundLog(tmp_path / "none").between(0, 1)


def test_folders_stand_for_columns() -> None:
    assert folder_values("/a=1/b=x%2Fy/part-0") == {"a": "1", "b": "x/y"}
    assert folder_values("/a=__HIVE_DEFAULT_PARTITION__/p") == {"a": None}


def test_problems() -> None:
    assert FilesSource(FilesSourceOptions(files="s3://b/x", schema="a INT")).problems() == [
        "files: for object storage use `s3: s3://b/x` instead",
        "schema: goes with a format",
    ]
    assert FilesSource(FilesSourceOptions(files="hdfs://x", format="parquet", header=True)).problems() == [
        "files: `hdfs:` is not served; use a path that every Spark worker sees, or `s3:`",
        "header: Parquet has none",
    ]
