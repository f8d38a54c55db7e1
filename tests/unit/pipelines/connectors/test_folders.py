"""Rows by the values that name their folders."""

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from ottla.pipelines.connectors.objects.folders import by_values

TEXTS = st.none() | st.sampled_from(["", "a", "b/c", "ä"])
ROWS = st.lists(st.tuples(TEXTS, st.none() | st.integers(-2, 2), st.booleans()), max_size=30)


@given(ROWS, st.sampled_from([(), ("text",), ("number", "text"), ("flag", "number", "text")]))
def test_every_row_is_with_its_values_and_in_order(rows: list[tuple[Any, ...]], columns: tuple[str, ...]) -> None:
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array([row[0] for row in rows], pa.string()),
            pa.array([row[1] for row in rows], pa.int32()),
            pa.array([row[2] for row in rows], pa.bool_()),
            pa.array(range(len(rows)), pa.int64()),
        ],
        names=["text", "number", "flag", "place"],
    )
    found = list(by_values(batch, columns))
    expected: dict[tuple[Any, ...], list[int]] = {}
    for place, (text, number, flag) in enumerate(rows):
        texts = {"text": text, "number": number if number is None else str(number), "flag": str(flag).lower()}
        expected.setdefault(tuple(texts[name] for name in columns), []).append(place)
    assert {values: part.column("place").to_pylist() for values, part in found} == expected
    assert len(found) == len(expected)
    assert all(part.schema == batch.schema for _, part in found)
