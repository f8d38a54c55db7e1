"""Values without fields: `raw` bytes, and `text` in UTF-8. Both give one column, `value`."""

from typing import ClassVar

import msgspec
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import BinaryType, StringType, StructType

from ottla.spark.formats.spec import (
    ERROR,
    PARSED,
    FormatProblem,
    FormatSpec,
    Tombstones,
    no_schema,
    read_options,
    tombstone_error,
    without_tombstones,
)


class RawOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tombstones: Tombstones = "keep"


class TextOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tombstones: Tombstones = "reject"


class RawFormat:
    """Bytes as they are. Nothing can be wrong with them, so even a null value is kept unless told otherwise."""

    NAME: ClassVar[str] = "raw"
    Options: ClassVar[type[RawOptions]] = RawOptions

    def __init__(self, spec: FormatSpec) -> None:
        no_schema(spec)
        self._options = read_options(spec, RawOptions)

    def parse(self, frame: DataFrame, column: str) -> DataFrame:
        value = sf.col(column)
        error = sf.when(value.isNull(), tombstone_error(self._options.tombstones))
        return without_tombstones(frame, column, self._options.tombstones).withColumns(
            {PARSED: sf.when(value.isNotNull(), sf.struct(value.alias("value"))), ERROR: error}
        )

    def encode(self, row: Column, row_type: StructType) -> Column:
        return row[_only_column(self.NAME, row_type)].cast("binary")


class TextFormat:
    """One text in UTF-8 per value. Bytes that are not UTF-8 are an error, not a text with holes."""

    NAME: ClassVar[str] = "text"
    Options: ClassVar[type[TextOptions]] = TextOptions

    def __init__(self, spec: FormatSpec) -> None:
        no_schema(spec)
        self._options = read_options(spec, TextOptions)

    def parse(self, frame: DataFrame, column: str) -> DataFrame:
        value = sf.col(column)
        text = value.cast("string")
        error = sf.when(value.isNull(), tombstone_error(self._options.tombstones)).when(
            ~sf.is_valid_utf8(text), sf.lit("the value is not UTF-8")
        )
        parsed = sf.when(value.isNotNull() & sf.is_valid_utf8(text), sf.struct(text.alias("value")))
        return without_tombstones(frame, column, self._options.tombstones).withColumns({PARSED: parsed, ERROR: error})

    def encode(self, row: Column, row_type: StructType) -> Column:
        return row[_only_column(self.NAME, row_type)].cast("binary")


def _only_column(name: str, row_type: StructType) -> str:
    """A value of these formats is one column: the one called `value`, or the only one there is."""
    names = row_type.names
    chosen = "value" if "value" in names else names[0] if len(names) == 1 else None
    if chosen is None:
        raise FormatProblem(
            f"format {name} writes one column, and there are {len(names)} ({', '.join(names)}): "
            f"name it in `columns`, call it `value`, or choose json"
        )
    if not isinstance(row_type[chosen].dataType, StringType | BinaryType):
        kind = row_type[chosen].dataType.simpleString()
        raise FormatProblem(f"format {name} writes STRING or BINARY, and `{chosen}` is {kind.upper()}: cast it first")
    return chosen
