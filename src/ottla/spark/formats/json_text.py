"""JSON objects, read and written by Spark's own code.

Spark's `from_json` alone is too kind: it ignores what follows the first value and bytes that are not UTF-8, and says of
a field of the wrong type only that the record is corrupt. So every value is read inside a wrapper, and what went wrong
is worked out, for bad records only, from the fields one by one.

Kept as Spark has it: a STRING field takes any JSON value as its text; a number in a TIMESTAMP field is seconds since
1970; DECIMAL rounds digits beyond its scale; fields that the schema does not name are passed over; of a field given
twice the last counts. A missing field is null, unless the schema says NOT NULL.
"""

import secrets
from typing import ClassVar, Literal

import msgspec
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import MapType, StringType, StructField, StructType

from ottla.spark.formats.explaining import (
    TIMESTAMP_FORMAT,
    TIMESTAMP_NTZ_FORMAT,
    describe,
    fits,
    joined,
    preview,
    shown_path,
    unfit,
)
from ottla.spark.formats.spec import (
    BAD,
    ERROR,
    PARSED,
    REGISTRY_HINT,
    TOMBSTONE_ERROR,
    FormatProblem,
    FormatSpec,
    Tombstones,
    evaluated_once,
    interpreted,
    read_options,
    struct_schema,
    without_tombstones,
)
from ottla.spark.plain_json import PLAIN, PLAIN_OF

_READ = "__json_read"
_CORRUPT = "__corrupt"
_ROW = "row"


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

    def plain_schema(self) -> StructType | None:
        """What values are read into, if a plain one means the same whoever reads it."""
        own_moments = self._options.timestamp_format or self._options.date_format
        return None if own_moments else struct_schema(self._spec)

    def parse(self, frame: DataFrame, column: str) -> DataFrame:
        """Read every value inside `{"in":{"row":VALUE,"end":null}}`, `in` being a map.

        Whatever follows the first JSON value shows: it is malformed there, or adds an entry to the map, or ends the
        map early so that `end` is missing. `in` and `end` have another name each time, which no value can know. What is
        wrong with a value is asked only once it is known to be bad. Where a source has read what is plain
        (`plain_json`), Spark reads only the rest.
        """
        schema = struct_schema(self._spec)
        if not schema.fields:
            raise FormatProblem("format json is read with a `schema` of at least one field")
        value = sf.col(column)
        plain = sf.col(PLAIN) if column == PLAIN_OF and PLAIN in frame.columns else None
        text = value.cast("string")
        secret = secrets.token_hex(8)
        wrapped = sf.concat(sf.lit(f'{{"{secret}":{{"{_ROW}":'), text, sf.lit(f',"{secret}":null}}}}'))
        wrapper = StructType([StructField(secret, MapType(StringType(), schema)), StructField(_CORRUPT, StringType())])
        read = sf.from_json(wrapped, wrapper, self._reading())
        staged = without_tombstones(frame, column, self._options.tombstones).withColumn(_READ, _unless(plain, read))
        inside = sf.col(_READ)[secret]
        whole = (
            sf.is_valid_utf8(text)
            & sf.col(_READ)[_CORRUPT].isNull()
            & (sf.size(inside) == 2)
            & sf.map_contains_key(inside, secret)
        )
        row = inside[_ROW]
        is_whole = sf.coalesce(whole & row.isNotNull(), sf.lit(False))
        is_good = is_whole & fits(row, schema)
        if self._options.tombstones == "keep":
            is_good |= value.isNull()
        why = self._why_bad(text, row, is_whole, schema) if self._spec.explains else sf.lit(BAD)
        named = staged.withColumn(ERROR, evaluated_once(_unless(plain, sf.when(~is_good, why))))
        found = row if plain is None else sf.coalesce(plain, row)
        parsed = named.withColumn(PARSED, sf.when(sf.col(ERROR).isNull(), found)).drop(_READ)
        return parsed if plain is None else parsed.drop(PLAIN)  # who reads a key leaves it to who reads the value

    def _why_bad(self, text: Column, read: Column, is_whole: Column, schema: StructType) -> Column:
        """What is wrong with a bad value; `read` is what it was read as, if it `is_whole`.

        Interpreted: so much code in the way of every good record costs them three times the reading itself, and
        every task writes it anew (measured).
        """
        wrapper = StructType([StructField(_ROW, schema), StructField(_CORRUPT, StringType())])
        looked_at = sf.struct(
            text.alias("text"),
            sf.when(is_whole, read).alias("read"),
            sf.from_json(sf.concat(sf.lit(f'{{"{_ROW}":'), text, sf.lit("}")), wrapper, self._reading())[_ROW].alias(
                "row"
            ),
            sf.json_array_length(sf.concat(sf.lit("["), text, sf.lit("]"))).alias("count"),
        )
        return interpreted(looked_at, lambda found: _describe_bad(found, schema))

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


def _unless(known: Column | None, column: Column) -> Column:
    """The column where nothing is known yet."""
    return column if known is None else sf.when(known.isNull(), column)


def _describe_bad(found: Column, schema: StructType) -> Column:
    text, read, row, count = found["text"], found["read"], found["row"], found["count"]
    malformed = sf.concat(sf.lit("malformed JSON: "), preview(text))
    no_object = sf.concat(sf.lit("not a JSON object: "), preview(text))
    misfit = sf.concat(sf.lit("does not fit the schema: "), preview(text))
    return (
        sf.when(text.isNull(), sf.lit(TOMBSTONE_ERROR))
        .when(read.isNotNull(), joined(unfit(read, "$", schema)))
        .when(~sf.is_valid_utf8(text), sf.lit("the value is not UTF-8"))
        .when(sf.length(sf.trim(text)) == 0, sf.lit("the value is empty"))
        .when(sf.startswith(text, sf.lit("\0")), sf.lit(REGISTRY_HINT))
        .when(count.isNull(), malformed)
        .when(count != 1, sf.lit("more than one JSON value"))
        .when(row.isNull() & sf.startswith(sf.ltrim(text), sf.lit("{")), malformed)
        .when(row.isNull(), no_object)
        .otherwise(sf.coalesce(joined(_mismatches(row, text, "$", schema)), misfit))
    )


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
        wrong = sf.lit(f" is not {describe(field.dataType)}")
        message = sf.concat(sf.lit(f"field `{shown_path(inside)}`: "), shown, wrong)
        problems.append(sf.when(row.isNotNull() & found.isNotNull() & row[field.name].isNull(), message))
        if isinstance(field.dataType, StructType):
            problems.extend(_mismatches(row[field.name], text, inside, field.dataType))
    return problems
