"""Every row of the table of Protobuf rules; where it says yes, the new schema reads what the old one wrote."""

from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from ottla.registry.compatibility.protobuf import TYPE_GROUPS, check_protobuf
from ottla.registry.errors import InvalidSchema
from ottla.registry.schemas.protobuf import ProtobufSchema, parse_protobuf


def proto(body: str, syntax: str = "proto3", package: str = "p") -> ProtobufSchema:
    return parse_protobuf(f'syntax = "{syntax}"; package {package};\n{body}')


def kinds(old: ProtobufSchema, new: ProtobufSchema) -> list[str]:
    return [each.kind for each in check_protobuf(new, old)]


def message(text: str) -> str:
    return f"message M {{ {text} }}"


COMPATIBLE = {
    "field added": ("int32 a = 1;", "int32 a = 1; string b = 2;"),
    "field removed": ("int32 a = 1; string b = 2;", "int32 a = 1;"),
    "field renamed": ("int32 a = 1;", "int32 b = 1;"),
    "field out of a oneof": ("oneof o { int32 a = 1; int32 b = 2; }", "oneof o { int32 b = 2; } int32 a = 1;"),
    "field alone into a new oneof": ("int32 a = 1;", "oneof o { int32 a = 1; int32 b = 2; }"),
    "whole oneof added": ("", "oneof o { int32 a = 1; int32 b = 2; }"),
    "whole oneof removed": ("oneof o { int32 a = 1; int32 b = 2; }", ""),
    "label of a string": ("string a = 1;", "repeated string a = 1;"),
    "label of bytes": ("repeated bytes a = 1;", "bytes a = 1;"),
    "enum changed": ("enum E { X = 0; } E a = 1;", "enum E { Y = 0; Z = 1; } E a = 1;"),
    "message added": ("", "message N {}"),
    "optional said and not said": ("optional int32 a = 1;", "int32 a = 1;"),
}
INCOMPATIBLE = {
    "oneof member removed": (
        "oneof o { int32 a = 1; int32 b = 2; }",
        "oneof o { int32 a = 1; }",
        "ONEOF_FIELD_REMOVED",
    ),
    "two fields into one oneof": (
        "int32 a = 1; int32 b = 2;",
        "oneof o { int32 a = 1; int32 b = 2; }",
        "MULTIPLE_FIELDS_MOVED_TO_ONEOF",
    ),
    "one field into an existing oneof": (
        "oneof o { int32 a = 1; } int32 b = 2;",
        "oneof o { int32 a = 1; int32 b = 2; }",
        "FIELD_MOVED_TO_EXISTING_ONEOF",
    ),
    "another kind of type": ("int32 a = 1;", "string a = 1;", "FIELD_SCALAR_KIND_CHANGED"),
    "zigzag": ("int32 a = 1;", "sint32 a = 1;", "FIELD_SCALAR_KIND_CHANGED"),
    "another width": ("fixed32 a = 1;", "fixed64 a = 1;", "FIELD_SCALAR_KIND_CHANGED"),
    "label of a number": ("int32 a = 1;", "repeated int32 a = 1;", "FIELD_NUMERIC_LABEL_CHANGED"),
    "message removed": ("message N {}", "", "MESSAGE_REMOVED"),
    "a field's message renamed": (
        "message N {} message O {} N a = 1;",
        "message N {} message O {} O a = 1;",
        "FIELD_NAMED_TYPE_CHANGED",
    ),
    "a map and not": ("map<string, int32> a = 1;", "repeated string a = 1;", "FIELD_KIND_CHANGED"),
    "inside a field's message": (
        "message N { int32 x = 1; } N a = 1;",
        "message N { string x = 1; } N a = 1;",
        "FIELD_SCALAR_KIND_CHANGED",
    ),
}


@pytest.mark.parametrize("row", COMPATIBLE)
def test_compatible(row: str) -> None:
    old, new = COMPATIBLE[row]
    assert kinds(proto(message(old)), proto(message(new))) == []


@pytest.mark.parametrize("row", COMPATIBLE)
def test_what_was_written_with_the_one_is_read_with_the_other(row: str) -> None:
    """Every field of the old message set alone, and all of them: where both have a number, the value is the same."""
    old, new = (_class_of(proto(message(text))) for text in COMPATIBLE[row])
    names = [each.name for each in old.DESCRIPTOR.fields]
    for chosen in [[name] for name in names] + [names]:
        written = old()
        for name in chosen:
            _set(written, name)
        read = new.FromString(written.SerializeToString())
        for field, value in written.ListFields():
            same = new.DESCRIPTOR.fields_by_number.get(field.number)
            if same is not None:
                assert _last(getattr(read, same.name)) == _last(value)
        again = old.FromString(read.SerializeToString())
        assert {field.number for field, _ in again.ListFields()} == {field.number for field, _ in written.ListFields()}


def test_a_message_that_moved_reads_what_was_written() -> None:
    before = _class_of(proto("message N { int32 x = 1; } message M { N a = 1; }"))
    after = _class_of(proto("message M { message N { int32 x = 1; } N a = 1; }"))
    written = before()
    written.a.x = 7
    assert after.FromString(written.SerializeToString()).a.x == 7


