"""The hash over records: the same however they are cut, another for every difference."""

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from ottla.pipelines.backup.sums import RecordSum
from ottla.pipelines.backup.taking import SCHEMA

BYTES = st.one_of(st.none(), st.binary(max_size=6))
HEADERS = st.lists(st.tuples(st.text(max_size=3), BYTES), max_size=3)
RECORDS = st.lists(st.tuples(BYTES, BYTES, HEADERS, st.integers(0, 10**12)), min_size=1, max_size=8)


def rows(records: list[Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(
        [
            {
                "topic": "t", "partition": 0, "offset": offset, "timestamp": time * 1000, "timestamp_type": 0,
                "key": key, "value": value, "headers": [{"key": name, "value": each} for name, each in headers],
            }
            for offset, (key, value, headers, time) in enumerate(records)
        ],
        schema=SCHEMA,
    )  # fmt: skip


def digest(*batches: pa.RecordBatch) -> str:
    found = RecordSum()
    for batch in batches:
        found.add(batch)
    return found.digest()


@given(RECORDS, st.integers(0, 8))
def test_it_does_not_matter_how_rows_are_cut(records: list[Any], at: int) -> None:
    whole = rows(records)
    assert digest(whole.slice(0, at), whole.slice(at)) == digest(whole)


@given(RECORDS, RECORDS)
def test_other_records_have_another_hash(one: list[Any], other: list[Any]) -> None:
    assert (digest(rows(one)) == digest(rows(other))) == (one == other)


def test_null_differs_from_empty_and_order_counts() -> None:
    plain: Any = (b"k", b"v", [("a", b"1"), ("b", None)], 5)
    others: list[Any] = [
        (None, b"v", [("a", b"1"), ("b", None)], 5),
        (b"", b"v", [("a", b"1"), ("b", None)], 5),
        (b"kv", b"", [("a", b"1"), ("b", None)], 5),
        (b"k", b"v", [("b", None), ("a", b"1")], 5),
        (b"k", b"v", [("a", b"1"), ("b", b"")], 5),
        (b"k", b"v", [("a", b"1")], 5),
        (b"k", b"v", [("a", b"1"), ("b", None)], 6),
    ]
    assert len({digest(rows([each])) for each in [plain, *others]}) == len(others) + 1


def test_it_knows_first_last_and_order() -> None:
    found = RecordSum()
    found.add(rows([(b"k", b"v", [], 7), (b"k", b"v", [], 5)]))
    assert (found.records, found.first, found.last, found.max_timestamp, found.in_order) == (2, 0, 1, 7, True)
    found.add(rows([(b"k", b"v", [], 7)]))
    assert not found.in_order
