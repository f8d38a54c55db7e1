"""Which queries a file becomes, and which steps run where."""

from pathlib import Path
from typing import Any

import pytest
from tests.unit.pipelines.samples import checked, small

from ottla.pipelines.errors import FatalFailure
from ottla.pipelines.plan import Plan, describe, graph_of, has_batches_without_records, make_plan, tree_lines
from ottla.pipelines.steps.sql_text import goes_row_by_row
from ottla.pipelines.steps.user_code import takes_rows
from ottla.pipelines.versions import places, with_version

ORDERS = {"topic": "orders", "format": "json", "schema": "id STRING, amount DOUBLE, at TIMESTAMP"}
PAYMENTS = {**ORDERS, "topic": "payments"}
TOTALS = {"sql": "SELECT id, sum(amount) AS total FROM orders GROUP BY id"}


def plan(**changes: Any) -> Plan:
    return make_plan(checked(small(tests=[], **changes)))


def test_steps_that_look_at_each_row_by_itself_are_planned_once_in_the_stream() -> None:
    (query,) = plan().queries
    assert [step.label for step in query.streaming_steps] == ["1 sql", "2 expect"]
    assert query.batch_steps == []
    assert query.in_line
    assert (query.name, query.group, query.transactional_id) == (
        "main", "ottla.small.orders", "ottla.small.main",
    )  # fmt: skip


def test_a_query_as_a_graph_for_whoever_draws_it() -> None:
    found = plan()
    (query,) = found.queries
    graph = graph_of(query)
    assert graph["sources"] == [f"topic {part.entry['topic']}" for part in query.sources.values()]
    assert graph["steps"] == [step.label for step in query.steps]
    assert len(graph["sinks"]) == len(query.sinks)
    assert all(isinstance(each, str) for column in graph.values() for each in column)


def test_steps_up_to_the_last_stateful_one_are_in_the_stream() -> None:
    sort = {"sql": "SELECT * FROM input ORDER BY total"}
    totals = {"sql": "SELECT id, sum(amount) AS total FROM input GROUP BY id"}
    steps = [{"filter": "amount > 0"}, totals, {"filter": "total > 1"}, sort, {"expect": {"rule": "total < 9"}}]
    (query,) = plan(steps=steps).queries
    assert [step.label for step in query.streaming_steps] == ["1 filter", "2 sql", "3 filter"]
    assert [step.label for step in query.batch_steps] == ["4 sql", "5 expect"]


def test_batches_without_records_are_run_where_time_alone_brings_results() -> None:
    once_each = {"deduplicate": {"keys": ["id"], "time": "at", "within": "1 hour"}}
    window: dict[str, Any] = {"time": "at", "size": "1 hour", "watermark": "1 hour", "aggregates": {"n": "count(*)"}}
    timers = {"stateful": "m:T", "group_by": ["id"], "schema": "id STRING", "timers": "processing"}
    wanted: list[tuple[list[dict[str, Any]], bool]] = [
        ([{"filter": "amount > 0"}], False),
        ([once_each], False),
        ([{"window": {**window, "emit": "updates"}}], False),
        ([{"window": window}], True),
        ([once_each, {"window": window}], True),
        ([timers], True),
    ]
    for steps, expected in wanted:
        (query,) = plan(steps=steps).queries
        assert has_batches_without_records(query, once=False) is expected, steps
    assert not has_batches_without_records(query, once=True)  # by the clock there would be no end of them


def test_a_step_that_looks_back_is_not_in_line() -> None:
    steps = [{"filter": "amount > 0", "as": "good"}, {"sql": "SELECT i.* FROM input i JOIN orders o ON o.id = i.id"}]
    (query,) = plan(steps=steps).queries
    assert not query.in_line
    assert len(query.batch_steps) == 2


@pytest.mark.parametrize(
    ("query", "alike"),
    [
        ("SELECT *, amount * 1.2 AS gross FROM orders WHERE amount > 0", True),
        ("SELECT id FROM input i", True),
        ("select id, 'a FROM b JOIN c' AS text from input where item = 'ORDER BY';", True),
        ("SELECT id FROM orders ORDER BY id", False),
        ("SELECT id FROM orders LIMIT 3", False),
        ("SELECT o.id FROM orders o JOIN customers c ON o.id = c.id", False),
        ("SELECT id FROM orders, customers", False),
        ("SELECT id FROM orders WHERE id IN (SELECT id FROM customers)", False),
        ("SELECT explode(lines) FROM orders", False),
        ("SELECT sum(amount) FROM orders", False),
        ("SELECT id FROM orders UNION ALL SELECT id FROM input", False),
        ("SELECT raise_error('x') FROM orders", False),
        ("WITH o AS (SELECT * FROM orders) SELECT * FROM o", False),
        ("FROM orders |> WHERE amount > 1", False),
    ],
)
def test_which_queries_look_at_each_row_by_itself(query: str, alike: bool) -> None:
    assert goes_row_by_row(query) is alike