def _set(message: Any, name: str) -> None:
    field = message.DESCRIPTOR.fields_by_name[name]
    value = {field.CPPTYPE_STRING: b"text" if field.type == field.TYPE_BYTES else "text"}.get(field.cpp_type, 1)
    value = 0 if field.enum_type is not None and len(field.enum_type.values) == 1 else value
    if field.is_repeated:
        getattr(message, name).extend([value, value])
    else:
        setattr(message, name, value)


def _last(value: Any) -> Any:
    """A reader of one value takes the last that it finds."""
    return value if isinstance(value, str | bytes | int) else value[-1]


@pytest.mark.parametrize("row", INCOMPATIBLE)
def test_incompatible(row: str) -> None:
    old, new, kind = INCOMPATIBLE[row]
    assert kind in kinds(proto(message(old)), proto(message(new)))


def test_required_fields() -> None:
    without, with_one = proto(message(""), "proto2"), proto(message("required int32 a = 1;"), "proto2")
    optional = proto(message("optional int32 a = 1;"), "proto2")
    assert kinds(without, with_one) == ["REQUIRED_FIELD_ADDED"]
    assert kinds(optional, with_one) == ["REQUIRED_FIELD_ADDED"]
    assert kinds(with_one, without) == ["REQUIRED_FIELD_REMOVED"]


def test_package() -> None:
    assert kinds(proto(message("")), proto(message(""), package="q")) == ["PACKAGE_CHANGED"]


def test_a_message_that_moved_is_the_same_message() -> None:
    before = proto("message N { int32 x = 1; } message M { N a = 1; }")
    after = proto("message M { message N { int32 x = 1; } N a = 1; }")
    assert kinds(before, after) == []


VALUES: dict[str, Any] = {"string": "text", "bytes": b"text", "bool": True}
FAMILIES = sorted(sorted(group) for group in TYPE_GROUPS)


@pytest.mark.parametrize("family", FAMILIES, ids="/".join)
def test_types_of_a_group_are_read_from_each_others_bytes(family: list[str]) -> None:
    """Written with each, read with each: the value is the same, or the same number."""
    made = {kind: _class_with(kind) for kind in family}
    for writing, writer in made.items():
        for reading, reader in made.items():
            assert kinds(_schema_with(writing), _schema_with(reading)) == []
            found = reader.FromString(writer(a=VALUES.get(writing, 1)).SerializeToString()).a
            assert _plain(found) == _plain(VALUES.get(writing, 1))


def _plain(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


SCHEMAS: dict[str, ProtobufSchema] = {}


def _schema_with(kind: str) -> ProtobufSchema:
    if kind not in SCHEMAS:
        declared = "enum E { X = 0; Y = 1; } E" if kind == "enum" else kind
        SCHEMAS[kind] = proto(message(f"{declared} a = 1;"))
    return SCHEMAS[kind]


def _class_with(kind: str) -> Any:
    return _class_of(_schema_with(kind))


def _class_of(schema: ProtobufSchema) -> Any:
    file = descriptor_pb2.FileDescriptorProto()
    file.CopyFrom(schema.main)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("p.M"))


def test_a_descriptor_becomes_the_text_that_makes_it_again() -> None:
    text = """
        import "google/protobuf/timestamp.proto";
        option java_package = "x.\\"y\\"";
        enum Top { option allow_alias = true; A = 0; B = 0 [deprecated = true]; reserved 5 to 7, 100 to max; }
        message M {
          reserved 20, 30 to max; reserved "gone";
          map<string, N> entries = 1 [json_name = "all"];
          oneof choice { int32 a = 2; string b = 3; }
          optional int32 maybe = 4 [deprecated = true];
          repeated sint64 many = 5 [packed = false];
          google.protobuf.Timestamp at = 6;
          message N { bytes raw = 1; enum Inner { Z = 0; } Inner inner = 2; }
        }
        service S { rpc Ask (M) returns (stream M.N) { option deprecated = true; } }
    """
    parsed = proto(text)
    again = parse_protobuf(parsed.formatted("serialized"))
    assert again.descriptor() == parsed.descriptor()
    assert parse_protobuf(again.normalized()).descriptor() == parsed.descriptor()


def test_an_old_descriptor_with_groups_and_extensions() -> None:
    text = """
        message M { optional group Part = 1 { optional int32 x = 2 [default = -5]; } extensions 100 to 199;
          optional string s = 3 [default = "a\\"b"]; }
        extend M { optional int32 more = 100; }
    """
    parsed = proto(text, "proto2")
    assert parse_protobuf(parsed.formatted("serialized")).descriptor() == parsed.descriptor()


@pytest.mark.parametrize(
    "text",
    ["", "message", 'syntax = "proto3"; message M { Unknown a = 1; }', 'syntax = "proto3"; import "/etc/hosts";'],
)
def test_what_is_no_schema(text: str) -> None:
    with pytest.raises(InvalidSchema):
        parse_protobuf(text)
