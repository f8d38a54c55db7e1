"""Protobuf messages by their descriptors: found, filled from rows, and their place in a file."""

import functools
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor
from pyspark.sql.types import StructType

from ottla.spark.formats.decoding import Undecodable
from ottla.spark.formats.spec import FormatProblem

_TIMESTAMP = "google.protobuf.Timestamp"
_WRAPPERS = frozenset(
    f"google.protobuf.{kind}Value"
    for kind in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Fill = Callable[[Any, Mapping[str, Any]], None]


def with_dependencies(file: FileDescriptor) -> bytes:
    """A descriptor set of a file and all that it imports."""
    files = descriptor_pb2.FileDescriptorSet()
    seen: set[str] = set()

    def add(one: FileDescriptor) -> None:
        if one.name in seen:
            return
        seen.add(one.name)
        for dependency in one.dependencies:
            add(dependency)
        one.CopyToProto(files.file.add())

    add(file)
    return files.SerializeToString()


@functools.lru_cache(maxsize=64)
def find(descriptors: bytes, name: str) -> Descriptor:
    """The message's descriptor. Files that every protobuf library has need not be in the set."""
    given = {file.name: file for file in descriptor_pb2.FileDescriptorSet.FromString(descriptors).file}
    pool = descriptor_pool.DescriptorPool()
    added: set[str] = set()

    def add(file: descriptor_pb2.FileDescriptorProto) -> None:
        if file.name in added:
            return
        added.add(file.name)
        for dependency in file.dependency:
            add(given[dependency] if dependency in given else _well_known(dependency))
        pool.Add(file)

    for file in given.values():
        add(file)
    try:
        return pool.FindMessageTypeByName(name)
    except KeyError:
        known = sorted(f"{file.package}.{m.name}".lstrip(".") for file in given.values() for m in file.message_type)
        raise FormatProblem(f"format protobuf: there is no message `{name}`; there are {', '.join(known)}") from None


def _well_known(name: str) -> descriptor_pb2.FileDescriptorProto:
    from google.protobuf import duration_pb2, struct_pb2, timestamp_pb2, wrappers_pb2  # noqa: F401, PLC0415 - known then

    file = descriptor_pb2.FileDescriptorProto()
    try:
        descriptor_pool.Default().FindFileByName(name).CopyToProto(file)
    except KeyError:
        raise FormatProblem(
            f"format protobuf: the descriptor set lacks `{name}`: make it with `protoc --include_imports`"
        ) from None
    return file


def map_entry(field: FieldDescriptor) -> tuple[FieldDescriptor, FieldDescriptor] | None:
    """Key and value of a map field: on the wire it is a repeated message of the two."""
    message = field.message_type
    if message is None or not message.GetOptions().map_entry:
        return None
    return message.fields_by_name["key"], message.fields_by_name["value"]


def check_columns(message: Descriptor, columns: StructType) -> None:
    """Every column must be a field: what is not would be lost without a word."""
    unknown = [name for name in columns.names if name not in message.fields_by_name]
    if unknown:
        raise FormatProblem(
            f"format protobuf: `{message.full_name}` has no field `{unknown[0]}`: drop the column, or name "
            f"those to write in `columns` (its fields are {', '.join(field.name for field in message.fields)})"
        )


def _same(value: Any) -> Any:
    return value


def read_timestamp(value: Any) -> datetime:
    return _EPOCH + timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)


# Rows to messages.


@functools.lru_cache(maxsize=64)
def writer(descriptors: bytes, name: str) -> tuple[Any, Fill]:
    message = find(descriptors, name)
    return message_factory.GetMessageClass(message), _message_writer(message)


def _message_writer(message: Descriptor) -> Fill:
    writers = [(field.name, _field_writer(field)) for field in message.fields]

    def fill(target: Any, row: Mapping[str, Any]) -> None:
        for name, write in writers:
            value = row.get(name)
            if value is not None:
                write(target, value)

    return fill


def _field_writer(field: FieldDescriptor) -> Callable[[Any, Any], None]:
    name = field.name
    entry = map_entry(field)
    if entry is not None:
        return _map_writer(name, entry[1])
    if field.message_type is not None:
        fill = _submessage_writer(field.message_type)

        def write_messages(target: Any, items: Any) -> None:
            for item in items:
                fill(getattr(target, name).add(), item)

        def write_message(target: Any, value: Any) -> None:
            submessage = getattr(target, name)
            submessage.SetInParent()
            fill(submessage, value)

        return write_messages if field.is_repeated else write_message
    convert = _scalar_converter(field)
    if field.is_repeated:
        return lambda target, items: getattr(target, name).extend([convert(item) for item in items])
    return lambda target, value: setattr(target, name, convert(value))


def _map_writer(name: str, value_field: FieldDescriptor) -> Callable[[Any, Any], None]:
    if value_field.message_type is not None:
        fill = _submessage_writer(value_field.message_type)

        def write_messages(target: Any, entries: Mapping[Any, Any]) -> None:
            for key, value in entries.items():
                fill(getattr(target, name)[key], value)

        return write_messages
    convert = _scalar_converter(value_field)

    def write(target: Any, entries: Mapping[Any, Any]) -> None:
        for key, value in entries.items():
            getattr(target, name)[key] = convert(value)

    return write


def _submessage_writer(message: Descriptor) -> Fill:
    if message.full_name == _TIMESTAMP:
        return _fill_timestamp
    if message.full_name in _WRAPPERS:
        convert = _scalar_converter(message.fields_by_name["value"])

        def fill_wrapper(target: Any, value: Any) -> None:
            target.value = convert(value)

        return fill_wrapper
    return _message_writer(message)


def _scalar_converter(field: FieldDescriptor) -> Callable[[Any], Any]:
    if field.enum_type is not None:
        numbers = {value.name: value.number for value in field.enum_type.values}
        return lambda name: numbers[name] if name in numbers else int(name)
    if field.cpp_type == FieldDescriptor.CPPTYPE_UINT64:
        return int
    return _same


def _fill_timestamp(target: Any, moment: Any) -> None:
    micros = (moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment) - _EPOCH
    whole = micros // timedelta(microseconds=1)
    target.seconds, remainder = divmod(whole, 1_000_000)
    target.nanos = remainder * 1000


# How a schema registry's serializers say which message of its file a value is: the indexes from the outermost message
# in, as zigzag varints after their count; a single 0 stands for the first message.


def place_in_file(message: Descriptor) -> list[int]:
    outer = message.containing_type
    if outer is not None:
        return [*place_in_file(outer), [nested.name for nested in outer.nested_types].index(message.name)]
    return [list(message.file.message_types_by_name).index(message.name)]


def pack_place(place: list[int]) -> bytes:
    if place == [0]:
        return b"\x00"
    return b"".join(_zigzag(number) for number in (len(place), *place))


def unpack_place(value: bytes, start: int) -> tuple[list[int], int]:
    count, position = _unzigzag(value, start)
    if count == 0:
        return [0], position
    place: list[int] = []
    for _ in range(count):
        number, position = _unzigzag(value, position)
        place.append(number)
    return place, position


def _zigzag(number: int) -> bytes:
    rest = number << 1
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _unzigzag(value: bytes, position: int) -> tuple[int, int]:
    shifted = shift = 0
    while True:
        if position >= len(value) or shift > 28:
            raise Undecodable("the value ends within the place of its message")
        byte = value[position]
        position += 1
        shifted |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    return (shifted >> 1) ^ -(shifted & 1), position
