"""The PostgreSQL sink on a real server: types, modes, exactly once, and what it says when something is wrong."""

import datetime
import decimal
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from pyspark.sql import SparkSession

from ottla.pipelines.connectors.base import Batch, Written
from ottla.pipelines.connectors.postgres.connector import PostgresSink, PostgresSinkOptions
from ottla.pipelines.connectors.postgres.server import Server
from ottla.pipelines.connectors.postgres.sink import BATCHES, Target, write_batch
from ottla.pipelines.errors import ConnectorProblem, FatalFailure


def rows_of(url: str, statement: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(statement).fetchall()


def execute(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement)


@pytest.fixture
def table(unique: Callable[[str], str]) -> str:
    return unique("orders").replace("-", "_")


def sink(url: str, table: str, **options: Any) -> PostgresSink:
    made = PostgresSink(PostgresSinkOptions(postgres=url, table=table, **options))
    assert made.problems() == []
    return made


def stages_left(url: str) -> int:
    return int(rows_of(url, "SELECT count(*) FROM pg_class WHERE starts_with(relname, '_ottla_stage_')")[0][0])


def test_insert_creates_the_table_and_keeps_every_type(
    spark: SparkSession, postgres_url: str, table: str, batch: Callable[..., Batch]
) -> None:
    frame = spark.sql(
        "SELECT 1 AS id, CAST(7 AS SMALLINT) AS small, 1.5D AS ratio, CAST(2.25 AS DECIMAL(10,2)) AS price, true AS ok,"
        " 'a,\"b\"\nc' AS text, X'00ff' AS bytes, DATE'2026-01-02' AS day, TIMESTAMP'2026-01-02 03:04:05.678901' AS at,"
        " array(1, 2) AS many, named_struct('x', 1, 'y', CAST(NULL AS STRING)) AS nested, map('k', 2) AS pairs,"
        " '' AS empty, CAST(NULL AS STRING) AS nothing"
    )
    for number in range(2):  # by tasks, then by the driver
        assert sink(postgres_url, table, create=True).write(frame, batch(number)) == Written(rows=1)
    row, same = rows_of(postgres_url, f"SELECT * FROM {table}")
    assert row == same
    at = datetime.datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=datetime.UTC)
    assert row == (
        1,
        7,
        1.5,
        decimal.Decimal("2.25"),
        True,
        'a,"b"\nc',
        b"\x00\xff",
        at.date(),
        at,
        [1, 2],
        {"x": 1, "y": None},
        {"k": 2},
        "",
        None,
    )
    assert stages_left(postgres_url) == 0


def test_arrays_go_into_columns_of_arrays(
    spark: SparkSession, postgres_url: str, table: str, batch: Callable[..., Batch]
) -> None:
    execute(postgres_url, f"CREATE TABLE {table} (id int, tags text[], sizes int[])")
    frame = spark.sql("SELECT 1 AS id, array('a\"b', 'c\\nd', NULL) AS tags, CAST(NULL AS ARRAY<INT>) AS sizes")
    for number in range(2):  # by tasks, then by the driver
        sink(postgres_url, table).write(frame, batch(number))
    assert rows_of(postgres_url, f"SELECT * FROM {table}") == [(1, ['a"b', "c\nd", None], None)] * 2


def test_a_batch_that_was_written_is_not_written_again(
    spark: SparkSession, postgres_url: str, table: str, batch: Callable[..., Batch]
) -> None:
    target = sink(postgres_url, table, create=True)
    frame = spark.range(100).repartition(3)
    assert target.write(frame, batch(4)) == Written(rows=100)
    assert target.write(frame, batch(4)).already_there
    assert target.write(frame, batch(3)).already_there
    assert target.write(frame, batch(5)) == Written(rows=100)
    assert target.write(frame.where("false"), batch(6)) == Written(rows=0)
    assert rows_of(postgres_url, f"SELECT count(*), count(DISTINCT id) FROM {table}") == [(200, 100)]
    query = batch().query
    assert rows_of(postgres_url, f"SELECT batch_id FROM {BATCHES} WHERE query = '{query}'") == [(6,)]


