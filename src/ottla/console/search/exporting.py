"""All that a search finds as a file: JSON lines, CSV or Parquet, in pieces, never held as a whole.

Every format has the same columns: partition, offset, timestamp, key, value, headers. JSON lines have documents where
key and value are some; bytes that are no text are base64, and say so.
"""

import asyncio
import csv
import io
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any, Literal

import msgspec

from ottla.console.search.batches import Found
from ottla.console.search.decoding import Decoder
from ottla.console.search.parquet import parquet_bytes
from ottla.console.search.rows import COLUMNS, Shown, row_of, texts_of
from ottla.console.search.windows import size_of

Format = Literal["jsonl", "csv", "parquet"]
FORMATS: tuple[Format, ...] = ("jsonl", "csv", "parquet")
MEDIA_TYPES: dict[Format, str] = {
    "jsonl": "application/x-ndjson",
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
}
SLICE_BYTES = 512 * 1024

_FORMULA_BEGINS = ("=", "+", "-", "@", "\t", "\r")

Change = Callable[[Shown], Shown]
"""What is done to each record before it is written: masking."""


def export(
    steps: AsyncIterator[Sequence[Found]], form: Format, decoder: Decoder, change: Change | None = None
) -> AsyncIterator[bytes]:
    """The bytes of the file, as the steps of a scan come; CannotExport before the first of them."""
    if form == "parquet":
        return parquet_bytes(_rows(steps, decoder, change))
    return (_csv if form == "csv" else _json_lines)(_rows(steps, decoder, change))


async def _rows(
    steps: AsyncIterator[Sequence[Found]], decoder: Decoder, change: Change | None
) -> AsyncIterator[list[Shown]]:
    async for found in steps:
        for some in slices(found):
            yield await asyncio.to_thread(_shown, some, decoder, change)


def slices(found: Sequence[Found]) -> Iterator[list[Found]]:
    """A document takes ten times the memory of its bytes: a few at a time are made."""
    some: list[Found] = []
    size = 0
    for each in found:
        some.append(each)
        size += size_of(each)
        if size >= SLICE_BYTES:
            yield some
            some, size = [], 0
    if some:
        yield some


def _shown(found: Sequence[Found], decoder: Decoder, change: Change | None) -> list[Shown]:
    rows = [row_of(each, decoder) for each in found]
    return rows if change is None else [change(row) for row in rows]


async def _json_lines(rows: AsyncIterator[list[Shown]]) -> AsyncIterator[bytes]:
    async for some in rows:
        yield b"".join(msgspec.json.encode(row) + b"\n" for row in some)


async def _csv(rows: AsyncIterator[list[Shown]]) -> AsyncIterator[bytes]:
    yield _csv_lines([dict(zip(COLUMNS, COLUMNS, strict=True))])
    async for some in rows:
        yield _csv_lines([texts_of(row) for row in some])


def _csv_lines(rows: Sequence[Shown]) -> bytes:
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\r\n")
    for row in rows:
        writer.writerow([_cell(row[name]) for name in COLUMNS])
    return out.getvalue().encode()


def _cell(value: Any) -> Any:
    """A text that a spreadsheet would take for a formula gets an apostrophe before it, and is a text again."""
    if isinstance(value, str) and value.startswith(_FORMULA_BEGINS):
        return f"'{value}"
    return "" if value is None else value
