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
from pyspark.sql.types import StructType

from ottla.spark.formats.avro import AvroFormat
from ottla.spark.formats.csv_text import CsvFormat
from ottla.spark.formats.json_text import JsonFormat
from ottla.spark.formats.plain import RawFormat, TextFormat
from ottla.spark.formats.protobuf import ProtobufFormat
from ottla.spark.formats.registry_format import REGISTRY, RegistryFormat
from ottla.spark.formats.spec import ERROR, PARSED, Format, FormatProblem, FormatSpec

_KINDS: tuple[type[Format], ...] = (AvroFormat, CsvFormat, JsonFormat, ProtobufFormat, RawFormat, TextFormat)
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
    spec = FormatSpec(name=name, schema=schema, options=options or {}, base_dir=base_dir or Path())
    rest = [other for other in frame.columns if other != column]
    result = parse(frame, spec, column)
    good = result.filter(sf.col(ERROR).isNull()).select(*(sf.col(f"`{name}`") for name in rest), f"{PARSED}.*")
    return Parsed(good=good, bad=result.filter(sf.col(ERROR).isNotNull()).drop(PARSED))


def encode(frame: DataFrame, spec: FormatSpec, columns: Sequence[str] | None = None) -> Column:
    """The BINARY value of each row of `frame`, made of `columns` (all of them if not given)."""
    chosen = list(columns) if columns is not None else frame.columns
    missing = [name for name in chosen if name not in frame.columns]
    if missing or not chosen:
        wanted = f"`{'`, `'.join(missing)}`, which are not among" if missing else "no column; choose from"
        raise FormatProblem(f"format {spec.name}: `columns` names {wanted} {', '.join(frame.columns)}")
    row_type = StructType([frame.schema[name] for name in chosen])
    return build_format(spec).encode(sf.struct(*(sf.col(f"`{name}`") for name in chosen)), row_type)


def record_headers(frame: DataFrame, spec: FormatSpec, columns: Sequence[str] | None = None) -> Column | None:
    """Headers that the format gives to every record: a schema's guid, with `framing: header`. None: it gives none."""
    built = build_format(spec)
    if not isinstance(built, RegistryFormat):
        return None
    chosen = list(columns) if columns is not None else frame.columns
    found = built.record_headers(StructType([frame.schema[name] for name in chosen if name in frame.columns]))
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
    spec = FormatSpec(name=name, schema=schema, options=options or {}, base_dir=base_dir or Path())
    headers = record_headers(frame, spec, columns)
    made = frame.withColumn(column, encode(frame, spec, columns))
    return made if headers is None else made.withColumn("headers", headers)
