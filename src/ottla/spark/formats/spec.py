"""What a format is told: its name, a schema, options. And what a format is: `Format`, one module each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, TypeVar

import msgspec
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from ottla.model.errors import OttlaError

PARSED = "parsed"
ERROR = "error"

Tombstones = Literal["reject", "keep", "skip"]
"""What becomes of a record whose value is null (in a compacted topic: "this key is deleted"). `reject`: it is a bad
record; `keep`: every column of it is null; `skip`: it is left out."""

TOMBSTONE_ERROR = "the value is null (a tombstone)"
BAD = "it cannot be read"
"""All that is said of a bad value where nobody wants to know more."""

_REGISTRY_MAGIC = b"\x00"
REGISTRY_HEADER_BYTES = 5


REGISTRY_HINT = "the value begins with byte 0, like one framed for a schema registry: is the format right?"


class FormatProblem(OttlaError):
    """A format cannot be used as it was asked for. The message says what to change."""


@dataclass(frozen=True, kw_only=True)
class FormatSpec:
    """A format by name, with its schema and options.

    `schema` is a struct or DDL text (`id STRING, amount DOUBLE`) for JSON and CSV, and JSON text or a file for Avro.
    Relative files start at `base_dir`. Without `explains` a bad value may be called no more than bad: the words for
    what is wrong with it are most of a plan.
    """

    name: str
    schema: str | StructType | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    base_dir: Path = field(default_factory=Path)
    explains: bool = True


class Format(Protocol):
    NAME: ClassVar[str]
    Options: ClassVar[type[Any]]

    def __init__(self, spec: FormatSpec) -> None:
        """Raises FormatProblem if the spec cannot work; needs no Spark."""

    def parse(self, frame: DataFrame, column: str) -> DataFrame:
        """The frame with a struct column `parsed` and a text column `error`, exactly one of them null in each row
        (both are for a tombstone that is kept)."""

    def encode(self, row: Column, row_type: StructType) -> Column:
        """The struct column `row` as a BINARY value."""


O = TypeVar("O", bound=msgspec.Struct)  # noqa: E741 - the customary letter for options


def read_options(spec: FormatSpec, options: type[O]) -> O:
    """The options as the format's struct; what it does not know is refused by name."""
    try:
        return msgspec.convert(dict(spec.options), options, strict=False)
    except msgspec.ValidationError as wrong:
        known = ", ".join(f"`{name}`" for name in options.__struct_fields__)
        raise FormatProblem(f"format {spec.name}: {wrong} (its options are {known})") from wrong


def no_schema(spec: FormatSpec) -> None:
    if spec.schema is not None:
        raise FormatProblem(
            f"format {spec.name} has no fields, so it takes no `schema`: remove it, or choose json or csv"
        )


def struct_schema(spec: FormatSpec) -> StructType:
    """The columns that JSON or CSV are read into. Needs a running Spark if they are given as text."""
    if isinstance(spec.schema, StructType):
        return spec.schema
    if spec.schema is None:
        raise FormatProblem(f"format {spec.name} is read with a `schema`, for instance `id STRING, amount DOUBLE`")
    schema = StructType.fromDDL(spec.schema)
    if not isinstance(schema, StructType):
        raise FormatProblem(f"format {spec.name}: the schema names no fields; write `name TYPE, name TYPE`")
    return schema


def without_tombstones(frame: DataFrame, column: str, tombstones: Tombstones) -> DataFrame:
    return frame.filter(sf.col(column).isNotNull()) if tombstones == "skip" else frame


def tombstone_error(tombstones: Tombstones) -> Column:
    return sf.lit(TOMBSTONE_ERROR if tombstones == "reject" else None).cast("string")


def evaluated_once(column: Column) -> Column:
    """Keep Spark from pushing a filter on this column below it, which would evaluate it once more for every row.

    Expressions that are not deterministic stay where they are, and the partition's number counts as such.
    """
    return sf.when(sf.spark_partition_id() >= 0, column)


def interpreted(given: Column, rule: Callable[[Column], Column]) -> Column:
    """What a rule makes of a column, without code generated for it: for what is asked of few rows.

    Spark writes the code of a projection anew in every task, whether or not a row comes that way. It leaves out what is
    in the lambda of a `zip_with` (not in that of a `transform`, since Spark 4.3).
    """
    return sf.zip_with(sf.array(given), sf.array(sf.lit(0)), lambda found, _: rule(found))[0]


def registry_schema_id(value: bytes) -> int | None:
    """The schema's id if the value begins like one that a registry's serializer framed."""
    if len(value) < REGISTRY_HEADER_BYTES or value[:1] != _REGISTRY_MAGIC:
        return None
    return int.from_bytes(value[1:REGISTRY_HEADER_BYTES], "big")


def registry_header(schema_id: int) -> bytes:
    return _REGISTRY_MAGIC + schema_id.to_bytes(4, "big")
