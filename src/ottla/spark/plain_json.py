"""The option by which records come with their values read as JSON objects, as far as these are plain (kernel/json.c).

For formats, which read the others themselves: rows have one more column, null where a value was left to them.
"""

import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from ottla.spark.kernel.json_columns import JsonField, JsonKind

OPTION = "plainJson"
PLAIN = "__plain"
"""The column, and what it was read from."""
PLAIN_OF = "value"

_KINDS: tuple[tuple[DataType, JsonKind], ...] = (
    (StringType(), JsonKind.TEXT),
    (IntegerType(), JsonKind.INT32),
    (LongType(), JsonKind.INT64),
    (DoubleType(), JsonKind.DOUBLE),
    (BooleanType(), JsonKind.BOOLEAN),
    (TimestampType(), JsonKind.TIMESTAMP),
    (DateType(), JsonKind.DATE),
)


def written(schema: StructType) -> dict[str, str]:
    """The option, for who makes a read; none if there are types of which a kernel knows nothing."""
    return {OPTION: schema.json()} if _fields_of(schema) else {}


def plain_column(options: Mapping[str, str]) -> list[StructField]:
    """What rows have more than others."""
    schema = _schema(options)
    return [] if schema is None else [StructField(PLAIN, _nullable(schema))]


def taken(options: Mapping[str, str]) -> tuple[dict[str, str], tuple[JsonField, ...]]:
    """The other options, and the fields that objects are read into; none if nobody asked."""
    schema = _schema(options)
    rest = {name: value for name, value in options.items() if name.lower() != OPTION.lower()}
    return rest, () if schema is None else _fields_of(schema) or ()


def _schema(options: Mapping[str, str]) -> StructType | None:
    given = [value for name, value in options.items() if name.lower() == OPTION.lower()]
    return StructType.fromJson(json.loads(given[0])) if given else None


def _fields_of(schema: StructType) -> tuple[JsonField, ...] | None:
    fields = [_field_of(field) for field in schema.fields]
    if not fields or None in fields or len(set(schema.fieldNames())) < len(fields):
        return None
    return tuple(field for field in fields if field is not None)


def _field_of(field: StructField) -> JsonField | None:
    if isinstance(field.dataType, StructType):
        inside = _fields_of(field.dataType)
        return None if inside is None else JsonField(field.name, JsonKind.OBJECT, not field.nullable, inside)
    kind = next((kind for known, kind in _KINDS if known == field.dataType), None)
    return None if kind is None else JsonField(field.name, kind, not field.nullable)


def _nullable(kind: Any) -> Any:
    """The fields of an object that is not there are null, whatever the schema says of those that are."""
    if not isinstance(kind, StructType):
        return kind
    return StructType([StructField(field.name, _nullable(field.dataType)) for field in kind.fields])
