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
from typing import Any, ClassVar

import fastavro
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StructType

from ottla.spark.formats.avro_schemas import avro_of, columns_of, plain
from ottla.spark.formats.decoding import Decode, Encode, Undecodable, encode_with, parse_with
from ottla.spark.formats.framed import FramedFormat, FramedOptions, body_start, framing_hint
from ottla.spark.formats.spec import FormatProblem


class AvroFormat(FramedFormat):
    NAME: ClassVar[str] = "avro"
    Options: ClassVar[type[FramedOptions]] = FramedOptions
    SCHEMA_IS: ClassVar[str] = "Avro's own, as JSON text or a file"

    def check_schema(self) -> None:
        schema = self._given()
        if schema is not None:
            columns_of(schema)

    def parse(self, frame: DataFrame, column: str) -> DataFrame:
        schema = self._given()
        if schema is None:
            raise FormatProblem("format avro is read with a `schema`: JSON text, or the path of a file")
        make = functools.partial(make_decode, json.dumps(schema), self._framed)
        return parse_with(frame, column, make, columns_of(schema), self._options.tombstones)

    def encode(self, row: Column, row_type: StructType) -> Column:
        schema = self._given() or avro_of(row_type)
        return encode_with(row, functools.partial(make_encode, json.dumps(schema), self._header()))

    def _given(self) -> Mapping[str, Any] | None:
        text = self._spec.schema
        if text is None:
            return None
        assert isinstance(text, str), "the constructor has refused others"
        if not text.lstrip().startswith("{"):
            path = self._spec.base_dir / text
            try:
                text = Path(path).read_text()
            except (OSError, ValueError) as error:
                reason = error.strerror if isinstance(error, OSError) else str(error)
                raise FormatProblem(f"format avro: cannot read the schema file {path}: {reason}") from error
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
        stream = io.BytesIO(value)
        stream.seek(body_start(value, framed))
        try:
            record: dict[str, Any] = fastavro.schemaless_reader(stream, schema, None)
        except Exception as error:  # fastavro has no exception of its own for bytes that are not of the schema
            raise Undecodable(f"not a record of the schema: {_words(error)}{framing_hint(value, framed)}") from error
        left = len(value) - stream.tell()
        if left:
            raise Undecodable(f"{left} bytes are left over after the record{framing_hint(value, framed)}")
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
