"""The PostgreSQL source on a real server: types, ranges, and rows that are committed late."""

import datetime
import decimal
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from ottla.pipelines.connectors.base import SourceContext
from ottla.pipelines.connectors.postgres.connector import PostgresSource, PostgresSourceOptions
from ottla.pipelines.errors import ConnectorProblem, FatalFailure


@pytest.fixture
def table(unique: Callable[[str], str]) -> str:
    return unique("items").replace("-", "_")


def execute(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement)


def source(url: str, **options: Any) -> PostgresSource:
    made = PostgresSource(PostgresSourceOptions(postgres=url, **options))
    assert made.problems() == []
    return made


def test_types(postgres_url: str, table: str, source_context: Callable[..., SourceContext]) -> None:
    execute(postgres_url, f"CREATE TYPE mood_{table} AS ENUM ('sad', 'happy')")
    execute(
        postgres_url,
        f"CREATE TABLE {table} (id int8, small int2, n int4, real float4, ratio float8, price numeric(10,2), any_number"
        f" numeric, ok bool, text text, code varchar(5), uid uuid, doc jsonb, bytes bytea, day date, at timestamptz,"
        f" local timestamp, tags text[], sizes int[], mood mood_{table}, clock time)",
    )
    execute(
        postgres_url,
        f"INSERT INTO {table} VALUES (1, 2, 3, 0.5, 'NaN', 12.34, 1.5, true, E'a,\"b\"\\nc', 'abc',"
        " '00000000-0000-0000-0000-000000000001', '{\"a\": 1}', '\\x00ff', '2026-01-02',"
        " '2026-01-02 03:04:05.678901+02', '2026-01-02 03:04:05', ARRAY['x', E'y\\nz', NULL], ARRAY[1, 2], 'happy',"
        " '10:11:12'),"
        " (2, NULL, NULL, NULL, 'Infinity', NULL, NULL, false, '', NULL, NULL, NULL, '', NULL, NULL, NULL, NULL, NULL,"
        " NULL, NULL)",
    )
    frame = source(postgres_url, table=table).table(source_context()).orderBy("id")
    assert frame.schema.simpleString() == (
        "struct<id:bigint,small:smallint,n:int,real:float,ratio:double,price:decimal(10,2),any_number:decimal(38,18),"
        "ok:boolean,text:string,code:string,uid:string,doc:string,bytes:binary,day:date,at:timestamp,"
        "local:timestamp_ntz,tags:array<string>,sizes:array<int>,mood:string,clock:string>"
    )
    first, second = frame.collect()
    at = datetime.datetime(2026, 1, 2, 1, 4, 5, 678901)  # noqa: DTZ001  # Spark gives times of the session's zone
    assert str(first.ratio) == "nan"
    assert second.ratio == float("inf")
    assert (first.id, first.small, first.n, first.real, first.ok, first.code) == (1, 2, 3, 0.5, True, "abc")
    assert (first.price, first.any_number) == (decimal.Decimal("12.34"), decimal.Decimal("1.5"))
    assert (first.text, first.doc, bytes(first.bytes)) == ('a,"b"\nc', '{"a": 1}', b"\x00\xff")
    assert frame.selectExpr("date_format(at, 'yyyy-MM-dd HH:mm:ss.SSSSSS')").first()[0] == at.strftime(  # type: ignore[index]
        "%Y-%m-%d %H:%M:%S.%f"
    )
    assert first.local == datetime.datetime(2026, 1, 2, 3, 4, 5)  # noqa: DTZ001
    assert (first.day, first.mood, first.clock) == (datetime.date(2026, 1, 2), "happy", "10:11:12")
    assert (first.tags, first.sizes) == (["x", "y\nz", None], [1, 2])
    assert (second.text, bytes(second.bytes), second.doc, second.price, second.tags) == ("", b"", None, None, None)


def test_a_table_in_parts_and_a_query(
    postgres_url: str, table: str, source_context: Callable[..., SourceContext]
) -> None:
    execute(postgres_url, f"CREATE TABLE {table} AS SELECT g AS id, g % 3 AS kind FROM generate_series(-50, 149) g")
    execute(postgres_url, f"INSERT INTO {table} VALUES (NULL, 7)")
    frame = source(postgres_url, table=table, partitions=3, split_by="id").table(source_context())
    assert frame.rdd.getNumPartitions() == 3
    found = [row.id for row in frame.collect()]
    assert len(found) == 201
    assert set(found) == {*range(-50, 150), None}
    query = f"SELECT kind, count(*) AS n FROM {table} WHERE id >= 0 GROUP BY kind"
    rows = source(postgres_url, query=query).table(source_context()).orderBy("kind").collect()
    assert [tuple(row) for row in rows] == [(0, 50), (1, 50), (2, 50)]
    execute(postgres_url, f"DELETE FROM {table}")
    assert frame.count() == 0


