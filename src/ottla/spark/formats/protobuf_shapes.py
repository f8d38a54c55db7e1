"""What the columns of a Protobuf message are, over one version of it or over all, and rows from any version of it.

Fields go by number. A value is read with the message that it was written with, and its fields become the columns that
have their numbers: what another version calls a field, or how wide its numbers are, does not matter. A type that
cannot become the column's is an error that says so, never another value.
"""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal

import msgspec
from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from ottla.spark.formats import protobuf_messages as messages
from ottla.spark.formats.decoding import Undecodable
from ottla.spark.formats.spec import FormatProblem

TIMESTAMP = "google.protobuf.Timestamp"
ENUM, MESSAGE = "enum", "message"
WRAPPED = {
    "google.protobuf.DoubleValue": "double",
    "google.protobuf.FloatValue": "float",
    "google.protobuf.Int64Value": "int64",
    "google.protobuf.UInt64Value": "uint64",
    "google.protobuf.Int32Value": "int32",
    "google.protobuf.UInt32Value": "uint32",
    "google.protobuf.BoolValue": "bool",
    "google.protobuf.StringValue": "string",
    "google.protobuf.BytesValue": "bytes",
}
_KINDS: Mapping[int, str] = {
    int(number): name.removeprefix("TYPE_").lower()
    for name, number in descriptor_pb2.FieldDescriptorProto.Type.items()
}  # fmt: skip
_SIGNED_32 = {"int32", "sint32", "sfixed32"}
_SIGNED_64 = {"int64", "sint64", "sfixed64"}
_UNSIGNED_32 = {"uint32", "fixed32"}
_UNSIGNED_64 = {"uint64", "fixed64"}
_NUMBERS = _SIGNED_32 | _SIGNED_64 | _UNSIGNED_32 | _UNSIGNED_64
_WHOLE = _NUMBERS | {"bool", ENUM}
_FRACTIONS = {"float", "double"}
_TEXTS = {"string", "bytes"}
_FIELD_NUMBER_MAX = 536_870_911

Read = Callable[[Any], Any]
Many = Literal["", "repeated", "map"]


class Field(msgspec.Struct, frozen=True):
    """Of a map, everything but `key` is about its values."""

    number: int
    name: str
    kind: str
    """Protobuf's word for its type, or the full name of a message that is one value: a timestamp, a wrapper."""
    many: Many = ""
    key: str = ""
    presence: bool = False
    """It can be absent, and is null then; else it has the default of its type."""
    names: dict[int, str] = {}
    """Of an enum."""
    inner: "Shape | None" = None


class Shape(msgspec.Struct, frozen=True):
    fields: tuple[Field, ...]
    taken: int = 0
    """The highest number that was ever given away, as far as the schema tells."""
    merged: bool = False
    """Over several versions: what a version does not have is null in its rows."""


def shape_of(message: Descriptor, inside: tuple[str, ...] = ()) -> Shape:
    if message.full_name in inside:
        raise FormatProblem(f"format protobuf: `{message.full_name}` contains itself, and columns cannot")
    path = (*inside, message.full_name)
    fields = tuple(_field_of(field, path) for field in message.fields)
    described = descriptor_pb2.DescriptorProto()
    message.CopyToProto(described)
    reserved = [span.end - 1 for span in described.reserved_range if span.end <= _FIELD_NUMBER_MAX]
    return Shape(fields, max([0, *reserved, *(field.number for field in fields)]))


def _field_of(field: FieldDescriptor, path: tuple[str, ...]) -> Field:
    entry = messages.map_entry(field)
    value = field if entry is None else entry[1]
    many: Many = "map" if entry is not None else "repeated" if field.is_repeated else ""
    kind = kind_of(value)
    inner = shape_of(value.message_type, path) if kind == MESSAGE and value.message_type is not None else None
    key = "" if entry is None else kind_of(entry[0])
    return Field(field.number, field.name, kind, many, key, not many and field.has_presence, _names(value), inner)


def _names(field: FieldDescriptor) -> dict[int, str]:
    """Of an enum, by number: the first where there are several."""
    return {} if field.enum_type is None else {each.number: each.name for each in reversed(field.enum_type.values)}


