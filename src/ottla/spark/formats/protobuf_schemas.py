"""A .proto made of columns. Columns have no numbers: those of earlier versions stay with their names, and a new column
gets one that no version had, so that nothing that was written is ever read as something else."""

import re
from collections.abc import Mapping

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
    TimestampType,
)

from ottla.registry.schemas.proto_text import proto_text
from ottla.spark.formats.protobuf_shapes import TIMESTAMP, Shape, columns_of_shape
from ottla.spark.formats.spec import FormatProblem

TIMESTAMP_FILE = "google/protobuf/timestamp.proto"
_KINDS: Mapping[type[DataType], str] = {
    StringType: "STRING",
    BinaryType: "BYTES",
    BooleanType: "BOOL",
    ByteType: "INT32",
    ShortType: "INT32",
    IntegerType: "INT32",
    LongType: "INT64",
    FloatType: "FLOAT",
    DoubleType: "DOUBLE",
}
_UINT64 = DecimalType(20, 0)
"""How a uint64 is read."""
_MAP_KEYS = (StringType, BooleanType, ByteType, ShortType, IntegerType, LongType)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FULL_NAME = re.compile(rf"{_NAME.pattern}(\.{_NAME.pattern})*")
_OF_THE_LANGUAGE = range(19_000, 20_000)
"""Numbers that Protobuf keeps for itself."""
_OPTIONAL, _REPEATED = FieldDescriptorProto.LABEL_OPTIONAL, FieldDescriptorProto.LABEL_REPEATED


def fits(columns: StructType, shape: Shape) -> bool:
    """Whether these are the columns of the message, in any order: then there is nothing to register."""
    return _comparable(columns) == _comparable(columns_of_shape(shape))


def proto_of(columns: StructType, full_name: str, earlier: Shape | None = None) -> str:
    """The text of a file with one message; `earlier` is the message over all versions there are."""
    if not _FULL_NAME.fullmatch(full_name):
        raise FormatProblem(f"format protobuf: `{full_name}` is no name of a message: write `Order` or `shop.Order`")
    package, _, name = full_name.rpartition(".")
    file = FileDescriptorProto(syntax="proto3", package=package)
    if _has_timestamps(columns):
        file.dependency.append(TIMESTAMP_FILE)
    file.message_type.append(_message(columns, name, earlier))
    return proto_text(file)


def _message(columns: StructType, name: str, earlier: Shape | None) -> DescriptorProto:
    made = DescriptorProto(name=name)
    known = {field.name: field for field in earlier.fields} if earlier is not None else {}
    taken = earlier.taken if earlier is not None else 0
    for column in columns.fields:
        if not _NAME.fullmatch(column.name):
            raise FormatProblem(
                f"format protobuf: `{column.name}` is no name of a field: rename the column, to letters, digits and _"
            )
        before = known.get(column.name)
        if before is None:
            taken = taken + 1 if taken + 1 not in _OF_THE_LANGUAGE else _OF_THE_LANGUAGE.stop
        number = taken if before is None else before.number
        _add(made, column.name, number, column.dataType, before.inner if before is not None else None)
    gone = {field.number for field in known.values()} | ({earlier.taken} if earlier is not None else set())
    for number in sorted(gone - {field.number for field in made.field} - {0}):
        made.reserved_range.add(start=number, end=number + 1)
    return made


def _add(message: DescriptorProto, name: str, number: int, kind: DataType, earlier: Shape | None) -> None:
    if isinstance(kind, MapType):
        _add_map(message, name, number, kind, earlier)
        return
    many = isinstance(kind, ArrayType)
    value = kind.elementType if isinstance(kind, ArrayType) else kind
    field = message.field.add(name=name, number=number, label=_REPEATED if many else _OPTIONAL)
    _set_type(message, field, name, value, earlier)
    if not many and field.type != FieldDescriptorProto.TYPE_MESSAGE:
        field.proto3_optional = True  # a column can be null, and a message is absent anyway


def _add_map(message: DescriptorProto, name: str, number: int, kind: MapType, earlier: Shape | None) -> None:
    if not isinstance(kind.keyType, _MAP_KEYS):
        raise FormatProblem(
            f"format protobuf: keys of the map `{name}` are {kind.keyType.simpleString().upper()}: cast them to STRING"
        )
    entry = DescriptorProto(name=f"{_camel(name)}Entry")
    entry.options.map_entry = True
    _set_type(message, entry.field.add(name="key", number=1, label=_OPTIONAL), name, kind.keyType, None)
    _set_type(message, entry.field.add(name="value", number=2, label=_OPTIONAL), name, kind.valueType, earlier)
    message.nested_type.append(entry)
    message.field.add(
        name=name, number=number, label=_REPEATED, type=FieldDescriptorProto.TYPE_MESSAGE, type_name=entry.name
    )


def _set_type(
    message: DescriptorProto, field: FieldDescriptorProto, column: str, kind: DataType, earlier: Shape | None
) -> None:
    """Of a field, or of a map's key or value; a struct is a message in the message."""
    if isinstance(kind, StructType):
        name = _unused(_camel(column), message)
        message.nested_type.append(_message(kind, name, earlier))
        field.type, field.type_name = FieldDescriptorProto.TYPE_MESSAGE, name
    elif isinstance(kind, TimestampType):
        field.type, field.type_name = FieldDescriptorProto.TYPE_MESSAGE, f".{TIMESTAMP}"
    elif kind == _UINT64:
        field.type = FieldDescriptorProto.TYPE_UINT64
    elif type(kind) in _KINDS:
        field.type = FieldDescriptorProto.Type.Value(f"TYPE_{_KINDS[type(kind)]}")
    else:
        shown = kind.simpleString().upper()
        raise FormatProblem(f"format protobuf has no type for {shown} (`{column}`): cast the column first")


def _camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def _unused(name: str, message: DescriptorProto) -> str:
    taken = {nested.name for nested in message.nested_type} | {field.name for field in message.field} | {message.name}
    while name in taken:
        name += "_"
    return name


def _has_timestamps(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        return any(_has_timestamps(field.dataType) for field in kind.fields)
    if isinstance(kind, ArrayType):
        return _has_timestamps(kind.elementType)
    return _has_timestamps(kind.valueType) if isinstance(kind, MapType) else isinstance(kind, TimestampType)


def _comparable(kind: DataType) -> object:
    """The type without order, and without what Protobuf does not tell apart: nulls, and small numbers."""
    if isinstance(kind, StructType):
        return {field.name: _comparable(field.dataType) for field in kind.fields}
    if isinstance(kind, ArrayType):
        return ["array", _comparable(kind.elementType)]
    if isinstance(kind, MapType):
        return ["map", _comparable(kind.keyType), _comparable(kind.valueType)]
    return IntegerType() if isinstance(kind, ByteType | ShortType) else kind
