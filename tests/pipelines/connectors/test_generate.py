"""Generated rows: the same for the same seed however they are cut, with the shares that were asked for."""

import itertools
import json
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from ottla.pipelines.connectors.base import SourceContext
from ottla.pipelines.connectors.generated.connector import GeneratedStream, GenerateOptions, GenerateSource, Generation
from ottla.pipelines.connectors.generated.rows import Late, Plan, broken_rows, build, late_rows, originals
from ottla.pipelines.errors import ConnectorProblem

FIELDS: dict[str, Any] = {
    "id": {"kind": "sequence", "start": 100, "step": 2},
    "item": {"kind": "choice", "of": ["book", "pen", None], "weights": [2, 1, 1]},
    "size": {"kind": "choice", "of": [1, 2.5]},
    "amount": {"kind": "number", "low": 1, "high": 9, "digits": 1},
    "count": {"kind": "integer", "low": -2, "high": 2},
    "at": {"kind": "timestamp", "start": "2026-01-01T00:00:00Z", "step_ms": 500},
    "uid": {"kind": "uuid"},
    "who": {"kind": "name"},
    "note": {"kind": "template", "text": "row {row}: {item} {id:05d}"},
}


def options(**more: Any) -> GenerateOptions:
    return msgspec.convert({"generate": FIELDS, **more}, GenerateOptions)


def plan(**more: Any) -> Plan:
    made = GenerateSource(options(**more))
    assert made.problems() == []
    return made.plan


@given(st.integers(0, 500), st.lists(st.integers(0, 500), max_size=4), st.integers(-5, 5))
def test_a_range_can_be_cut_anywhere(start: int, cuts: list[int], seed: int) -> None:
    wanted = plan(seed=seed, duplicates=0.2, late={"share": 0.1, "by_ms": 5000}, broken=0.1, records="json", key="id")
    edges = sorted({start, start + 60, *[start + cut % 60 for cut in cuts]})
    whole = build(wanted, start, start + 60)
    parts = [build(wanted, low, high) for low, high in itertools.pairwise(edges)]
    assert pa.Table.from_batches(parts).combine_chunks().to_pylist() == whole.to_pylist()


def test_values_are_what_the_fields_say() -> None:
    rows = build(plan(), 0, 2000).to_pylist()
    assert [row["id"] for row in rows[:3]] == [100, 102, 104]
    assert {row["item"] for row in rows} == {"book", "pen", None}
    assert 900 < sum(row["item"] == "book" for row in rows) < 1100
    assert {row["size"] for row in rows} == {1.0, 2.5}
    assert all(1 <= row["amount"] <= 9 and round(row["amount"], 1) == row["amount"] for row in rows)
    assert {row["count"] for row in rows} == {-2, -1, 0, 1, 2}
    assert (rows[3]["at"] - rows[1]["at"]).total_seconds() == 1
    assert len({row["uid"] for row in rows}) == 2000
    assert rows[1]["note"] == f"row 1: {rows[1]['item']} 00102"
    assert build(plan(seed=1), 0, 5).to_pylist() != rows[:5]


def test_duplicates_repeat_a_row_that_was_there() -> None:
    wanted = plan(duplicates=0.3, duplicate_distance=10)
    rows = np.arange(3000)
    same_as = originals(wanted, rows)
    repeats = same_as != rows
    assert 0.25 < repeats.mean() < 0.35
    assert (originals(wanted, same_as) == same_as).all()
    content = build(wanted, 0, 3000).to_pylist()
    assert all(content[row] == content[original] for row, original in enumerate(same_as.tolist()))
    assert len({row["uid"] for row in content}) == 3000 - int(repeats.sum())


def test_late_and_broken_rows_are_as_many_as_asked() -> None:
    wanted = plan(late={"share": 0.1, "by_ms": 60_000}, broken=0.05, records="json", key="item")
    rows = np.arange(4000)
    late, broken = late_rows(wanted, rows), broken_rows(wanted, rows)
    assert 0.07 < late.mean() < 0.13
    assert 0.03 < broken.mean() < 0.07
    batch = build(wanted, 0, 4000).to_pylist()
    on_time = build(plan(), 0, 4000).to_pylist()
    for row, record in enumerate(batch):
        try:
            value = json.loads(record["value"])
        except ValueError:
            assert broken[row]
            continue
        assert not broken[row]
        behind = on_time[row]["at"] - msgspec.convert(value["at"], type(on_time[row]["at"]))
        assert (0 < behind.total_seconds() <= 60) == bool(late[row])
        assert record["key"] == (None if value["item"] is None else value["item"].encode())


def test_problems() -> None:
    wrong = {
        "a": {"kind": "choice", "of": ["x", 1]},
        "b": {"kind": "choice", "of": ["x"], "weights": [1, 2]},
        "c": {"kind": "integer", "low": 2, "high": 1},
        "d": {"kind": "template", "text": "{e}"},
    }
    made = msgspec.convert({"generate": wrong, "broken": 0.1, "late": {"share": 1, "by_ms": 1}}, GenerateOptions)
    assert GenerateSource(made).problems() == [
        "fields.a: the values are of different types",
        "fields.b: 1 values and 2 weights",
        "fields.c: low is above high",
        "fields.d: '{e}' names what is not there ('e'); fields: a, b, c, row",
        "late: there is no field of kind timestamp to be late in",
        "broken: only records can be broken; set `records: json`",
    ]
    assert GenerateSource(GenerateOptions(generate={})).problems() == ["generate: name at least one field"]


def test_the_rate_counts_from_the_start_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("ottla.pipelines.connectors.generated.connector.time.monotonic", lambda: now[0])
    stream = GeneratedStream(Generation(plan=plan(), rate=10, count=95, partitions=2, max_rows=None))
    everything = ReadAllAvailable()
    assert stream.latestOffset({"row": 50}, everything) == {"row": 50}
    now[0] += 2.05
    assert stream.latestOffset({"row": 50}, everything) == {"row": 70}
    assert stream.latestOffset({"row": 50}, ReadMaxRows(5)) == {"row": 55}
    now[0] += 60
    assert stream.latestOffset({"row": 70}, everything) == {"row": 95}


def test_on_spark_as_a_stream_and_as_a_table(
    source_context: Callable[..., SourceContext], drain: Callable[..., list[Any]]
) -> None:
    source = GenerateSource(options(count=25, duplicates=0.2, late={"share": 0.2, "by_ms": 1000}))
    expected = build(source.plan, 0, 25).to_pylist()
    table = source.table(source_context())
    assert sorted(table.toArrow().to_pylist(), key=str) == sorted(expected, key=str)
    sizes: list[int] = []
    rows = drain(source.stream(source_context(max_records=10)), batches=sizes)
    assert sizes == [10, 10, 5]
    assert sorted(row.uid for row in rows) == sorted(row["uid"] for row in expected)
    endless = GenerateSource(options())
    with pytest.raises(ConnectorProblem, match="set `rate` or `count`"):
        endless.stream(source_context())
    with pytest.raises(ConnectorProblem, match="set `count`"):
        endless.table(source_context())
    assert Late(share=0.1, by_ms=1) == msgspec.convert({"share": 0.1, "by_ms": 1}, Late)