def kind_of(field: FieldDescriptor) -> str:
    if field.message_type is None:
        return _KINDS[field.type]
    name = field.message_type.full_name
    return name if name == TIMESTAMP or name in WRAPPED else MESSAGE


def columns_of_shape(shape: Shape) -> StructType:
    return StructType([StructField(field.name, _column_of(field)) for field in shape.fields])


def _column_of(field: Field) -> DataType:
    value = columns_of_shape(field.inner) if field.inner is not None else _scalar(field.kind)
    if field.many == "map":
        return MapType(_scalar(field.key), value)
    return ArrayType(value) if field.many else value


def _scalar(kind: str) -> DataType:
    kind = WRAPPED.get(kind, kind)
    if kind in _SIGNED_32:
        return IntegerType()
    if kind in _SIGNED_64 | _UNSIGNED_32:
        return LongType()
    if kind in _UNSIGNED_64:
        return DecimalType(20, 0)
    others: dict[str, DataType] = {
        "double": DoubleType(), "float": FloatType(), "bool": BooleanType(), "string": StringType(),
        "bytes": BinaryType(), ENUM: StringType(), TIMESTAMP: TimestampType(),
    }  # fmt: skip
    return others[kind]


# Versions in one.


def merge(shapes: Sequence[Shape]) -> Shape:
    """Of versions, the oldest first. Names, order and types are the last one's that has a number; then come the
    numbers that it has dropped. Numbers are as wide as any version has them."""
    found: dict[int, list[Field]] = {}
    for shape in shapes:
        for field in shape.fields:
            found.setdefault(field.number, []).append(field)
    now = [field.number for field in shapes[-1].fields]
    fields: list[Field] = []
    names: set[str] = set()
    for number in [*now, *sorted(found.keys() - set(now))]:
        field = _merged(found[number])
        if field.name.lower() in names:  # another field has that name now
            field = msgspec.structs.replace(field, name=_free(f"{field.name}_{number}", names))
        names.add(field.name.lower())
        fields.append(field)
    return Shape(tuple(fields), max(shape.taken for shape in shapes), merged=True)


def _merged(versions: list[Field]) -> Field:
    last = versions[-1]
    like = [each for each in versions if why_not(last, each) is None]
    names: dict[int, str] = {}
    for each in like:
        names |= each.names
    inner = merge([each.inner for each in like if each.inner is not None]) if last.inner is not None else None
    kind = _widest(last.kind, [WRAPPED.get(each.kind, each.kind) for each in like])
    many = last.many or next((each.many for each in like if each.many), "")
    return msgspec.structs.replace(last, kind=kind, names=names, inner=inner, many=many)


def _widest(last: str, kinds: list[str]) -> str:
    """Of numbers, the narrowest type that holds all of them; where none does (int64 and uint64) the last one's."""
    if last not in _NUMBERS | _FRACTIONS:
        return last
    numbers = {kind for kind in kinds if kind != "bool"}
    if len(numbers) == 1:
        return last
    if numbers <= _FRACTIONS:
        return "double"
    if numbers <= _SIGNED_32 | {ENUM}:
        return "int32"
    if numbers <= _UNSIGNED_32 | _UNSIGNED_64:
        return "uint64" if numbers & _UNSIGNED_64 else "uint32"
    return last if numbers & _UNSIGNED_64 else "int64"


def _free(name: str, taken: set[str]) -> str:
    while name.lower() in taken:
        name += "_"
    return name


def why_not(column: Field, written: Field) -> str | None:
    """Why a field cannot become the column, in words; None: it can."""
    if (column.many == "map") != (written.many == "map"):
        return "one of them is a map"
    if column.many == "map" and not _becomes(column.key, written.key):
        return f"its keys are {written.key}, and {column.key} are read"
    if not _becomes(column.kind, written.kind):
        return f"it is {written.kind}, and {column.kind} is read"
    return None


def _becomes(kind: str, written: str) -> bool:
    """A wrapper and what it wraps are different bytes, but the same value."""
    kind, written = WRAPPED.get(kind, kind), WRAPPED.get(written, written)
    return kind == written or any({kind, written} <= group for group in (_WHOLE, _FRACTIONS, _TEXTS))


