"""Steps that look at one row at a time, on static frames, and what they refuse."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from tests.pipelines.steps.conftest import Bench

from ottla.pipelines.errors import FatalFailure
from ottla.pipelines.frames import ORIGIN, REJECTED
from ottla.pipelines.runner.failures import judge
from ottla.pipelines.steps.attempting import can_fail
from ottla.pipelines.steps.registry import STEPS

Frames = Callable[[list[tuple[Any, ...]], str], DataFrame]


def offsets(frame: DataFrame) -> list[int]:
    return [row[ORIGIN].offset for row in frame.collect()]


def test_expect_sends_failing_rows_away_with_the_rule(bench: Bench, with_origin: Frames) -> None:
    frame = with_origin([(1.0,), (2e6,), (None,)], "gross DOUBLE")
    good = bench.apply("expect", {"rule": "gross < 1e6"}, frame)
    assert offsets(good) == [0]
    rejected = bench.rejects()
    assert [(row.origin.offset, row.step, row.error, row.row) for row in rejected] == [
        (1, "1 expect", "the rule `gross < 1e6` does not hold", '{"gross":2000000.0}'),
        (2, "1 expect", "the rule `gross < 1e6` does not hold", "{}"),
    ]
    assert bench.rejected[0].schema.simpleString() == REJECTED.simpleString()


def test_expect_drops_or_fails_if_told_to(bench: Bench, with_origin: Frames) -> None:
    frame = with_origin([(1,), (5,)], "n INT")
    assert offsets(bench.apply("expect", {"rule": "n < 3", "otherwise": "drop"}, frame)) == [0]
    assert bench.rejected == []
    failing = bench.apply("expect", {"rule": "n < 3", "otherwise": "fail"}, frame)
    with pytest.raises(Exception, match=r"FatalFailure: .*step 1 expect: the rule `n < 3` .* the row: \{\"n\":5\}"):
        failing.collect()
    bench.rejecting = False
    with pytest.raises(Exception, match=r"errors\.dead_letter names no topic"):
        bench.apply("expect", {"rule": "n < 3"}, frame).collect()


def test_rows_without_an_origin_can_be_rejected(bench: Bench, spark: SparkSession) -> None:
    bench.apply("expect", {"rule": "id > 1"}, spark.range(3)).collect()
    assert [row.origin for row in bench.rejects()] == [None, None]


def test_filter_and_map_and_columns_keep_the_origin(bench: Bench, with_origin: Frames) -> None:
    frame = with_origin([("a", 1), ("b", 2)], "id STRING, n INT")
    assert offsets(bench.apply("filter", {"filter": "n > 1"}, frame)) == [1]
    mapped = bench.apply("map", {"columns": {"n": "n + 1", "old": "n", "up": "upper(id)"}}, frame)
    assert [(row.id, row.n, row.old, row.up) for row in mapped.collect()] == [("a", 2, 1, "A"), ("b", 3, 2, "B")]
    only = bench.apply("map", {"columns": {"up": "upper(id)"}, "only": True}, frame)
    assert only.columns == ["up", ORIGIN]
    assert bench.apply("select", {"select": ["n"]}, frame).columns == ["n", ORIGIN]
    assert bench.apply("drop", {"drop": ["n"]}, frame).columns == ["id", ORIGIN]
    assert bench.apply("rename", {"columns": {"n": "m"}}, frame).columns == ["id", "m", ORIGIN]


def test_cast_rejects_what_is_not_of_the_type(bench: Bench, with_origin: Frames) -> None:
    frame = with_origin(
        [("1", "2024-01-01"), ("x", "y"), (None, None), ("3000000000", "2024-01-02")], "n STRING, d STRING"
    )
    good = bench.apply("cast", {"columns": {"n": "INT", "d": "DATE"}}, frame)
    assert [(row.n, str(row.d)) for row in good.collect()] == [(1, "2024-01-01"), (None, "None")]
    assert [(row.origin.offset, row.error, row.row) for row in bench.rejects()] == [
        (1, "`n`: x is not INT; `d`: y is not DATE", '{"n":"x","d":"y"}'),
        (3, "`n`: 3000000000 is not INT", '{"n":"3000000000","d":"2024-01-02"}'),
    ]


def test_flatten_makes_rows_and_columns(bench: Bench, spark: SparkSession) -> None:
    frame = spark.sql(
        "SELECT 1 AS k, array(named_struct('x', 1, 'y', 'a'), named_struct('x', 2, 'y', 'b')) AS lines, "
        "map('p', 5) AS m, named_struct('z', 9) AS s UNION ALL SELECT 2, array(), map(), NULL"
    )
    lines = bench.apply("flatten", {"flatten": "lines"}, frame.select("k", "lines"))
    assert [tuple(row) for row in lines.collect()] == [(1, 1, "a"), (1, 2, "b")]
    kept = bench.apply("flatten", {"flatten": "lines", "into": "line", "empty": "keep"}, frame.select("k", "lines"))
    assert [(row.k, row.line and row.line.x) for row in kept.collect()] == [(1, 1), (1, 2), (2, None)]
    entries = bench.apply("flatten", {"flatten": "m"}, frame.select("k", "m"))
    assert [tuple(row) for row in entries.collect()] == [(1, "p", 5)]
    fields = bench.apply("flatten", {"flatten": "s", "empty": "keep"}, frame.select("k", "s"))
    assert [tuple(row) for row in fields.collect()] == [(1, 9), (2, None)]
    numbers = bench.apply("flatten", {"flatten": "n"}, spark.sql("SELECT array(1, 2) AS n"))
    assert [row.n for row in numbers.collect()] == [1, 2]


def test_join_with_a_table(bench: Bench, with_origin: Frames, spark: SparkSession) -> None:
    frame = with_origin([("a", 1), ("b", 2), (None, 3)], "customer STRING, n INT")
    bench.tables["customers"] = spark.createDataFrame([("a", "Ann", 7)], "id STRING, name STRING, n INT")
    left = bench.apply(
        "join", {"with": "customers", "on": {"customer": "id"}, "type": "left", "prefix": "c_"}, frame
    ).orderBy("n")
    assert [(row.customer, row.n, row.c_name, row.c_n, row[ORIGIN].offset) for row in left.collect()] == [
        ("a", 1, "Ann", 7, 0),
        ("b", 2, None, None, 1),
        (None, 3, None, None, 2),
    ]
    inner = bench.apply("join", {"with": "customers", "on": {"customer": "id"}, "columns": ["name"]}, frame)
    assert [(row.customer, row.name) for row in inner.collect()] == [("a", "Ann")]


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("filter", {"filter": "nothing > 1"}, "nothing"),
        ("map", {"columns": {"x": "n +"}}, "PARSE_SYNTAX_ERROR"),
        ("expect", {"rule": "n <"}, "PARSE_SYNTAX_ERROR"),
        ("select", {"select": ["gone"]}, "there is no column `gone`; there are id, n"),
        ("drop", {"drop": ["gone"]}, "there is no column `gone`"),
        ("rename", {"columns": {"n": "id"}}, "two columns `id`"),
        ("cast", {"columns": {"n": "NUMBER"}}, "NUMBER"),
        ("flatten", {"flatten": "n"}, "`n` is INT: only arrays, maps and structs"),
        ("window", {"time": "n", "size": "1 minute", "aggregates": {"c": "count(*)"}}, "event time is a TIMESTAMP"),
        ("join", {"with": "gone", "on": "id"}, "there is no frame `gone`; there are input"),
        ("join", {"with": "input", "on": "id"}, "both frames have a column `n`"),
        ("deduplicate", {"keys": ["gone"]}, "there is no column `gone`"),
    ],
)
def test_what_does_not_fit_the_frame_is_said_with_the_step(
    bench: Bench, with_origin: Frames, kind: str, options: dict[str, Any], message: str
) -> None:
    frame = with_origin([("a", 1)], "id STRING, n INT")
    with pytest.raises(FatalFailure, match=f"step 1 {kind}: ") as refused:
        bench.apply(kind, options, frame)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("sql", {"sql": " "}, "the query is empty"),
        ("filter", {"filter": ""}, "the condition is empty"),
        ("expect", {"rule": " "}, "the rule is empty"),
        ("map", {"columns": {}}, "names nothing"),
        ("map", {"columns": {"x": ""}}, "`x` has no expression"),
        ("select", {"select": []}, "nothing would be left"),
        ("drop", {"drop": []}, "no column is named"),
        ("rename", {"columns": {}}, "names nothing"),
        ("cast", {"columns": {}}, "names nothing"),
        ("flatten", {"flatten": ""}, "no column is named"),
        ("watermark", {"time": "at", "delay": "soon"}, "`soon` is not a duration"),
        ("window", {"time": "at", "aggregates": {"n": "count(*)"}}, "one of the two"),
        ("window", {"time": "at", "size": "0 seconds", "aggregates": {"n": "count(*)"}}, "no time at all"),
        ("window", {"time": "at", "slide": "1 s", "gap": "1 s", "aggregates": {"n": "1"}}, "`slide` goes with `size`"),
        ("window", {"time": "at", "slide": "2 s", "size": "1 s", "aggregates": {"n": "1"}}, "would be in none"),
        ("window", {"time": "at", "size": "1 s", "aggregates": {}}, "names nothing"),
        ("window", {"time": "at", "size": "1 s", "aggregates": {"window_end": "1"}}, "named twice"),
        ("window", {"time": "at", "gap": "1 s", "emit": "updates", "aggregates": {"n": "1"}}, "when they are over"),
        ("deduplicate", {"within": "1 hour"}, "`within` needs `time`"),
        ("join", {"with": "x", "on": []}, "`on` names no column"),
        ("join", {"with": "x", "on": "id", "within": "1 hour"}, "`time` and `within` go together"),
        ("join", {"with": "x", "on": "id", "watermark": "1 hour"}, "`watermark` is for joins of two streams"),
        ("join", {"with": "x", "on": "id", "order": "after"}, "`order` is for joins of two streams"),
        ("stateful", {"stateful": "x", "group_by": ["id"], "schema": "n INT"}, "write module:Class"),
        ("stateful", {"stateful": "a:B", "group_by": [], "schema": "n INT"}, "names no column"),
        ("stateful", {"stateful": "a:B", "group_by": ["i"], "schema": "n INT", "timers": "event"}, "go together"),
        ("stateful", {"stateful": "a:B", "group_by": ["i"], "schema": "n INT", "watermark": "1 s"}, "needs `time`"),
    ],
)
def test_problems_are_found_without_spark(kind: str, options: dict[str, Any], message: str) -> None:
    step_type = STEPS.get(kind)
    found = step_type(msgspec.convert(options, step_type.Options)).problems()
    assert any(message in problem for problem in found), found


@pytest.mark.parametrize("kind", STEPS.kinds())
def test_unknown_options_are_refused(kind: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"no_such_option": 1}, STEPS.get(kind).Options)


# Expressions that fail for a row: Spark would stop the query.

PAIRS: list[tuple[Any, ...]] = [("6", 3), ("5", 0), ("x", 1), (None, 2), ("2147483647", 1)]


def test_map_rejects_the_rows_that_an_expression_fails_for(bench: Bench, with_origin: Frames) -> None:
    """Also where two columns share what fails, and null is a value like any other."""
    frame = with_origin(PAIRS, "text STRING, n INT")
    columns = {"share": "CAST(text AS INT) / n", "more": "CAST(text AS INT) + n", "up": "upper(text)"}
    mapped = bench.apply("map", {"columns": columns}, frame)
    assert mapped.columns == ["text", "n", ORIGIN, "share", "more", "up"]
    good = [(row.text, row.share, row.more, row.up) for row in mapped.collect()]
    assert good == [("6", 2.0, 9, "6"), (None, None, None, None)]
    rejected = {row.origin.offset: row for row in bench.rejects()}
    assert sorted(rejected) == [1, 2, 4]
    assert rejected[1].step == "1 map"
    assert rejected[1].error.startswith("`share`: `CAST(text AS INT) / n` cannot be computed for this row")
    assert "`share`: " in rejected[2].error
    assert "; `more`: " in rejected[2].error
    assert rejected[4].error.startswith("`more`: ")
    assert rejected[1].row == '{"text":"5","n":0}'
    only = bench.apply("map", {"columns": {"n": "n", "share": "12 / n"}, "only": True}, frame)
    assert [tuple(row)[:2] for row in only.collect()] == [(3, 4.0), (1, 12.0), (2, 6.0), (1, 12.0)]
    assert only.columns == ["n", "share", ORIGIN]


def test_filter_and_expect_do_not_fail_for_a_row_either(bench: Bench, with_origin: Frames) -> None:
    frame = with_origin(PAIRS, "text STRING, n INT")
    assert offsets(bench.apply("filter", {"filter": "CAST(text AS INT) / n > 1"}, frame)) == [0, 4]
    assert sorted(row.origin.offset for row in bench.rejects()) == [1, 2]
    assert all(row.error.startswith("the condition `CAST(text AS INT) / n > 1` cannot") for row in bench.rejects())
    bench.rejected.clear()
    assert offsets(bench.apply("expect", {"rule": "CAST(text AS INT) / n > 1"}, frame)) == [0, 4]
    errors = {row.origin.offset: row.error for row in bench.rejects()}
    assert sorted(errors) == [1, 2, 3]
    assert errors[1].startswith("the rule `CAST(text AS INT) / n > 1` cannot be computed for this row")
    assert errors[3].endswith("does not hold")
    dropped = bench.apply("expect", {"rule": "CAST(text AS INT) / n > 1", "otherwise": "drop"}, frame)
    assert offsets(dropped) == [0, 4]


def test_without_dead_letters_a_row_that_an_expression_fails_for_is_named(bench: Bench, with_origin: Frames) -> None:
    bench.rejecting = False
    failing = bench.apply("map", {"columns": {"share": "12 / n"}}, with_origin([(0,)], "n INT"))
    with pytest.raises(
        Exception, match=r"errors\.dead_letter names no topic .*step 1 map: `share`.* the row: .\"n\":0"
    ):
        failing.collect()


@pytest.mark.parametrize(
    ("text", "risky"),
    [
        ("price * 1.5e0", False),
        ("price / 2e0", True),
        ("n + 1", True),
        ("upper(text)", False),
        ("CAST(n AS BIGINT) > 3", False),
        ("CAST(text AS INT) > 3", True),
        ("CAST(n AS STRING)", False),
        ("coalesce(text, 'x') LIKE 'a%' AND n IS NOT NULL", False),
        ("CASE WHEN n > 0 THEN 'a' ELSE concat(text, '!') END", False),
        ("n BETWEEN 1 AND 9", False),
        ("NOT n BETWEEN 1 AND CAST(text AS INT)", True),
        ("nullif(n, 0) IS NULL OR left(text, 2) = 'ab'", False),
        ("nope + 1", False),
        ("n +", False),
    ],
)
def test_what_cannot_fail_is_not_tried(with_origin: Frames, text: str, risky: bool) -> None:
    frame = with_origin([], "text STRING, n INT, price DOUBLE")
    assert can_fail(frame, text) is risky
    assert can_fail(frame, text) is risky


def test_a_query_that_fails_for_a_row_says_what_to_do(bench: Bench, with_origin: Frames) -> None:
    frame = with_origin(PAIRS, "text STRING, n INT")
    bench.tables["pairs"] = frame
    for query, condition in (
        ("SELECT 12 / n AS share FROM pairs", "DIVIDE_BY_ZERO: Division by zero, in `12 / n`"),
        ("SELECT CAST(text AS INT) AS x FROM pairs", "CAST_INVALID_INPUT: The value 'x'"),
    ):
        with pytest.raises(PySparkException) as raised:
            bench.apply("sql", {"sql": query}, frame).collect()
        failure = judge(str(raised.value))
        assert failure.fatal
        assert failure.message.startswith(condition), failure.message
        assert "`map` step" in failure.message
