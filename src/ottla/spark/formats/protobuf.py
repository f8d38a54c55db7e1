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
from pathlib import Path
from typing import Any, ClassVar, Literal

import msgspec
from google.protobuf import descriptor_pb2
from google.protobuf.message import DecodeError
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StructType

from ottla.spark.formats import protobuf_messages as messages
from ottla.spark.formats.decoding import Decode, Encode, Undecodable, encode_with, parse_with
from ottla.spark.formats.spec import (
    REGISTRY_HEADER_BYTES,
    FormatProblem,
    FormatSpec,
    Tombstones,
    read_options,
    registry_header,
    registry_schema_id,
)


class ProtobufOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    message: str
    """The message's full name: `shop.Order`."""
    module: str | None = None
    """A generated module, instead of a descriptor set in `schema`."""
    tombstones: Tombstones = "reject"
    framing: Literal["none", "confluent"] = "none"
    """Whether values begin with a schema's id and the message's place in its file."""
    schema_id: int | None = None
    """The id to write, with `framing: confluent`."""


class ProtobufFormat:
    NAME: ClassVar[str] = "protobuf"
    Options: ClassVar[type[ProtobufOptions]] = ProtobufOptions

    def __init__(self, spec: FormatSpec) -> None:
        self._spec = spec
        self._options = read_options(spec, ProtobufOptions)
        if isinstance(spec.schema, StructType):
            raise FormatProblem("format protobuf: `schema` is the file of a descriptor set")
        if (spec.schema is None) == (self._options.module is None):
            raise FormatProblem(
                "format protobuf: name a descriptor set in `schema`, or a generated `module`: one of them"
            )
        if self._options.schema_id is not None and self._options.framing == "none":
            raise FormatProblem("format protobuf: `schema_id` is written with `framing: confluent`")

    def parse(self, frame: DataFrame, column: str) -> DataFrame:
        descriptors, name = self._descriptors(), self._options.message
        columns = messages.columns_of(messages.find(descriptors, name))
        make = functools.partial(make_decode, descriptors, name, self._options.framing == "confluent")
        return parse_with(frame, column, make, columns, self._options.tombstones)

    def encode(self, row: Column, row_type: StructType) -> Column:
        descriptors, name = self._descriptors(), self._options.message
        messages.check_columns(messages.find(descriptors, name), row_type)
        header = b""
        if self._options.framing == "confluent":
            if self._options.schema_id is None:
                raise FormatProblem("format protobuf: say which `schema_id` to write with `framing: confluent`")
            place = messages.place_in_file(messages.find(descriptors, name))
            header = registry_header(self._options.schema_id) + messages.pack_place(place)
        return encode_with(row, functools.partial(make_encode, descriptors, name, header))

    def _descriptors(self) -> bytes:
        """A serialized FileDescriptorSet."""
        if self._options.module is not None:
            return _descriptors_of(self._options.module, self._spec.base_dir)
        path = self._spec.base_dir / str(self._spec.schema)
        try:
            content = path.read_bytes()
            descriptor_pb2.FileDescriptorSet.FromString(content)
        except OSError as error:
            raise FormatProblem(f"format protobuf: cannot read the descriptor set {path}: {error.strerror}") from error
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


def make_decode(descriptors: bytes, name: str, framed: bool) -> Decode:
    message_type, to_row = messages.reader(descriptors, name)
    place = messages.place_in_file(messages.find(descriptors, name))

    def decode(value: bytes) -> dict[str, Any]:
        body = value
        if framed:
            if registry_schema_id(value) is None:
                raise Undecodable("the value has no schema id (`framing: confluent` wants byte 0 and four more)")
            found, start = messages.unpack_place(value, REGISTRY_HEADER_BYTES)
            if found != place:
                raise Undecodable(f"the value is message {found} of its file, and `{name}` is {place}")
            body = value[start:]
        try:
            message = message_type.FromString(body)
        except DecodeError as error:
            schema_id = None if framed else registry_schema_id(value)
            hint = "" if schema_id is None else f" (is it framed for a schema registry, id {schema_id}?)"
            raise Undecodable(f"not a `{name}`: {error}{hint}") from error
        row: dict[str, Any] = to_row(message)
        return row

    return decode


def make_encode(descriptors: bytes, name: str, header: bytes) -> Encode:
    message_type, fill = messages.writer(descriptors, name)

    def encode(row: dict[str, Any]) -> bytes:
        message = message_type()
        fill(message, row)
        return header + bytes(message.SerializeToString(deterministic=True))

    return encode
