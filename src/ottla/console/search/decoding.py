"""Bytes to what people read: by a registry's schema, as JSON, as text, as hex. Hostile bytes raise nothing.

`Decoder.document` and `show` may ask the registry, which blocks: call them in a thread, or await `shown`.
"""

import asyncio
import re
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from ottla.console.search.matching import NO_DOCUMENT, Headers, Matcher
from ottla.console.search.query import Query
from ottla.registry.client import RegistryClient, RegistrySchema
from ottla.registry.errors import RegistryError
from ottla.registry.framing import ID_BYTES, ID_MAGIC, KEY_HEADER, VALUE_HEADER, BadFraming, Framed, read_id
from ottla.registry.schemas.values import Codec, codec_of

CHARACTERS_MAX = 20_000
HEX_BYTES_MAX = 2_048
DEPTH_MAX = 100
"""Documents nested deeper are shown as the text that they are: who writes them out again walks them by recursion."""
UNKNOWN_SECONDS = 10.0
"""So long a schema that could not be had is not asked for again: a registry that is away would stop every record."""
CODECS_MAX = 1_000

Kind = Literal["null", "avro", "json-schema", "protobuf", "json", "text", "hex"]
_KINDS: dict[str, Kind] = {"AVRO": "avro", "JSON": "json-schema", "PROTOBUF": "protobuf"}


class Decoded(NamedTuple):
    kind: Kind
    text: str
    """What to show; cut where it is too long, and `length` tells how long the bytes are."""
    document: Any = None
    """Of JSON and registered schemas, if it can be walked safely."""
    error: str | None = None
    """Why it is not shown as what it claims to be."""
    length: int = 0
    is_cut: bool = False
    schema: str | None = None
    """The registered schema's id or guid."""


class _Undecodable(Exception):
    """Why framed bytes cannot be read."""


class _Known(NamedTuple):
    codec: Codec | None
    schema_type: str
    why: str
    since: float


class Decoder:
    """Keeps what reads the values of each registered schema. Safe to use from several threads."""

    def __init__(self, registry: RegistryClient | None = None, *, now: Callable[[], float] = time.monotonic) -> None:
        self._registry = registry
        self._now = now
        self._known: dict[int | str, _Known] = {}
        self._asking = threading.Lock()

    # For searching.

    def matcher(self, query: Query) -> Matcher:
        """What tells records that a query looks for. It may block where there is a registry."""
        return Matcher(query, None if self._registry is None else self.document)

    def document(self, data: bytes, part: str, headers: Headers) -> Any:
        """The document that a key or value is; NO_DOCUMENT if it is none. May block."""
        framed = self._framed(data, part, headers)
        if framed is not None:
            try:
                return self._read(data, framed)[0]
            except _Undecodable:
                pass
        return json_document(data)

    # For showing.

    def show(
        self, data: bytes | None, part: str = "value", headers: Headers = (), characters_max: int = CHARACTERS_MAX
    ) -> Decoded:
        """May block."""
        if data is None:
            return Decoded("null", "null")
        framed, error = self._framed(data, part, headers), None
        if framed is not None:
            try:
                document, known = self._read(data, framed)
            except _Undecodable as why:
                error = str(why)
            else:
                return _shown_document(data, document, known, str(framed.guid or framed.schema_id), characters_max)
        return show_plain(data, error, characters_max)

    async def shown(
        self, parts: Sequence[tuple[bytes | None, str, Headers]], characters_max: int = CHARACTERS_MAX
    ) -> list[Decoded]:
        """Several (data, `key` or `value`, headers) in a thread."""
        return await asyncio.to_thread(lambda: [self.show(*each, characters_max) for each in parts])

    def _framed(self, data: bytes, part: str, headers: Headers) -> Framed | None:
        """Where the schema's id is: in a header, or before the value, which no text and no JSON begins with."""
        if self._registry is None:
            return None
        if headers:
            wanted = KEY_HEADER if part == "key" else VALUE_HEADER
            held = next((value for name, value in headers if name == wanted and value is not None), None)
            if held is not None:
                try:
                    return read_id(held)._replace(start=0)
                except BadFraming:
                    return None
        if len(data) > ID_BYTES and data[0] == ID_MAGIC:
            return read_id(data)
        return None

    def _read(self, data: bytes, framed: Framed) -> tuple[Any, str]:
        key: int | str = framed.guid or framed.schema_id or 0
        known = self._known.get(key)
        if known is None or (known.codec is None and self._now() - known.since > UNKNOWN_SECONDS):
            with self._asking:
                known = self._known.get(key)
                if known is None or (known.codec is None and self._now() - known.since > UNKNOWN_SECONDS):
                    known = self._ask(key, framed)
        if known.codec is None:
            raise _Undecodable(known.why)
        try:
            return known.codec.document(data, framed.start), known.schema_type
        except RecursionError:
            raise _Undecodable(f"it is nested too deeply to be read by schema {key}") from None
        except (ValueError, TypeError, LookupError, OverflowError) as error:
            raise _Undecodable(f"it does not read by its schema, id {key}: {error}") from None

    def _ask(self, key: int | str, framed: Framed) -> _Known:
        assert self._registry is not None
        codec, schema_type, why = None, "", ""
        try:
            schema: RegistrySchema = (
                self._registry.schema(int(key)) if framed.guid is None else self._registry.schema_by_guid(str(key))
            )
            schema_type = schema.schema_type
            codec = codec_of(schema)
        except RegistryError as error:
            why = f"it begins as a framed value does, and its schema, id {key}, cannot be had: {error}"
        except (ValueError, TypeError, LookupError, RecursionError) as error:
            why = f"its schema, id {key}, cannot be used here: {error}"
        if len(self._known) >= CODECS_MAX:
            self._known.clear()
        known = self._known[key] = _Known(codec, schema_type, why, self._now())
        return known


