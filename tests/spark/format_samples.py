"""Schemas and rows that the tests of formats share."""

import string
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from google.protobuf import descriptor_pb2
from hypothesis import strategies as st

TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
INTS = st.integers(-(2**31), 2**31 - 1)
LONGS = st.integers(-(2**63), 2**63 - 1)
DOUBLES = st.floats(allow_nan=False)
# Not of the first day there is: PySpark collects with `fromtimestamp`, which looks at the day before as well.
MOMENTS = st.datetimes(datetime(1, 1, 2), timezones=st.just(UTC))  # noqa: DTZ001 (hypothesis wants it so)
PRICES = st.decimals(Decimal("-99999999.99"), Decimal("99999999.99"), places=2)
DATES = st.dates()

AVRO_SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "n", "type": ["null", "int"], "default": None},
        {"name": "big", "type": "long"},
        {"name": "amount", "type": "double"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
        {"name": "raw", "type": "bytes"},
        {"name": "flag", "type": "boolean"},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {
            "name": "place",
            "type": ["null", {"type": "record", "name": "Place", "fields": [{"name": "x", "type": "int"}]}],
        },
    ],
}


def avro_records() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            "id": TEXTS,
            "n": st.none() | INTS,
            "big": LONGS,
            "amount": DOUBLES,
            "at": MOMENTS,
            "day": DATES,
            "price": PRICES,
            "raw": st.binary(max_size=10),
            "flag": st.booleans(),
            "tags": st.lists(TEXTS, max_size=3),
            "place": st.none() | st.fixed_dictionaries({"x": INTS}),
        }
    )


ORDER = "shop.Order"


def shop_descriptors() -> bytes:
    """What `protoc` makes of a file with two messages, one of them with every kind of field."""
    files = descriptor_pb2.FileDescriptorSet()
    file = files.file.add(name="shop.proto", package="shop", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    file.dependency.append("google/protobuf/wrappers.proto")
    status = file.enum_type.add(name="Status")
    status.value.add(name="NEW", number=0)
    status.value.add(name="PAID", number=1)
    order = file.message_type.add(name="Order")
    line = order.nested_type.add(name="Line")
    field = descriptor_pb2.FieldDescriptorProto
    line.field.add(name="item", number=1, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL)
    line.field.add(name="pieces", number=2, type=field.TYPE_UINT32, label=field.LABEL_OPTIONAL)
    entry = order.nested_type.add(name="CountsEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL)
    entry.field.add(name="value", number=2, type=field.TYPE_SINT64, label=field.LABEL_OPTIONAL)
    kinds: list[tuple[str, int, str | None, int]] = [
        ("id", field.TYPE_STRING, None, field.LABEL_OPTIONAL),
        ("amount", field.TYPE_DOUBLE, None, field.LABEL_OPTIONAL),
        ("at", field.TYPE_MESSAGE, ".google.protobuf.Timestamp", field.LABEL_OPTIONAL),
        ("status", field.TYPE_ENUM, ".shop.Status", field.LABEL_OPTIONAL),
        ("lines", field.TYPE_MESSAGE, ".shop.Order.Line", field.LABEL_REPEATED),
        ("counts", field.TYPE_MESSAGE, ".shop.Order.CountsEntry", field.LABEL_REPEATED),
        ("big", field.TYPE_UINT64, None, field.LABEL_OPTIONAL),
        ("note", field.TYPE_MESSAGE, ".google.protobuf.StringValue", field.LABEL_OPTIONAL),
        ("raw", field.TYPE_BYTES, None, field.LABEL_OPTIONAL),
        ("flag", field.TYPE_BOOL, None, field.LABEL_OPTIONAL),
        ("count", field.TYPE_INT32, None, field.LABEL_OPTIONAL),
    ]
    for number, (name, kind, type_name, label) in enumerate(kinds, start=1):
        added = order.field.add(name=name, number=number)
        added.type = kind  # type: ignore[assignment]
        added.label = label  # type: ignore[assignment]
        if type_name is not None:
            added.type_name = type_name
    order.field[-1].proto3_optional = True
    order.field[-1].oneof_index = 0
    order.oneof_decl.add(name="_count")
    file.message_type.add(name="Other")
    return files.SerializeToString()


def order_rows() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            "id": TEXTS,
            "amount": DOUBLES,
            "at": st.none() | MOMENTS,
            "status": st.sampled_from(["NEW", "PAID", "7"]),
            "lines": st.lists(st.fixed_dictionaries({"item": TEXTS, "pieces": st.integers(0, 2**32 - 1)}), max_size=3),
            "counts": st.dictionaries(st.text(string.ascii_letters, max_size=5), LONGS, max_size=3),
            "big": st.integers(0, 2**64 - 1).map(Decimal),
            "note": st.none() | TEXTS,
            "raw": st.binary(max_size=10),
            "flag": st.booleans(),
            "count": st.none() | INTS,
        }
    )
