"""Generated rows, for demos, tests and load: so many a second, or so many in all, the same for the same seed."""

import time
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import pyarrow as pa
from msgspec import Meta
from pyspark.sql import DataFrame
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from ottla.pipelines.connectors.base import SourceContext
from ottla.pipelines.connectors.generated.rows import Field, Late, Plan, build, plan_problems
from ottla.pipelines.connectors.options import ConnectorOptions, from_spark, to_spark
from ottla.pipelines.connectors.tables.increasing import split
from ottla.pipelines.errors import ConnectorProblem

ROWS_AT_ONCE = 10_000
Share = Annotated[float, Meta(ge=0, le=1)]
Positive = Annotated[float, Meta(gt=0)]
Count = Annotated[int, Meta(ge=0)]


class GenerateOptions(ConnectorOptions, frozen=True, kw_only=True):
    generate: Annotated[
        dict[str, Field],
        Meta(
            description="The fields by name, each with its `kind`: sequence, choice, integer, number, timestamp, uuid, "
            "name or template"
        ),
    ]
    rate: Annotated[Positive | None, Meta(description="Rows per second of a stream; without it all at once")] = None
    count: Annotated[Count | None, Meta(description="So many rows in all; a stream without it never ends")] = None
    seed: Annotated[int, Meta(description="Another seed, other rows")] = 0
    duplicates: Annotated[Share, Meta(description="The share of rows that repeat an earlier one")] = 0.0
    duplicate_distance: Annotated[int, Meta(description="How far back a repeated row lies at most", ge=1)] = 1000
    late: Annotated[
        Late | None, Meta(description="`{share: 0.02, by_ms: 60000}`: so many rows are up to so much behind their time")
    ] = None
    broken: Annotated[Share, Meta(description="The share of records that are cut in the middle")] = 0.0
    records: Annotated[
        Literal["json"] | None,
        Meta(
            description="Give columns `key`, `value` and `row` with each row as JSON, instead of the fields as columns"
        ),
    ] = None
    key: Annotated[str | None, Meta(description="With `records`: the field that is the key")] = None
    partitions: Annotated[int, Meta(description="Tasks that generate at once", ge=1, le=1000)] = 2


class Generation(msgspec.Struct, frozen=True, kw_only=True):
    plan: Plan
    rate: float | None
    count: int | None
    partitions: int
    max_rows: int | None


class GenerateSource:
    """Offsets are row numbers: a batch that is read again has the same rows."""

    KIND: ClassVar[str] = "generate"
    Options: ClassVar[type[GenerateOptions]] = GenerateOptions
    RAW: ClassVar[bool] = False

    def __init__(self, options: GenerateOptions) -> None:
        self.options = options

    @property
    def plan(self) -> Plan:
        options = self.options
        return Plan(
            fields=options.generate,
            seed=options.seed,
            duplicates=options.duplicates,
            duplicate_distance=options.duplicate_distance,
            late=options.late,
            broken=options.broken,
            records=options.records,
            key=options.key,
        )

    def problems(self) -> list[str]:
        found = [] if self.options.generate else ["generate: name at least one field"]
        return found + plan_problems(self.plan)

    def stream(self, context: SourceContext) -> DataFrame:
        if self.options.rate is None and self.options.count is None:
            raise ConnectorProblem(f"source {context.name}: set `rate` or `count`, or the first batch would never end")
        return (
            context.spark.readStream.format(_registered(context))
            .schema(self._schema)
            .options(**self._generation(context))
            .load()
        )

    def table(self, context: SourceContext) -> DataFrame:
        if self.options.count is None:
            raise ConnectorProblem(f"source {context.name}: set `count` to read it as a table")
        return (
            context.spark.read.format(_registered(context))
            .schema(self._schema)
            .options(**self._generation(context))
            .load()
        )

    def _generation(self, context: SourceContext) -> dict[str, str]:
        options = self.options
        return to_spark(
            Generation(
                plan=self.plan,
                rate=options.rate,
                count=options.count,
                partitions=options.partitions,
                max_rows=context.max_records,
            )
        )

    @property
    def _schema(self) -> StructType:
        return from_arrow_schema(build(self.plan, 0, 0).schema)


def _registered(context: SourceContext) -> str:
    context.spark.dataSource.register(GenerateDataSource)
    return GenerateDataSource.name()


class RowsPart(InputPartition):
    def __init__(self, start: int, stop: int) -> None:
        super().__init__((start, stop))
        self.start = start
        self.stop = stop


class GenerateDataSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "ottla_generate"

    def reader(self, schema: StructType) -> "GeneratedTable":
        return GeneratedTable(from_spark(self.options, Generation))

    def streamReader(self, schema: StructType) -> "GeneratedStream":  # noqa: N802
        return GeneratedStream(from_spark(self.options, Generation))


def _parts(start: int, stop: int, count: int) -> list[InputPartition]:
    if stop <= start:
        return []
    return [RowsPart(int(part.after or 0), int(part.until or 0)) for part in split(start, stop, count)]


def _rows(plan: Plan, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    assert isinstance(partition, RowsPart)
    for start in range(partition.start, partition.stop, ROWS_AT_ONCE):
        yield build(plan, start, min(start + ROWS_AT_ONCE, partition.stop))


class GeneratedTable(DataSourceReader):
    def __init__(self, generation: Generation) -> None:
        self._generation = generation

    def partitions(self) -> Sequence[InputPartition]:
        count = self._generation.count or 0
        return _parts(0, count, self._generation.partitions) or [RowsPart(0, 0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _rows(self._generation.plan, partition)


class GeneratedStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, generation: Generation) -> None:
        self._generation = generation
        self._began: tuple[float, int] | None = None
        """When this run first asked, and at which row: the rate counts from there."""
        self._everything = False

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return {"row": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self._generation.max_rows) if self._generation.max_rows else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._everything = self._generation.count is not None

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        first = int(start["row"])
        end = self._due(first, time.monotonic())
        if self._generation.count is not None:
            end = min(end, max(self._generation.count, first))
        if isinstance(limit, ReadMaxRows):
            end = min(end, first + limit.max_rows)
        return {"row": end}

    def _due(self, first: int, now: float) -> int:
        """The row that the clock has reached. A run over what is there takes all of a given count at once."""
        if self._began is None:
            self._began = (now, first)
        if self._generation.rate is None or self._everything:
            return self._generation.count or 0
        began, row = self._began
        return max(first, row + int((now - began) * self._generation.rate))

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return _parts(int(start["row"]), int(end["row"]), self._generation.partitions)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _rows(self._generation.plan, partition)
