"""Which topics a SQL text names, how they are quoted, and how Spark's complaints are told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.cli.pipeline.sql import FORMATS as CHOICES
from ottla.cli.pipeline.sql_text import (
    may_show,
    named_topics,
    no_such_topic,
    only_reads,
    quote_topics,
    tables,
    unknown_table,
)
from ottla.cli.pipeline.sql_words import ErrorText, in_words
from ottla.spark.formats.api import FORMATS

TOPICS = ["orders", "orders.enriched", "click-stream", "Users"]


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT * FROM orders", ["orders"]),
        ("select 1", []),
        ("SELECT * FROM orders o, orders.enriched AS e, `click-stream` WHERE o.id IN (1, 2)",
         ["orders", "orders.enriched", "click-stream"]),
        ("SELECT a FROM orders JOIN orders.enriched USING (id) ORDER BY a, b", ["orders", "orders.enriched"]),
        ("SELECT (SELECT max(x) FROM Users) FROM orders", ["Users", "orders"]),
        ("SELECT 'FROM nowhere' -- FROM here\nFROM /* JOIN there */ orders", ["orders"]),
        ("SELECT * FROM range(10) JOIN orders", ["orders"]),
        ("SELECT a IS DISTINCT FROM b FROM orders", ["orders"]),
        ("SELECT * FROM (SELECT * FROM orders) LIMIT 3", ["orders"]),
        ("SELECT * FROM VALUES (1), (2)", []),
    ],
)  # fmt: skip
def test_names_stand_where_tables_do(sql: str, names: list[str]) -> None:
    assert [table.name for table in tables(sql)] == names


@pytest.mark.parametrize(
    ("sql", "quoted"),
    [
        ("SELECT * FROM orders.enriched", "SELECT * FROM `orders.enriched`"),
        ("SELECT * FROM orders JOIN click-stream c", "SELECT * FROM orders JOIN `click-stream` c"),
        ("SELECT * FROM `orders.enriched`", "SELECT * FROM `orders.enriched`"),
        ("SELECT 'FROM orders.enriched' FROM orders", "SELECT 'FROM orders.enriched' FROM orders"),
        ("SELECT orders.enriched FROM orders", "SELECT orders.enriched FROM orders"),
        ("SELECT * FROM other.table", "SELECT * FROM other.table"),
    ],
)
def test_only_names_of_topics_are_quoted(sql: str, quoted: str) -> None:
    assert quote_topics(sql, TOPICS) == quoted


@given(st.text(alphabet="aorders.-_`'\"(),/*FROM JOIN\n", max_size=60))
def test_quoting_adds_only_backticks_and_only_once(sql: str) -> None:
    once = quote_topics(sql, TOPICS)
    assert once.replace("`", "") == sql.replace("`", "")
    assert quote_topics(once, TOPICS) == once


def test_topics_are_found_whatever_their_case() -> None:
    assert named_topics("SELECT * FROM ORDERS, users, nothing", TOPICS) == ["Users", "orders"]


@pytest.mark.parametrize(
    ("sql", "unknown"),
    [
        ("SELECT * FROM ordrs", "ordrs"),
        ("SELECT * FROM orders JOIN clicks", "clicks"),
        ("SELECT * FROM ORDERS", None),
        ("WITH t AS (SELECT 1) SELECT * FROM t", None),
        ("SELECT extract(year FROM timestamp) FROM orders", None),
    ],
)
def test_only_what_is_surely_unknown_is_refused_at_once(sql: str, unknown: str | None) -> None:
    assert unknown_table(sql, TOPICS) == unknown


def test_near_names_are_offered() -> None:
    assert no_such_topic("ordrs", TOPICS) == "there is no topic `ordrs`: did you mean `orders`?"
    assert (
        no_such_topic("zzz", TOPICS)
        == "there is no topic `zzz`; there is: Users, click-stream, orders, orders.enriched"
    )
    assert "ottla topics --create --topic zzz" in no_such_topic("zzz", [])


def test_statements_that_change_something_are_known() -> None:
    assert only_reads("-- a comment\n SELECT 1")
    assert only_reads("(SELECT 1) UNION (SELECT 2)")
    assert not only_reads("drop table orders")
    assert not only_reads("INSERT INTO orders VALUES (1)")
    assert not only_reads("")


def test_every_format_can_be_chosen() -> None:
    assert set(CHOICES) == set(FORMATS)


def test_a_complaint_points_into_the_right_line() -> None:
    sql = "SELECT id,\n  amont\nFROM orders"
    told = ErrorText(
        text="[UNRESOLVED_COLUMN] There is no `amont`.  Did you mean\n`amount`? SQLSTATE: 42703; line 2;\n'Project",
        condition="UNRESOLVED_COLUMN",
        start=13,
        stop=17,
    )
    assert in_words(told, sql, TOPICS) == "There is no `amont`. Did you mean `amount`?\n    amont\n    ^^^^^"


def test_a_syntax_error_has_only_line_and_column() -> None:
    sql = "SELECT *\nFORM orders"
    told = ErrorText(
        text="\n[PARSE_SYNTAX_ERROR] Syntax error at or near 'orders'. SQLSTATE: 42601 (line 2, pos 5)\n\n== SQL ==\n"
    )
    assert in_words(told, sql, TOPICS) == "Syntax error at or near 'orders'.\n  FORM orders\n       ^"


def test_what_python_raised_below_spark_is_what_is_told() -> None:
    told = ErrorText(
        text="[PYTHON_DATA_SOURCE_ERROR] Failed: Traceback (most recent call last):\n  File x\n"
        "ottla.spark.errors.DataLoss: records 5 to 9 are gone\n\n\tat org.apache.spark.Foo"
    )
    assert in_words(told, "SELECT 1", TOPICS) == "records 5 to 9 are gone"


def test_a_name_that_needs_backticks_is_shown_with_them() -> None:
    told = ErrorText(text="x", condition="INVALID_IDENTIFIER", parameters={"ident": "click-streams"})
    assert in_words(told, "SELECT * FROM click-streams", TOPICS).startswith("write `click-streams` in backticks")


def test_a_missing_column_of_text_is_told_how_to_get_fields() -> None:
    told = ErrorText(text="[UNRESOLVED_COLUMN.WITH_SUGGESTION] There is no `item`.", condition="UNRESOLVED_COLUMN.X")
    assert in_words(told, "SELECT item FROM orders", TOPICS, ["orders"]).endswith(
        "--format orders=json makes columns of their fields."
    )
    assert "--format" not in in_words(told, "SELECT item FROM orders", TOPICS, [])
    other = ErrorText(text="[DIVIDE_BY_ZERO] no.", condition="DIVIDE_BY_ZERO")
    assert "--format" not in in_words(other, "SELECT item FROM orders", TOPICS, ["orders"])


@pytest.mark.parametrize(
    ("sql", "may"),
    [
        ("SELECT item, count(*), sum(amount) FROM orders GROUP BY item", False),
        ("  with t AS (SELECT id FROM orders) SELECT count( * ) FROM t", False),
        ("(SELECT id FROM orders)", False),
        ("SELECT _ERROR FROM orders", True),
        ("SELECT * FROM orders", True),
        ("SELECT o.* FROM orders o", True),
        ("FROM orders", True),
        ("TABLE orders", True),
        ("DESCRIBE orders", True),
        ("EXPLAIN SELECT id FROM orders", True),
    ],
)
def test_what_is_wrong_with_records_is_worked_out_where_it_may_be_seen(sql: str, may: bool) -> None:
    assert may_show(sql, "_error") is may
