"""`flatten`: what is nested in a column becomes rows or columns.

    - flatten: lines                          # an array: a row for each element
    - {flatten: lines, into: line, empty: keep}

The elements of an array take the place of the array; elements that are structs, and struct columns themselves, become
a column for each field. A map becomes a row per entry with the columns `key` and `value`. `into` gives the element (or
struct) one column under that name instead. Rows with nothing to flatten are left out, or kept with nulls
(`empty: keep`).
"""

from pathlib import Path
from typing import ClassVar, Literal

import msgspec
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from ottla.pipelines.errors import FatalFailure
from ottla.pipelines.frames import MARK
from ottla.pipelines.steps.base import StepContext
from ottla.pipelines.steps.columns import require_columns
from ottla.pipelines.steps.rejecting import passes

_ELEMENT = "__element"


class FlattenOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    flatten: str
    """The column."""
    into: str | None = None
    """One column for each element, instead of one for each of its fields."""
    empty: Literal["drop", "keep"] = "drop"
    """What becomes of rows whose array or map is empty or null."""


class FlattenStep:
    KIND: ClassVar[str] = "flatten"
    Options: ClassVar[type[FlattenOptions]] = FlattenOptions
    STATEFUL: ClassVar[bool] = False

    def __init__(self, options: FlattenOptions) -> None:
        self._options = options

    def problems(self) -> list[str]:
        return [] if self._options.flatten.strip() else ["no column is named"]

    def row_by_row(self, base_dir: Path) -> bool:
        return True

    def apply(self, frame: DataFrame, context: StepContext) -> DataFrame:
        name = self._options.flatten
        require_columns(frame, [name], context)
        kind = frame.schema[name].dataType
        element = self._element(sf.col(f"`{name}`"), kind, context)
        spread = frame.withColumn(_ELEMENT, element)
        if isinstance(kind, StructType) and self._options.empty == "drop":
            spread = spread.filter(passes(sf.col(_ELEMENT).isNotNull(), context))
        inner = kind.elementType if isinstance(kind, ArrayType) else spread.schema[_ELEMENT].dataType
        made = self._made(inner)
        rest = [other for other in frame.columns if other != name]
        clash = [made_name for made_name in made if made_name in rest]
        if clash:
            raise FatalFailure(
                f"step {context.label}: `{name}` brings a column `{clash[0]}`, which the row has already: "
                "rename one before, or use `into`"
            )
        kept = [sf.col(f"`{other}`") for other in rest]
        return spread.select(*kept, *(column.alias(made_name) for made_name, column in made.items()))

    def _element(self, column: Column, kind: DataType, context: StepContext) -> Column:
        keep = self._options.empty == "keep"
        if isinstance(kind, StructType):
            return column
        if isinstance(kind, MapType):
            column = sf.map_entries(column)
        elif not isinstance(kind, ArrayType):
            raise FatalFailure(
                f"step {context.label}: `{self._options.flatten}` is {kind.simpleString().upper()}: "
                "only arrays, maps and structs can be flattened"
            )
        if context.marking:  # a marked row stays one row, whatever is in it
            nothing = sf.array(sf.lit(None)).cast(ArrayType(_element_type(kind)))
            column = sf.when(sf.col(MARK).isNull(), column).otherwise(nothing)
        return sf.explode_outer(column) if keep else sf.explode(column)

    def _made(self, inner: DataType) -> dict[str, Column]:
        element = sf.col(_ELEMENT)
        if isinstance(inner, StructType) and self._options.into is None:
            return {field.name: element[field.name] for field in inner.fields}
        return {self._options.into or self._options.flatten: element}


def _element_type(kind: DataType) -> DataType:
    if isinstance(kind, MapType):
        entry = [StructField("key", kind.keyType, False), StructField("value", kind.valueType, kind.valueContainsNull)]
        return StructType(entry)
    assert isinstance(kind, ArrayType)
    return kind.elementType
