"""Reading files and objects: whole ones, as records (one a line) or, for Parquet, as columns.

One that was read is not read again, even if it is written anew: writers give each file a new name, and move it in when
it is complete.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from ottla.pipelines.connectors.base import SourceContext
from ottla.pipelines.connectors.durable_files import safe_name
from ottla.pipelines.connectors.objects.found_log import FoundLog
from ottla.pipelines.connectors.objects.lines import cut_stream
from ottla.pipelines.connectors.objects.store import Store, StoredObject, explain, file_system, listed
from ottla.pipelines.connectors.options import from_spark, to_spark
from ottla.pipelines.errors import FatalFailure
from ottla.spark.task_planned import planned_in_task, task_options

BLOCK_BYTES = 4 << 20
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


class ObjectReading(msgspec.Struct, frozen=True, kw_only=True):
    store: Store
    parquet: bool
    header: bool = False
    log: str | None = None
    """Where a stream writes down what it found."""
    max_files: int | None = None
    partitions: int = 2


def found_log_path(context: SourceContext) -> Path:
    return context.state_dir / "found" / f"{safe_name(context.name)}.jsonl"


def object_stream(context: SourceContext, reading: ObjectReading, schema: StructType | str) -> DataFrame:
    context.spark.dataSource.register(ObjectDataSource)
    return context.spark.readStream.format(ObjectDataSource.name()).schema(schema).options(**to_spark(reading)).load()


def object_table(context: SourceContext, reading: ObjectReading, schema: StructType | str) -> DataFrame:
    context.spark.dataSource.register(ObjectDataSource)
    options = {**to_spark(reading), **task_options(fresh=context.fresh)}
    return context.spark.read.format(ObjectDataSource.name()).schema(schema).options(**options).load()


class Objects(InputPartition):
    def __init__(self, found: list[StoredObject]) -> None:
        super().__init__(found)
        self.found = found


class ObjectDataSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "ottla_objects"

    def reader(self, schema: StructType) -> DataSourceReader:
        return planned_in_task(ObjectTableReader(from_spark(self.options, ObjectReading), schema), self.options)

    def streamReader(self, schema: StructType) -> "ObjectStreamReader":  # noqa: N802
        return ObjectStreamReader(from_spark(self.options, ObjectReading), schema)


def _shared_out(found: Sequence[StoredObject], parts: int) -> list[InputPartition]:
    """Largest first, each to the task that has least so far: about equal work."""
    shares: list[list[StoredObject]] = [[] for _ in range(max(1, min(parts, len(found))))]
    loads = [0] * len(shares)
    for entry in sorted(found, key=lambda entry: -entry.size):
        least = loads.index(min(loads))
        shares[least].append(entry)
        loads[least] += entry.size + 1
    return [Objects(share) for share in shares]


class ObjectTableReader(DataSourceReader):
    def __init__(self, reading: ObjectReading, schema: StructType) -> None:
        self._reading = reading
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        return _shared_out(listed(self._reading.store), self._reading.partitions)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Objects)
        return read_objects(self._reading, self._schema, partition.found)


class ObjectStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """An offset is how many objects of the list (`found_log`) were read."""

    def __init__(self, reading: ObjectReading, schema: StructType) -> None:
        assert reading.log is not None, "a stream has a list"
        self._reading = reading
        self._schema = schema
        self._log = FoundLog(Path(reading.log))
        self._bound: int | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return {"files": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxFiles(self._reading.max_files) if self._reading.max_files else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._bound = self._known()

    def _known(self) -> int:
        return self._log.extend(lambda: listed(self._reading.store))

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        first = int(start["files"])
        end = max(first, self._known() if self._bound is None else self._bound)
        if isinstance(limit, ReadMaxFiles):
            end = min(end, first + limit.max_files)
        return {"files": end}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        found = self._log.between(int(start["files"]), int(end["files"]))
        return _shared_out(found, self._reading.partitions) if found else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Objects)
        return read_objects(self._reading, self._schema, partition.found)


def read_objects(reading: ObjectReading, schema: StructType, found: Sequence[StoredObject]) -> Iterator[pa.RecordBatch]:
    arrow = to_arrow_schema(schema, timezone="UTC", prefers_large_types=False)
    for entry in found:
        try:
            if reading.parquet:
                yield from _parquet_rows(reading.store, entry, arrow)
            else:
                yield from _records(reading, entry, arrow)
        except FileNotFoundError:
            raise FatalFailure(
                f"{entry.path} is gone: it was deleted after it was found and before it was read. Put it back; or "
                f"start over: delete the pipeline's checkpoint and the list of what was found ({reading.log})"
            ) from None
        except pa.ArrowInvalid as error:
            raise FatalFailure(f"{entry.path} cannot be read as Parquet with this schema: {error}") from error
        except OSError as error:
            raise explain(error, reading.store) from error


def _records(reading: ObjectReading, entry: StoredObject, arrow: pa.Schema) -> Iterator[pa.RecordBatch]:
    # Unpacks by suffix: .gz, .zst, ...; without a buffer it asks for 64 KB at a time then.
    with file_system(reading.store.s3).open_input_stream(entry.path, buffer_size=BLOCK_BYTES) as stream:
        blocks = iter(lambda: stream.read(BLOCK_BYTES), b"")
        skip = reading.header
        for content, starts in cut_stream(blocks):
            first = 1 if skip else 0
            skip = False
            yield record_batch(content[first:], starts[first:], entry.path, entry.modified_us, arrow)


def record_batch(
    content: list[bytes], starts: Any, path: str, modified_us: int | None, arrow: pa.Schema
) -> pa.RecordBatch:
    """Lines as records of `base.RECORD`."""
    count = len(content)
    times = pa.nulls(count, pa.int64()) if modified_us is None else pa.repeat(pa.scalar(modified_us, pa.int64()), count)
    made: dict[str, Any] = {
        "value": pa.array(content, pa.binary()),
        "topic": pa.repeat(path, count),
        "partition": pa.repeat(pa.scalar(0, pa.int32()), count),
        "offset": pa.array(starts, pa.int64()),
        "timestamp": times.cast(pa.timestamp("us", "UTC")),
    }
    return pa.RecordBatch.from_arrays(
        [made[field.name] if field.name in made else pa.nulls(count, field.type) for field in arrow], schema=arrow
    )


def _parquet_rows(store: Store, entry: StoredObject, arrow: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Columns by name; one that the file does not have comes from its folder (`item=book`), or is null."""
    folders = folder_values(entry.path[len(store.root) :])
    with file_system(store.s3).open_input_file(entry.path) as source, pq.ParquetFile(source) as parquet:
        wanted = [field.name for field in arrow if field.name in parquet.schema_arrow.names]
        for batch in parquet.iter_batches(columns=wanted):
            columns: list[Any] = []
            for field in arrow:
                if field.name in wanted:
                    columns.append(pc.cast(batch.column(field.name), field.type))
                else:
                    value = pa.scalar(folders.get(field.name), pa.string())
                    columns.append(pc.cast(pa.repeat(value, batch.num_rows), field.type))
            yield pa.RecordBatch.from_arrays(columns, schema=arrow)


def folder_values(path: str) -> dict[str, str | None]:
    """`/item=a%2Fb/part-0.parquet`: the columns that folders stand for."""
    pairs = [part.split("=", 1) for part in path.split("/")[:-1] if "=" in part]
    return {unquote(name): None if value == NO_VALUE else unquote(value) for name, value in pairs}
