"""Objects behind the S3 API, on a real server of the run's own."""

import gzip
from collections.abc import Callable
from typing import Any

import pytest
from pyarrow import fs
from pyspark.sql import DataFrame, SparkSession

from ottla.pipelines.connectors.base import Batch, SourceContext, Written
from ottla.pipelines.connectors.objects.store import S3Access, Store, file_system
from ottla.pipelines.connectors.s3.connector import S3Sink, S3SinkOptions, S3Source, S3SourceOptions
from ottla.pipelines.connectors.s3.sink import write_objects
from ottla.pipelines.errors import ConnectorProblem, FatalFailure

ROWS = [(1, "a/b"), (2, None), (3, "c")]
SCHEMA = "id int, item string"


class Killed(Exception):
    pass


def objects(access: dict[str, Any], place: str) -> dict[str, bytes]:
    """Names under the place and what they hold, without the writer's notes."""
    system = file_system(S3Access(**access))
    infos = system.get_file_info(fs.FileSelector(place, recursive=True, allow_not_found=True))
    found = {}
    for info in infos:
        if info.type == fs.FileType.File and "/_ottla/" not in info.path:
            with system.open_input_stream(info.path, compression=None) as stream:
                found[info.path.removeprefix(place + "/")] = stream.readall()
    return found


def put(access: dict[str, Any], path: str, content: bytes) -> None:
    with file_system(S3Access(**access)).open_output_stream(path, compression=None) as stream:
        stream.write(content)


def sink(bucket: str, access: dict[str, Any], **options: Any) -> S3Sink:
    made = S3Sink(S3SinkOptions(s3=f"s3://{bucket}/out/", **access, **options))
    assert made.problems() == []
    return made


def source(bucket: str, access: dict[str, Any], prefix: str = "out", **options: Any) -> S3Source:
    made = S3Source(S3SourceOptions(s3=f"s3://{bucket}/{prefix}", **access, **options))
    assert made.problems() == []
    return made


def test_formats_and_names(
    spark: SparkSession, bucket: str, access: dict[str, Any], batch: Callable[..., Batch]
) -> None:
    frame = spark.createDataFrame(ROWS, SCHEMA)
    assert sink(bucket, access).write(frame, batch(5)) == Written(rows=3)
    ((name, content),) = objects(access, f"{bucket}/out").items()
    assert "-0000000005-00000" in name
    assert sorted(content.splitlines()) == [b'{"id":1,"item":"a/b"}', b'{"id":2}', b'{"id":3,"item":"c"}']
    sink(bucket, access, format="csv", compression="gzip").write(frame, batch(6))
    packed = [content for name, content in objects(access, f"{bucket}/out").items() if name.endswith(".csv.gz")]
    assert sorted(gzip.decompress(packed[0]).splitlines()) == [b"1,a/b", b"2,", b"3,c"]
    assert sink(bucket, access).write(frame.where("false"), batch(7)) == Written(rows=0)
    assert len(objects(access, f"{bucket}/out")) == 2
    with pytest.raises(ConnectorProblem, match="Select one column as `value`"):
        sink(bucket, access, format="text").write(frame, batch(8))


def test_parquet_with_folders_there_and_back(
    spark: SparkSession,
    bucket: str,
    access: dict[str, Any],
    batch: Callable[..., Batch],
    source_context: Callable[..., SourceContext],
    drain: Callable[..., list[Any]],
) -> None:
    target = sink(bucket, access, format="parquet", partition_by=("item",))
    target.write(spark.createDataFrame(ROWS, SCHEMA), batch(0))
    names = sorted(name.split("/")[0] for name in objects(access, f"{bucket}/out"))
    assert names == ["item=__HIVE_DEFAULT_PARTITION__", "item=a%2Fb", "item=c"]
    parquet = source(bucket, access, format="parquet")
    assert sorted(map(tuple, parquet.table(source_context()).collect())) == ROWS
    frame = parquet.stream(source_context())
    assert sorted(map(tuple, drain(frame))) == ROWS
    target.write(spark.createDataFrame([(4, "c")], SCHEMA), batch(1))
    assert [tuple(row) for row in drain(frame)] == [(4, "c")]


