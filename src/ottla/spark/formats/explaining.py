"""Words for what is wrong with a record, as Spark expressions: cheap for good records, evaluated for bad ones."""

import operator
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as sf
from pyspark.sql.types import DataType, DateType, StructType, TimestampType

_PREVIEW_CHARS = 60
_CALENDAR = {
    TimestampType: ("TIMESTAMP'0001-01-01 00:00:00'", "TIMESTAMP'9999-12-31 23:59:59.999999'"),
    DateType: ("DATE'0001-01-01'", "DATE'9999-12-31'"),
}

# Six digits, where Spark's own default writes three and loses the rest.
TIMESTAMP_FORMAT = "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS]XXX"
TIMESTAMP_NTZ_FORMAT = "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS]"


def preview(text: Column) -> Column:
    """The beginning of a value, short enough for a message."""
    cut = sf.concat(sf.substring(text, 1, _PREVIEW_CHARS), sf.lit("…"))
    return sf.when(sf.length(text) > _PREVIEW_CHARS, cut).otherwise(text)


def describe(kind: DataType) -> str:
    name = kind.simpleString().upper()
    return f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"


def joined(problems: list[Column]) -> Column:
    """All that is wrong, as one text; null if nothing is."""
    if not problems:
        return sf.lit(None).cast("string")
    return sf.nullif(sf.concat_ws("; ", *problems), sf.lit(""))


def fits(row: Column, schema: StructType) -> Column:
    """Whether nothing is wrong with a row that `unfit` has words for: cheap, because it is asked of every record."""
    conditions = [sf.lit(True)]
    for field in schema.fields:
        value = row[field.name]
        if not field.nullable:
            conditions.append(row.isNull() | value.isNotNull())
        if isinstance(field.dataType, TimestampType | DateType):
            first, last = _CALENDAR[type(field.dataType)]
            conditions.append(sf.coalesce(value.between(sf.expr(first), sf.expr(last)), sf.lit(True)))
        if isinstance(field.dataType, StructType):
            conditions.append(fits(value, field.dataType))
    return reduce(operator.and_, conditions)


def unfit(row: Column, path: str, schema: StructType) -> list[Column]:
    """What the types let pass: required fields that are missing, and moments that no calendar has."""
    problems: list[Column] = []
    for field in schema.fields:
        inside = f"{path}['{field.name}']"
        value = row[field.name]
        if not field.nullable:
            missing = sf.lit(f"field `{shown_path(inside)}` is missing or null, and the schema says NOT NULL")
            problems.append(sf.when(row.isNotNull() & value.isNull(), missing))
        if isinstance(field.dataType, TimestampType | DateType):
            far = sf.lit(
                f"field `{shown_path(inside)}` lies outside the years 1 to 9999: a number is taken as seconds "
                "since 1970 (for milliseconds declare it BIGINT and use timestamp_millis)"
            )
            problems.append(sf.when((sf.year(value) > 9999) | (sf.year(value) < 1), far))
        if isinstance(field.dataType, StructType):
            problems.extend(unfit(value, inside, field.dataType))
    return problems


def shown_path(path: str) -> str:
    """`$['a']['b']` as people write it: `a.b`."""
    return path.removeprefix("$").replace("']['", ".").strip("[']")