def json_document(data: bytes) -> Any:
    """NO_DOCUMENT if the bytes are no JSON, or nested so deeply that reading them is refused."""
    try:
        return msgspec.json.decode(data)
    except (ValueError, RecursionError):
        return NO_DOCUMENT


def show_plain(data: bytes, error: str | None = None, characters_max: int = CHARACTERS_MAX) -> Decoded:
    """Without a registry: JSON objects and lists, then text, then hex."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return _hex(data, error)
    if _CONTROLS.search(text):
        return _hex(data, error)
    is_cut, shown = len(text) > characters_max, text[:characters_max]
    if text.lstrip(" \t\r\n")[:1] not in {"{", "["}:
        return Decoded("text", shown, None, error, len(data), is_cut)
    try:
        document = msgspec.json.decode(data)
    except RecursionError:
        return Decoded("text", shown, None, error or _TOO_DEEP, len(data), is_cut)
    except ValueError:
        return Decoded("text", shown, None, error, len(data), is_cut)
    if is_too_deep(document):
        return Decoded("text", shown, None, error or _TOO_DEEP, len(data), is_cut)
    return Decoded("json", shown, document, error, len(data), is_cut)


_TOO_DEEP = f"JSON nested deeper than {DEPTH_MAX} levels: shown as text"
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")
"""What no text that people wrote has in it."""


def _hex(data: bytes, error: str | None) -> Decoded:
    return Decoded("hex", data[:HEX_BYTES_MAX].hex(" "), None, error, len(data), len(data) > HEX_BYTES_MAX)


def _shown_document(data: bytes, document: Any, schema_type: str, schema: str, characters_max: int) -> Decoded:
    if is_too_deep(document):
        return show_plain(data, _TOO_DEEP, characters_max)._replace(schema=schema)
    text = msgspec.json.encode(document).decode()
    kind = _KINDS.get(schema_type, "avro")
    return Decoded(kind, text[:characters_max], document, None, len(data), len(text) > characters_max, schema)


def is_too_deep(document: Any, depth_max: int = DEPTH_MAX) -> bool:
    level = [document] if isinstance(document, dict | list) else []
    for _ in range(depth_max):
        if not level:
            return False
        level = [
            inner
            for value in level
            for inner in (value.values() if isinstance(value, dict) else value)
            if isinstance(inner, dict | list)
        ]
    return bool(level)