@pytest.mark.parametrize(
    ("source", "alike"),
    [
        ("def f(row): return row", True),
        ("def f(row: dict[str, int]): return row", True),
        ("import pyarrow as pa\ndef f(batch: pa.RecordBatch) -> pa.RecordBatch: return batch", True),
        ("from pyspark.sql import DataFrame\ndef f(frame: DataFrame): return frame", False),
        ("def f(row: Unknown): return row", False),
        ("f = print", False),
        ("def f(: oops", False),
    ],
)
def test_which_functions_are_known_to_take_rows(source: str, alike: bool, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(source)
    assert takes_rows("mine:f", tmp_path) is alike
    assert not takes_rows("elsewhere:f", tmp_path)


def test_a_later_look_at_the_source_keeps_steps_in_the_stream() -> None:
    steps = [TOTALS, {"sql": "SELECT o.* FROM input i JOIN orders o ON o.id = i.id"}, {"filter": "amount > 1"}]
    (query,) = plan(steps=steps).queries
    assert [step.label for step in query.streaming_steps] == ["1 sql", "2 sql"]


def test_several_sources_meet_in_the_stream() -> None:
    steps = [{"sql": "SELECT * FROM orders UNION ALL SELECT * FROM payments"}, {"filter": "amount > 0"}]
    (query,) = plan(sources={"orders": ORDERS, "payments": PAYMENTS}, steps=steps).queries
    assert [step.label for step in query.streaming_steps] == ["1 sql"]
    assert query.group == "ottla.small.main"


def test_sinks_of_one_frame_share_a_query_and_others_have_their_own() -> None:
    steps = [{"filter": "amount > 0", "as": "good"}, {"filter": "amount > 10", "as": "big"}, {"filter": "amount > 99"}]
    sinks = [
        {"topic": "huge"},
        {"topic": "good", "from": "good"},
        {"topic": "huge2"},
        {"topic": "good2", "from": "good"},
    ]
    main, good = plan(steps=steps, sinks=sinks).queries
    assert [sink.name for sink in main.sinks] == ["topic-1", "topic-3"]
    assert [sink.name for sink in good.sinks] == ["topic-2", "topic-4"]
    assert [step.label for step in good.steps] == ["1 filter"]
    assert (main.group, good.group) == ("ottla.small.orders", "ottla.small.orders.good")
    assert main.transactional_id != good.transactional_id


def test_naming_the_last_frame_is_naming_nothing() -> None:
    steps = [{"filter": "amount > 0", "as": "good"}]
    (query,) = plan(steps=steps, sinks=[{"topic": "a", "from": "good"}, {"topic": "b"}]).queries
    assert query.target is None
    (query,) = plan(steps=[], sinks=[{"topic": "a", "from": "orders"}]).queries
    assert query.target is None


def test_only_what_a_sink_needs_is_in_its_query() -> None:
    steps = [
        {"filter": "amount > 0", "from": "orders", "as": "good_orders"},
        {"filter": "amount > 0", "from": "payments", "as": "good_payments"},
    ]
    sinks = [{"topic": "a", "from": "good_orders"}, {"topic": "b", "from": "good_payments"}]
    one, other = plan(sources={"orders": ORDERS, "payments": PAYMENTS}, steps=steps, sinks=sinks).queries
    assert (list(one.sources), list(other.sources)) == (["orders"], ["payments"])
    assert (len(one.steps), len(other.steps)) == (1, 1)


def test_phases_have_names_of_their_own() -> None:
    phases = [
        {"name": "clean", "sources": {"orders": ORDERS}, "sinks": [{"topic": "clean"}]},
        {"name": "count", "sources": {"orders": {**ORDERS, "topic": "clean"}}, "sinks": [{"topic": "counted"}]},
    ]
    made = make_plan(checked({"name": "two", "phases": phases}))
    assert [query.group for query in made.queries] == ["ottla.two.clean.orders", "ottla.two.count.orders"]
    assert len({query.transactional_id for query in made.queries}) == 2


def test_a_version_has_its_own_outputs_groups_and_transactions() -> None:
    first = checked(small(sinks=[{"topic": "out"}, {"files": "lake", "format": "parquet"}], tests=[]))
    second = with_version(first, "v2")
    assert places(second) == {"topic-1": "out.v2", "files-2": "lake_v2", "dead letters": "dead.v2"}
    assert second.phases[0].sources["orders"].entry["start"] == "earliest"
    (query,) = make_plan(second, "v2").queries
    assert query.group == "ottla.small.orders.v2"
    assert query.transactional_id == "ottla.small.main.v2"
    assert query.dead_letter == "dead.v2"


def test_a_phase_of_a_version_reads_what_the_other_phase_of_it_writes() -> None:
    phases = [
        {"name": "clean", "sources": {"orders": ORDERS}, "sinks": [{"topic": "clean"}]},
        {"name": "count", "sources": {"orders": {**ORDERS, "topic": "clean"}}, "sinks": [{"topic": "counted"}]},
    ]
    second = with_version(checked({"name": "two", "phases": phases}), "v2")
    assert second.phases[1].sources["orders"].entry["topic"] == "clean.v2"
    assert second.phases[0].sources["orders"].entry["topic"] == "orders"


def test_a_sink_that_cannot_have_versions_says_so() -> None:
    first = checked(small(sinks=[{"console": True}], tests=[]))
    with pytest.raises(FatalFailure, match="cannot be written in a second version"):
        with_version(first, "v2")
    with pytest.raises(FatalFailure, match="cannot name a version"):
        with_version(first, "../v2")


def test_a_plan_is_shown_as_a_tree_and_as_a_document() -> None:
    made = plan()
    text = "\n".join(f"{'  ' * depth}{line}" for depth, line in tree_lines(made))
    assert "query main: a batch every 1 second, at most 10 records per source" in text
    assert "sink topic-1: topic out (key: id)" in text
    document: Any = describe(made)
    assert document["queries"][0]["streaming"] == ["1 sql", "2 expect"]
    assert document["queries"][0]["per_batch"] == []
