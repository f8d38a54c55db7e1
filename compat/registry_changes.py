"""Changes of schemas that registries are asked about, one level after the other."""

import json
from typing import Any, NamedTuple

LEVELS = ("BACKWARD", "FORWARD")
"""The others are made of these two."""


class Change(NamedTuple):
    schema_type: str
    what: str
    old: str
    new: str


def _avro(what: str, old: list[Any], new: list[Any]) -> Change:
    def text(fields: list[Any]) -> str:
        named = [{"name": f"f{number}", **field} for number, field in enumerate(fields)]
        return json.dumps({"type": "record", "name": "Order", "fields": named})

    return Change("AVRO", what, text(old), text(new))


def _json(what: str, old: dict[str, Any], new: dict[str, Any]) -> Change:
    return Change("JSON", what, json.dumps(old), json.dumps(new))


def _proto(what: str, old: str, new: str) -> Change:
    def text(body: str) -> str:
        return f'syntax = "proto3";\nmessage M {{\n  {body}\n}}\n'

    return Change("PROTOBUF", what, text(old), text(new))


def _object(required: list[str] | None = None, closed: bool = False, **properties: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        made["required"] = required
    if closed:
        made["additionalProperties"] = False
    return made


INT, LONG, STRING = {"type": "int"}, {"type": "long"}, {"type": "string"}
NUMBER, INTEGER, TEXT = {"type": "number"}, {"type": "integer"}, {"type": "string"}
ENUM_AB = {"type": {"type": "enum", "name": "E", "symbols": ["A", "B"]}}
ENUM_ABC = {"type": {"type": "enum", "name": "E", "symbols": ["A", "B", "C"]}}

CHANGES = (
    _avro("the same", [INT], [INT]),
    _avro("a field with a default", [INT], [INT, {**STRING, "default": ""}]),
    _avro("a field without one", [INT], [INT, STRING]),
    _avro("a field less", [INT, STRING], [INT]),
    _avro("int to long", [INT], [LONG]),
    _avro("long to int", [LONG], [INT]),
    _avro("string to bytes", [STRING], [{"type": "bytes"}]),
    _avro("int to string", [INT], [STRING]),
    _avro("a symbol more", [ENUM_AB], [ENUM_ABC]),
    _avro("a branch more", [INT], [{"type": ["int", "string"]}]),
    _avro("made nullable", [STRING], [{"type": ["null", "string"]}]),
    _json("the same", _object(a=INTEGER), _object(a=INTEGER)),
    _json("integer to number", _object(a=INTEGER), _object(a=NUMBER)),
    _json("number to integer", _object(a=NUMBER), _object(a=INTEGER)),
    _json("integer to string", _object(a=INTEGER), _object(a=TEXT)),
    _json("a property more, open", _object(a=INTEGER), _object(a=INTEGER, b=TEXT)),
    _json("a property more, closed", _object(closed=True, a=INTEGER), _object(closed=True, a=INTEGER, b=TEXT)),
    _json("a property less, closed", _object(closed=True, a=INTEGER, b=TEXT), _object(closed=True, a=INTEGER)),
    _json("made required", _object(a=INTEGER), _object(["a"], a=INTEGER)),
    _json("an enum's value more", _object(a={"enum": ["x"]}), _object(a={"enum": ["x", "y"]})),
    _json("a maximum raised", _object(a={**INTEGER, "maximum": 5}), _object(a={**INTEGER, "maximum": 9})),
    _json("a length given", _object(a=TEXT), _object(a={**TEXT, "maxLength": 9})),
    _json("a description", _object(a=INTEGER), {**_object(a=INTEGER), "description": "new"}),
    _proto("the same", "int32 a = 1;", "int32 a = 1;"),
    _proto("a field more", "int32 a = 1;", "int32 a = 1; string b = 2;"),
    _proto("a field less", "int32 a = 1; string b = 2;", "int32 a = 1;"),
    _proto("a field renamed", "int32 a = 1;", "int32 c = 1;"),
    _proto("another number", "int32 a = 1;", "int32 a = 2;"),
    _proto("int32 to int64", "int32 a = 1;", "int64 a = 1;"),
    _proto("int32 to string", "int32 a = 1;", "string a = 1;"),
    _proto("string to bytes", "string a = 1;", "bytes a = 1;"),
    _proto("into a oneof alone", "int32 a = 1;", "oneof o { int32 a = 1; }"),
    _proto("two into a oneof", "int32 a = 1; int32 b = 2;", "oneof o { int32 a = 1; int32 b = 2; }"),
    _proto("a oneof's member less", "oneof o { int32 a = 1; int32 b = 2; }", "oneof o { int32 a = 1; }"),
)
