"""Files and folders: text, CSV, JSON and Parquet; also one growing file, followed or appended to line by line.

The path must be the same folder for the driver and for every Spark worker: a local one with `local[*]`, a shared one
on a cluster.
"""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, ClassVar, Literal, cast

from msgspec import Meta
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from ottla.pipelines.connectors.base import RECORD, Batch, SourceContext, Written
from ottla.pipelines.connectors.files.publishing import Publication
from ottla.pipelines.connectors.files.sink import append_lines, write_folder
from ottla.pipelines.connectors.files.staged_parquet import CODECS, ParquetParting, PublishBeside, can_be_staged
from ottla.pipelines.connectors.files.tail import TailDataSource, Tailing
from ottla.pipelines.connectors.objects.source import ObjectReading, found_log_path, object_stream, object_table
from ottla.pipelines.connectors.objects.store import Store
from ottla.pipelines.connectors.objects.text import text_column
from ottla.pipelines.connectors.options import ConnectorOptions, to_spark
from ottla.pipelines.connectors.paths import local_path, path_problems, spark_path
from ottla.pipelines.errors import FatalFailure

FileFormat = Literal["text", "csv", "json", "parquet"]


class FilesSourceOptions(ConnectorOptions, frozen=True, kw_only=True):
    files: Annotated[str, Meta(description="A folder, read with all folders in it, or a single file")]
    pattern: Annotated[str, Meta(description="Only files with such a name, for instance `*.csv`")] = "*"
    format: Annotated[
        Literal["parquet"] | None,
        Meta(description="`parquet` gives its columns; each line of other files is a record, read by the formats"),
    ] = None
    schema: Annotated[
        str | None, Meta(description="Parquet: the columns, `id BIGINT, item STRING`; by default what the files have")
    ] = None
    header: Annotated[bool, Meta(description="The first line of each file is left out: it names the columns")] = False
    tail: Annotated[bool, Meta(description="Follow one growing file line by line, as Kafka's file source does")] = False
    max_files: Annotated[
        Annotated[int, Meta(ge=1)] | None, Meta(description="A stream reads at most so many new files in a batch")
    ] = None
    partitions: Annotated[int, Meta(description="Tasks that read at once", ge=1, le=1000)] = 4


class FilesSource:
    """New files of a folder as they appear (`found_log`, `object_source`), or new lines of one file (`tail`)."""

    KIND: ClassVar[str] = "files"
    Options: ClassVar[type[FilesSourceOptions]] = FilesSourceOptions
    RAW: ClassVar[bool] = True
    COLUMN_FORMATS: ClassVar[frozenset[str]] = frozenset({"parquet"})

    def __init__(self, options: FilesSourceOptions) -> None:
        self.options = options

    def problems(self) -> list[str]:
        options = self.options
        found = path_problems("files", options.files)
        if options.format is None and options.schema is not None:
            found.append("schema: goes with a format")
        if options.header and options.format == "parquet":
            found.append("header: Parquet has none")
        if options.tail:
            refused = {
                "pattern": options.pattern != "*",
                "format": options.format is not None,
                "max_files": options.max_files is not None,
                "header": options.header,
            }
            wrong = [name for name, value in refused.items() if value]
            found += [f"{name}: does not go with `tail`, which follows the lines of one file" for name in wrong]
        return found

    def stream(self, context: SourceContext) -> DataFrame:
        path = local_path(self.options.files, context.base_dir)
        if self.options.tail:
            context.spark.dataSource.register(TailDataSource)
            tailing = Tailing(path=str(path), max_rows=context.max_records)
            reader = context.spark.readStream.format(TailDataSource.name()).schema(RECORD)
            return reader.options(**to_spark(tailing)).load()
        return object_stream(context, self._reading(context), self._schema(context))

    def table(self, context: SourceContext) -> DataFrame:
        if self.options.format == "parquet" and context.fresh:
            return object_table(context, self._reading(context), self._schema(replace(context, fresh=False)))
        if self.options.format == "parquet":
            reader = context.spark.read.option("pathGlobFilter", self.options.pattern)
            path = spark_path(local_path(self.options.files, context.base_dir))
            if self.options.schema is None:
                return reader.parquet(path)
            schema = cast("StructType", StructType.fromDDL(self.options.schema))
            return reader.schema(schema).parquet(path).select(*schema.names)  # Spark moves columns of folders behind
        return object_table(context, self._reading(context), RECORD)

    def _reading(self, context: SourceContext) -> ObjectReading:
        options = self.options
        return ObjectReading(
            store=Store(root=str(local_path(options.files, context.base_dir)), pattern=options.pattern),
            parquet=options.format == "parquet",
            header=options.header,
            log=str(found_log_path(context)),
            max_files=options.max_files,
            partitions=options.partitions,
        )

    def _schema(self, context: SourceContext) -> StructType | str:
        if self.options.format is None:
            return RECORD
        if self.options.schema is not None:
            return self.options.schema
        try:
            return self.table(context).schema
        except AnalysisException as error:
            raise FatalFailure(
                f"source {context.name}: no Parquet file in {self.options.files} to learn the columns from; "
                "give a `schema`, or start when there is one"
            ) from error


