"""Structs as columns of their own on their way to Python and back.

Before each row Spark asks how large its Arrow batch has become, and a struct goes through all of its fields for that in
a way that costs more than writing them (of a batch of 200,000 rows with their records beside them a tenth). So a struct
is spread over columns `name__field`, and a column `name` says whether there is one. Python has it as a struct again.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import BooleanType, StructField, StructType

from ottla.spark.headers import HEADERS, never_null
from ottla.spark.mapping import map_in_arrow

Batches = Iterable[pa.RecordBatch]


def map_spread(
    frame: DataFrame, task: Callable[[Batches], Iterator[pa.RecordBatch]], output: StructType, names: Iterable[str]
) -> DataFrame:
    """`map_in_arrow(frame, task, output)`, with the structs of these names spread on both ways, if they are there."""
    structs = {name for name in names if name in frame.columns}
    given = frame.select(*(column for name in frame.columns for column in _spread(frame.schema[name], structs)))
    made = map_in_arrow(given, _Gathered(task, frozenset(structs)), _spread_type(output, structs))
    return made.select(*(_gathered(field, structs) for field in output.fields))


def inside(name: str, field: str) -> str:
    """The column of a struct's field."""
    return f"{name}__{field}"


def _spread(field: StructField, structs: set[str]) -> list[Column]:
    struct = sf.col(f"`{field.name}`")
    if field.name not in structs:
        return [struct]
    assert isinstance(field.dataType, StructType)
    parts = [_part(struct, inner).alias(inside(field.name, inner.name)) for inner in field.dataType.fields]
    return [struct.isNotNull().alias(field.name), *parts]


def _part(struct: Column, inner: StructField) -> Column:
    return never_null(struct[inner.name]) if inner.dataType == HEADERS else struct[inner.name]


def _spread_type(output: StructType, structs: set[str]) -> StructType:
    spread = StructType()
    for field in output.fields:
        if field.name not in structs:
            spread.add(field)
            continue
        assert isinstance(field.dataType, StructType)
        spread.add(field.name, BooleanType())
        for inner in field.dataType.fields:
            spread.add(inside(field.name, inner.name), inner.dataType)
    return spread


def _gathered(field: StructField, structs: set[str]) -> Column:
    column = sf.col(f"`{field.name}`")
    if field.name not in structs:
        return column
    assert isinstance(field.dataType, StructType)
    parts = (sf.col(f"`{inside(field.name, inner.name)}`").alias(inner.name) for inner in field.dataType.fields)
    return sf.when(column, sf.struct(*parts)).alias(field.name)


@dataclass(frozen=True)
class _Gathered:
    """What runs in the executor: structs for the task, columns for Spark."""

    task: Callable[[Batches], Iterator[pa.RecordBatch]]
    structs: frozenset[str]

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        for made in self.task(gather(batch, self.structs) for batch in batches):
            yield spread(made, self.structs)


def gather(batch: pa.RecordBatch, structs: frozenset[str]) -> pa.RecordBatch:
    inner = {name: [each for each in batch.schema.names if each.startswith(inside(name, ""))] for name in structs}
    parts = {part for names in inner.values() for part in names}
    columns: dict[str, Any] = {}
    for name in batch.schema.names:
        if name in structs:
            fields = [batch.schema.field(part).with_name(part.removeprefix(inside(name, ""))) for part in inner[name]]
            values: list[Any] = [batch.column(part) for part in inner[name]]
            is_null: Any = pc.invert(batch.column(name))
            columns[name] = pa.StructArray.from_arrays(values, fields=fields, mask=is_null)
        elif name not in parts:
            columns[name] = batch.column(name)
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def spread(batch: pa.RecordBatch, structs: frozenset[str]) -> pa.RecordBatch:
    columns: dict[str, Any] = {}
    for name in batch.schema.names:
        column: Any = batch.column(name)
        columns[name] = column.is_valid() if name in structs else column
        if name in structs:
            for field, values in zip(column.type, column.flatten(), strict=True):
                columns[inside(name, field.name)] = values
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