def test_upsert_replaces_rows_and_the_last_of_a_batch_wins(
    spark: SparkSession, postgres_url: str, table: str, batch: Callable[..., Batch]
) -> None:
    target = sink(postgres_url, table, mode="upsert", keys=("id",), create=True)
    schema = "id int, name string"
    target.write(spark.createDataFrame([(1, "x"), (1, "old"), (2, "kept")], schema).coalesce(1), batch(0))
    assert rows_of(postgres_url, f"SELECT * FROM {table} ORDER BY id") == [(1, "old"), (2, "kept")]
    news = spark.createDataFrame([(1, "x"), (1, "y"), (3, "new"), (1, "last")], schema).coalesce(1)
    assert target.write(news, batch(1)) == Written(rows=4)
    assert rows_of(postgres_url, f"SELECT * FROM {table} ORDER BY id") == [(1, "last"), (2, "kept"), (3, "new")]


def test_upsert_of_rows_that_are_all_key(
    spark: SparkSession, postgres_url: str, table: str, batch: Callable[..., Batch]
) -> None:
    target = sink(postgres_url, table, mode="upsert", keys=("id",), create=True)
    for number in range(2):
        target.write(spark.createDataFrame([(1,), (1,)], "id int"), batch(number))
    assert rows_of(postgres_url, f"SELECT * FROM {table}") == [(1,)]


@pytest.mark.parametrize(
    ("step", "keys"),
    [("prepared", ()), ("staged", ()), ("moved", ()), ("committed", ()), ("staged", ("id",)), ("moved", ("id",))],
)
def test_a_batch_that_failed_at_any_step_comes_out_exact(
    spark: SparkSession, postgres_url: str, table: str, batch: Callable[..., Batch], step: str, keys: tuple[str, ...]
) -> None:
    target = Target(server=Server(url=postgres_url), table=table, keys=keys, create=True)
    frame = spark.range(50).repartition(2)

    def fail(reached: str) -> None:
        if reached == step:
            raise InterruptedError(step)

    with pytest.raises(InterruptedError):
        write_batch(frame, batch(0), target, fail)
    written = rows_of(postgres_url, f"SELECT count(*) FROM {table}")[0][0]
    assert written == (50 if step == "committed" else 0)
    again = write_batch(frame, batch(0), target)
    assert again.already_there == (step == "committed")
    write_batch(frame.selectExpr("id + 50 AS id"), batch(1), target)
    assert rows_of(postgres_url, f"SELECT count(*), count(DISTINCT id) FROM {table}") == [(100, 100)]
    assert stages_left(postgres_url) == 0


@pytest.mark.parametrize("keys", [(), ("id",)])
def test_small_batches_of_the_driver_are_as_exact(
    spark: SparkSession, postgres_url: str, table: str, batch: Callable[..., Batch], keys: tuple[str, ...]
) -> None:
    target = Target(server=Server(url=postgres_url), table=table, keys=keys, create=True)
    steps: list[str] = []
    write_batch(spark.range(5), batch(0), target, steps.append)
    assert steps == ["prepared", "staged", "moved", "committed"]

    def fail(reached: str) -> None:
        steps.append(reached)
        if reached == "moved":
            raise InterruptedError

    steps.clear()
    with pytest.raises(InterruptedError):
        write_batch(spark.range(5, 9), batch(1), target, fail)
    assert steps == ["prepared", "moved"]  # nothing was staged
    assert rows_of(postgres_url, f"SELECT count(*) FROM {table}") == [(5,)]
    assert write_batch(spark.range(5, 9), batch(1), target) == Written(rows=4)
    assert write_batch(spark.range(5, 9), batch(1), target).already_there
    assert write_batch(spark.range(9, 9), batch(2), target) == Written(rows=0)
    assert write_batch(spark.range(9, 6009), batch(3), target) == Written(rows=6000)  # too large for the driver
    assert rows_of(postgres_url, f"SELECT count(*), count(DISTINCT id) FROM {table}") == [(6009, 6009)]
    assert stages_left(postgres_url) == 0


