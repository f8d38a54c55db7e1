"""Avro schemas and Spark's columns, either way."""

from collections.abc import Mapping
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

_PRIMITIVES: Mapping[str, DataType] = {
    "boolean": BooleanType(),
    "int": IntegerType(),
    "long": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "bytes": BinaryType(),
    "string": StringType(),
    "enum": StringType(),
    "fixed": BinaryType(),
}
_LOGICAL: Mapping[tuple[str, str], DataType] = {
    ("int", "date"): DateType(),
    ("long", "timestamp-millis"): TimestampType(),
    ("long", "timestamp-micros"): TimestampType(),
    ("long", "local-timestamp-millis"): TimestampNTZType(),
    ("long", "local-timestamp-micros"): TimestampNTZType(),
}
_PRIMITIVE_NAMES: Mapping[type[DataType], Any] = {
    BooleanType: "boolean",
    ByteType: "int",
    ShortType: "int",
    IntegerType: "int",
    LongType: "long",
    FloatType: "float",
    DoubleType: "double",
    BinaryType: "bytes",
    StringType: "string",
    DateType: {"type": "int", "logicalType": "date"},
    TimestampType: {"type": "long", "logicalType": "timestamp-micros"},
    TimestampNTZType: {"type": "long", "logicalType": "local-timestamp-micros"},
}
_WIDER = {("int", "long"): "long", ("float", "double"): "double"}
_DECIMAL_DIGITS_MAX = 38


def column_type(schema: Any) -> DataType:
    """What values of a schema are read into: a struct for a record, or one column."""
    try:
        return _Reader().type_of(schema, "the schema")
    except (KeyError, TypeError, AttributeError) as error:
        raise FormatProblem(f"format avro: this is no Avro schema ({type(error).__name__}: {error})") from error


def columns_of(schema: Mapping[str, Any]) -> StructType:
    """The columns that a record schema is read into."""
    kind = column_type(schema)
    if not isinstance(kind, StructType):
        raise FormatProblem("format avro: the schema must be a record, for its fields are the columns")
    return kind


def plain(schema: Any) -> Any:
    """The schema without the logical types that have no column type: their plain values are read instead."""
    if isinstance(schema, list):
        return [plain(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: plain(value) if key in {"type", "items", "values"} else value for key, value in schema.items()}
    if isinstance(schema.get("fields"), list):
        kept["fields"] = [plain(field) for field in schema["fields"]]
    kind, logical = schema.get("type"), schema.get("logicalType")
    if logical is not None and logical != "decimal" and not (isinstance(kind, str) and (kind, logical) in _LOGICAL):
        del kept["logicalType"]
    return kept


class _Reader:
    def __init__(self) -> None:
        self._named: dict[str, DataType | None] = {}

    def type_of(self, schema: Any, where: str, namespace: str = "") -> DataType:
        if isinstance(schema, list):
            return self._union(schema, where, namespace)
        if isinstance(schema, str):
            return self._by_name(schema, where, namespace)
        if not isinstance(schema, dict) or "type" not in schema:
            raise FormatProblem(f"format avro: {where} is no Avro schema: {schema!r:.80}")
        kind = schema["type"]
        if not isinstance(kind, str):
            return self.type_of(kind, where, namespace)
        if kind in {"record", "error"}:
            return self._record(schema, where, namespace)
        if kind == "array":
            return ArrayType(self.type_of(schema.get("items"), f"{where}, its items", namespace))
        if kind == "map":
            return MapType(StringType(), self.type_of(schema.get("values"), f"{where}, its values", namespace))
        found = self._logical(schema, where) or self._by_name(kind, where, namespace)
        if kind in {"enum", "fixed"}:
            self._named[_full_name(schema, namespace)] = found
        return found

    def _logical(self, schema: Mapping[str, Any], where: str) -> DataType | None:
        if schema.get("logicalType") == "decimal":
            precision, scale = schema.get("precision"), schema.get("scale", 0)
            if (
                not isinstance(precision, int)
                or not 0 < precision <= _DECIMAL_DIGITS_MAX
                or not 0 <= scale <= precision
            ):
                raise FormatProblem(f"format avro: {where} is a decimal of {precision} digits; Spark has 1 to 38")
            return DecimalType(precision, scale)
        return _LOGICAL.get((schema["type"], schema.get("logicalType", "")))

    def _by_name(self, name: str, where: str, namespace: str) -> DataType:
        if name in _PRIMITIVES:
            return _PRIMITIVES[name]
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        full = full if full in self._named else name
        if full not in self._named:
            raise FormatProblem(f"format avro: {where} has the type `{name}`, which the schema does not define")
        found = self._named[full]
        if found is None:
            raise FormatProblem(f"format avro: {where} contains itself (`{name}`), and columns cannot")
        return found

    def _record(self, schema: Mapping[str, Any], where: str, namespace: str) -> StructType:
        full = _full_name(schema, namespace)
        inner = full.rpartition(".")[0]
        self._named[full] = None
        fields = [
            StructField(field["name"], self.type_of(field["type"], f"field `{field['name']}`", inner))
            for field in schema.get("fields", [])
        ]
        record = StructType(fields)
        self._named[full] = record
        return record

    def _union(self, branches: list[Any], where: str, namespace: str) -> DataType:
        types = [branch for branch in branches if branch != "null"]
        if len(types) == 1:
            return self.type_of(types[0], where, namespace)
        for numbers, wider in _WIDER.items():
            if types in ([*numbers], [*reversed(numbers)]):
                return _PRIMITIVES[wider]
        raise FormatProblem(
            f"format avro: {where} is a union of several types, and a column has one: only null and one other are read"
        )


def _full_name(schema: Mapping[str, Any], namespace: str) -> str:
    name: str = schema.get("name", "")
    space = schema.get("namespace", namespace)
    return name if "." in name or not space else f"{space}.{name}"


def avro_of(columns: StructType, name: str = "Row") -> dict[str, Any]:
    """A record schema for columns; every field may be null."""
    fields = [
        {"name": field.name, "type": ["null", avro_type_of(field.dataType, f"{name}_{field.name}")], "default": None}
        for field in columns.fields
    ]
    return {"type": "record", "name": name, "fields": fields}


def avro_type_of(kind: DataType, name: str) -> Any:
    if isinstance(kind, StructType):
        return avro_of(kind, name)
    if isinstance(kind, ArrayType):
        return {"type": "array", "items": ["null", avro_type_of(kind.elementType, f"{name}_item")]}
    if isinstance(kind, MapType) and isinstance(kind.keyType, StringType):
        return {"type": "map", "values": ["null", avro_type_of(kind.valueType, f"{name}_value")]}
    if isinstance(kind, DecimalType):
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    primitive = _PRIMITIVE_NAMES.get(type(kind))
    if primitive is None:
        raise FormatProblem(f"format avro has no type for {kind.simpleString().upper()}: cast the column first")
    return primitive