class FilesSinkOptions(ConnectorOptions, frozen=True, kw_only=True):
    files: Annotated[str, Meta(description="The folder, or with `append` the file, to write to")]
    format: Annotated[FileFormat, Meta(description="What the files hold. `text` writes the column `value`")] = "json"
    partition_by: Annotated[
        tuple[str, ...], Meta(description="Columns that become folders, `item=book/`, instead of being in the files")
    ] = ()
    parallel: Annotated[
        bool, Meta(description="Each task writes its own files: quicker for large batches, and more files")
    ] = False
    batch_folders: Annotated[
        bool, Meta(description="Each batch gets a folder `batch=...` of its own, so that many files appear in one step")
    ] = False
    append: Annotated[bool, Meta(description="Append lines to one file, as Kafka's file sink does")] = False
    header: Annotated[bool, Meta(description="CSV: the first line of each file names the columns")] = False
    compression: Annotated[
        str | None, Meta(description="A codec of Spark: `snappy`, `zstd`, `gzip`, `none`, ...; by default Spark's own")
    ] = None


class FilesSink:
    """Exactly once by batch id; `publishing` and `file_sink.append_lines` say how, and what a reader may see.

    Tasks only write staged files: one that is retried leaves nothing behind that counts.
    """

    KIND: ClassVar[str] = "files"
    Options: ClassVar[type[FilesSinkOptions]] = FilesSinkOptions
    VERSIONED: ClassVar[tuple[str, str]] = ("files", "{}_{version}")

    def __init__(self, options: FilesSinkOptions) -> None:
        self.options = options

    def problems(self) -> list[str]:
        options = self.options
        found = path_problems("files", options.files)
        if options.header and options.format != "csv":
            found.append("header: only CSV has one")
        if options.append:
            if options.format == "parquet":
                found.append("append: a Parquet file cannot grow; leave `append` out, or write json, csv or text")
            refused = {
                "partition_by": options.partition_by,
                "parallel": options.parallel,
                "batch_folders": options.batch_folders,
                "compression": options.compression,
                "header": options.header,
            }
            found += [
                f"{name}: does not go with `append`, which writes one plain file" for name in refused if refused[name]
            ]
        if options.parallel and options.batch_folders:
            found.append("parallel: `batch_folders` already lets each task write its own files; leave one out")
        return found

    def takes_part(self, row: StructType, codec: str) -> bool:
        """Whether rows of this type can be written in the same pass as topics: one file for each folder, from Arrow.
        `codec` is what Spark would choose."""
        options = self.options
        plain = options.format == "parquet" and not options.append and not options.batch_folders
        return plain and (options.compression or codec) in CODECS and can_be_staged(row, options.partition_by)

    def parting(self) -> ParquetParting:
        return ParquetParting(self.options.partition_by, self.options.parallel)

    def beside(self, batch: Batch, codec: str) -> PublishBeside | None:
        """How the batch is written in the same pass as topics; None if it was written before."""
        options = self.options
        publication = Publication(local_path(options.files, batch.base_dir), batch.query, batch.sink)
        if publication.finish_or_prepare(batch.id) is not None:
            return None
        codec = options.compression or codec
        return PublishBeside(publication, batch.id, options.partition_by, codec)

    def write(self, frame: DataFrame, batch: Batch) -> Written:
        options = self.options
        path: Path = local_path(options.files, batch.base_dir)
        if options.append:
            path.parent.mkdir(parents=True, exist_ok=True)
            return append_lines(frame, batch, path, file_format=options.format, writer_options={})
        if options.format == "text":
            frame = frame.select(*options.partition_by, text_column(frame.drop(*options.partition_by)))
        writer_options = {"header": "true"} if options.header else {}
        if options.compression:
            writer_options["compression"] = options.compression
        return write_folder(
            frame,
            batch,
            path,
            file_format=options.format,
            partition_by=options.partition_by,
            parallel=options.parallel,
            batch_folders=options.batch_folders,
            writer_options=writer_options,
        )
