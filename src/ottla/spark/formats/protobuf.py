"""Protobuf messages, decoded by Google's own library.

`schema` is the file of a descriptor set (`protoc --include_imports --descriptor_set_out=FILE`), or the option `module`
names a generated module (`orders_pb2`) beside the pipeline file or installed; `message` is the message's full name.
Executors need neither: the descriptors travel with the query.

Messages to columns: messages are structs, repeated fields arrays, maps maps, enums the name of their value (a number
that has no name is its digits), uint32 BIGINT, uint64 DECIMAL(20,0), `google.protobuf.Timestamp` TIMESTAMP (to the
microsecond), wrapper messages their value. A field that can be absent (`optional`, a oneof, a message) is null if it
is; others have protobuf's default. Messages that contain themselves are refused. Bytes that protobuf can read as
something else are not an error there: unknown fields are passed over.
"""

import functools
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from google.protobuf import descriptor_pb2, message_factory
from google.protobuf.message import DecodeError
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StructType

from ottla.spark.formats import protobuf_messages as messages
from ottla.spark.formats.decoding import Decode, Encode, Undecodable, encode_with, parse_with
from ottla.spark.formats.framed import FramedFormat, FramedOptions, body_start, framing_hint
from ottla.spark.formats.protobuf_shapes import columns_of_shape, row_reader, shape_of
from ottla.spark.formats.spec import FormatProblem, FormatSpec


class ProtobufOptions(FramedOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    message: str
    """The message's full name: `shop.Order`."""
    module: str | None = None
    """A generated module, instead of a descriptor set in `schema`."""


class ProtobufFormat(FramedFormat):
    NAME: ClassVar[str] = "protobuf"
    Options: ClassVar[type[ProtobufOptions]] = ProtobufOptions
    SCHEMA_IS: ClassVar[str] = "the file of a descriptor set"

    def __init__(self, spec: FormatSpec) -> None:
        super().__init__(spec)
        if (spec.schema is None) == (self._options.module is None):
            raise FormatProblem(
                "format protobuf: name a descriptor set in `schema`, or a generated `module`: one of them"
            )

    def check_schema(self) -> None:
        shape_of(messages.find(self._descriptors(), self._options.message))

    def parse(self, frame: DataFrame, column: str) -> DataFrame:
        descriptors, name = self._descriptors(), self._options.message
        columns = columns_of_shape(shape_of(messages.find(descriptors, name)))
        make = functools.partial(make_decode, descriptors, name, self._framed)
        return parse_with(frame, column, make, columns, self._options.tombstones)

    def encode(self, row: Column, row_type: StructType) -> Column:
        descriptors, name = self._descriptors(), self._options.message
        messages.check_columns(messages.find(descriptors, name), row_type)
        header = self._header()
        if header:
            header += messages.pack_place(messages.place_in_file(messages.find(descriptors, name)))
        return encode_with(row, functools.partial(make_encode, descriptors, name, header))

    def _descriptors(self) -> bytes:
        """A serialized FileDescriptorSet."""
        if self._options.module is not None:
            return _descriptors_of(self._options.module, self._spec.base_dir)
        path = self._spec.base_dir / str(self._spec.schema)
        try:
            content = path.read_bytes()
            descriptor_pb2.FileDescriptorSet.FromString(content)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise FormatProblem(f"format protobuf: cannot read the descriptor set {path}: {reason}") from error
        except DecodeError as error:
            raise FormatProblem(
                f"format protobuf: {path} is no descriptor set: make one with "
                "`protoc --include_imports --descriptor_set_out=FILE`"
            ) from error
        return content


def _descriptors_of(module: str, base_dir: Path) -> bytes:
    sys.path.insert(0, str(base_dir))
    try:
        importlib.invalidate_caches()
        file = importlib.import_module(module).DESCRIPTOR
    except (ImportError, AttributeError, TypeError) as error:
        raise FormatProblem(f"format protobuf: cannot use `{module}` as a generated module: {error}") from error
    finally:
        sys.path.remove(str(base_dir))
    return messages.with_dependencies(file)


# What follows runs in the executors.


@functools.lru_cache(maxsize=64)
def _reader(descriptors: bytes, name: str) -> tuple[Any, Callable[[Any], dict[str, Any]]]:
    found = messages.find(descriptors, name)
    return message_factory.GetMessageClass(found), row_reader(shape_of(found), found)


def make_decode(descriptors: bytes, name: str, framed: bool) -> Decode:
    message_type, to_row = _reader(descriptors, name)
    place = messages.place_in_file(messages.find(descriptors, name))

    def decode(value: bytes) -> dict[str, Any]:
        start = body_start(value, framed)
        if framed:
            found, start = messages.unpack_place(value, start)
            if found != place:
                raise Undecodable(f"the value is message {found} of its file, and `{name}` is {place}")
        try:
            message = message_type.FromString(value[start:])
        except DecodeError as error:
            raise Undecodable(f"not a `{name}`: {error}{framing_hint(value, framed)}") from error
        return to_row(message)

    return decode


def make_encode(descriptors: bytes, name: str, header: bytes) -> Encode:
    message_type, fill = messages.writer(descriptors, name)

    def encode(row: dict[str, Any]) -> bytes:
        message = message_type()
        fill(message, row)
        return header + bytes(message.SerializeToString(deterministic=True))

    return encode
