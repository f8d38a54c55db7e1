"""A record as a document: what JSON lines have, what the API answers, what columns are made from."""

import base64
from typing import Any

import msgspec

from ottla.console.search.batches import Found
from ottla.console.search.decoding import Decoder
from ottla.console.search.query import write_time

COLUMNS = ("partition", "offset", "timestamp", "key", "value", "headers")
WHOLE = 2**62
"""Characters of a value: nothing is cut in a file."""

Shown = dict[str, Any]


def row_of(found: Found, decoder: Decoder) -> Shown:
    """May ask the registry, so it may block."""
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


def texts_of(row: Shown) -> Shown:
    """Documents and headers as JSON texts; null stays null."""
    return {
        name: value if value is None or isinstance(value, str | int) else msgspec.json.encode(value).decode()
        for name, value in ((name, row[name]) for name in COLUMNS)
    }
