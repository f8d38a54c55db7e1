"""Avro and Protobuf: the codecs themselves, without Spark."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import StringType, StructField, StructType
from tests.spark.format_samples import (
    AVRO_SCHEMA,
    ORDER,
    avro_records,
    order_rows,
    shop_descriptors,
)

from ottla.spark.formats import avro, protobuf
from ottla.spark.formats import protobuf_messages as messages
from ottla.spark.formats.api import build_format
from ottla.spark.formats.avro_schemas import avro_of, columns_of, plain
from ottla.spark.formats.decoding import Decode, Undecodable, decode_array
from ottla.spark.formats.protobuf_shapes import columns_of_shape, shape_of
from ottla.spark.formats.spec import FormatProblem, FormatSpec, registry_header

TEXT = json.dumps(AVRO_SCHEMA)
SHOP = shop_descriptors()


def read(decode: Decode, columns: StructType, values: list[bytes | None]) -> list[Any]:
    """Values as an executor reads them."""
    result = StructType([StructField("parsed", columns), StructField("error", StringType())])
    decoded = decode_array(pa.array(values, pa.binary()), decode, to_arrow_type(result, timezone="UTC"))
    rows: list[Any] = decoded.to_pylist()
    return rows


@settings(deadline=None)
@given(record=avro_records())
def test_avro_records_come_back_as_they_were(record: dict[str, Any]) -> None:
    value = avro.make_encode(TEXT, b"")(record)
    assert avro.make_decode(TEXT, False)(value) == record
    framed = avro.make_encode(TEXT, registry_header(77))(record)
    assert framed == b"\x00\x00\x00\x00\x4d" + value
    assert avro.make_decode(TEXT, True)(framed) == record


@settings(deadline=None)
@given(values=st.lists(st.binary(max_size=80), max_size=20), framed=st.booleans())
def test_hostile_bytes_are_errors_or_records_but_never_exceptions(values: list[bytes], framed: bool) -> None:
    for decode, columns in (
        (avro.make_decode(TEXT, framed), columns_of(AVRO_SCHEMA)),
        (protobuf.make_decode(SHOP, ORDER, framed), columns_of_shape(shape_of(messages.find(SHOP, ORDER)))),
    ):
        for row in read(decode, columns, [*values]):
            assert (row["parsed"] is None) != (row["error"] is None)


@settings(deadline=None)
@given(record=avro_records(), cut=st.integers(1, 3), extra=st.binary(min_size=1, max_size=5))
def test_avro_values_that_are_too_short_or_too_long_are_bad(record: dict[str, Any], cut: int, extra: bytes) -> None:
    value = avro.make_encode(TEXT, b"")(record)
    with pytest.raises(Undecodable):
        avro.make_decode(TEXT, False)(value[:-cut])
    with pytest.raises(Undecodable, match=f"{len(extra)} bytes are left over"):
        avro.make_decode(TEXT, False)(value + extra)


def test_a_registry_s_frame_is_recognised_and_named() -> None:
    schema = json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": "string"}]})
    framed = avro.make_encode(schema, registry_header(9))({"a": "x" * 20})
    with pytest.raises(Undecodable, match="framed for a schema registry, id 9: set `framing: confluent`"):
        avro.make_decode(schema, False)(framed)
    with pytest.raises(Undecodable, match="has no schema id"):
        avro.make_decode(schema, True)(framed[5:])


def test_moments_beyond_the_calendar_are_bad_records() -> None:
    schema = {
        "type": "record",
        "name": "R",
        "fields": [{"name": "t", "type": {"type": "long", "logicalType": "timestamp-micros"}}],
    }
    text = json.dumps(schema)
    raw = json.dumps({"type": "record", "name": "R", "fields": [{"name": "t", "type": "long"}]})
    values: list[bytes | None] = [avro.make_encode(raw, b"")({"t": t}) for t in (0, 2**62)]
    good, bad = read(avro.make_decode(text, False), columns_of(schema), values)
    assert good["parsed"] == {"t": datetime(1970, 1, 1, tzinfo=UTC)}
    assert bad["parsed"] is None
    assert bad["error"]


@pytest.mark.parametrize(
    ("field", "column"),
    [
        ("long", "bigint"),
        (["null", "int"], "int"),
        (["int", "long"], "bigint"),
        (["null", "double", "float"], "double"),
        ({"type": "string", "logicalType": "uuid"}, "string"),
        ({"type": "int", "logicalType": "time-millis"}, "int"),
        ({"type": "int", "logicalType": "date"}, "date"),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, "timestamp_ntz"),
        ({"type": "fixed", "name": "F", "size": 2}, "binary"),
        (
            {"type": "fixed", "name": "F", "size": 8, "logicalType": "decimal", "precision": 10, "scale": 2},
            "decimal(10,2)",
        ),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "string"),
        ({"type": "map", "values": {"type": "array", "items": "boolean"}}, "map<string,array<boolean>>"),
        ({"type": {"type": "string"}}, "string"),
    ],
)
def test_avro_types_and_their_columns(field: Any, column: str) -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "f", "type": field}]}
    assert columns_of(plain(schema))["f"].dataType.simpleString() == column


def test_avro_types_by_name() -> None:
    point = {"type": "record", "name": "Point", "fields": [{"name": "x", "type": "int"}]}
    fields = [{"name": "a", "type": point}, {"name": "b", "type": ["null", "Point"]}, {"name": "c", "type": "n.Point"}]
    schema = {"type": "record", "name": "R", "namespace": "n", "fields": fields}
    assert columns_of(schema).simpleString() == "struct<a:struct<x:int>,b:struct<x:int>,c:struct<x:int>>"


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "array", "items": "int"}, "must be a record"),
        ({"type": "record", "name": "R", "fields": [{"name": "f", "type": ["int", "string"]}]}, "field `f` is a union"),
        ({"type": "record", "name": "R", "fields": [{"name": "f", "type": ["null", "R"]}]}, "contains itself"),
        ({"type": "record", "name": "R", "fields": [{"name": "f", "type": "Gone"}]}, "does not define"),
        (
            {
                "type": "record",
                "name": "R",
                "fields": [{"name": "f", "type": {"type": "bytes", "logicalType": "decimal", "precision": 50}}],
            },
            "Spark has 1 to 38",
        ),
    ],
)
def test_avro_schemas_that_columns_cannot_hold_are_refused(schema: Any, message: str) -> None:
    with pytest.raises(FormatProblem, match=message):
        columns_of(schema)


def test_an_avro_schema_made_from_columns_is_read_into_them_again() -> None:
    columns = columns_of(AVRO_SCHEMA)
    made = avro_of(columns)
    fastavro.parse_schema(made)
    assert columns_of(made).simpleString() == columns.simpleString()


@settings(deadline=None)
@given(row=order_rows())
def test_protobuf_messages_come_back_as_they_were(row: dict[str, Any]) -> None:
    value = protobuf.make_encode(SHOP, ORDER, b"")(row)
    columns = columns_of_shape(shape_of(messages.find(SHOP, ORDER)))
    [back] = read(protobuf.make_decode(SHOP, ORDER, False), columns, [value])
    assert back["error"] is None
    parsed = back["parsed"]
    parsed["counts"] = dict(parsed["counts"])
    assert parsed == row


def test_absent_fields_are_null_or_protobuf_s_default() -> None:
    empty = protobuf.make_decode(SHOP, ORDER, False)(b"")
    assert empty == {
        "id": "", "amount": 0.0, "at": None, "status": "NEW", "lines": [], "counts": [], "big": Decimal(0),
        "note": None, "raw": b"", "flag": False, "count": None,
    }  # fmt: skip


def test_protobuf_framing_names_the_message_s_place() -> None:
    assert [messages.place_in_file(messages.find(SHOP, name)) for name in (ORDER, "shop.Order.Line", "shop.Other")] == [
        [0], [0, 0], [1],
    ]  # fmt: skip
    for place in ([0], [0, 0], [1], [3, 200]):
        packed = messages.pack_place(place)
        assert messages.unpack_place(b"xx" + packed + b"rest", 2) == (place, 2 + len(packed))
    other = registry_header(1) + messages.pack_place([1])
    with pytest.raises(Undecodable, match=r"message \[1\] of its file, and `shop.Order` is \[0\]"):
        protobuf.make_decode(SHOP, ORDER, True)(other)


def test_a_generated_module_travels_as_its_descriptors(tmp_path: Path) -> None:
    [file] = descriptor_pb2.FileDescriptorSet.FromString(SHOP).file
    (tmp_path / "shop_gen_pb2.py").write_text(
        "from google.protobuf import descriptor_pool, timestamp_pb2\n"
        f"DESCRIPTOR = descriptor_pool.Default().AddSerializedFile({file.SerializeToString()!r})\n"
    )
    descriptors = protobuf._descriptors_of("shop_gen_pb2", tmp_path)
    assert columns_of_shape(shape_of(messages.find(descriptors, ORDER))) == columns_of_shape(
        shape_of(messages.find(SHOP, ORDER))
    )


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (FormatSpec(name="xml"), "there is no format `xml`: choose one of avro, csv, json, protobuf, raw, text"),
        (
            FormatSpec(name="json", options={"tombstone": "keep"}),
            "unknown field `tombstone` .its options are `tombstones`",
        ),
        (FormatSpec(name="json", options={"tombstones": "eat"}), "tombstones"),
        (FormatSpec(name="raw", schema="a INT"), "takes no `schema`"),
        (FormatSpec(name="csv", options={"separator": "::"}), "`separator` is one character"),
        (FormatSpec(name="avro", options={"schema_id": 5}), "`framing: confluent`"),
        (FormatSpec(name="protobuf", options={"message": "a.B"}), "name a descriptor set in `schema`"),
        (FormatSpec(name="protobuf", schema="x"), "message"),
    ],
)
def test_specs_that_cannot_work_are_refused_in_words(spec: FormatSpec, message: str) -> None:
    with pytest.raises(FormatProblem, match=message):
        build_format(spec)
