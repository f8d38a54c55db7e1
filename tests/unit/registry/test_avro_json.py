"""Avro's two encodings, beside fastavro's."""

import io
import json
from typing import Any

import fastavro
import pytest

from ottla.registry.framing import BadFraming, guid_header, id_prefix, read_id, read_indexes, write_indexes
from ottla.registry.schemas.avro import parse_avro
from ottla.registry.schemas.avro_json import BadAvro, from_document, to_document

SCHEMA = """{"type":"record","name":"R","fields":[{"name":"b","type":"boolean"},{"name":"i","type":"int"},
{"name":"l","type":"long"},{"name":"f","type":"float"},{"name":"d","type":"double"},{"name":"s","type":"string"},
{"name":"y","type":"bytes"},{"name":"x","type":{"type":"fixed","name":"F","size":2}},
{"name":"e","type":{"type":"enum","name":"E","symbols":["a","b"]}},{"name":"a","type":{"type":"array","items":"int"}},
{"name":"m","type":{"type":"map","values":"long"}},{"name":"u","type":["null","string","R"]}]}"""
DOCUMENT: dict[str, Any] = {
    "b": True, "i": -5, "l": 2**40, "f": 1.5, "d": -2.25, "s": "tä", "y": "\x00\xff", "x": "ab", "e": "b",
    "a": [1, 2, 3], "m": {"k": 7}, "u": {"string": "x"},
}  # fmt: skip


def test_both_ways_as_fastavro_does() -> None:
    root = parse_avro(SCHEMA).root
    encoded = from_document(root, DOCUMENT)
    assert to_document(root, encoded) == DOCUMENT
    values = DOCUMENT | {"y": b"\x00\xff", "x": b"ab", "u": "x"}
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(json.loads(SCHEMA)), values)
    assert stream.getvalue() == encoded


@pytest.mark.parametrize("cut", [0, 1, 5, 20])
def test_what_is_cut_short(cut: int) -> None:
    root = parse_avro(SCHEMA).root
    encoded = from_document(root, DOCUMENT)
    with pytest.raises(BadAvro):
        to_document(root, encoded[:cut])
    with pytest.raises(BadAvro, match="left over"):
        to_document(root, encoded + b"x")


def test_an_array_that_claims_too_much() -> None:
    root = parse_avro('{"type":"array","items":"null"}').root
    with pytest.raises(BadAvro, match="do not fit"):
        to_document(root, b"\xfe\xff\xff\xff\x0f\x00")


@pytest.mark.parametrize("document", [None, {}, DOCUMENT | {"i": "x"}, DOCUMENT | {"more": 1}, DOCUMENT | {"i": 2**31}])
def test_what_is_not_of_the_schema(document: Any) -> None:
    with pytest.raises(BadAvro):
        from_document(parse_avro(SCHEMA).root, document)


def test_framing() -> None:
    assert read_id(id_prefix(7) + b"x") == (7, None, 5)
    guid = "00000000-0000-0000-0000-00000000002a"
    assert read_id(guid_header(guid)).guid == guid
    assert write_indexes([0]) == b"\x00"
    assert write_indexes([7]) == b"\x02\x0e"
    for indexes in ([0], [7], [1, 2, 300]):
        assert read_indexes(b"?" + write_indexes(indexes), 1)[0] == indexes
    for bad in (b"", b"\x00\x00", b"\x02abcd"):
        with pytest.raises(BadFraming):
            read_id(bad)
    for bad in (b"", b"\x02", b"\xff" * 20):
        with pytest.raises(BadFraming):
            read_indexes(bad, 0)
