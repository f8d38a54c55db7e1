"""Versions of a Protobuf message: columns over one or all of them, rows from any, and a new version made of columns."""

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from google.protobuf import message_factory
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from ottla.registry.client import RegistrySchema
from ottla.registry.framing import write_indexes
from ottla.spark.formats import protobuf_messages as messages
from ottla.spark.formats.decoding import Undecodable
from ottla.spark.formats.protobuf import make_encode
from ottla.spark.formats.protobuf_schemas import fits, proto_of
from ottla.spark.formats.protobuf_shapes import Shape, columns_of_shape, merge, row_reader, shape_of
from ottla.spark.formats.registry_protobuf import chosen, compiled, imports, make_reader, names_of, shape_over
from ottla.spark.formats.spec import FormatProblem

Rows = Callable[[dict[str, Any]], dict[str, Any]]


def schema(fields: str, before: str = "") -> RegistrySchema:
    return RegistrySchema(1, "PROTOBUF", f'syntax = "proto3"; package p; {before} message Sale {{ {fields} }}')


def descriptor(version: RegistrySchema) -> Any:
    return messages.find(compiled(version.text)[0], "p.Sale")


def rows_of(version: RegistrySchema, shape: Shape) -> Rows:
    """Fields as they are set in a message of a version, to the row that becomes of it."""
    message = descriptor(version)
    made = message_factory.GetMessageClass(message)
    read = row_reader(msgspec.json.decode(msgspec.json.encode(shape), type=Shape), message)
    return lambda fields: read(made.FromString(made(**fields).SerializeToString()))


def test_merged_columns_are_those_of_all_versions() -> None:
    versions = [
        schema("int32 id = 1; string old = 2; string name = 4;"),
        schema("int32 id = 1; string name = 4; double price = 5;"),
        schema("int32 id = 1; optional double price = 5; string title = 4; repeated string tags = 6;"),
    ]
    shape = shape_over(versions, "p.Sale")
    assert columns_of_shape(shape).simpleString() == (
        "struct<id:int,price:double,title:string,tags:array<string>,old:string>"
    )
    lacking = {"tags": None, "old": None, "price": None}
    assert rows_of(versions[0], shape)({"id": 1, "old": "x", "name": "n"}) == {
        **lacking, "id": 1, "old": "x", "title": "n",
    }  # fmt: skip
    assert rows_of(versions[1], shape)({"id": 2}) == {**lacking, "id": 2, "price": 0.0, "title": ""}
    newest = rows_of(versions[2], shape)
    assert newest({"id": 3, "tags": ["a"]}) == {"id": 3, "price": None, "title": "", "tags": ["a"], "old": None}


def test_one_version_has_the_defaults_of_protobuf_for_what_a_record_lacks() -> None:
    kinds = "string s = 2; bytes b = 3; uint64 u = 4; optional int32 o = 5; E e = 6; bool t = 7; repeated int32 r = 8;"
    inner = "enum E { NONE = 0; } message S { int32 x = 1; }"
    now = schema(f"int32 id = 1; {kinds} double d = 9; S m = 10;", inner)
    row = rows_of(schema("int32 id = 1;"), shape_over([now], "p.Sale"))({"id": 7})
    assert row == {
        "id": 7, "s": "", "b": b"", "u": Decimal(0), "o": None, "e": "NONE", "t": False, "r": [], "d": 0.0, "m": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("kinds", "column", "written", "read"),
    [
        (("int32", "int64"), "bigint", 5, 5),
        (("int64", "int32"), "bigint", 2**40, 2**40),
        (("uint32", "int32"), "bigint", 2**32 - 1, 2**32 - 1),
        (("int32", "uint32"), "bigint", -1, -1),
        (("uint32", "uint64"), "decimal(20,0)", 7, Decimal(7)),
        (("bool", "int32"), "int", True, 1),
        (("int32", "bool"), "boolean", 3, True),
        (("E", "int32"), "int", 1, 1),
        (("int32", "E"), "string", 1, "ONE"),
        (("int32", "E"), "string", 9, "9"),
        (("float", "double"), "double", 0.5, 0.5),
        (("double", "float"), "double", 0.1, 0.1),
        (("string", "bytes"), "binary", "ä", "ä".encode()),
        (("bytes", "string"), "string", b"x", "x"),
        (("string", "repeated string"), "array<string>", "x", ["x"]),
        (("repeated string", "string"), "array<string>", ["x", "y"], ["x", "y"]),
        (("int32", "repeated int32"), "array<int>", 4, [4]),
        (("sint32", "int64"), "bigint", -4, -4),
    ],
)
def test_types_that_become_each_other(kinds: tuple[str, str], column: str, written: Any, read: Any) -> None:
    """What the older version wrote, in columns over both: exact, never what its bytes would mean elsewhere."""
    enum = "enum E { ZERO = 0; ONE = 1; }"
    older, newer = (schema(f"{kind} f = 1;", enum) for kind in kinds)
    shape = shape_over([older, newer], "p.Sale")
    assert columns_of_shape(shape)["f"].dataType.simpleString() == column
    assert rows_of(older, shape)({"f": written}) == {"f": read}


