"""All that a search finds as a file: JSON lines, CSV or Parquet, in pieces, never held as a whole.

Every format has the same columns: partition, offset, timestamp, key, value, headers. JSON lines have documents where
key and value are some; bytes that are no text are base64, and say so.
"""

import asyncio
import base64
import csv
import io
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any, Literal

import msgspec

from ottla.console.search.batches import Found
from ottla.console.search.decoding import Decoder
from ottla.console.search.query import write_time
from ottla.console.search.windows import size_of
from ottla.model.errors import OttlaError

Format = Literal["jsonl", "csv", "parquet"]
FORMATS: tuple[Format, ...] = ("jsonl", "csv", "parquet")
MEDIA_TYPES: dict[Format, str] = {
    "jsonl": "application/x-ndjson",
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
}
WHOLE = 2**62
"""Characters of a value: nothing is cut in a file."""
SLICE_BYTES = 512 * 1024
GROUP_BYTES = 8 * 1024 * 1024
"""Of records that are gathered for one row group of Parquet."""

_FORMULA_BEGINS = ("=", "+", "-", "@", "\t", "\r")
COLUMNS = ("partition", "offset", "timestamp", "key", "value", "headers")

Shown = dict[str, Any]
Change = Callable[[Shown], Shown]
"""What is done to each record before it is written: masking."""


class CannotExport(OttlaError):
    """The format cannot be written here; the message says what to do."""


def export(
    steps: AsyncIterator[Sequence[Found]], form: Format, decoder: Decoder, change: Change | None = None
) -> AsyncIterator[bytes]:
    """The bytes of the file, as the steps of a scan come; CannotExport before the first of them."""
    if form == "parquet":
        from ottla.console.search.parquet import parquet_bytes  # noqa: PLC0415 - pyarrow is an extra

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


def row_of(found: Found, decoder: Decoder) -> Shown:
    """A record as a document: what JSON lines have, what the API answers. May ask the registry, so it may block."""
    row: Shown = {
        "partition": found.partition,
        "offset": found.offset,
        "timestamp": write_time(max(0, found.timestamp_ms)),
    }
    for part, data in (("key", found.key), ("value", found.value)):
        decoded = decoder.show(data, part, found.headers, WHOLE)
        row[part] = decoded.text if decoded.kind in {"text", "hex"} else decoded.document
        if decoded.kind == "hex" and data is not None:
            row[part] = base64.b64encode(data).decode()
            row[f"{part}_encoding"] = "base64"
    row["headers"] = [{"name": name, **_header(value)} for name, value in found.headers]
    return row


def _header(value: bytes | None) -> Shown:
    if value is None:
        return {"value": None}
    try:
        return {"value": value.decode()}
    except UnicodeDecodeError:
        return {"value": base64.b64encode(value).decode(), "encoding": "base64"}


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


def texts_of(row: Shown) -> Shown:
    """Documents and headers as JSON texts; null stays null."""
    return {
        name: value if value is None or isinstance(value, str | int) else msgspec.json.encode(value).decode()
        for name, value in ((name, row[name]) for name in COLUMNS)
    }


def _cell(value: Any) -> Any:
    """A text that a spreadsheet would take for a formula gets an apostrophe before it, and is a text again."""
    if isinstance(value, str) and value.startswith(_FORMULA_BEGINS):
        return f"'{value}"
    return "" if value is None else value
