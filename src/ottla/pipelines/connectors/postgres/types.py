"""PostgreSQL's types and Spark's, both ways. Data travels as CSV through COPY: a type also says how it looks there."""

from dataclasses import dataclass

from psycopg import sql
from psycopg.types import TypesRegistry
from pyspark.sql import Column
from pyspark.sql import functions as spark_sql
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
    StructType,
    TimestampNTZType,
    TimestampType,
)

from ottla.pipelines.errors import FatalFailure

DECIMAL_DIGITS_MAX = 38
_UNBOUNDED_NUMERIC = DecimalType(DECIMAL_DIGITS_MAX, 18)  # what Spark's JDBC source takes for a numeric without bounds

_SCALARS: dict[str, DataType] = {
    "bool": BooleanType(),
    "int2": ShortType(),
    "int4": IntegerType(),
    "int8": LongType(),
    "oid": LongType(),
    "float4": FloatType(),
    "float8": DoubleType(),
    "date": DateType(),
    "timestamp": TimestampNTZType(),
    "timestamptz": TimestampType(),
    "bytea": BinaryType(),
}


@dataclass(frozen=True, kw_only=True)
class ReadColumn:
    """One column on its way to Spark."""

    name: str
    spark: DataType
    carried: DataType
    """The type in the CSV; arrays and bytes travel as text and are turned by Spark."""

    def selected(self) -> sql.Composable:
        column = sql.Identifier(self.name)
        if isinstance(self.spark, ArrayType):
            return sql.SQL("to_json({})::text").format(column)
        if isinstance(self.spark, BinaryType):
            return sql.SQL("encode({}, 'hex')").format(column)
        if isinstance(self.carried, StringType):
            return sql.SQL("{}::text").format(column)
        return column

    def turned(self) -> Column:
        column = spark_sql.col(f"`{self.name}`")
        if isinstance(self.spark, ArrayType):
            return spark_sql.from_json(column, self.spark).alias(self.name)
        if isinstance(self.spark, BinaryType):
            return spark_sql.unhex(column).alias(self.name)
        return column


def read_column(
    name: str, type_code: int, precision: int | None, scale: int | None, types: TypesRegistry
) -> ReadColumn:
    info = types.get(type_code)
    element = info is not None and info.array_oid == type_code
    type_name = info.name if info is not None else ""
    spark = _spark_type(type_name, precision, scale)
    if element:
        # to_json writes numbers, booleans and text as JSON's own; whatever else is text there
        inner = spark if not isinstance(spark, BinaryType) else StringType()
        return ReadColumn(name=name, spark=ArrayType(inner), carried=StringType())
    carried = StringType() if isinstance(spark, BinaryType) else spark
    return ReadColumn(name=name, spark=spark, carried=carried)


def _spark_type(name: str, precision: int | None, scale: int | None) -> DataType:
    if name == "numeric":
        if precision is None or precision > DECIMAL_DIGITS_MAX or not 0 <= (scale or 0) <= DECIMAL_DIGITS_MAX:
            return _UNBOUNDED_NUMERIC
        return DecimalType(precision, scale or 0)
    return _SCALARS.get(name, StringType())


def column_definition(name: str, kind: DataType) -> sql.Composable:
    """A column as CREATE TABLE wants it."""
    return sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(_postgres_type(name, kind)))


_WRITTEN: dict[type[DataType], str] = {
    BooleanType: "boolean",
    ByteType: "smallint",
    ShortType: "smallint",
    IntegerType: "integer",
    LongType: "bigint",
    FloatType: "real",
    DoubleType: "double precision",
    StringType: "text",
    BinaryType: "bytea",
    DateType: "date",
    TimestampType: "timestamptz",
    TimestampNTZType: "timestamp",
    ArrayType: "jsonb",
    MapType: "jsonb",
    StructType: "jsonb",
}


def _postgres_type(name: str, kind: DataType) -> str:
    if isinstance(kind, DecimalType):
        return f"numeric({kind.precision},{kind.scale})"
    for spark, postgres in _WRITTEN.items():
        if isinstance(kind, spark):
            return postgres
    raise FatalFailure(
        f"column {name} of type {kind.simpleString()} cannot be written to PostgreSQL: cast it in a step"
    )


def carried_column(name: str, kind: DataType) -> Column:
    """A column as COPY reads it from CSV: nested values as JSON, bytes in hex."""
    column = spark_sql.col(f"`{name}`")
    if isinstance(kind, ArrayType | MapType | StructType):
        return spark_sql.to_json(column, {"ignoreNullFields": "false"}).alias(name)
    if isinstance(kind, BinaryType):
        return spark_sql.concat(spark_sql.lit("\\x"), spark_sql.hex(column)).alias(name)
    _postgres_type(name, kind)  # refuses what has no form there
    return column
