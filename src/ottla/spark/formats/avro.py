"""Avro records with a schema that is given, encoded by `fastavro`: Spark's own Avro needs a jar.

The schema is JSON text or the path of a file. Without one, values are written with a schema made from the columns (and
cannot be read). `framing: confluent` means that every value begins with byte 0 and the four bytes of a schema's id, as
serializers of a schema registry write it: they are passed over when reading (the schema given must be able to read the
records) and written with `schema_id`.

Avro to columns: records are structs, enums and UUIDs STRING, fixed BINARY, times of day their number, timestamps and
dates themselves, a union of null and one type that type. Other unions and records that contain themselves are refused.
"""

import functools
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

import fastavro
import msgspec
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StructType

from ottla.spark.formats.avro_schemas import avro_of, columns_of, plain
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


class AvroOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tombstones: Tombstones = "reject"
    framing: Literal["none", "confluent"] = "none"
    """Whether values begin with a schema's id."""
    schema_id: int | None = None
    """The id to write, with `framing: confluent`."""


class AvroFormat:
    NAME: ClassVar[str] = "avro"
    Options: ClassVar[type[AvroOptions]] = AvroOptions

    def __init__(self, spec: FormatSpec) -> None:
        self._spec = spec
        self._options = read_options(spec, AvroOptions)
        if isinstance(spec.schema, StructType):
            raise FormatProblem("format avro: `schema` is Avro's own, as JSON text or a file")
        if self._options.schema_id is not None and self._options.framing == "none":
            raise FormatProblem("format avro: `schema_id` is written with `framing: confluent`")

    def parse(self, frame: DataFrame, column: str) -> DataFrame:
        schema = self._given()
        if schema is None:
            raise FormatProblem("format avro is read with a `schema`: JSON text, or the path of a file")
        text, framed = json.dumps(schema), self._options.framing == "confluent"
        make = functools.partial(make_decode, text, framed)
        return parse_with(frame, column, make, columns_of(schema), self._options.tombstones)

    def encode(self, row: Column, row_type: StructType) -> Column:
        header = b""
        if self._options.framing == "confluent":
            if self._options.schema_id is None:
                raise FormatProblem("format avro: say which `schema_id` to write with `framing: confluent`")
            header = registry_header(self._options.schema_id)
        schema = self._given() or avro_of(row_type)
        return encode_with(row, functools.partial(make_encode, json.dumps(schema), header))

    def _given(self) -> Mapping[str, Any] | None:
        text = self._spec.schema
        if text is None:
            return None
        assert isinstance(text, str), "the constructor has refused others"
        if not text.lstrip().startswith("{"):
            path = self._spec.base_dir / text
            try:
                text = Path(path).read_text()
            except OSError as error:
                raise FormatProblem(f"format avro: cannot read the schema file {path}: {error.strerror}") from error
        try:
            schema = json.loads(text)
        except ValueError as error:
            raise FormatProblem(f"format avro: the schema is not JSON: {error}") from error
        read: dict[str, Any] = plain(schema)
        return read


# What follows runs in the executors. A parsed schema is kept there: parsing costs more than a hundred records.


@functools.lru_cache(maxsize=64)
def _parsed(text: str) -> Any:
    return fastavro.parse_schema(json.loads(text))


def make_decode(text: str, framed: bool) -> Decode:
    schema = _parsed(text)

    def decode(value: bytes) -> dict[str, Any]:
        start = 0
        if framed:
            if registry_schema_id(value) is None:
                raise Undecodable("the value has no schema id (`framing: confluent` wants byte 0 and four more)")
            start = REGISTRY_HEADER_BYTES
        stream = io.BytesIO(value)
        stream.seek(start)
        try:
            record: dict[str, Any] = fastavro.schemaless_reader(stream, schema, None)
        except Exception as error:  # fastavro has no exception of its own for bytes that are not of the schema
            raise Undecodable(f"not a record of the schema: {_words(error)}{_hint(value, framed)}") from error
        left = len(value) - stream.tell()
        if left:
            raise Undecodable(f"{left} bytes are left over after the record{_hint(value, framed)}")
        return record

    return decode


def make_encode(text: str, header: bytes) -> Encode:
    schema = _parsed(text)

    def encode(row: dict[str, Any]) -> bytes:
        stream = io.BytesIO()
        stream.write(header)
        fastavro.schemaless_writer(stream, schema, row)
        return stream.getvalue()

    return encode


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _hint(value: bytes, framed: bool) -> str:
    schema_id = None if framed else registry_schema_id(value)
    if schema_id is None:
        return ""
    return f" (it begins like a value framed for a schema registry, id {schema_id}: set `framing: confluent`)"