# Rows.


def row_reader(shape: Shape, message: Descriptor) -> Callable[[Any], dict[str, Any]]:
    """What makes rows of messages of any version. Raises Undecodable if their fields cannot become the columns."""
    readers: list[tuple[str, Read]] = []
    for column in shape.fields:
        field = message.fields_by_number.get(column.number)
        if field is None:
            readers.append((column.name, _always(None if shape.merged or column.presence else _default(column))))
        else:
            readers.append((column.name, _field_reader(column, field)))
    return lambda value: {name: read(value) for name, read in readers}


def _always(value: Any) -> Read:
    return lambda _: value


def _default(column: Field) -> Any:
    if column.many:
        return []
    kind = column.kind
    if kind == ENUM:
        return column.names.get(0, "0")
    if kind in _UNSIGNED_64:
        return Decimal(0)
    if kind in _FRACTIONS:
        return 0.0
    return {"bool": False, "string": "", "bytes": b""}.get(kind, 0)


def _field_reader(column: Field, field: FieldDescriptor) -> Read:
    written = _field_of_value(field)
    reason = why_not(column, written)
    if column.kind == "float" and written.kind == "double":
        reason = "it is double, and float is read, which cannot hold it"
    if reason is not None:
        raise Undecodable(f"field {field.number} (`{field.name}`) cannot become `{column.name}`: {reason}")
    name, entry = field.name, messages.map_entry(field)
    if entry is not None:
        of_key, of_value = _converter(column.key, entry[0], column), _value_reader(column, entry[1])
        return lambda message: [(of_key(key), of_value(value)) for key, value in getattr(message, name).items()]
    read = _value_reader(column, field)
    if field.is_repeated:
        if column.many:
            return lambda message: [read(item) for item in getattr(message, name)]
        return lambda message: read(getattr(message, name)[-1]) if getattr(message, name) else None
    if column.many:
        absent = _absent(field)
        return lambda message: [] if absent(message) else [read(getattr(message, name))]
    if field.has_presence:
        return lambda message: read(getattr(message, name)) if message.HasField(name) else None
    return lambda message: read(getattr(message, name))


def _absent(field: FieldDescriptor) -> Callable[[Any], bool]:
    name = field.name
    if field.has_presence:
        return lambda message: not message.HasField(name)
    return lambda message: not getattr(message, name)


def _field_of_value(field: FieldDescriptor) -> Field:
    """Without what is in it, which is looked at when it is read."""
    entry = messages.map_entry(field)
    value = field if entry is None else entry[1]
    many: Many = "map" if entry is not None else "repeated" if field.is_repeated else ""
    return Field(field.number, field.name, kind_of(value), many, "" if entry is None else kind_of(entry[0]))


def _value_reader(column: Field, field: FieldDescriptor) -> Read:
    kind, message = kind_of(field), field.message_type
    if message is None:
        return _converter(WRAPPED.get(column.kind, column.kind), field, column)
    if kind == TIMESTAMP:
        return messages.read_timestamp
    if kind in WRAPPED:
        read = _converter(WRAPPED.get(column.kind, column.kind), message.fields_by_name["value"], column)
        return lambda wrapper: read(wrapper.value)
    assert column.inner is not None, "a message becomes no other kind"
    return row_reader(column.inner, message)


def _converter(kind: str, field: FieldDescriptor, column: Field) -> Read:
    """From a value as it was written to one of the column's type."""
    written = kind_of(field)
    if kind == ENUM:
        names = _names(field) | column.names
        return lambda number: names.get(int(number), str(int(number)))
    if kind in _UNSIGNED_64:
        return lambda number: Decimal(int(number))
    if kind == "bool" and written != "bool":
        return bool
    if kind in _NUMBERS and written == "bool":
        return int
    if kind == "string" and written == "bytes":
        return _text
    if kind == "bytes" and written == "string":
        return str.encode
    return _same


def _same(value: Any) -> Any:
    return value


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise Undecodable(f"bytes that are no UTF-8 cannot become a text: {error}") from None
