"""Files as a sink: what readers see, and that a batch which failed at any step comes out exact."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from pyspark.sql import DataFrame, SparkSession

from ottla.pipelines.connectors.base import Batch, Written
from ottla.pipelines.connectors.files.connector import FilesSink, FilesSinkOptions
from ottla.pipelines.connectors.files.sink import append_lines, write_folder
from ottla.pipelines.errors import ConnectorProblem

ROWS = [(1, "a"), (2, "b"), (3, None)]
SCHEMA = "id int, item string"


def sink(**options: Any) -> FilesSink:
    made = FilesSink(FilesSinkOptions(**options))
    assert made.problems() == []
    return made


def failing_at(step: str) -> Callable[[str], None]:
    def fail(reached: str) -> None:
        if reached == step:
            raise InterruptedError(step)

    return fail


def visible_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_formats(spark: SparkSession, tmp_path: Path, batch: Callable[..., Batch]) -> None:
    frame = spark.createDataFrame(ROWS, SCHEMA)
    assert sink(files="json").write(frame, batch()) == Written(rows=3)
    (path,) = visible_files(tmp_path / "json")
    assert sorted(path.read_text().splitlines()) == ['{"id":1,"item":"a"}', '{"id":2,"item":"b"}', '{"id":3}']
    sink(files="csv", format="csv", header=True, compression="gzip").write(frame, batch())
    assert visible_files(tmp_path / "csv")[0].name.endswith(".csv.gz")
    assert spark.read.csv(str(tmp_path / "csv"), header=True, inferSchema=True).count() == 3
    sink(files="text", format="text", partition_by=("id",)).write(frame, batch())
    assert [path.parent.name for path in visible_files(tmp_path / "text")] == ["id=1", "id=2", "id=3"]
    with pytest.raises(ConnectorProblem, match="Select one column as `value`"):
        sink(files="wrong", format="text").write(frame, batch())


def test_what_readers_see(spark: SparkSession, tmp_path: Path, batch: Callable[..., Batch]) -> None:
    """Spark, Arrow and a recursive pattern agree, and files carry the batch's id."""
    target = sink(files="lake", format="parquet", partition_by=("item",))
    target.write(spark.createDataFrame(ROWS, SCHEMA), batch(7))
    target.write(spark.createDataFrame([(4, "a")], SCHEMA), batch(8))
    assert sorted(map(tuple, spark.read.parquet(str(tmp_path / "lake")).collect())) == [*ROWS, (4, "a")]
    assert ds.dataset(tmp_path / "lake", partitioning="hive").count_rows() == 4
    files = [path.name for path in (tmp_path / "lake").glob("**/*")]
    assert len([name for name in files if name.endswith(".parquet")]) == 4
    assert sum("-0000000008-" in name for name in files) == 1


def test_one_file_or_many_or_a_folder(spark: SparkSession, tmp_path: Path, batch: Callable[..., Batch]) -> None:
    frame = spark.range(10).repartition(3)
    sink(files="one", format="parquet").write(frame, batch())
    sink(files="many", format="parquet", parallel=True).write(frame, batch())
    sink(files="folders", format="parquet", batch_folders=True).write(frame, batch())
    counts = [len(visible_files(tmp_path / name)) for name in ("one", "many", "folders")]
    assert counts == [1, 3, 3]
    assert spark.read.parquet(str(tmp_path / "folders")).select("id").distinct().count() == 10
    assert len(list((tmp_path / "folders").iterdir())) == 1


@pytest.mark.parametrize("file_format", ["json", "parquet"])
def test_an_empty_batch_writes_nothing(
    spark: SparkSession, tmp_path: Path, batch: Callable[..., Batch], file_format: str
) -> None:
    target = sink(files="out", format=file_format)
    assert target.write(spark.createDataFrame(ROWS, SCHEMA).where("id > 9"), batch(0)) == Written(rows=0)
    assert target.write(spark.createDataFrame([], SCHEMA), batch(1)) == Written(rows=0)
    assert visible_files(tmp_path / "out") == []


def folder_writer(options: dict[str, Any]) -> Callable[..., Written]:
    given: dict[str, Any] = {"file_format": "parquet", "partition_by": [], "parallel": True, "batch_folders": False}

    def write(frame: DataFrame, batch: Batch, reached: Callable[[str], None] | None = None) -> Written:
        more: dict[str, Any] = {} if reached is None else {"reached": reached}
        return write_folder(frame, batch, batch.base_dir / "out", writer_options={}, **(given | options | more))

    return write


