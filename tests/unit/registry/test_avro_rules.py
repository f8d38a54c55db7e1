"""Every row of the table of Avro rules."""

import json
from typing import Any

import pytest

from ottla.registry.compatibility.avro import check_avro
from ottla.registry.compatibility.findings import Work
from ottla.registry.errors import InvalidSchema, TooComplex
from ottla.registry.schemas.avro import parse_avro


def record(*fields: Any, name: str = "R", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **more}


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


def enum(*symbols: str, **more: Any) -> dict[str, Any]:
    return {"type": "enum", "name": "E", "symbols": list(symbols), **more}


def kinds(reader: Any, writer: Any) -> list[str]:
    found = check_avro(parse_avro(json.dumps(reader)).root, parse_avro(json.dumps(writer)).root)
    return [each.kind for each in found]


READABLE = {
    "int to long": ("long", "int"),
    "int to float": ("float", "int"),
    "int to double": ("double", "int"),
    "long to float": ("float", "long"),
    "long to double": ("double", "long"),
    "float to double": ("double", "float"),
    "bytes as string": ("string", "bytes"),
    "string as bytes": ("bytes", "string"),
    "field only in the reader, with a default": (record(field("a", "int", default=1)), record()),
    "field only in the reader, by an alias": (record(field("a", "int", aliases=["b"])), record(field("b", "int"))),
    "field only in the writer": (record(), record(field("a", "int"))),
    "names without namespace": (record(namespace="x"), record(namespace="y")),
    "name by an alias": (record(name="New", aliases=["Old"]), record(name="Old")),
    "enum symbol unknown, with a default": (enum("x", default="x"), enum("x", "y")),
    "union: every branch of the writer": (["null", "long"], ["int", "null"]),
    "union: a writer without one": (["null", "string"], "string"),
    "union: all branches read by one type": ("double", ["int", "long"]),
    "logical types are ignored": ({"type": "int", "logicalType": "date"}, "int"),
    "docs are ignored": (record(doc="one"), record(doc="other")),
    "error is a record": (record() | {"type": "error"}, record()),
}
UNREADABLE = {
    "long to int": ("int", "long", "TYPE_MISMATCH"),
    "float to int": ("int", "float", "TYPE_MISMATCH"),
    "double to int": ("int", "double", "TYPE_MISMATCH"),
    "float to long": ("long", "float", "TYPE_MISMATCH"),
    "double to long": ("long", "double", "TYPE_MISMATCH"),
    "double to float": ("float", "double", "TYPE_MISMATCH"),
    "int as string": ("string", "int", "TYPE_MISMATCH"),
    "field only in the reader, without a default": (
        record(field("a", "int")),
        record(),
        "READER_FIELD_MISSING_DEFAULT_VALUE",
    ),
    "two fields by an alias": (
        record(field("a", "int", aliases=["b"])),
        record(field("a", "int"), field("b", "int")),
        "AMBIGUOUS_ALIAS",
    ),
    "another name": (record(name="A"), record(name="B"), "NAME_MISMATCH"),
    "enum symbol unknown": (enum("x"), enum("x", "y"), "MISSING_ENUM_SYMBOLS"),
    "fixed of another size": (
        {"type": "fixed", "name": "F", "size": 4},
        {"type": "fixed", "name": "F", "size": 8},
        "FIXED_SIZE_MISMATCH",
    ),
    "union: a branch of the writer": (["null", "int"], ["null", "string"], "MISSING_UNION_BRANCH"),
    "union: a writer without one": (["null", "int"], "string", "MISSING_UNION_BRANCH"),
}


@pytest.mark.parametrize("row", READABLE)
def test_readable(row: str) -> None:
    assert kinds(*READABLE[row]) == []


@pytest.mark.parametrize("row", UNREADABLE)
def test_unreadable(row: str) -> None:
    reader, writer, kind = UNREADABLE[row]
    assert kinds(reader, writer) == [kind]


def test_a_record_that_contains_itself_is_compared_once() -> None:
    tree = record(field("children", {"type": "array", "items": "R"}))
    assert kinds(tree, tree) == []


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[[]]",
        '["int","int"]',
        '{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"a","type":"int"}]}',
        '{"type":"record","name":"R","fields":[{"name":"a","type":"int","default":"x"}]}',
        '{"type":"record","name":"R-1","fields":[]}',
        '{"type":"enum","name":"E","symbols":["x"],"default":"y"}',
        '{"type":"enum","name":"E","symbols":["x","x"]}',
        '{"type":"fixed","name":"F","size":-1}',
        '{"type":"unknown"}',
        '{"type":"int","type":"long"}',
    ],
)
def test_what_is_no_schema(text: str) -> None:
    with pytest.raises(InvalidSchema):
        parse_avro(text)


def test_a_bomb_of_nesting_is_refused() -> None:
    with pytest.raises(InvalidSchema, match="nested deeper"):
        parse_avro('{"type":"array","items":' * 500 + '"int"' + "}" * 500)


def test_a_bomb_of_work_is_refused() -> None:
    names = [
        record(field("next", [f"N{other}" for other in range(number)] + ["null"]), name=f"N{number}")
        for number in range(40)
    ]
    reader = parse_avro(json.dumps(names)).root
    writer = parse_avro(json.dumps(names)).root
    with pytest.raises(TooComplex):
        check_avro(reader, writer, Work(steps_max=500))
