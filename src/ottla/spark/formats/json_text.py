"""JSON objects, read and written by Spark's own code.

Spark's `from_json` alone is too kind: it ignores what follows the first value and bytes that are not UTF-8, and says of
a field of the wrong type only that the record is corrupt. So every value is read inside a wrapper, and what went wrong
is worked out, for bad records only, from the fields one by one.

Kept as Spark has it: a STRING field takes any JSON value as its text; a number in a TIMESTAMP field is seconds since
1970; DECIMAL rounds digits beyond its scale; fields that the schema does not name are passed over; of a field given
twice the last counts. A missing field is null, unless the schema says NOT NULL.
"""

from typing import ClassVar, Literal

import msgspec
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import DataType, DateType, MapType, StringType, StructField, StructType, TimestampType

from ottla.spark.formats.spec import (
    ERROR,
    PARSED,
    REGISTRY_HINT,
    FormatProblem,
    FormatSpec,
    Tombstones,
    evaluated_once,
    read_options,
    struct_schema,
    tombstone_error,
    without_tombstones,
)

_READ = "__json_read"
_CORRUPT = "__corrupt"
_IN = "in"
_ROW = "row"
_PREVIEW_CHARS = 60

# Six digits, where Spark's own default writes three and loses the rest.
TIMESTAMP_FORMAT = "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS]XXX"
TIMESTAMP_NTZ_FORMAT = "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS]"


class JsonOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tombstones: Tombstones = "reject"
    timestamp_format: str | None = None
    """Spark's pattern for TIMESTAMP fields; without it ISO 8601 is read and written."""
    date_format: str | None = None
    nulls: Literal["omit", "write"] = "omit"
    """Whether a null column is left out of what is written or written as `null`."""


class JsonFormat:
    NAME: ClassVar[str] = "json"
    Options: ClassVar[type[JsonOptions]] = JsonOptions

    def __init__(self, spec: FormatSpec) -> None:
        self._spec = spec
        self._options = read_options(spec, JsonOptions)

    def parse(self, frame: DataFrame, column: str) -> DataFrame:
        """Read every value inside `{"in":{"row":VALUE,"end":null}}`, `in` being a map.

        Whatever follows the first JSON value shows: it is malformed there, or adds an entry to the map, or ends the
        map early so that `end` is missing. What is wrong with a value is asked only once it is known to be bad.
        """
        schema = struct_schema(self._spec)
        if not schema.fields:
            raise FormatProblem("format json is read with a `schema` of at least one field")
        value = sf.col(column)
        text = value.cast("string")
        wrapped = sf.concat(sf.lit(f'{{"{_IN}":{{"{_ROW}":'), text, sf.lit(',"end":null}}'))
        wrapper = StructType([StructField(_IN, MapType(StringType(), schema)), StructField(_CORRUPT, StringType())])
        read = sf.from_json(wrapped, wrapper, self._reading())
        staged = without_tombstones(frame, column, self._options.tombstones).withColumn(_READ, read)
        inside = sf.col(_READ)[_IN]
        whole = sf.is_valid_utf8(text) & sf.col(_READ)[_CORRUPT].isNull() & (sf.size(inside) == 2)
        row = inside[_ROW]
        error = (
            sf.when(value.isNull(), tombstone_error(self._options.tombstones))
            .when(sf.coalesce(whole & row.isNotNull(), sf.lit(False)), joined(_unfit(row, "$", schema)))
            .otherwise(self._why_unreadable(text, schema))
        )
        named = staged.withColumn(ERROR, evaluated_once(error))
        return named.withColumn(PARSED, sf.when(sf.col(ERROR).isNull(), row)).drop(_READ)

    def _why_unreadable(self, text: Column, schema: StructType) -> Column:
        """What is wrong with a bad value.

        It stands in a lambda because Spark does not compile those: compiled, so much code in the way of every good
        record costs them three times the reading itself (measured).
        """
        wrapper = StructType([StructField(_ROW, schema), StructField(_CORRUPT, StringType())])
        looked_at = sf.struct(
            text.alias("text"),
            sf.from_json(sf.concat(sf.lit(f'{{"{_ROW}":'), text, sf.lit("}")), wrapper, self._reading())[_ROW].alias(
                "row"
            ),
            sf.json_array_length(sf.concat(sf.lit("["), text, sf.lit("]"))).alias("count"),
        )
        return sf.transform(sf.array(looked_at), lambda found: _describe_bad(found, schema))[0]

    def encode(self, row: Column, row_type: StructType) -> Column:
        settings = {
            "timestampFormat": self._options.timestamp_format or TIMESTAMP_FORMAT,
            "timestampNTZFormat": self._options.timestamp_format or TIMESTAMP_NTZ_FORMAT,
            "ignoreNullFields": "true" if self._options.nulls == "omit" else "false",
        }
        if self._options.date_format:
            settings["dateFormat"] = self._options.date_format
        return sf.to_json(row, settings).cast("binary")

    def _reading(self) -> dict[str, str]:
        settings = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT, "allowSingleQuotes": "false"}
        if self._options.timestamp_format:
            settings["timestampFormat"] = self._options.timestamp_format
            settings["timestampNTZFormat"] = self._options.timestamp_format
        if self._options.date_format:
            settings["dateFormat"] = self._options.date_format
        return settings