FOLDERS = {"batch_folders": True, "parallel": False}


@pytest.mark.parametrize(
    ("step", "options"),
    [
        ("staged", {}),
        ("decided", {}),
        ("published one", {}),
        ("published", {}),
        ("closed", {}),
        ("decided", FOLDERS),
        ("published one", FOLDERS),
    ],
)
def test_a_batch_that_failed_at_any_step_comes_out_exact(
    spark: SparkSession, tmp_path: Path, batch: Callable[..., Batch], step: str, options: dict[str, Any]
) -> None:
    write = folder_writer(options)
    write(spark.range(0, 10, 1, 2), batch(0))
    with pytest.raises(InterruptedError):
        write(spark.range(10, 20, 1, 2), batch(1), failing_at(step))
    decided = step != "staged"
    seen = spark.read.parquet(str(tmp_path / "out")).select("id").count()
    assert seen == {"staged": 10, "decided": 10, "published one": 20 if options else 15}.get(step, 20)
    # what was decided stays as it was decided; what was not is written anew, even if it comes out differently
    again = write(spark.range(100, 107, 1, 3), batch(1))
    assert again == Written(rows=10 if decided else 7, already_there=decided)
    write(spark.range(20, 25), batch(2))
    found = sorted(row.id for row in spark.read.parquet(str(tmp_path / "out")).select("id").collect())
    assert found == [
        *range(10),
        *(range(10, 20) if decided else []),
        *range(20, 25),
        *([] if decided else range(100, 107)),
    ]
    leftovers = [path for path in (tmp_path / ".out.ottla").rglob("*") if path.name in {"staged", "decided.json"}]
    assert leftovers == []


def test_two_sinks_share_a_folder(spark: SparkSession, tmp_path: Path, batch: Callable[..., Batch]) -> None:
    target = sink(files="out")
    target.write(spark.range(3), batch(0, sink="one"))
    target.write(spark.range(3), batch(0, sink="two"))
    target.write(spark.range(3), batch(0, query="another"))
    assert spark.read.json(str(tmp_path / "out")).count() == 9


def test_lines_are_appended_in_order(spark: SparkSession, tmp_path: Path, batch: Callable[..., Batch]) -> None:
    target = sink(files="deep/log.jsonl", append=True)
    assert target.write(spark.range(0, 4, 1, 2), batch(0)) == Written(rows=4)
    assert target.write(spark.range(9), batch(0)) == Written(rows=4, already_there=True)
    target.write(spark.range(4, 6), batch(1))
    found = [json.loads(line)["id"] for line in (tmp_path / "deep" / "log.jsonl").read_text().splitlines()]
    assert found == [0, 1, 2, 3, 4, 5]
    text = sink(files="log.txt", append=True, format="text")
    text.write(spark.createDataFrame([("é",), (None,)], "value string").coalesce(1), batch(0))
    assert (tmp_path / "log.txt").read_text() == "é\n\n"
    rows = sink(files="log.csv", append=True, format="csv")
    rows.write(spark.createDataFrame([(1, "a,b")], SCHEMA), batch(0))
    assert (tmp_path / "log.csv").read_text() == '1,"a,b"\n'


@pytest.mark.parametrize("step", ["noted", "appended some", "appended"])
def test_lines_of_a_batch_that_failed_at_any_step_come_out_exact(
    spark: SparkSession, tmp_path: Path, batch: Callable[..., Batch], step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ottla.pipelines.connectors.files.sink._CHUNK_BYTES", 8)
    path = tmp_path / "log.jsonl"
    given: dict[str, Any] = {"file_format": "json", "writer_options": {}}
    append_lines(spark.range(0, 4), batch(0), path, **given)
    with pytest.raises(InterruptedError):
        append_lines(spark.range(4, 8), batch(1), path, **given, reached=failing_at(step))
    assert append_lines(spark.range(4, 8), batch(1), path, **given) == Written(rows=4)
    append_lines(spark.range(8, 9), batch(2), path, **given)
    assert sorted(json.loads(line)["id"] for line in path.read_text().splitlines()) == list(range(9))


def test_problems() -> None:
    options = FilesSinkOptions(
        files="out", format="parquet", append=True, partition_by=("a",), parallel=True, batch_folders=True, header=True
    )
    assert [problem.split(":")[0] for problem in FilesSink(options).problems()] == [
        "header",
        "append",
        "partition_by",
        "parallel",
        "batch_folders",
        "header",
        "parallel",
    ]
    assert FilesSink(FilesSinkOptions(files="")).problems() == ["files: name a folder or a file"]
