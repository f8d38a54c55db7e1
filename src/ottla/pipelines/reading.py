"""Records to rows: the format of a source, the columns that it keeps of the record, and where each row came from."""

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from ottla.model.errors import OttlaError
from ottla.pipelines.frames import ORIGIN, ORIGIN_TYPE
from ottla.pipelines.parts import KeyReading, Reading
from ottla.pipelines.structs import Problem, read_struct
from ottla.spark.formats.api import KEY, build_format, check_format, parse_key
from ottla.spark.formats.json_text import JsonFormat
from ottla.spark.formats.registry_format import REGISTRY
from ottla.spark.formats.spec import ERROR, PARSED, FormatSpec
from ottla.spark.headers import never_null

RECORD_COLUMNS = ("key", "topic", "partition", "offset", "timestamp", "headers")
PLACES = ("topic", "partition", "offset")
FAILURE = "__failure"
"""Why a record could not be read; null for the others."""
_KEY = "__key"
_KEY_FAILURE = "__key_failure"


class _Keys(msgspec.Struct, forbid_unknown_fields=True):
    format: str = "raw"
    schema: str | None = None
    format_options: dict[str, Any] = {}
    keep: list[str] | dict[str, str] = []
    key_format: str | None = None
    key_schema: str | None = None
    key_format_options: dict[str, Any] = {}


def read_reading(entry: Mapping[str, Any], place: str, base_dir: Path) -> tuple[Reading | None, list[Problem]]:
    """The keys of a source that say how its records are read, and what is wrong with them or the files they name."""
    keys, problems = read_struct(entry, _Keys, place, "a source of records")
    if keys is None:
        return None, problems
    keep = keys.keep if isinstance(keys.keep, dict) else {name: name for name in keys.keep}
    for name, column in keep.items():
        if column not in RECORD_COLUMNS:
            known = ", ".join(RECORD_COLUMNS)
            problems.append((f"{place}.keep", f"a record has no `{column}` that `{name}` could keep; it has {known}"))
    key, wrong = _read_key(keys, place)
    problems += wrong
    if key is not None and KEY not in keep.values():
        keep = {KEY: KEY, **keep}
    reading = Reading(format=keys.format, schema=keys.schema, options=keys.format_options, keep=keep, key=key)
    for option, part in (("format", reading), ("key_format", key)):
        try:
            if part is not None:
                check_format(_spec(part, base_dir))
        except OttlaError as error:
            problems.append((f"{place}.{option}", str(error)))
    return (None if problems else reading), problems


def _read_key(keys: _Keys, place: str) -> tuple[KeyReading | None, list[Problem]]:
    if keys.key_format is None:
        alone = next((name for name in ("key_schema", "key_format_options") if getattr(keys, name)), None)
        return None, [(f"{place}.{alone}", "is about the key's format: say which, in `key_format`")] if alone else []
    options = {"tombstones": "keep", **keys.key_format_options}  # a record without a key is no bad one
    return KeyReading(format=keys.key_format, schema=keys.key_schema, options=options), []


def read_rows(
    records: DataFrame, reading: Reading, source: str, base_dir: Path, *, with_origin: bool, explained: bool = True
) -> DataFrame:
    """Rows with the column `__failure`: a record that cannot be read is a row of nulls with its reason.

    With `with_origin` every row also carries the record that it was. If not `explained`, any text will do as a reason.
    """
    if with_origin:
        records = records.withColumn(ORIGIN, origin(records, source))
    parsed = _parsed(records, reading, base_dir, explained=explained)
    kept = [_kept(column, reading).alias(name) for name, column in reading.keep.items()]
    carried = [sf.col(ORIGIN)] if with_origin else []
    failure = sf.col(ERROR) if with_origin or not explained else _with_place(records, source)
    return parsed.select(f"{PARSED}.*", *kept, *carried, failure.alias(FAILURE))


def _parsed(records: DataFrame, reading: Reading, base_dir: Path, *, explained: bool) -> DataFrame:
    """With `parsed` and `error` of the value, and the key, if it has a format. Where one is bad, the record is."""
    read = build_format(_spec(reading, base_dir, explained=explained))
    if reading.key is None:
        return read.parse(records, "value")
    with_key = parse_key(records, _spec(reading.key, base_dir, explained=explained), _KEY, _KEY_FAILURE)
    parsed = read.parse(with_key, "value")
    of_key = sf.concat(sf.lit("key: "), sf.col(_KEY_FAILURE))
    good = sf.when(sf.col(_KEY_FAILURE).isNull(), sf.col(PARSED))
    return parsed.withColumns({PARSED: good, ERROR: sf.coalesce(sf.col(ERROR), of_key)})


def _with_place(records: DataFrame, source: str) -> Column:
    """The reason with the record's place: without dead letters it is all that people will see of it."""
    places = [sf.concat(sf.lit(f", {name} "), sf.col(name)) for name in PLACES if name in records.columns]
    return sf.concat(sf.lit(f"source {source}"), *places, sf.lit(": "), sf.col(ERROR))


def origin(records: DataFrame, source: str) -> Column:
    """The struct of `frames.ORIGIN_TYPE`, with null for what a system's records do not have, and no list for it."""
    fields = []
    for field in ORIGIN_TYPE.fields:
        if field.name == "source":
            value = sf.lit(source)
        elif field.name in records.columns:
            value = sf.col(field.name).cast(field.dataType)
        else:
            value = sf.lit(None).cast(field.dataType)
        if field.name == "headers":
            value = never_null(value)  # `python` steps hand the origin over to Python and get it back
        fields.append(value.alias(field.name))
    return sf.struct(*fields)


def json_objects(reading: Reading | None) -> StructType | None:
    """What values are read into, if they are JSON of which a source may read what is plain. Needs a running Spark."""
    if reading is None or reading.format != JsonFormat.NAME or reading.schema in (None, REGISTRY):
        return None
    return _plain_schema(reading.schema, msgspec.json.encode(reading.options))


@functools.cache  # asked with every batch, and Spark reads the schema
def _plain_schema(schema: str, options: bytes) -> StructType | None:
    spec = FormatSpec(name=JsonFormat.NAME, schema=schema, options=msgspec.json.decode(options))
    return JsonFormat(spec).plain_schema()


def _kept(column: str, reading: Reading) -> Column:
    if column != KEY:
        return sf.col(column)
    return sf.col(KEY).cast("string") if reading.key is None else sf.col(_KEY)


def _spec(reading: Reading | KeyReading, base_dir: Path, *, explained: bool = True) -> FormatSpec:
    return FormatSpec(
        name=reading.format, schema=reading.schema, options=reading.options, base_dir=base_dir, explains=explained
    )
