"""Files of what was found: every format from the same records, formulas made harmless, masks applied."""

import asyncio
import base64
import csv
import io
import json
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest

from ottla.console.search.batches import Found
from ottla.console.search.decoding import Decoder
from ottla.console.search.exporting import SLICE_BYTES, Format, export, slices
from ottla.console.search.parquet import CannotExport

RECORDS = [
    Found(0, 7, 1_767_225_600_001, b"k", b'{"a":[1,"x"]}', (("h", b"v"), ("n", None), ("b", b"\xff"))),
    Found(1, 8, 1_767_225_600_002, None, None, ()),
    Found(0, 9, 1_767_225_600_003, b"=HYPERLINK(1)", b'@x,\n"y"', ()),
    Found(0, 10, -1, b"\xff\x00", b"-1+2", ()),
]


async def _steps(records: Sequence[Found]) -> AsyncIterator[Sequence[Found]]:
    yield records[:1]
    yield []
    yield records[1:]


def exported(form: Format, change: Callable[[Any], Any] | None = None, records: Sequence[Found] = RECORDS) -> bytes:
    async def go() -> bytes:
        return b"".join([piece async for piece in export(_steps(records), form, Decoder(), change)])

    return asyncio.run(go())


def test_json_lines() -> None:
    lines = [json.loads(line) for line in exported("jsonl").splitlines()]
    assert lines[0] == {
        "partition": 0,
        "offset": 7,
        "timestamp": "2026-01-01T00:00:00.001Z",
        "key": "k",
        "value": {"a": [1, "x"]},
        "headers": [
            {"name": "h", "value": "v"},
            {"name": "n", "value": None},
            {"name": "b", "value": base64.b64encode(b"\xff").decode(), "encoding": "base64"},
        ],
    }
    assert (lines[1]["key"], lines[1]["value"], lines[1]["headers"]) == (None, None, [])
    assert (base64.b64decode(lines[3]["key"]), lines[3]["key_encoding"]) == (b"\xff\x00", "base64")


def test_csv_has_no_formulas() -> None:
    rows = list(csv.reader(io.StringIO(exported("csv").decode(), newline="")))
    assert rows[0] == ["partition", "offset", "timestamp", "key", "value", "headers"]
    assert rows[1][3:5] == ["k", '{"a":[1,"x"]}']
    assert rows[2][3:5] == ["", ""]
    assert rows[3][3:5] == ["'=HYPERLINK(1)", '\'@x,\n"y"']
    assert rows[4][4] == "'-1+2"


def test_parquet() -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(io.BytesIO(exported("parquet"))).to_pylist()
    assert [row["offset"] for row in table] == [7, 8, 9, 10]
    assert table[0]["value"] == '{"a":[1,"x"]}'
    assert table[1]["value"] is None
    assert table[0]["timestamp"].isoformat() == "2026-01-01T00:00:00.001000+00:00"
    assert parquet.read_table(io.BytesIO(exported("parquet", records=[]))).num_rows == 0


def test_parquet_without_pyarrow_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(CannotExport, match=r"pip install 'ottla\[spark\]'"):
        export(_steps([]), "parquet", Decoder())


def test_records_are_changed_before_they_are_written() -> None:
    lines = exported("jsonl", lambda row: {**row, "value": "***"}).splitlines()
    assert {json.loads(line)["value"] for line in lines} == {"***"}


def test_few_documents_are_made_at_once() -> None:
    large = [Found(0, number, 0, None, b"x" * (SLICE_BYTES // 2), ()) for number in range(5)]
    assert [len(some) for some in slices(large)] == [2, 2, 1]
