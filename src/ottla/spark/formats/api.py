"""`from_format` and `to_format`: what PySpark users and pipelines call.

    parsed = from_format(frame, "json", schema="id STRING, amount DOUBLE")
    parsed.good     # the fields as columns, instead of `value`
    parsed.bad      # the rows that could not be read, as they were, with a column `error`

    to_format(frame, "json", ["id", "amount"]).select("key", "value")

Nothing here throws because of a record. Each row is parsed once wherever the frame is used, but `good` and `bad` are
two frames: persist the input (or use `parse` and split afterwards) if reading it twice is dear.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import DataType, StructField, StructType

from ottla.spark.formats.avro import AvroFormat
from ottla.spark.formats.csv_text import CsvFormat
from ottla.spark.formats.json_text import JsonFormat
from ottla.spark.formats.plain import RawFormat, TextFormat
from ottla.spark.formats.protobuf import ProtobufFormat
from ottla.spark.formats.registry_format import REGISTRY, RegistryFormat
from ottla.spark.formats.spec import ERROR, PARSED, Format, FormatProblem, FormatSpec

_KINDS: tuple[type[Format], ...] = (AvroFormat, CsvFormat, JsonFormat, ProtobufFormat, RawFormat, TextFormat)
KEY = "key"
FORMATS: Mapping[str, type[Format]] = {kind.NAME: kind for kind in _KINDS}


class Parsed(NamedTuple):
    good: DataFrame
    """The columns of the input without the parsed one, then the fields."""
    bad: DataFrame
    """The columns of the input as they were, and `error`."""


def build_format(spec: FormatSpec) -> Format:
    """The format that a spec names. Raises FormatProblem if the name, the schema or an option cannot work."""
    kind = FORMATS.get(spec.name)
    if kind is None:
        raise FormatProblem(f"there is no format `{spec.name}`: choose one of {', '.join(sorted(FORMATS))}")
    return RegistryFormat(spec) if spec.schema == REGISTRY else kind(spec)


def check_format(spec: FormatSpec) -> None:
    """Raises FormatProblem for all that can be said without Spark, the files that a schema comes in among it."""
    built = build_format(spec)
    if isinstance(built, AvroFormat | ProtobufFormat | RegistryFormat):
        built.check_schema()


def parse(frame: DataFrame, spec: FormatSpec, column: str = "value") -> DataFrame:
    """Read `column`: the frame with `parsed` (a struct) and `error` (text), one of them null in every row.

    Where a null value is kept (`tombstones: keep`) both are null. `tombstones: skip` leaves such rows out.
    """
    return build_format(spec).parse(frame, column)


def from_format(
    frame: DataFrame,
    name: str,
    schema: str | StructType | None = None,
    *,
    column: str = "value",
    options: Mapping[str, Any] | None = None,
    base_dir: Path | None = None,
) -> Parsed:
    """Read `column` in the format `name`, with bad rows apart."""
    spec = _spec(name, schema, options, base_dir, column)
    rest = [other for other in frame.columns if other != column]
    result = parse(frame, spec, column)
    good = result.filter(sf.col(ERROR).isNull()).select(*(sf.col(f"`{name}`") for name in rest), f"{PARSED}.*")
    return Parsed(good=good, bad=result.filter(sf.col(ERROR).isNotNull()).drop(PARSED))


def encode(
    frame: DataFrame, spec: FormatSpec, columns: Sequence[str] | None = None, *, option: str = "columns"
) -> Column:
    """The BINARY value of each row of `frame`, made of `columns` (all if not given), which an `option` has named."""
    chosen = list(columns) if columns is not None else frame.columns
    missing = [name for name in chosen if name not in frame.columns]
    if missing or not chosen:
        wanted = f"`{'`, `'.join(missing)}`, which are not among" if missing else "no column; choose from"
        raise FormatProblem(f"format {spec.name}: `{option}` names {wanted} {', '.join(frame.columns)}")
    row_type = StructType([frame.schema[name] for name in chosen])
    return build_format(spec).encode(sf.struct(*(sf.col(f"`{name}`") for name in chosen)), row_type)


def record_headers(frame: DataFrame, spec: FormatSpec, columns: Sequence[str] | None = None) -> Column | None:
    """Headers that the format gives to every record: a schema's guid, with `framing: header`. None: it gives none."""
    chosen = list(columns) if columns is not None else frame.columns
    return _headers(spec, StructType([frame.schema[name] for name in chosen if name in frame.columns]))