def test_a_stream_follows_an_id(
    postgres_url: str, table: str, source_context: Callable[..., SourceContext], drain: Callable[..., list[Any]]
) -> None:
    execute(postgres_url, f"CREATE TABLE {table} (id serial, name text)")
    frame = source(postgres_url, table=table, increasing="id", partitions=2).stream(source_context(max_records=4))
    assert drain(frame) == []
    execute(postgres_url, f"INSERT INTO {table} (name) SELECT 'n' || g FROM generate_series(1, 10) g")
    sizes: list[int] = []
    assert sorted(row.id for row in drain(frame, batches=sizes)) == list(range(1, 11))
    assert sizes == [4, 4, 2]
    execute(postgres_url, f"INSERT INTO {table} (name) VALUES ('later')")
    assert [row.name for row in drain(frame)] == ["later"]


def test_an_id_that_is_committed_late_is_not_lost(
    postgres_url: str, table: str, source_context: Callable[..., SourceContext], drain: Callable[..., list[Any]]
) -> None:
    execute(postgres_url, f"CREATE TABLE {table} (id serial, name text)")
    frame = source(postgres_url, table=table, increasing="id").stream(source_context())
    with psycopg.connect(postgres_url) as slow:
        slow.execute(f"INSERT INTO {table} (name) VALUES ('slow')")
        execute(postgres_url, f"INSERT INTO {table} (name) VALUES ('quick')")
        assert drain(frame) == []  # 2 is there, and 1 may still come
        slow.commit()
    assert sorted(row.name for row in drain(frame)) == ["quick", "slow"]


def test_a_stream_follows_the_time_of_the_last_change(
    postgres_url: str, table: str, source_context: Callable[..., SourceContext], drain: Callable[..., list[Any]]
) -> None:
    execute(postgres_url, f"CREATE TABLE {table} (id int, name text, changed timestamptz)")
    execute(
        postgres_url,
        f"INSERT INTO {table} SELECT g, 'old', '2026-01-01 00:00:00.000001+00' FROM generate_series(1, 5) g",
    )
    execute(postgres_url, f"INSERT INTO {table} VALUES (6, 'young', now())")
    options = {"table": table, "updated": "changed", "increasing": "id", "delay": "1 hour"}
    frame = source(postgres_url, **options).stream(source_context(max_records=2))
    sizes: list[int] = []
    assert sorted(row.id for row in drain(frame, batches=sizes)) == [1, 2, 3, 4, 5]
    assert sizes == [2, 2, 1]  # equal times are told apart by the id
    execute(postgres_url, f"UPDATE {table} SET name = 'new', changed = '2026-01-02 00:00:00+00' WHERE id = 2")
    assert [(row.id, row.name) for row in drain(frame)] == [(2, "new")]
    without_id = source(postgres_url, table=table, updated="changed", delay="1 hour").stream(
        source_context(max_records=2)
    )
    sizes.clear()
    drain(without_id, checkpoint="another", batches=sizes)
    assert sizes == [4, 1]  # rows of one time stay together


def test_what_cannot_be_followed_is_refused(
    postgres_url: str, table: str, source_context: Callable[..., SourceContext]
) -> None:
    execute(postgres_url, f"CREATE TABLE {table} (id text)")
    with pytest.raises(ConnectorProblem, match="follows a column that grows"):
        source(postgres_url, table=table).stream(source_context())
    with pytest.raises(FatalFailure, match="column id is of type text; what can be followed is"):
        source(postgres_url, table=table, increasing="id").stream(source_context())
    with pytest.raises(FatalFailure, match=r'column "nothing" does not exist'):
        source(postgres_url, table=table, increasing="nothing").stream(source_context())
    with pytest.raises(FatalFailure, match=r'relation "gone" does not exist.*Create the table'):
        source(postgres_url, table="gone").table(source_context())


def test_problems() -> None:
    options = PostgresSourceOptions(postgres="postgresql://h/db", delay="soon", partitions=2)
    assert PostgresSource(options).problems() == [
        "delay: `soon` is not a duration: write `10 seconds`, `1 minute` or `500 ms`",
        "table: name a `table` or write a `query`, one of the two",
        "delay: only goes with `updated`",
        "partitions: name the column to split by with `split_by`",
    ]


def test_the_password_is_not_in_the_plan(
    postgres_url: str, table: str, source_context: Callable[..., SourceContext], capsys: pytest.CaptureFixture[str]
) -> None:
    execute(postgres_url, f"CREATE TABLE {table} (id int)")
    frame = source(postgres_url, table=table, user="postgres", password="geheim").table(source_context())
    frame.explain(extended=True)
    assert "geheim" not in capsys.readouterr().out