@pytest.mark.parametrize(
    ("older", "newer", "words"),
    [
        ("string f = 1;", "int32 f = 1;", "it is string, and int32 is read"),
        ("int32 f = 1;", "double f = 1;", "it is int32, and double is read"),
        ("map<string, int32> f = 1;", "string f = 1;", "one of them is a map"),
        ("map<string, int32> f = 1;", "map<int32, int32> f = 1;", "its keys are string"),
        ("google.protobuf.Timestamp f = 1;", "int64 f = 1;", "google.protobuf.Timestamp, and int64"),
    ],
)
def test_a_type_that_cannot_become_the_column_says_so(older: str, newer: str, words: str) -> None:
    stamp = 'import "google/protobuf/timestamp.proto";'
    versions = [schema(older, stamp), schema(newer, stamp)]
    for found in (versions, versions[1:]):
        with pytest.raises(Undecodable, match=words):
            rows_of(versions[0], shape_over(found, "p.Sale"))


def test_a_version_that_came_later_is_exact_or_refused() -> None:
    shape = shape_over([schema("float f = 1;")], "p.Sale")
    with pytest.raises(Undecodable, match="float is read, which cannot hold it"):
        rows_of(schema("double f = 1;"), shape)
    assert rows_of(schema("float f = 1; int32 new = 2;"), shape)({"f": 0.5, "new": 1}) == {"f": 0.5}


def test_messages_maps_and_enums_are_merged_too() -> None:
    older = schema("A a = 1; map<string, A> m = 2; E e = 3;",
                   "message A { int32 x = 1; } enum E { NONE = 0; OLD = 1; }")  # fmt: skip
    newer = schema("A a = 1; map<string, A> m = 2; E e = 3;",
                   "message A { string y = 2; } enum E { NONE = 0; NEW = 2; }")  # fmt: skip
    shape = shape_over([older, newer], "p.Sale")
    inner = "struct<y:string,x:int>"
    assert columns_of_shape(shape).simpleString() == f"struct<a:{inner},m:map<string,{inner}>,e:string>"
    row = rows_of(older, shape)({"a": {"x": 1}, "m": {"k": {"x": 2}}, "e": 1})
    assert row == {"a": {"y": None, "x": 1}, "m": [("k", {"y": None, "x": 2})], "e": "OLD"}
    assert rows_of(newer, shape)({"e": 2}) == {"a": None, "m": [], "e": "NEW"}


def test_a_name_that_another_number_has_now_is_told_apart() -> None:
    versions = [schema("int32 id = 1; string Note = 2;"), schema("int32 id = 1; int32 note = 3;")]
    assert columns_of_shape(shape_over(versions, "p.Sale")).names == ["id", "note", "Note_2"]


def test_versions_without_the_message_say_nothing_about_it() -> None:
    other = RegistrySchema(1, "PROTOBUF", 'syntax = "proto3"; package p; message Other { int32 x = 1; }')
    now = schema("int32 id = 1;", "message First { Inner i = 1; message Inner {} }")
    assert shape_over([other, now], "p.Sale").fields == shape_over([now], "p.Sale").fields
    assert names_of(now) == ["p.First", "p.Sale", "p.First.Inner"]
    assert chosen(now, None, "Row") == "p.First"
    assert chosen(now, None, "p.Sale") == "p.Sale"
    with pytest.raises(Undecodable, match="it has no message"):
        make_reader(other, msgspec.json.encode(shape_over([now], "p.Sale")).decode(), "p.Sale")


def test_a_value_says_which_message_it_is() -> None:
    version = schema("int32 id = 1;", "message First { Inner i = 1; message Inner {} }")
    read = make_reader(version, msgspec.json.encode(shape_over([version], "p.Sale")).decode(), "p.Sale")
    assert read(write_indexes([1]) + b"\x08\x07", 0) == {"id": 7}
    for indexes, words in (([0], "it is a `p.First`"), ([0, 0], "p.First.Inner"), ([9], "has no message")):
        with pytest.raises(Undecodable, match=words):
            read(write_indexes(indexes) + b"\x08\x07", 0)
    with pytest.raises(Undecodable, match="not a `p"):
        read(write_indexes([1]) + b"\x08", 0)
    with pytest.raises(Undecodable, match="type AVRO"):
        make_reader(version._replace(schema_type="AVRO"), "", "p.Sale")


# Columns to a schema.

ADDRESS = StructType([StructField("street", StringType()), StructField("since", TimestampType())])
COLUMNS = StructType(
    [
        StructField("id", LongType()),
        StructField("small", ShortType()),
        StructField("name", StringType()),
        StructField("big", DecimalType(20, 0)),
        StructField("home_address", ADDRESS),
        StructField("others", ArrayType(ADDRESS)),
        StructField("by_name", MapType(StringType(), ADDRESS)),
        StructField("counts", MapType(IntegerType(), DoubleType())),
        StructField("tags", ArrayType(StringType())),
        StructField("raw", BinaryType()),
        StructField("ok", BooleanType()),
    ]
)


