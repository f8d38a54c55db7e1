"""Bytes of every kind to what is shown: registered schemas, JSON, text, hex, and what is hostile among them."""

import json
import struct
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.console.search.decoding import CHARACTERS_MAX, HEX_BYTES_MAX, UNKNOWN_SECONDS, Decoder, show_plain
from ottla.console.search.matching import NO_DOCUMENT
from ottla.registry.client import RegistryClient, RegistrySchema
from ottla.registry.errors import RegistryError
from ottla.registry.framing import VALUE_HEADER, guid_header, id_prefix
from ottla.registry.schemas.values import codec_of

AVRO = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "note", "type": ["null", "string"]},
            {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["OPEN", "PAID"]}},
            {"name": "next", "type": ["null", "Order"]},
        ],
    }
)
PROTO = 'syntax = "proto3"; message Order { int64 id = 1; string note = 2; }'
GUID = "12345678-1234-1234-1234-123456789abc"


class Registry(RegistryClient):
    """Knows three schemas, and counts how often it is asked."""

    def __init__(self) -> None:
        super().__init__("http://127.0.0.1:1")
        self.asked = 0

    def schema(self, schema_id: int, subject: str = "") -> RegistrySchema:
        self.asked += 1
        known = {1: ("AVRO", AVRO), 2: ("JSON", "{}"), 3: ("PROTOBUF", PROTO), 4: ("AVRO", "no schema")}
        if schema_id not in known:
            raise RegistryError(40403, f"Schema {schema_id} not found")
        return RegistrySchema(schema_id, *known[schema_id])

    def schema_by_guid(self, guid: str) -> RegistrySchema:
        assert guid == GUID
        return self.schema(1)


def framed(number: int, text: str) -> bytes:
    return id_prefix(number) + codec_of(Registry().schema(number)).encode(text)


ORDER = framed(1, '{"id":7,"note":{"string":"ship"},"state":"PAID","next":null}')


def test_registered_avro_is_shown_plainly() -> None:
    shown = Decoder(Registry()).show(ORDER)
    assert (shown.kind, shown.schema, shown.error) == ("avro", "1", None)
    assert shown.document == {"id": 7, "note": "ship", "state": "PAID", "next": None}
    assert json.loads(shown.text) == shown.document
    assert shown.length == len(ORDER)


def test_registered_json_and_protobuf() -> None:
    decoder = Decoder(Registry())
    shown = decoder.show(framed(2, '{"a":[1]}'))
    assert (shown.kind, shown.document) == ("json-schema", {"a": [1]})
    shown = decoder.show(framed(3, '{"id":"9223372036854775807","note":"x"}'))
    assert (shown.kind, shown.document) == ("protobuf", {"id": "9223372036854775807", "note": "x"})


def test_a_schema_named_by_a_header() -> None:
    headers = ((VALUE_HEADER, guid_header(GUID)),)
    assert Decoder(Registry()).show(ORDER[5:], "value", headers).document["state"] == "PAID"
    assert Decoder(Registry()).show(b"text", "value", ((VALUE_HEADER, b"junk"),)).kind == "text"
    assert Decoder(Registry()).show(b"text", "key", headers).kind == "text"


def test_what_cannot_be_read_says_why_and_is_asked_for_once() -> None:
    now, registry = [0.0], Registry()
    decoder = Decoder(registry, now=lambda: now[0])
    for _ in range(3):
        shown = decoder.show(id_prefix(99) + b"x")
        assert shown.kind == "hex"
        assert "id 99, cannot be had: Schema 99 not found" in (shown.error or "")
    assert registry.asked == 1
    now[0] += UNKNOWN_SECONDS + 1
    decoder.show(id_prefix(99) + b"x")
    assert registry.asked == 2
    assert "cannot be" in (decoder.show(id_prefix(4) + b"x").error or "")
    assert "does not read by its schema, id 1" in (decoder.show(ORDER[:-1]).error or "")
    assert "does not read" in (decoder.show(id_prefix(3) + b"\x00\xff\xff").error or "")
    assert "does not read" in (decoder.show(id_prefix(3) + b"\x0a\xff\xff").error or "")


def test_avro_nested_deeper_than_python_goes() -> None:
    one = ORDER[5:-1] + b"\x02"
    shown = Decoder(Registry()).show(id_prefix(1) + one * 5_000 + ORDER[5:])
    assert "nested too deeply" in (shown.error or "")
    shown = Decoder(Registry()).show(id_prefix(1) + one * 150 + ORDER[5:])
    assert "nested deeper than 100 levels" in (shown.error or "")


def test_without_a_registry_framed_bytes_are_bytes() -> None:
    assert show_plain(ORDER).kind == "hex"
    assert Decoder().document(ORDER, "value", ()) is NO_DOCUMENT


@pytest.mark.parametrize(
    ("data", "kind", "text"),
    [
        (b"", "text", ""),
        (b"hello", "text", "hello"),
        ("naïve ☃".encode(), "text", "naïve ☃"),
        (b'{"a":1}', "json", '{"a":1}'),
        (b" [1, 2]", "json", " [1, 2]"),
        (b"42", "text", "42"),
        (b'{"a":', "text", '{"a":'),
        (b"\xff\x00", "hex", "ff 00"),
        (b"a\x00b", "hex", "61 00 62"),
        (b"<script>alert(1)</script>", "text", "<script>alert(1)</script>"),
        ("\ud800".encode("utf-8", "surrogatepass"), "hex", "ed a0 80"),
    ],
)
def test_plain_bytes(data: bytes, kind: str, text: str) -> None:
    shown = Decoder().show(data)
    assert (shown.kind, shown.text, shown.length, shown.is_cut) == (kind, text, len(data), False)


def test_null_is_null() -> None:
    assert Decoder().show(None) == ("null", "null", None, None, 0, False, None)


def test_long_ones_are_cut_and_tell_their_length() -> None:
    shown = show_plain(b"x" * 1_000_000)
    assert (len(shown.text), shown.length, shown.is_cut) == (CHARACTERS_MAX, 1_000_000, True)
    shown = show_plain(b"\xff" * 1_000_000)
    assert (len(shown.text), shown.length, shown.is_cut) == (3 * HEX_BYTES_MAX - 1, 1_000_000, True)


@pytest.mark.parametrize("depth", [101, 5_000, 1_000_000])
def test_deep_json_is_text(depth: int) -> None:
    for data in (b"[" * depth + b"]" * depth, b'{"a":' * depth + b"1" + b"}" * depth):
        shown = show_plain(data)
        assert (shown.kind, shown.document) == ("text", None)
        assert "nested deeper than 100" in (shown.error or "")
    assert show_plain(b"[" * 100 + b"]" * 100).kind == "json"


@given(st.binary(max_size=60) | st.binary(max_size=40).map(lambda rest: ORDER[:6] + rest))
def test_any_bytes_are_shown(data: bytes) -> None:
    shown = _DECODER.show(data)
    shown.text.encode()
    assert shown.length == len(data)
    document: Any = _DECODER.document(data, "value", ())
    if document is not NO_DOCUMENT:
        msgspec.json.encode(document)


_DECODER = Decoder(Registry())


def test_numbers_too_large_for_a_float() -> None:
    assert Decoder().show(b'{"a":1e999}').kind in {"json", "text"}
    assert Decoder().show(struct.pack(">q", 5)).kind == "hex"