def _headers(spec: FormatSpec, kind: DataType) -> Column | None:
    built = build_format(spec)
    if not isinstance(built, RegistryFormat):
        return None
    found = built.record_headers(kind)
    pairs = [sf.struct(sf.lit(name).alias("key"), sf.lit(value).alias("value")) for name, value in found.items()]
    return sf.array(*pairs) if pairs else None


def to_format(
    frame: DataFrame,
    name: str,
    columns: Sequence[str] | None = None,
    *,
    schema: str | None = None,
    options: Mapping[str, Any] | None = None,
    base_dir: Path | None = None,
    column: str = "value",
) -> DataFrame:
    """The frame with a BINARY column (`value`) made of `columns`; the other columns stay, for `key` or `topic`."""
    spec = _spec(name, schema, options, base_dir, column)
    headers = record_headers(frame, spec, columns)
    made = frame.withColumn(column, encode(frame, spec, columns))
    if headers is None:
        return made
    return made.withColumn("headers", _replaced(sf.col("headers"), headers) if "headers" in frame.columns else headers)


def _replaced(headers: Column, others: Column) -> Column:
    """Headers with others behind them, which take the place of those with their names."""
    names = sf.transform(others, lambda header: header["key"])
    kept = sf.filter(headers, lambda header: ~sf.array_contains(names, header["key"]))
    return sf.concat(sf.coalesce(kept, sf.filter(others, lambda _: sf.lit(False))), others)


def _spec(
    name: str,
    schema: str | StructType | None,
    options: Mapping[str, Any] | None,
    base_dir: Path | None,
    column: str,
) -> FormatSpec:
    told = {"part": KEY} if schema == REGISTRY and column == KEY else {}
    return FormatSpec(name=name, schema=schema, options={**told, **(options or {})}, base_dir=base_dir or Path())


# Keys of records.


def parse_key(frame: DataFrame, spec: FormatSpec, into: str, failure: str) -> DataFrame:
    """The frame with what `key` holds in the column `into`, a struct or a single value, and in `failure` why it cannot
    be read."""
    built = build_format(spec)
    parsed = built.parse(frame, KEY)
    single = isinstance(built, RawFormat | TextFormat) or (isinstance(built, RegistryFormat) and built.single)
    found = sf.col(PARSED)
    if single:
        found = found[parsed.select(f"{PARSED}.*").columns[0]]
    return parsed.withColumns({into: found, failure: sf.col(ERROR)}).drop(PARSED, ERROR)


def encode_key(frame: DataFrame, spec: FormatSpec, key: str | Sequence[str]) -> Column:
    """The BINARY key of each row: of several columns, or of one column or SQL expression."""
    if not isinstance(key, str):
        return encode(frame, spec, key, option=KEY)
    built, chosen, kind = build_format(spec), sf.expr(key), _kind_of_key(frame, key)
    if isinstance(kind, StructType):
        return built.encode(chosen, kind)
    if isinstance(built, RegistryFormat):
        return built.encode_single(chosen, kind)
    if isinstance(built, RawFormat | TextFormat):
        return built.encode(sf.struct(chosen.alias("value")), StructType([StructField("value", kind)]))
    raise FormatProblem(f"format {spec.name}: the key `{key}` is a single value: name its columns in a list, `[{key}]`")


def key_headers(frame: DataFrame, spec: FormatSpec, key: str | Sequence[str]) -> Column | None:
    if not isinstance(key, str):
        return record_headers(frame, spec, key)
    return _headers(spec, _kind_of_key(frame, key))


def _kind_of_key(frame: DataFrame, key: str) -> DataType:
    return frame.select(sf.expr(key)).schema.fields[0].dataType