def shape_of_text(text: str, name: str) -> Shape:
    return shape_of(messages.find(compiled(text)[0], name))


def test_columns_become_a_message_and_rows_come_back() -> None:
    text = proto_of(COLUMNS, "shop.Sale")
    shape = shape_of_text(text, "shop.Sale")
    assert fits(COLUMNS, shape)
    assert [field.number for field in shape.fields] == list(range(1, 12))
    moment = datetime(2026, 1, 1, 12, tzinfo=UTC)
    home = {"street": "x", "since": moment}
    row = {
        "id": 1, "small": None, "name": None, "big": Decimal(2**64 - 1), "home_address": home, "others": [home],
        "by_name": {"a": home}, "counts": {1: 0.5}, "tags": ["t"], "raw": b"\x00", "ok": False,
    }  # fmt: skip
    value = make_encode(compiled(text)[0], "shop.Sale", b"\x00")(row)
    read = make_reader(RegistrySchema(1, "PROTOBUF", text), msgspec.json.encode(shape).decode(), "shop.Sale")
    assert read(value, 0) == {**row, "by_name": [("a", home)], "counts": [(1, 0.5)]}


def test_numbers_stay_with_their_names() -> None:
    def version(*names: str, earlier: list[Shape] | None = None) -> tuple[str, Shape]:
        columns = StructType([StructField(name, StringType()) for name in names])
        text = proto_of(columns, "Sale", merge(earlier) if earlier else None)
        return text, shape_of_text(text, "Sale")

    def numbers(shape: Shape) -> dict[str, int]:
        return {field.name: field.number for field in shape.fields}

    _, first = version("a", "b")
    text, second = version("c", "a", earlier=[first])
    assert numbers(second) == {"c": 3, "a": 1}
    assert "reserved 2;" in text
    _, third = version("b", "d", earlier=[first, second])
    assert numbers(third) == {"b": 2, "d": 4}
    _, again = version("x", earlier=[second])
    assert numbers(again) == {"x": 4}, "the first version is gone, and its number is reserved"
    assert fits(StructType([StructField("a", StringType()), StructField("c", StringType())]), second)
    assert not fits(StructType([StructField("a", StringType())]), second)


def test_numbers_in_messages_stay_too_and_those_of_the_language_are_left_out() -> None:
    inner = StructType([StructField("x", StringType()), StructField("y", StringType())])
    first = shape_of_text(proto_of(StructType([StructField("m", inner)]), "Sale"), "Sale")
    other = StructType([StructField("z", StringType()), StructField("y", StringType())])
    second = shape_of_text(proto_of(StructType([StructField("m", other)]), "Sale", merge([first])), "Sale")
    assert second.fields[0].inner is not None
    assert {field.name: field.number for field in second.fields[0].inner.fields} == {"z": 3, "y": 2}
    beyond = shape_of_text(proto_of(inner, "Sale", Shape((), 18_999)), "Sale")
    assert [field.number for field in beyond.fields] == [20_000, 20_001]


@settings(deadline=None, max_examples=20)
@given(st.lists(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=5, unique=True), min_size=1, max_size=5))
def test_no_number_ever_means_two_names(versions: list[list[str]]) -> None:
    shapes: list[Shape] = []
    owners: dict[int, str] = {}
    for names in versions:
        columns = StructType([StructField(name, StringType()) for name in names])
        shapes.append(shape_of_text(proto_of(columns, "Sale", merge(shapes) if shapes else None), "Sale"))
        for field in shapes[-1].fields:
            assert owners.setdefault(field.number, field.name) == field.name
    assert len(set(owners.values())) == len(owners)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (DateType(), "no type for DATE"),
        (DecimalType(10, 2), r"no type for DECIMAL\(10,2\)"),
        (ArrayType(ArrayType(StringType())), "no type for ARRAY"),
        (MapType(DoubleType(), StringType()), "keys of the map `f` are DOUBLE"),
        (MapType(StringType(), ArrayType(StringType())), "no type for ARRAY"),
    ],
)
def test_what_protobuf_has_no_type_for(kind: Any, words: str) -> None:
    with pytest.raises(FormatProblem, match=words):
        proto_of(StructType([StructField("f", kind)]), "Sale")


def test_names_that_protobuf_does_not_take() -> None:
    with pytest.raises(FormatProblem, match="rename the column"):
        proto_of(StructType([StructField("a-b", StringType())]), "Sale")
    with pytest.raises(FormatProblem, match="no name of a message"):
        proto_of(StructType([StructField("a", StringType())]), "a Sale")


def test_imports_come_before_what_imports_them(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "a.proto").write_text('import "shared/b.proto";\nimport "google/protobuf/timestamp.proto";')
    (tmp_path / "shared" / "b.proto").write_text('import "c.proto";')
    (tmp_path / "c.proto").write_text('import "a.proto";')
    assert list(imports(tmp_path / "main.proto", 'import "a.proto";\nimport public "c.proto";')) == [
        "c.proto", "shared/b.proto", "a.proto",
    ]  # fmt: skip
