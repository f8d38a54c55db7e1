"""What a connector is. Adding one: a module with a source class, a sink class or both, and a line in `registry`.

A class is chosen by its `KIND`, the key that its entry in a pipeline file has (`{files: ./lake}` is kind `files`). Its
`Options` are a msgspec struct with `forbid_unknown_fields`, so that a misspelt option is found before Spark starts.
The whole entry is read into them, the kind's own key too: `{files: ./lake, format: parquet}` becomes
`Options(files="./lake", format="parquet")`. Left out are the keys that the core reads itself: `format`, `schema`,
`format_options` and `keep` of a RAW source, `from` and `name` of a sink.
Packages bring their own through the entry point groups `ottla.sources` and `ottla.sinks`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType, TimestampType

from ottla.spark.headers import HEADERS


@dataclass(frozen=True, kw_only=True)
class SourceContext:
    """Where a source is opened: the same entry runs as a stream, over history, or over a test's fixture."""

    spark: SparkSession
    pipeline: str
    name: str
    """The source's own name in the file."""
    bootstrap: str
    base_dir: Path
    """The folder of the pipeline file: relative paths start there."""
    state_dir: Path
    """A folder of the pipeline's own on the driver, kept between runs."""
    max_records: int | None = None
    """At most so many records per batch, where the system can."""
    client: Mapping[str, str] = field(default_factory=dict)
    """Kafka client settings (`security.protocol`, ...) from the file, secrets already filled in."""
    group: str | None = None
    """The consumer group to show progress in; None where the batch's transaction does that."""
    fresh: bool = False
    """Of a table: its frame is made once and read for many batches, so it must find what there is when it is read
    (`ottla.spark.task_planned`)."""
    objects: StructType | None = None
    """What the values are read into, where they are JSON: a source may read those that are plain with the records
    (`ottla.spark.plain_json`)."""


@dataclass(frozen=True, kw_only=True)
class Batch:
    """One batch on its way to the sinks. After a crash the same id comes again with the same input."""

    spark: SparkSession
    pipeline: str
    query: str
    """Stays the same from the checkpoint on; another run over history has another."""
    id: int
    sink: str
    """This sink's name within the query: two sinks of one kind must not share their notes."""
    base_dir: Path
    state_dir: Path


@dataclass(frozen=True, kw_only=True)
class Written:
    """What became of one batch in one sink."""

    rows: int | None
    """None where counting would cost a pass of its own."""
    already_there: bool = False
    """The batch had been written before a crash, and was left as it was."""


RECORD = StructType(
    [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", StringType()),  # the path of the file, where records are lines
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),  # the byte position in the file, where records are lines
        StructField("timestamp", TimestampType()),
        StructField("headers", HEADERS),
    ]
)
"""The rows of every RAW source; a topic has more columns."""


class Source(Protocol):
    KIND: ClassVar[str]
    Options: ClassVar[type[Any]]
    RAW: ClassVar[bool]
    """True: rows are records (`RECORD`) and the entry's `format` reads `value`. False: rows have columns.

    A RAW source that can read some formats into columns by itself names them in

    COLUMN_FORMATS: ClassVar[frozenset[str]] = frozenset({"parquet"})

    With one of those its rows have columns, and its options get `format` and `schema` like those of a source that is
    not RAW.
    """

    def __init__(self, options: Any) -> None: ...

    def problems(self) -> list[str]:
        """What is wrong with the options taken together, in words; found without Spark and without the system."""

    def stream(self, context: SourceContext) -> DataFrame:
        """A streaming frame. Refuse with ConnectorProblem if the system cannot be read as a stream."""

    def table(self, context: SourceContext) -> DataFrame:
        """All there is now, as a batch frame: for history, tables to join with, and `ottla sql`."""


class Sink(Protocol):
    """One that can be written in a second version beside the first (reprocessing) also has

    VERSIONED: ClassVar[tuple[str, str]] = ("table", "{}_{version}")

    the option that names its place, and how the place of a version is named. Without it reprocessing is refused.
    """

    KIND: ClassVar[str]
    Options: ClassVar[type[Any]]

    def __init__(self, options: Any) -> None: ...

    def problems(self) -> list[str]: ...

    def write(self, frame: DataFrame, batch: Batch) -> Written:
        """Write all rows of a batch (a static frame) so that the same batch written again changes nothing.

        The frame is kept (persisted) where it is used more than once; its column `frames.ORIGIN` is gone.
        """


@runtime_checkable
class NamesFiles(Protocol):
    """A source, step or sink whose options name files beside the pipeline's, which `lint` can look into."""

    def file_problems(self, base_dir: Path) -> list[str]: ...