def test_a_task_that_is_tried_again_adds_nothing(
    spark: SparkSession, postgres_url: str, table: str, batch: Callable[..., Batch]
) -> None:
    """Rows of an attempt that nobody reported stay in the staging table, and go with it."""
    target = Target(server=Server(url=postgres_url), table=table, keys=(), create=True)
    frame = spark.range(10).coalesce(1)

    def leave_rows_of_a_lost_attempt(reached: str) -> None:
        if reached == "staged":
            name = rows_of(postgres_url, "SELECT relname FROM pg_class WHERE starts_with(relname, '_ottla_stage_')")
            execute(
                postgres_url,
                f"INSERT INTO {name[0][0]} SELECT -1, _ottla_order, id FROM {name[0][0]}",
            )

    assert write_batch(frame, batch(0), target, leave_rows_of_a_lost_attempt) == Written(rows=10)
    assert rows_of(postgres_url, f"SELECT count(*) FROM {table}") == [(10,)]


def test_what_is_wrong_is_said_in_words(
    spark: SparkSession, postgres_url: str, table: str, batch: Callable[..., Batch]
) -> None:
    numbers = spark.range(3)
    with pytest.raises(FatalFailure, match=r"does not exist .*: create it, or set `create: true`"):
        sink(postgres_url, table).write(numbers, batch())
    execute(postgres_url, f"CREATE TABLE {table} (id int NOT NULL)")
    with pytest.raises(FatalFailure, match=r"no column extra \(it has id\)"):
        sink(postgres_url, table).write(numbers.selectExpr("id", "1 AS extra"), batch())
    with pytest.raises(FatalFailure, match=r"ADD UNIQUE \(id\)"):
        sink(postgres_url, table, mode="upsert", keys=("id",)).write(numbers, batch())
    with pytest.raises(FatalFailure, match=r"invalid input syntax for type integer: \"x\".*Cast the column in a step"):
        sink(postgres_url, table).write(spark.sql("SELECT 'x' AS id"), batch())
    with pytest.raises(FatalFailure, match=r"null value in column \"id\".*must not be null"):
        sink(postgres_url, table).write(spark.sql("SELECT CAST(NULL AS INT) AS id"), batch())
    with pytest.raises(FatalFailure, match="out of range"):
        sink(postgres_url, table).write(spark.sql("SELECT 99999999999L AS id"), batch())
    assert rows_of(postgres_url, f"SELECT count(*) FROM {table}") == [(0,)]


def test_a_server_that_is_not_there_and_a_wrong_password(
    spark: SparkSession, postgres_url: str, batch: Callable[..., Batch]
) -> None:
    with pytest.raises(ConnectorProblem, match=r"cannot be reached: .*Is it running") as problem:
        sink("postgresql://ann:geheim@127.0.0.1:1/shop", "t").write(spark.range(1), batch())
    assert "geheim" not in str(problem.value)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE ROLE ann LOGIN PASSWORD 'right'")
        place = connection.execute("SHOW hba_file").fetchone()
        assert place is not None
        with open(place[0]) as hba:
            rules = hba.read()
        with open(place[0], "w") as hba:
            hba.write("local all ann scram-sha-256\n" + rules)
        connection.execute("SELECT pg_reload_conf()")
    with pytest.raises(FatalFailure, match=r"refused the user: .*Check `user` and `password`") as refusal:
        sink(postgres_url, "t", user="ann", password="geheim").write(spark.range(1), batch())
    assert "geheim" not in str(refusal.value)


def test_problems_and_secrets() -> None:
    options = PostgresSinkOptions(postgres="postgresql://ann:geheim@h/db", password="geheim", table="t", mode="upsert")
    assert PostgresSink(options).problems() == [
        "keys: upsert needs the columns that tell rows apart, for instance `keys: [id]`"
    ]
    assert "geheim" not in repr(options)
    assert PostgresSink(PostgresSinkOptions(postgres="h:p:x", table="t", keys=("id",))).problems() == [
        'postgres: missing "=" after "h:p:x" in connection info string; write postgresql://host:5432/database',
        "keys: only goes with `mode: upsert`",
    ]
