"""Rows that become records only in the task that writes them."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from ottla.spark.writing.made_later import UNMADE, MakeRecordsTask, with_made

_COLUMNS: dict[str, pa.DataType] = {
    "key": pa.binary(),
    "topic": pa.string(),
    "row": pa.int64(),
    UNMADE: pa.string(),
}
SCHEMA = pa.schema(_COLUMNS)


def batch(*rows: dict[str, Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), schema=SCHEMA)


def letter(text: str) -> dict[str, Any]:
    return {"key": text.encode(), "topic": "dead"}


def test_texts_become_records_behind_the_rows_that_came_with_them() -> None:
    given = batch({"topic": "out", "row": 1}, {UNMADE: "a"}, {"topic": "out", "row": 2}, {UNMADE: "b"})
    made = [row for part in with_made(iter([given]), letter) for row in part.to_pylist()]
    nothing = {"key": None, "row": None}
    assert made == [
        nothing | {"topic": "out", "row": 1},
        nothing | {"topic": "out", "row": 2},
        nothing | {"topic": "dead", "key": b"a"},
        nothing | {"topic": "dead", "key": b"b"},
    ]


def test_a_batch_without_texts_passes_as_it_is() -> None:
    (passed,) = with_made(iter([batch({"topic": "out", "row": 1})]), letter)
    assert passed.to_pylist() == [{"key": None, "topic": "out", "row": 1}]
    (empty,) = with_made(iter([batch()]), letter)
    assert (empty.num_rows, UNMADE in empty.schema.names) == (0, False)


def test_a_task_gets_records_alone() -> None:
    class Counts:
        def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield from batches

    parts = MakeRecordsTask(letter, Counts()).run(iter([batch({UNMADE: "a"}, {"topic": "out"})]))
    assert [part.num_rows for part in parts] == [1, 1]
