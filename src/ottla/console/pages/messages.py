"""Records: searched with one line, followed live, one by one in full, exported."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any, NamedTuple

from starlette.responses import Response, StreamingResponse

from ottla.console.access.masking import Mask
from ottla.console.asking import Ask, BadInput, NotThere
from ottla.console.commands import command
from ottla.console.pages.events import STREAM_SECONDS_MAX, event, stream
from ottla.console.search.batches import Found
from ottla.console.search.decoding import Decoded, show_plain
from ottla.console.search.exporting import FORMATS, MEDIA_TYPES, export
from ottla.console.search.query import BadQuery, Query, parse_query
from ottla.console.search.scanning import End, Scan
from ottla.console.search.tailing import Tail
from ottla.console.wording import count, size
from ottla.model.errors import OttlaError

HITS_SHOWN = 100
HITS_PLAIN = 40
HITS_MAX = 1000
PLAIN_SECONDS_MAX = 8.0
CHARACTERS_SHOWN = 300
"""In a table of a page, which stays small so; programs get more."""
CHARACTERS_TOLD = 20_000
CHARACTERS_FULL = 1_000_000
HEADERS_SHOWN = 50
HEADER_CHARACTERS = 500
PROGRESS_SECONDS = 0.25
HELP = (
    ("word", "in key or value"),
    ("key=42", "the whole key; key:4 for a part"),
    ("$.order.id=42", "a field of a JSON, Avro or Protobuf value; also >, <, ~"),
    ("header.trace:x", "a header"),
    ("value:null", "tombstones"),
    ("partition:0,2", "only there"),
    ("offset>=100", "and offset<200"),
    ("since:15m", "or from:2026-01-31T12:00 to:…"),
    ("order:oldest", "first; the newest otherwise"),
    ("-word", "not that"),
)


class RecordRow(NamedTuple):
    partition: int
    offset: int
    timestamp_ms: int
    key: Decoded
    value: Decoded
    headers: list[tuple[str, str]]
    more_headers: int


async def show(ask: Ask) -> dict[str, Any]:
    """For programs, and browsers without the script, a search of bounded length; else the page that streams one."""
    topic = ask.names["topic"]
    await _known(ask, topic)
    text = ask.fields.get("q")
    query, error = _query(text)
    if error and not ask.for_page:
        raise BadInput(error)
    document: dict[str, Any] = {
        "topic": topic,
        "q": text,
        "error": error,
        "items": [],
        "_tail": "tail" in ask.fields,
        "_plain": "plain" in ask.fields,
        "_stream": ask.link(f"/topics/{topic}/messages/stream", q=text, tail=ask.fields.get("tail")),
        "_shown": HITS_SHOWN,
        "_help": HELP,
        "_formats": FORMATS,
        "_words": "",
        "_command": command(
            ask, "kafka-console-consumer", "--topic", topic, "--from-beginning", "--max-messages", "10"
        ),
    }
    if not error and ("plain" in ask.fields or not ask.for_page):
        most = HITS_PLAIN if ask.for_page else HITS_MAX
        limit = min(max(1, ask.fields.integer("limit", HITS_PLAIN)), most)
        document |= await _search(ask, topic, query, limit)
    return document


def _query(text: str) -> tuple[Query, str]:
    try:
        return parse_query(text), ""
    except BadQuery as error:
        return parse_query(""), str(error)


async def _known(ask: Ask, topic: str) -> tuple[int, ...]:
    found = await ask.snapshot()
    if topic not in found.numbers:
        ask.watched.invalidate()
        found = await ask.snapshot()
    if topic not in found.numbers:
        raise NotThere(f"there is no topic {topic}")
    return found.numbers[topic]


def scan_of(ask: Ask, topic: str, query: Query, limit: int | None) -> Scan:
    decoder = ask.console.registries.decoder(ask.watched.settings, ask.caller)
    mask = ask.caller.mask(topic)
    if mask is not None:
        mask.check(query)  # who may not see a field must not find it either
    return Scan(ask.watched.cluster, topic, query, decoder, limit=limit)


async def _search(ask: Ask, topic: str, query: Query, limit: int) -> dict[str, Any]:
    scan = scan_of(ask, topic, query, limit)
    found: list[Found] = []
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(PLAIN_SECONDS_MAX):
            async for hits in scan.steps():
                found += hits
    rows = await rows_of(ask, topic, found)
    return {"items": rows, **facts(scan), "_words": words_of(scan)}


def facts(scan: Scan) -> dict[str, Any]:
    return {
        "scanned": scan.scanned,
        "matched": scan.matched,
        "bytes": scan.bytes_read,
        "done": scan.end.value if scan.end is not None else "time",
    }


def words_of(scan: Scan) -> str:
    share = "" if not scan.total else f" ({min(100, 100 * scan.covered // scan.total)} %)"
    return f"{count(scan.scanned)} records looked at{share}, {count(scan.matched)} match, {size(scan.bytes_read)} read"


_ENDS = {
    End.COMPLETE: "that is all",
    End.LIMIT: "there may be more: narrow the search, or add limit:1000",
    End.STOPPED: "stopped",
}


async def rows_of(ask: Ask, topic: str, found: Sequence[Found], characters: int | None = None) -> list[RecordRow]:
    characters = characters or (CHARACTERS_SHOWN if ask.for_page else CHARACTERS_TOLD)
    decoder = ask.console.registries.decoder(ask.watched.settings, ask.caller)
    parts = [part for each in found for part in ((each.key, "key", each.headers), (each.value, "value", each.headers))]
    shown = await decoder.shown(parts, characters)
    mask = ask.caller.mask(topic)
    if mask is not None:
        shown = [mask.decoded(each, part, characters) for each, (_, part, _) in zip(shown, parts, strict=True)]
    return [
        RecordRow(
            each.partition,
            each.offset,
            each.timestamp_ms,
            shown[2 * at],
            shown[2 * at + 1],
            [_header(name, value, mask) for name, value in each.headers[:HEADERS_SHOWN]],
            max(0, len(each.headers) - HEADERS_SHOWN),
        )
        for at, each in enumerate(found)
    ]


def _header(name: str, value: bytes | None, mask: Mask | None) -> tuple[str, str]:
    text = "null" if value is None else show_plain(value, None, HEADER_CHARACTERS).text
    return name[:HEADER_CHARACTERS], text if mask is None else str(mask.header(name, text))


async def follow(ask: Ask) -> Response:
    """A search, or with `tail` what is written from now on, as a stream of rows and counts."""
    topic = ask.names["topic"]
    await _known(ask, topic)
    query, error = _query(ask.fields.get("q"))
    if error:
        raise BadInput(error)
    return stream(_tailed(ask, topic, query) if ask.fields.get("tail") else _found(ask, topic, query))


async def _found(ask: Ask, topic: str, query: Query) -> AsyncIterator[bytes]:
    limit = min(query.limit or HITS_SHOWN, HITS_MAX)
    scan = scan_of(ask, topic, query._replace(limit=limit), limit)
    told = 0.0
    try:
        async for hits in scan.steps():
            if hits:
                yield await _hits(ask, topic, hits)
            if hits or time.monotonic() - told > PROGRESS_SECONDS:
                told = time.monotonic()
                yield event("progress", {"words": words_of(scan), **facts(scan)})
    except OttlaError as error:
        yield event("failed", {"words": str(error)})
        return
    yield event("progress", {"words": words_of(scan), **facts(scan)})
    yield event("done", {"words": _ENDS[scan.end or End.COMPLETE], **facts(scan)})


async def _tailed(ask: Ask, topic: str, query: Query) -> AsyncIterator[bytes]:
    """No more than so many a second: a browser, and whoever reads in it, could not follow. Those beyond are counted."""
    decoder = ask.console.registries.decoder(ask.watched.settings, ask.caller)
    mask = ask.caller.mask(topic)
    if mask is not None:
        mask.check(query)
    tail = Tail(ask.watched.cluster, topic, query, decoder)
    until = time.monotonic() + STREAM_SECONDS_MAX
    yield event("progress", {"words": "waiting for records"})
    try:
        async for look in tail.looks():
            if look.found:
                yield await _hits(ask, topic, list(reversed(look.found)))
            skipped = f", {count(tail.skipped)} were passed over: too many" if tail.skipped else ""
            hidden = tail.matched - tail.given
            unshown = f", {count(hidden)} of them not shown" if hidden > 0 else ""
            words = f"{count(tail.seen)} records came{skipped}, {count(tail.matched)} match{unshown}"
            yield event("progress", {"words": words})
            if time.monotonic() > until:
                yield event("done", {"words": "followed for a while: load the page to go on"})
                return
    except OttlaError as error:
        yield event("failed", {"words": str(error)})


async def _hits(ask: Ask, topic: str, hits: Sequence[Found]) -> bytes:
    rows = await rows_of(ask, topic, hits)
    context = {"items": rows, "topic": topic, "ask": ask, "base": ask.base}
    return event("hits", {"html": ask.console.pages.render("message_rows.html", context)})


async def show_one(ask: Ask) -> dict[str, Any]:
    """One record in full."""
    topic = ask.names["topic"]
    found = await one(ask, topic, ask.fields.integer("partition", least=0), ask.fields.integer("offset", least=0))
    (row,) = await rows_of(ask, topic, [found], CHARACTERS_FULL)
    return {
        "topic": topic,
        "record": row,
        "key_bytes": len(found.key or b""),
        "value_bytes": len(found.value or b""),
        "_command": command(
            ask, "kafka-console-consumer", "--topic", topic, "--partition", str(found.partition),
            "--offset", str(found.offset), "--max-messages", "1", "--property", "print.headers=true",
        ),
    }  # fmt: skip


async def one(ask: Ask, topic: str, partition: int, offset: int) -> Found:
    if partition not in await _known(ask, topic):
        raise NotThere(f"{topic} has no partition {partition}")
    query = parse_query(f"partition:{partition} offset>={offset} offset<{offset + 1} order:oldest limit:1")
    async for found in scan_of(ask, topic, query, 1):
        return found
    raise NotThere(f"{topic}-{partition} has no record at offset {offset}: it was deleted, compacted away or aborted")


async def export_all(ask: Ask) -> Response:
    """All that match, however many, as they are found: nothing is kept here."""
    topic = ask.names["topic"]
    await _known(ask, topic)
    asked = ask.fields.get("format") or "jsonl"
    form = next((each for each in FORMATS if each == asked), None)
    if form is None:
        raise BadInput(f"format is one of {', '.join(FORMATS)}, not `{asked}`")
    query, error = _query(ask.fields.get("q"))
    if error:
        raise BadInput(error)
    scan = scan_of(ask, topic, query, None)
    decoder = ask.console.registries.decoder(ask.watched.settings, ask.caller)
    headers = {"Content-Disposition": f'attachment; filename="{topic}.{form}"', "Cache-Control": "no-store"}
    mask = ask.caller.mask(topic)
    parts = export(scan.steps(), form, decoder, None if mask is None else mask.row)
    return StreamingResponse(parts, media_type=MEDIA_TYPES[form], headers=headers)