def preview(text: Column) -> Column:
    """The beginning of a value, short enough for a message."""
    cut = sf.concat(sf.substring(text, 1, _PREVIEW_CHARS), sf.lit("…"))
    return sf.when(sf.length(text) > _PREVIEW_CHARS, cut).otherwise(text)


def describe(kind: DataType) -> str:
    name = kind.simpleString().upper()
    return f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"


def _describe_bad(found: Column, schema: StructType) -> Column:
    text, row, count = found["text"], found["row"], found["count"]
    malformed = sf.concat(sf.lit("malformed JSON: "), preview(text))
    no_object = sf.concat(sf.lit("not a JSON object: "), preview(text))
    misfit = sf.concat(sf.lit("does not fit the schema: "), preview(text))
    return (
        sf.when(~sf.is_valid_utf8(text), sf.lit("the value is not UTF-8"))
        .when(sf.length(sf.trim(text)) == 0, sf.lit("the value is empty"))
        .when(sf.startswith(text, sf.lit("\0")), sf.lit(REGISTRY_HINT))
        .when(count.isNull(), malformed)
        .when(count != 1, sf.lit("more than one JSON value"))
        .when(row.isNull() & sf.startswith(sf.ltrim(text), sf.lit("{")), malformed)
        .when(row.isNull(), no_object)
        .otherwise(sf.coalesce(joined(_mismatches(row, text, "$", schema)), misfit))
    )


def joined(problems: list[Column]) -> Column:
    """All that is wrong, as one text; null if nothing is."""
    if not problems:
        return sf.lit(None).cast("string")
    return sf.nullif(sf.concat_ws("; ", *problems), sf.lit(""))


def _mismatches(row: Column, text: Column, path: str, schema: StructType) -> list[Column]:
    problems: list[Column] = []
    for field in schema.fields:
        # A STRING takes everything. A name with a quote cannot be written as a path; the general message serves.
        if isinstance(field.dataType, StringType) or "'" in field.name:
            continue
        inside = f"{path}['{field.name}']"
        found = sf.get_json_object(text, inside)
        kind = sf.schema_of_variant(sf.try_variant_get(sf.try_parse_json(text), inside, "variant"))
        shown = sf.when(kind == "STRING", sf.concat(sf.lit('"'), preview(found), sf.lit('"'))).otherwise(preview(found))
        message = sf.concat(sf.lit(f"field `{_shown(inside)}`: "), shown, sf.lit(f" is not {describe(field.dataType)}"))
        problems.append(sf.when(row.isNotNull() & found.isNotNull() & row[field.name].isNull(), message))
        if isinstance(field.dataType, StructType):
            problems.extend(_mismatches(row[field.name], text, inside, field.dataType))
    return problems


def _unfit(row: Column, path: str, schema: StructType) -> list[Column]:
    """What the types let pass: required fields that are missing, and moments that no calendar has."""
    problems: list[Column] = []
    for field in schema.fields:
        inside = f"{path}['{field.name}']"
        value = row[field.name]
        if not field.nullable:
            missing = sf.lit(f"field `{_shown(inside)}` is missing or null, and the schema says NOT NULL")
            problems.append(sf.when(row.isNotNull() & value.isNull(), missing))
        if isinstance(field.dataType, TimestampType | DateType):
            far = sf.lit(
                f"field `{_shown(inside)}` lies outside the years 1 to 9999: a number is taken as seconds since 1970 "
                "(for milliseconds declare it BIGINT and use timestamp_millis)"
            )
            problems.append(sf.when((sf.year(value) > 9999) | (sf.year(value) < 1), far))
        if isinstance(field.dataType, StructType):
            problems.extend(_unfit(value, inside, field.dataType))
    return problems


def _shown(path: str) -> str:
    """`$['a']['b']` as people write it: `a.b`."""
    return path.removeprefix("$").replace("']['", ".").strip("[']")