def test_new_objects_once_each(
    bucket: str,
    access: dict[str, Any],
    source_context: Callable[..., SourceContext],
    drain: Callable[..., list[Any]],
) -> None:
    frame = source(bucket, access, "in", pattern="*.txt*", max_files=1).stream(source_context())
    assert drain(frame) == []
    put(access, f"{bucket}/in/b.txt", b"b1\nb2\n")
    put(access, f"{bucket}/in/a.txt.gz", gzip.compress(b"a1\n"))
    put(access, f"{bucket}/in/_hidden/c.txt", b"no\n")
    put(access, f"{bucket}/in/c.json", b"no\n")
    sizes: list[int] = []
    rows = drain(frame, batches=sizes)
    assert sorted(bytes(row.value) for row in rows) == [b"a1", b"b1", b"b2"]
    assert sorted(sizes) == [1, 2]
    put(access, f"{bucket}/in/0-early-name.txt", b"late\n")
    assert [bytes(row.value) for row in drain(frame)] == [b"late"]


@pytest.mark.parametrize("step", ["begun", "uploaded", "noted"])
def test_a_batch_that_failed_at_any_step_comes_out_exact(
    spark: SparkSession, bucket: str, access: dict[str, Any], batch: Callable[..., Batch], step: str
) -> None:
    store = Store(root=f"{bucket}/out", s3=S3Access(**access))

    def write(frame: DataFrame, number: int, fail_at: str | None = None) -> Written:
        def reached(now: str) -> None:
            if now == fail_at:
                raise Killed(now)

        given: dict[str, Any] = {"file_format": "text", "partition_by": (), "parallel": True, "compression": None}
        return write_objects(
            frame.selectExpr("CAST(id AS STRING) AS value"), batch(number), store, **given, reached=reached
        )

    write(spark.range(0, 4, 1, 2), 0)
    with pytest.raises(Killed):
        write(spark.range(4, 8, 1, 3), 1, fail_at=step)
    done = step == "noted"
    assert write(spark.range(4, 8, 1, 2), 1) == Written(rows=4, already_there=done)
    write(spark.range(8, 9, 1, 1), 2)
    lines = [int(line) for content in objects(access, f"{bucket}/out").values() for line in content.split()]
    assert sorted(lines) == list(range(9))


def test_what_is_wrong_is_said_in_words(
    spark: SparkSession,
    access: dict[str, Any],
    bucket: str,
    batch: Callable[..., Batch],
    source_context: Callable[..., SourceContext],
) -> None:
    with pytest.raises(FatalFailure, match="no such bucket"):
        sink("there-is-none", access).write(spark.range(1), batch())
    with pytest.raises(Exception, match="there is no bucket there-is-none"):
        source("there-is-none", access).table(source_context()).collect()
    with pytest.raises(ConnectorProblem, match=r"the endpoint cannot be reached\. Is `endpoint` right") as problem:
        sink("b", {**access, "endpoint": "http://127.0.0.1:1"}).write(spark.range(1), batch())
    assert "geheim" not in str(problem.value)
    with pytest.raises(FatalFailure, match="to learn the columns from; give a `schema`"):
        source(bucket, access, format="parquet").stream(source_context())


def test_problems_and_secrets(access: dict[str, Any]) -> None:
    assert "geheim" not in repr(S3SinkOptions(s3="s3://b", **access))
    options = S3SinkOptions(s3="b/x", endpoint="host:1", access_key="a", compression="zstd", virtual_hosts=True)
    assert S3Sink(options).problems() == [
        "s3: write bucket and prefix as `s3://bucket/prefix`",
        "endpoint: write it with its scheme, `http://host:port` or `https://host`",
        "access_key: goes together with `secret_key`; give both or none",
        "compression: json takes gzip",
    ]
    wrong = S3SourceOptions(s3="s3://b", session_token="t", schema="a INT", virtual_hosts=True)
    assert S3Source(wrong).problems() == [
        "session_token: goes with `access_key` and `secret_key`",
        "virtual_hosts: only goes with `endpoint`",
        "schema: goes with a format",
    ]
