"""JSON Schemas and Spark's columns, either way."""

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from ottla.spark.formats.spec import FormatProblem

_SCALARS: Mapping[str, DataType] = {
    "string": StringType(),
    "integer": LongType(),
    "number": DoubleType(),
    "boolean": BooleanType(),
}
_NAMES: Mapping[type[DataType], dict[str, Any]] = {
    StringType: {"type": "string"},
    BinaryType: {"type": "string"},
    BooleanType: {"type": "boolean"},
    ByteType: {"type": "integer"},
    ShortType: {"type": "integer"},
    IntegerType: {"type": "integer"},
    LongType: {"type": "integer"},
    FloatType: {"type": "number"},
    DoubleType: {"type": "number"},
    DecimalType: {"type": "number"},
    DateType: {"type": "string", "format": "date"},
    TimestampType: {"type": "string", "format": "date-time"},
    TimestampNTZType: {"type": "string", "format": "date-time"},
}
_DEPTH_MAX = 50


def json_column_type(schemas: Sequence[Any]) -> DataType:
    """The columns of all of them, where they differ the last counts; or the one column of a schema without
    properties."""
    kinds = [_type_of(schema, schema, 0) for schema in schemas]
    if not isinstance(kinds[-1], StructType):
        if not isinstance(schemas[-1], dict) or "type" not in schemas[-1]:
            raise FormatProblem("format json: the schema names neither properties, which are the columns, nor a type")
        return kinds[-1]
    fields: dict[str, StructField] = {}
    for kind in kinds:
        if not isinstance(kind, StructType):
            raise FormatProblem("format json: versions with properties and others without cannot be merged")
        fields |= {field.name: field for field in kind.fields}
    return StructType(list(fields.values()))


def _type_of(schema: Any, root: Any, depth: int) -> DataType:
    if depth > _DEPTH_MAX:
        raise FormatProblem("format json: the schema contains itself, and columns cannot")
    if not isinstance(schema, dict):
        return StringType()
    ref = schema.get("$ref")
    if isinstance(ref, str) and ref.startswith("#/"):
        target = root
        for part in ref[2:].split("/"):
            target = target.get(part, {}) if isinstance(target, dict) else {}
        return _type_of(target, root, depth + 1)
    for key in ("anyOf", "oneOf"):
        branches = [each for each in schema.get(key, []) if each != {"type": "null"}]
        if len(branches) == 1:
            return _type_of(branches[0], root, depth + 1)
    kind = schema.get("type")
    names = [each for each in (kind if isinstance(kind, list) else [kind]) if each not in ("null", None)]
    if names == ["object"] or (not names and "properties" in schema):
        return _object(schema, root, depth)
    if names == ["array"]:
        return ArrayType(_type_of(schema.get("items"), root, depth + 1))
    if sorted(map(str, names)) == ["integer", "number"]:
        return DoubleType()
    return _SCALARS.get(names[0], StringType()) if len(names) == 1 and isinstance(names[0], str) else StringType()


def _object(schema: Mapping[str, Any], root: Any, depth: int) -> DataType:
    properties = schema.get("properties") or {}
    if not properties and isinstance(schema.get("additionalProperties"), dict):
        return MapType(StringType(), _type_of(schema["additionalProperties"], root, depth + 1))
    return StructType([StructField(name, _type_of(each, root, depth + 1)) for name, each in properties.items()])


def json_schema_of(kind: DataType, title: str) -> dict[str, Any]:
    """Closed, so that later columns can be added and this one still be followed."""
    schema = _json_type(kind)
    return {"$schema": "http://json-schema.org/draft-07/schema#", "title": title, **schema}


def _json_type(kind: DataType) -> dict[str, Any]:
    if isinstance(kind, StructType):
        properties = {field.name: _json_type(field.dataType) for field in kind.fields}
        return {"type": "object", "properties": properties, "additionalProperties": False}
    if isinstance(kind, ArrayType):
        return {"type": "array", "items": _json_type(kind.elementType)}
    if isinstance(kind, MapType):
        return {"type": "object", "additionalProperties": _json_type(kind.valueType)}
    found = _NAMES.get(type(kind))
    if found is None:
        raise FormatProblem(f"format json has no JSON Schema for {kind.simpleString().upper()}: cast the column first")
    return found
