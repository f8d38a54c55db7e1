"""Rows for functions, and what they made of them laid over the columns that they came from."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from ottla.pipelines.steps.arrow_rows import GivenRows, LaidOver, values_of

MOMENT = datetime(2026, 11, 17, 12, 30, 15, 123456, UTC)
KINDS: list[tuple[Any, list[Any]]] = [
    (pa.int32(), [1, None]),
    (pa.string(), ["a", None]),
    (pa.timestamp("us", "UTC"), [MOMENT, None]),
    (pa.timestamp("us"), [MOMENT.replace(tzinfo=None), None]),
    (pa.decimal128(10, 2), [Decimal("1.25"), None]),
    (pa.list_(pa.string()), [["a"], None]),
    (pa.map_(pa.string(), pa.int32()), [{"a": 1}, None]),
]


@pytest.mark.parametrize(("kind", "values"), KINDS)
def test_values_are_those_of_arrow(kind: Any, values: list[Any]) -> None:
    given = [list(value.items()) if isinstance(value, dict) else value for value in values]
    assert values_of(pa.array(given, kind)) == values


def test_a_moment_beyond_every_calendar_fails_as_arrow_says() -> None:
    with pytest.raises(OverflowError, match="out of range"):
        values_of(pa.array([10**18], pa.int64()).cast(pa.timestamp("us", "UTC")))


def test_only_what_was_changed_is_made_anew() -> None:
    batch = pa.RecordBatch.from_pydict({"n": [1, 2, 3], "text": ["a", "b", "c"], "list": [[1], [2], [3]]})
    given = GivenRows(batch)
    made = LaidOver()
    shared: dict[str, Any] = {}
    for index, (row, _) in enumerate(given):
        shared["n"] = row["n"] * 10
        row["list"].append(0)
        made.add(index, shared)  # the same dict each time
    assert given.column(pa.field("n", pa.int64()), made).to_pylist() == [10, 20, 30]
    assert given.column(pa.field("text", pa.string()), made) is batch.column("text") or batch.column("text").equals(
        given.column(pa.field("text", pa.string()), made)
    )
    assert given.column(pa.field("list", pa.list_(pa.int64())), made).to_pylist() == [[1, 0], [2, 0], [3, 0]]
    assert given.column(pa.field("new", pa.string()), made).to_pylist() == [None] * 3
    assert given.column(pa.field("text", pa.large_string()), made).type == pa.large_string()


def test_rows_left_out_and_multiplied_take_their_columns_along() -> None:
    batch = pa.RecordBatch.from_pydict({"n": [1, 2, 3], "text": ["a", "b", "c"]})
    given = GivenRows(batch)
    made = LaidOver()
    for index, count in ((0, 2), (2, 1)):
        for copy in range(count):
            made.add(index, {"copy": copy})
    assert given.column(pa.field("text", pa.string()), made).to_pylist() == ["a", "a", "c"]
    assert given.column(pa.field("copy", pa.int32()), made).to_pylist() == [0, 1, 0]
    kept = made.without({0})
    assert given.column(pa.field("n", pa.int64()), kept).to_pylist() == [3]
    assert given.whole(2, {"n": 9}) == {"n": 9, "text": "c"}


def test_a_batch_without_columns_still_has_rows() -> None:
    empty: Any = pa.array([{}, {}], pa.struct([]))
    batch = pa.RecordBatch.from_struct_array(empty)
    assert [row for row, _ in GivenRows(batch)] == [{}, {}]
