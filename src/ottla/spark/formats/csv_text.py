"""CSV, one line per value, read and written by Spark's own code.

Fields are told apart as RFC 4180 has it: a field may stand in quotes, and a quote inside is written twice. Kept as
Spark has it: an empty field is null, also in a STRING column and in quotes; text after a closing quote belongs to the
field. A line with more or fewer fields than the schema is a bad record.

Two characters never reach Spark's parser. U+0000 is lost from quotes, and a line that begins with it is a comment;
U+FFFF is the parser's own sign for the end, and spoils the line behind it, too. Others stand for them in lines that
have them (and stay in a VARIANT).
"""

from collections.abc import Iterable
from functools import reduce
from operator import or_
from typing import ClassVar

import msgspec
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import BinaryType, DataType, StringType, StructField, StructType

from ottla.spark.formats.explaining import (
    TIMESTAMP_FORMAT,
    TIMESTAMP_NTZ_FORMAT,
    describe,
    fits,
    joined,
    preview,
    unfit,
)
from ottla.spark.formats.spec import (
    BAD,
    ERROR,
    PARSED,
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

_READ = "__csv_read"
_CORRUPT = "__corrupt"
_FIELDS_MAX = 20_000
_STAND_INS = {"\0": "\ufdd0", "\uffff": "\ufdd1"}  # of those that Unicode keeps for the inside of programs


class CsvOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tombstones: Tombstones = "reject"
    separator: str = ","
    quote: str = '"'
    timestamp_format: str | None = None
    """Spark's pattern for TIMESTAMP fields; without it ISO 8601 is read and written."""
    date_format: str | None = None


class CsvFormat:
    NAME: ClassVar[str] = "csv"
    Options: ClassVar[type[CsvOptions]] = CsvOptions

    def __init__(self, spec: FormatSpec) -> None:
        self._spec = spec
        self._options = read_options(spec, CsvOptions)
        for what in ("separator", "quote"):
            if len(getattr(self._options, what)) != 1:
                raise FormatProblem(f"format csv: `{what}` is one character")

    def parse(self, frame: DataFrame, column: str) -> DataFrame:
        schema = struct_schema(self._spec)
        value = sf.col(column)
        text = value.cast("string")
        # Spark's parser gives up on a line with more fields than this, by throwing; such a line is never a record.
        fields = sf.length(text) - sf.length(sf.replace(text, self._separator))
        readable = sf.when((fields < _FIELDS_MAX) & ~_is_ambiguous(text), _with_stand_ins(text))
        staged = without_tombstones(frame, column, self._options.tombstones).withColumn(
            _READ, self._read(readable, schema)
        )
        row = sf.struct(
            *(_without_stand_ins(sf.col(_READ)[field.name], field, text).alias(field.name) for field in schema.fields)
        )
        whole = sf.col(_READ).isNotNull() & sf.col(_READ)[_CORRUPT].isNull() & sf.is_valid_utf8(text)
        is_whole = sf.coalesce(whole & (sf.length(sf.trim(text)) > 0), sf.lit(False))
        is_good = is_whole & fits(row, schema)
        if self._options.tombstones == "keep":
            is_good |= value.isNull()
        why = self._why_bad(readable, text, sf.when(is_whole, row), schema) if self._spec.explains else sf.lit(BAD)
        named = staged.withColumn(ERROR, evaluated_once(sf.when(~is_good, why)))
        good = sf.col(ERROR).isNull() & value.isNotNull()
        return named.withColumn(PARSED, sf.when(good, row)).drop(_READ)

    def encode(self, row: Column, row_type: StructType) -> Column:
        settings = self._settings() | {
            "timestampFormat": self._options.timestamp_format or TIMESTAMP_FORMAT,
            "timestampNTZFormat": self._options.timestamp_format or TIMESTAMP_NTZ_FORMAT,
        }
        return sf.to_csv(row, settings).cast("binary")

    @property
    def _separator(self) -> Column:
        return sf.lit(self._options.separator)

    def _read(self, text: Column, schema: StructType) -> Column:
        wanted = StructType([*(StructField(field.name, _read_as(field)) for field in schema.fields), _corrupt_field()])
        settings = self._settings() | {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
        if self._options.timestamp_format:
            settings["timestampFormat"] = self._options.timestamp_format
            settings["timestampNTZFormat"] = self._options.timestamp_format
        return sf.from_csv(text, sf.lit(_ddl(wanted)), settings)

    def _settings(self) -> dict[str, str]:
        settings = {
            "sep": self._options.separator,
            "quote": self._options.quote,
            "escape": self._options.quote,
            "ignoreLeadingWhiteSpace": "false",
            "ignoreTrailingWhiteSpace": "false",
        }
        if self._options.date_format:
            settings["dateFormat"] = self._options.date_format
        return settings

    def _why_bad(self, readable: Column, text: Column, read: Column, schema: StructType) -> Column:
        """What is wrong with a bad value; `read` is its row, if it is one. Interpreted, for json_text's reason."""
        texts = StructType([StructField(field.name, StringType()) for field in schema.fields])
        looked_at = sf.struct(
            text.alias("text"),
            read.alias("read"),
            self._read(readable, schema).alias("row"),
            self._read(readable, texts).alias("texts"),
        )
        return interpreted(looked_at, lambda found: _describe_bad(found, schema))


def _describe_bad(found: Column, schema: StructType) -> Column:
    text, read, row, texts = found["text"], found["read"], found["row"], found["texts"]
    problems = [
        sf.when(
            texts[field.name].isNotNull() & row[field.name].isNull(),
            sf.concat(
                sf.lit(f"field `{field.name}`: "),
                preview(texts[field.name]),
                sf.lit(f" is not {describe(field.dataType)}"),
            ),
        )
        for field in schema.fields
        if not isinstance(field.dataType, StringType)
    ]
    count = sf.concat(sf.lit(f"not {len(schema.fields)} fields: "), preview(text))
    return (
        sf.when(text.isNull(), sf.lit(TOMBSTONE_ERROR))
        .when(read.isNotNull(), joined(unfit(read, "$", schema)))
        .when(~sf.is_valid_utf8(text), sf.lit("the value is not UTF-8"))
        .when(sf.length(sf.trim(text)) == 0, sf.lit("the value is empty"))
        .when(_is_ambiguous(text), sf.lit("the value has U+0000 or U+FFFF, and U+FDD0 or U+FDD1, which stand for them"))
        .when(texts.isNull() | texts[_CORRUPT].isNotNull(), count)
        .otherwise(sf.coalesce(joined(problems), sf.concat(sf.lit("does not fit the schema: "), preview(text))))
    )


def _has_any(text: Column, characters: Iterable[str]) -> Column:
    return reduce(or_, (sf.contains(text, sf.lit(each)) for each in characters))


def _is_ambiguous(text: Column) -> Column:
    return _has_any(text, _STAND_INS.keys()) & _has_any(text, _STAND_INS.values())


def _with_stand_ins(text: Column) -> Column:
    for odd, stand_in in _STAND_INS.items():
        text = sf.replace(text, sf.lit(odd), sf.lit(stand_in))
    return text


def _without_stand_ins(read: Column, field: StructField, text: Column) -> Column:
    """A field of this line as it was written. No number and no time is written with one of them."""
    if not isinstance(field.dataType, StringType | BinaryType):
        return read
    restored = read
    for odd, stand_in in _STAND_INS.items():
        restored = sf.replace(restored, sf.lit(stand_in), sf.lit(odd))
    return sf.when(_has_any(text, _STAND_INS), restored).otherwise(read).cast(field.dataType)


def _read_as(field: StructField) -> DataType:
    """Bytes as text: Spark's parser would write them in the character set of the machine's locale."""
    return StringType() if isinstance(field.dataType, BinaryType) else field.dataType


def _corrupt_field() -> StructField:
    return StructField(_CORRUPT, StringType())


def _ddl(schema: StructType) -> str:
    """`from_csv` takes its schema as text."""
    return ", ".join(f"`{field.name.replace('`', '``')}` {field.dataType.simpleString()}" for field in schema.fields)
