"""Formats that Python decodes: a column through a function, in Arrow, one result or one error per value."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import StringType, StructField, StructType

from ottla.spark.formats.spec import ERROR, PARSED, Tombstones, tombstone_error, without_tombstones

_DECODED = "__decoded"

Decode = Callable[[bytes], dict[str, Any]]
MakeDecode = Callable[[], Decode]
Encode = Callable[[dict[str, Any]], bytes]
MakeEncode = Callable[[], Callable[[dict[str, Any]], bytes | None]]
"""None: the row is written as null."""


class Undecodable(Exception):
    """A value that is not what the schema says, in words."""


def parse_with(
    frame: DataFrame, column: str, make_decode: MakeDecode, schema: StructType, tombstones: Tombstones
) -> DataFrame:
    """`parsed` and `error` by a function that `make_decode` builds in the executor."""
    result = StructType([StructField(PARSED, schema), StructField(ERROR, StringType())])
    arrow = to_arrow_type(result, timezone="UTC")

    def decode_all(values: pa.Array) -> pa.Array:  # type: ignore[type-arg]
        decoded: pa.Array[Any] = decode_array(values, make_decode(), arrow)
        return decoded

    # Not deterministic to Spark's optimizer, so that it is never evaluated twice for a row.
    decoder = arrow_udf(decode_all, result).asNondeterministic()  # type: ignore[call-overload]
    kept = without_tombstones(frame, column, tombstones)
    decoded = kept.withColumn(_DECODED, decoder(sf.col(column).cast("binary")))
    error = sf.when(sf.col(column).isNull(), tombstone_error(tombstones)).otherwise(sf.col(_DECODED)[ERROR])
    return decoded.withColumns({PARSED: sf.col(_DECODED)[PARSED], ERROR: error}).drop(_DECODED)


def decode_array(values: Any, decode: Decode, result: pa.DataType) -> Any:
    rows = [_decoded(value, decode) for value in values.to_pylist()]
    try:
        return pa.array(rows, type=result)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return pa.array([_fitting(row, result) for row in rows], type=result)


def _decoded(value: bytes | None, decode: Decode) -> dict[str, Any] | None:
    if value is None:
        return None
    try:
        return {PARSED: decode(value), ERROR: None}
    except Undecodable as wrong:
        return {PARSED: None, ERROR: str(wrong)}
    except Exception as error:  # decoders raise whatever they trip over in hostile bytes; no record may stop the others
        return {PARSED: None, ERROR: f"{type(error).__name__}: {error}"}


def _fitting(row: dict[str, Any] | None, result: pa.DataType) -> dict[str, Any] | None:
    """The row, or what makes it unfit for its columns (a moment beyond the calendar, for instance)."""
    try:
        pa.array([row], type=result)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        return {PARSED: None, ERROR: f"does not fit the schema: {error}"}
    return row


def encode_with(row: Column, make_encode: MakeEncode) -> Column:
    """The struct as BINARY by a function that `make_encode` builds in the executor. A row that cannot be written as the
    schema wants stops the query: it is the pipeline that is wrong, not a record."""

    def encode_all(rows: pa.Array) -> pa.Array:  # type: ignore[type-arg]
        encode = make_encode()
        structs = rows.to_pylist(maps_as_pydicts="lossy")
        return pa.array([None if struct is None else encode(struct) for struct in structs], pa.binary())

    column: Column = arrow_udf(encode_all, "binary")(row)  # type: ignore[call-overload]
    return column
