"""SQLite both ways."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ottla.pipelines.connectors.base import Batch, SourceContext, Written
from ottla.pipelines.connectors.sqlite.connector import (
    SqliteSink,
    SqliteSinkOptions,
    SqliteSource,
    SqliteSourceOptions,
    write_batch,
)
from ottla.pipelines.errors import ConnectorProblem, FatalFailure


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


def run(path: Path, statement: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection, connection:
        return connection.execute(statement).fetchall()


def sink(**options: Any) -> SqliteSink:
    made = SqliteSink(SqliteSinkOptions(sqlite="shop.db", table="orders", **options))
    assert made.problems() == []
    return made


def source(**options: Any) -> SqliteSource:
    made = SqliteSource(SqliteSourceOptions(sqlite="shop.db", **options))
    assert made.problems() == []
    return made


def test_there_and_back_with_types(
    spark: SparkSession, path: Path, batch: Callable[..., Batch], source_context: Callable[..., SourceContext]
) -> None:
    frame = spark.sql(
        "SELECT 1 AS id, 1.5D AS ratio, CAST(2.25 AS DECIMAL(10,2)) AS price, true AS ok, 'é' AS text,"
        " X'00ff' AS bytes, DATE'2026-01-02' AS day, TIMESTAMP'2026-01-02 03:04:05.678901' AS at, array(1, 2) AS many,"
        " CAST(NULL AS STRING) AS nothing"
    )
    assert sink(create=True).write(frame, batch()) == Written(rows=1)
    (row,) = run(path, "SELECT * FROM orders")
    assert row == (
        1, 1.5, "2.25", 1, "é", b"\x00\xff", "2026-01-02", "2026-01-02 03:04:05.678901", "[1,2]", None,
    )  # fmt: skip
    plain = source(table="orders").table(source_context())
    assert [field.dataType.simpleString() for field in plain.schema][:6] == [
        "bigint", "double", "string", "bigint", "string", "binary",
    ]  # fmt: skip
    typed = source(table="orders", schema="id INT, price DECIMAL(10,2), ok BOOLEAN, at TIMESTAMP, bytes BINARY")
    back = typed.table(source_context())
    assert back.exceptAll(frame.select("id", "price", "ok", "at", "bytes")).count() == 0
    (found,) = source(query="SELECT count(*) AS n FROM orders", schema="n INT").table(source_context()).collect()
    assert found.n == 1


def test_modes_and_batches(spark: SparkSession, path: Path, batch: Callable[..., Batch]) -> None:
    upsert = sink(mode="upsert", keys=("id",), create=True)
    upsert.write(spark.createDataFrame([(1, "old"), (2, "kept")], "id int, name string"), batch(0))
    news = spark.createDataFrame([(1, "x"), (3, "new"), (1, "last")], "id int, name string").coalesce(1)
    assert upsert.write(news, batch(1)) == Written(rows=3)
    assert upsert.write(news.selectExpr("id", "'again' AS name"), batch(1)).already_there
    assert run(path, "SELECT * FROM orders ORDER BY id") == [(1, "last"), (2, "kept"), (3, "new")]
    upsert.write(spark.createDataFrame([(3,)], "id int"), batch(2))
    assert run(path, "SELECT name FROM orders WHERE id = 3") == [("new",)]
    assert run(path, "SELECT batch_id FROM _ottla_batches") == [(2,)]


@pytest.mark.parametrize("step", ["inserted some", "inserted", "committed"])
def test_a_batch_that_failed_at_any_step_comes_out_exact(
    spark: SparkSession, path: Path, batch: Callable[..., Batch], step: str
) -> None:
    options = SqliteSinkOptions(sqlite="shop.db", table="orders", create=True)

    def fail(reached: str) -> None:
        if reached == step:
            raise InterruptedError(step)

    with pytest.raises(InterruptedError):
        write_batch(spark.range(10), batch(0), str(path), options, fail)
    assert write_batch(spark.range(10), batch(0), str(path), options).already_there == (step == "committed")
    assert run(path, "SELECT count(*), count(DISTINCT id) FROM orders") == [(10, 10)]


def test_a_stream_follows_an_id(
    path: Path, source_context: Callable[..., SourceContext], drain: Callable[..., list[Any]]
) -> None:
    run(path, "CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT)")
    frame = source(table="items", increasing="id").stream(source_context(max_records=4))
    assert drain(frame) == []
    run(
        path,
        "INSERT INTO items WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 10)"
        " SELECT i, 'n' || i FROM n",
    )
    sizes: list[int] = []
    assert [row.id for row in drain(frame, batches=sizes)] == list(range(1, 11))
    assert sizes == [4, 4, 2]
    run(path, "INSERT INTO items VALUES (11, 'later')")
    assert [row.name for row in drain(frame)] == ["later"]


def test_a_stream_follows_the_time_of_the_last_change(
    path: Path, source_context: Callable[..., SourceContext], drain: Callable[..., list[Any]]
) -> None:
    run(path, "CREATE TABLE items (id INTEGER, changed TEXT)")
    run(
        path,
        "INSERT INTO items VALUES (1, '2026-01-01 00:00:00'), (2, '2026-01-01 00:00:00'),"
        " (3, '2026-01-01 00:00:01'), (4, strftime('%Y-%m-%d %H:%M:%f', 'now'))",
    )
    options = {"table": "items", "updated": "changed", "increasing": "id", "delay": "1 hour"}
    frame = source(**options).stream(source_context(max_records=1))
    assert [row.id for row in drain(frame)] == [1, 2, 3]
    run(path, "UPDATE items SET changed = '2026-01-02 00:00:00' WHERE id = 1")
    assert [row.id for row in drain(frame)] == [1]


def test_what_is_wrong_is_said_in_words(
    spark: SparkSession, path: Path, batch: Callable[..., Batch], source_context: Callable[..., SourceContext]
) -> None:
    with pytest.raises(FatalFailure, match=r"no such table: orders\. Create the table, or set `create: true`"):
        sink().write(spark.range(1), batch())
    run(path, "CREATE TABLE orders (id INTEGER NOT NULL)")
    with pytest.raises(FatalFailure, match=r"has no column named extra\. Select only columns"):
        sink().write(spark.sql("SELECT 1 AS id, 2 AS extra"), batch())
    with pytest.raises(FatalFailure, match="upsert needs a primary key or unique index"):
        sink(mode="upsert", keys=("id",)).write(spark.range(1), batch())
    with pytest.raises(FatalFailure, match=r"NOT NULL constraint failed: orders\.id"):
        sink().write(spark.sql("SELECT CAST(NULL AS INT) AS id"), batch())
    with pytest.raises(ConnectorProblem, match="follows a column that grows"):
        source(table="orders").stream(source_context())
    run(path, "INSERT INTO orders VALUES ('text')")
    with pytest.raises(Exception, match="column id holds a value that is no int64"):
        source(table="orders").table(source_context()).collect()
    missing = SqliteSource(SqliteSourceOptions(sqlite="none/none.db", table="t"))
    with pytest.raises(FatalFailure, match="cannot be opened: is the path right"):
        missing.table(source_context())


def test_problems() -> None:
    assert SqliteSource(SqliteSourceOptions(sqlite="", delay="x", table="a", query="b")).problems() == [
        "sqlite: name a folder or a file",
        "delay: `x` is not a duration: write `10 seconds`, `1 minute` or `500 ms`",
        "table: name a `table` or write a `query`, one of the two",
        "delay: only goes with `updated`",
    ]
    assert len(SqliteSink(SqliteSinkOptions(sqlite="a", table="t", mode="upsert")).problems()) == 1
    assert len(SqliteSink(SqliteSinkOptions(sqlite="a", table="t", keys=("a",))).problems()) == 1
