"""The `sql` step: what a query sees, and when a row's origin goes with it."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from tests.pipelines.steps.conftest import Bench

from ottla.pipelines.errors import FatalFailure
from ottla.pipelines.frames import ORIGIN
from ottla.pipelines.steps.sql import SqlOptions, SqlStep, run_query
from ottla.pipelines.steps.sql_text import AGGREGATES, looks_at_many_rows

Frames = Callable[[list[tuple[Any, ...]], str], DataFrame]

ROW_WISE = [
    "SELECT id, amount * 2 AS twice FROM orders WHERE amount > 1",
    "SELECT * FROM orders",
    "SELECT * EXCEPT (amount) FROM orders",
    "SELECT id, explode(array(1, 2)) AS e FROM orders",
    "SELECT id, e FROM orders LATERAL VIEW explode(array(1, 2)) t AS e",
    "SELECT o.id, c.name FROM orders o LEFT JOIN names c ON o.id = c.id",
    "SELECT o.id, p.id AS other FROM orders o JOIN payments p ON o.id = p.id",
    "SELECT * FROM orders o JOIN (SELECT id AS other, __origin FROM payments) p ON o.id = p.other",
    "SELECT id FROM orders UNION ALL SELECT id FROM payments",
    "SELECT id FROM (SELECT id, amount FROM orders) x WHERE amount > 1",
    "WITH big AS (SELECT id FROM orders WHERE amount > 1), last AS (SELECT id AS i FROM big) SELECT i FROM last",
    "SELECT id FROM orders WHERE id IN (SELECT id FROM names)",
    "SELECT id FROM orders ORDER BY amount LIMIT 2",
    "FROM orders |> WHERE amount > 1 |> SELECT id",
    "SELECT upper(id) AS id FROM input",
]
MANY_ROWS = [
    "SELECT count(*) AS n FROM orders",
    "SELECT id, sum(amount) AS s FROM orders GROUP BY id HAVING s > 1",
    "SELECT DISTINCT * FROM orders",
    "SELECT id FROM orders UNION SELECT id FROM names",
    "SELECT id, row_number() OVER (ORDER BY id) AS r FROM orders",
    "SELECT id FROM orders EXCEPT SELECT id FROM names",
]


@pytest.fixture
def tables(with_origin: Frames, spark: SparkSession) -> dict[str, DataFrame]:
    orders = with_origin([("a", 1), ("b", 2), ("a", 3)], "id STRING, amount INT")
    payments = with_origin([("zz",), ("zz",), ("zz",), ("b",)], "id STRING")
    return {
        "orders": orders,
        "payments": payments,
        "names": spark.createDataFrame([("a", "Ann"), ("b", "Bob")], "id STRING, name STRING"),
        "input": orders,
    }


def test_the_origin_goes_with_rows_of_one_row_queries_and_nothing_else_changes(tables: dict[str, DataFrame]) -> None:
    bare = {name: table.drop(ORIGIN) for name, table in tables.items()}
    for query in ROW_WISE:
        assert not looks_at_many_rows(query), query
        result = run_query(query, tables["orders"], tables)
        assert result.columns.count(ORIGIN) == 1, query
        if "__origin" in query:
            continue
        expected = run_query(query, bare["orders"], bare)
        assert result.drop(ORIGIN).columns == expected.columns, query
        assert sorted(result.drop(ORIGIN).collect()) == sorted(expected.collect()), query


def test_the_origin_is_that_of_the_row(tables: dict[str, DataFrame]) -> None:
    query = "SELECT o.amount FROM orders o JOIN payments p ON o.id = p.id"
    [row] = run_query(query, tables["orders"], tables).collect()
    assert (row.amount, row[ORIGIN].offset) == (2, 1)


def test_queries_over_many_rows_belong_to_the_stream_and_do_not_see_the_origin(tables: dict[str, DataFrame]) -> None:
    for query in MANY_ROWS:
        assert SqlStep(SqlOptions(sql=query)).STATEFUL, query
        assert ORIGIN not in run_query(query, tables["orders"], tables).columns, query
    doubled = {**tables, "orders": tables["orders"].unionAll(tables["orders"])}
    assert run_query("SELECT DISTINCT * FROM orders", doubled["orders"], doubled).count() == 3


def test_no_view_is_left_behind_and_another_session_s_frames_are_seen(
    tables: dict[str, DataFrame], spark: SparkSession
) -> None:
    other = spark.newSession().sql("SELECT 'a' AS id")
    result = run_query("SELECT o.amount FROM orders o JOIN input USING (id)", other, {**tables, "input": other})
    assert sorted(row.amount for row in result.collect()) == [1, 3]
    names = {"orders", "input"}
    assert not names & {table.name for table in spark.catalog.listTables()}
    assert not names & {table.name for table in other.sparkSession.catalog.listTables()}


@pytest.mark.parametrize(
    ("query", "message"),
    [("SELEKT 1", "PARSE_SYNTAX_ERROR"), ("SELECT nothing FROM input", "nothing"), ("SELECT 1 FROM gone", "gone")],
)
def test_what_spark_refuses_is_said_with_the_step(
    bench: Bench, tables: dict[str, DataFrame], query: str, message: str
) -> None:
    with pytest.raises(FatalFailure, match="step 1 sql: ") as refused:
        bench.apply("sql", {"sql": query}, tables["orders"])
    assert message in str(refused.value)


@given(
    name=st.sampled_from(sorted(AGGREGATES)),
    quoted=st.sampled_from(["'{}'", '"{}"', "`{}`", "-- {}\n", "/* {} */"]),
    space=st.sampled_from(["", " ", "\n"]),
)
def test_words_in_strings_names_and_comments_do_not_count(name: str, quoted: str, space: str) -> None:
    assert looks_at_many_rows(f"SELECT {name.upper()}{space}(x) FROM input")
    assert not looks_at_many_rows(f"SELECT 1 {quoted.format(name + '(x) GROUP BY')} FROM input")


def test_the_list_of_aggregates_is_spark_s(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    known = jvm.org.apache.spark.sql.api.python.PythonSQLUtils.listBuiltinFunctionInfos()
    assert {info.getName() for info in known if info.getGroup() == "agg_funcs"} == AGGREGATES
