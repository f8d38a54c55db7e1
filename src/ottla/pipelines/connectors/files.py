"""Files and folders: text, CSV, JSON and Parquet; also one growing file, followed or appended to line by line.

The path must be the same folder for the driver and for every Spark worker: a local one with `local[*]`, a shared one
on a cluster.
"""

from pathlib import Path
from typing import Annotated, ClassVar, Literal

from msgspec import Meta
from pyspark.sql import DataFrame

from ottla.pipelines.connectors.base import Batch, Written
from ottla.pipelines.connectors.file_sink import append_lines, text_column, write_folder
from ottla.pipelines.connectors.options import ConnectorOptions
from ottla.pipelines.connectors.paths import local_path, path_problems

FileFormat = Literal["text", "csv", "json", "parquet"]


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
