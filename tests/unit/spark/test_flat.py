"""Structs spread over columns, as they travel between Spark and Python, and gathered again."""

from typing import Any

import pyarrow as pa

from ottla.spark.flat import gather, spread

_HEADERS = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
_ORIGIN = pa.struct([pa.field("topic", pa.string()), pa.field("offset", pa.int64()), pa.field("headers", _HEADERS)])
SCHEMA = pa.schema([pa.field("id", pa.string()), pa.field("__origin", _ORIGIN), pa.field("n", pa.int32())])
STRUCTS = frozenset({"__origin"})
ROWS: list[dict[str, Any]] = [
    {"id": "a", "__origin": {"topic": "t", "offset": 1, "headers": [{"key": "k", "value": b"v"}]}, "n": 1},
    {"id": "b", "__origin": None, "n": 2},
    {"id": None, "__origin": {"topic": None, "offset": None, "headers": None}, "n": None},
]


def test_what_is_spread_is_gathered_as_it_was_also_where_there_is_no_struct_or_an_empty_one() -> None:
    batch = pa.RecordBatch.from_pylist(ROWS, schema=SCHEMA)
    flat = spread(batch, STRUCTS)
    assert flat.schema.names == ["id", "__origin", "__origin__topic", "__origin__offset", "__origin__headers", "n"]
    assert flat.column("__origin").to_pylist() == [True, False, True]
    assert not any(pa.types.is_struct(column.type) for column in flat.columns)
    assert gather(flat, STRUCTS).to_pylist() == ROWS


def test_a_part_of_a_batch_is_spread_without_what_is_behind_it() -> None:
    batch = pa.RecordBatch.from_pylist(ROWS, schema=SCHEMA).slice(1, 1)
    flat = spread(batch, STRUCTS)
    assert flat.to_pylist() == [
        {
            "id": "b",
            "__origin": False,
            "__origin__topic": None,
            "__origin__offset": None,
            "__origin__headers": None,
            "n": 2,
        }
    ]
    assert gather(flat, STRUCTS).to_pylist() == ROWS[1:2]


def test_columns_without_structs_pass_as_they_are() -> None:
    batch = pa.RecordBatch.from_pylist(ROWS, schema=SCHEMA).select(["id", "n"])
    assert gather(spread(batch, frozenset()), frozenset()).equals(batch)
