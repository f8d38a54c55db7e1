"""What the kernel takes for plain JSON, and that nothing else makes it read where it must not.

That it reads what Spark reads is in tests/spark/test_plain_json.py.
"""

import json
import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.spark.kernel.interface import Kernel
from ottla.spark.kernel.json_columns import JsonField, JsonKind, arrow_type, read_objects
from ottla.spark.kernel.native import LIBRARY, NativeKernel
from ottla.spark.kernel.twin import TwinKernel

compiled = pytest.mark.skipif(not LIBRARY.exists(), reason="there is no compiled kernel here")

FIELDS = (
    JsonField("text", JsonKind.TEXT),
    JsonField("n", JsonKind.INT32),
    JsonField("big", JsonKind.INT64),
    JsonField("x", JsonKind.DOUBLE),
    JsonField("flag", JsonKind.BOOLEAN),
    JsonField("o", JsonKind.OBJECT, False, (JsonField("must", JsonKind.TEXT, True), JsonField("n", JsonKind.INT32))),
    JsonField("last", JsonKind.TEXT),
)
NAMES = [field.name for field in FIELDS]


def read(*values: bytes | None, kernel: Kernel | None = None) -> list[Any]:
    return read_objects(kernel or NativeKernel(), pa.array(values, pa.binary()), FIELDS).to_pylist()


@compiled
@given(
    st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                "text": st.none() | st.text(),
                "n": st.none() | st.integers(-(2**31), 2**31 - 1),
                "big": st.integers(-(10**17), 10**17),
                "x": st.integers(-(2**40), 2**40) | st.decimals(-1000, 1000, places=3).map(float).filter(bool),
                "flag": st.booleans(),
                "o": st.none() | st.fixed_dictionaries({"must": st.text()}, optional={"n": st.none()}),
                "other": st.recursive(st.none() | st.booleans() | st.text(), lambda inner: st.lists(inner, max_size=3)),
                "last": st.text(),
            },
        ),
        min_size=1,
    ),
    st.booleans(),
    st.sampled_from([None, 1]),
)
def test_objects_of_the_strict_grammar_are_read(rows: list[dict[str, Any]], ascii_only: bool, indent: int) -> None:
    encoded = [json.dumps(row, ensure_ascii=ascii_only, indent=indent).encode() for row in rows]
    expected = [_shown(row) for row in rows]
    assert read(*encoded) == expected


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    shown = {name: row.get(name) for name in NAMES}
    if shown["o"] is not None:
        shown["o"] = {"must": shown["o"]["must"], "n": None}
    return shown


@compiled
def test_what_is_not_plain_leaves_nothing_behind() -> None:
    """A value that turns out not to be plain at its end must not show in the columns that were filled before."""
    found = read(
        b'{"text":"gone","n":1,"o":{"must":"gone"}} x', b'{"n":2}', None, b'{"o":{"n":1}}', b'{"text":"a","text":"b"}'
    )
    assert found == [None, {**dict.fromkeys(NAMES), "n": 2}, None, None, None]


@compiled
def test_a_slice_of_a_column_is_read_from_where_it_begins() -> None:
    whole = pa.array([b'{"text":"no"}', b'{"text":"a\\n"}', None, b'{"text":"b"}', b'{"text":"no"}'], pa.binary())
    found = read_objects(NativeKernel(), whole.slice(1, 3), FIELDS).to_pylist()
    assert [None if row is None else row["text"] for row in found] == ["a\n", None, "b"]
    assert read_objects(NativeKernel(), whole.slice(0, 0), FIELDS).to_pylist() == []


@compiled
def test_hostile_bytes(pytestconfig: pytest.Config) -> None:
    """Cut, flipped and random: whatever is taken for plain is JSON to others, with the same fields."""
    count = int(pytestconfig.getoption("--hostile-inputs") or 5_000)
    chance = random.Random(7)
    good = (
        b'{"text":"\\u00e9\\ud83d\\ude00\xc3\xa9","n":-12,"big":1,"x":1.5e3,"flag":true,'
        b'"o":{"must":"m","n":null},"q":[{}, 1e5],"last":"z"}'
    )
    values = []
    for _ in range(count):
        made = bytearray(good)
        for _ in range(chance.randrange(1, 4)):
            made[chance.randrange(len(made))] = chance.choice((chance.randrange(256), *b'"\\{}[],:u0e.-'))
        values.append(bytes(made[: chance.choice((len(made), chance.randrange(len(made))))]))
    for value, row in zip(values, read(*values), strict=True):
        if row is not None:
            told = json.loads(value)
            assert {name: told.get(name) for name in ("n", "big", "flag")} == {
                name: row[name] for name in ("n", "big", "flag")
            }


def test_the_twin_leaves_all_of_it_to_spark() -> None:
    assert read(b'{"n":1}', b"{}", None, kernel=TwinKernel()) == [None, None, None]
    assert read_objects(TwinKernel(), pa.array([b"{}"], pa.binary()), FIELDS).type == arrow_type(FIELDS)
