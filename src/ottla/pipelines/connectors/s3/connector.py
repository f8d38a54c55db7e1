"""Object storage with the S3 API, through Arrow's own client: no jar is needed."""

from typing import Annotated, ClassVar, Literal
from urllib.parse import urlsplit

import pyarrow.parquet as pq
from msgspec import Meta
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StringType, StructField, StructType

from ottla.pipelines.connectors.base import RECORD, Batch, SourceContext, Written
from ottla.pipelines.connectors.objects.source import (
    ObjectReading,
    folder_values,
    found_log_path,
    object_stream,
    object_table,
)
from ottla.pipelines.connectors.objects.store import S3Access, Store, explain, file_system, listed
from ottla.pipelines.connectors.objects.text import text_column
from ottla.pipelines.connectors.options import ConnectorOptions, Secret, refers
from ottla.pipelines.connectors.s3.sink import Codec, write_objects
from ottla.pipelines.errors import FatalFailure

Place = Annotated[str, Meta(description="Bucket and prefix: `s3://bucket/orders`")]
Endpoint = Annotated[
    str | None, Meta(description="The server, `http://127.0.0.1:9000`, if it is not Amazon's own; with http or https")
]
Region = Annotated[str | None, Meta(description="The bucket's region")]
AccessKey = Annotated[
    Secret | None, Meta(description="By default what the AWS tools find (environment, profile, role)")
]
SecretKey = Annotated[Secret | None, Meta(description="As `${env:NAME}` or `${file:PATH}`; never printed")]
SessionToken = Annotated[Secret | None, Meta(description="For keys that live for a while only")]
VirtualHosts = Annotated[bool, Meta(description="Ask `bucket.server` instead of `server/bucket` at an `endpoint`")]


class _S3Options(ConnectorOptions, frozen=True, kw_only=True):
    s3: Place
    endpoint: Endpoint = None
    region: Region = None
    access_key: AccessKey = None
    secret_key: SecretKey = None
    session_token: SessionToken = None
    virtual_hosts: VirtualHosts = False


class S3SourceOptions(_S3Options, frozen=True, kw_only=True):
    pattern: Annotated[str, Meta(description="Only objects whose last part of the name is like this, `*.json`")] = "*"
    format: Annotated[
        Literal["parquet"] | None,
        Meta(description="`parquet` gives its columns; each line of other objects is a record, read by the formats"),
    ] = None
    schema: Annotated[
        str | None, Meta(description="Parquet: the columns, `id BIGINT, item STRING`; by default those of one object")
    ] = None
    header: Annotated[bool, Meta(description="The first line of each object is left out: it names the columns")] = False
    max_files: Annotated[
        Annotated[int, Meta(ge=1)] | None, Meta(description="A stream reads at most so many new objects in a batch")
    ] = None
    partitions: Annotated[int, Meta(description="Tasks that read at once", ge=1, le=1000)] = 4


def _store(options: _S3Options, pattern: str = "*") -> Store:
    parts = urlsplit(options.s3)
    return Store(
        root=f"{parts.netloc}{parts.path}".rstrip("/"),
        pattern=pattern,
        s3=S3Access(
            endpoint=options.endpoint,
            region=options.region,
            access_key=options.access_key,
            secret_key=options.secret_key,
            session_token=options.session_token,
            virtual_hosts=options.virtual_hosts,
        ),
    )


def _problems(options: _S3Options) -> list[str]:
    found = []
    parts = urlsplit(options.s3)
    if not refers(options.s3) and (parts.scheme != "s3" or not parts.netloc):
        found.append("s3: write bucket and prefix as `s3://bucket/prefix`")
    endpoint = options.endpoint or ""
    if endpoint and not refers(endpoint) and urlsplit(endpoint).scheme not in {"http", "https"}:
        found.append("endpoint: write it with its scheme, `http://host:port` or `https://host`")
    if (options.access_key is None) != (options.secret_key is None):
        found.append("access_key: goes together with `secret_key`; give both or none")
    if options.session_token is not None and options.access_key is None:
        found.append("session_token: goes with `access_key` and `secret_key`")
    if options.virtual_hosts and options.endpoint is None:
        found.append("virtual_hosts: only goes with `endpoint`")
    return found


class S3Source:
    """New objects under a prefix as they appear; `found_log` says how none is lost or read twice."""

    KIND: ClassVar[str] = "s3"
    Options: ClassVar[type[S3SourceOptions]] = S3SourceOptions
    RAW: ClassVar[bool] = True
    COLUMN_FORMATS: ClassVar[frozenset[str]] = frozenset({"parquet"})

    def __init__(self, options: S3SourceOptions) -> None:
        self.options = options

    def problems(self) -> list[str]:
        found = _problems(self.options)
        if self.options.format is None and self.options.schema is not None:
            found.append("schema: goes with a format")
        if self.options.header and self.options.format == "parquet":
            found.append("header: Parquet has none")
        return found

    def stream(self, context: SourceContext) -> DataFrame:
        return object_stream(context, self._reading(context), self._schema(context))

    def table(self, context: SourceContext) -> DataFrame:
        return object_table(context, self._reading(context), self._schema(context))

    def _reading(self, context: SourceContext) -> ObjectReading:
        return ObjectReading(
            store=_store(self.options, self.options.pattern),
            parquet=self.options.format == "parquet",
            header=self.options.header,
            log=str(found_log_path(context)),
            max_files=self.options.max_files,
            partitions=self.options.partitions,
        )

    def _schema(self, context: SourceContext) -> StructType | str:
        if self.options.format is None:
            return RECORD
        if self.options.schema is not None:
            return self.options.schema
        store = _store(self.options, self.options.pattern)
        found = listed(store)
        if not found:
            raise FatalFailure(
                f"source {context.name}: no object under {self.options.s3} to learn the columns from; "
                "give a `schema`, or start when there is one"
            )
        newest = found[-1].path
        try:
            with file_system(store.s3).open_input_file(newest) as source:
                schema = from_arrow_schema(pq.read_schema(source))
        except OSError as error:
            raise explain(error, store) from error
        folders = [name for name in folder_values(newest[len(store.root) :]) if name not in schema.names]
        return StructType([*schema.fields, *[StructField(name, StringType()) for name in folders]])


class S3SinkOptions(_S3Options, frozen=True, kw_only=True):
    format: Annotated[
        Literal["text", "csv", "json", "parquet"],
        Meta(description="What the objects hold. `text` writes the column `value`"),
    ] = "json"
    partition_by: Annotated[
        tuple[str, ...], Meta(description="Columns that become part of the name, `item=book/`, not of the object")
    ] = ()
    parallel: Annotated[
        bool, Meta(description="Each task writes its own objects: quicker for large batches, and more objects")
    ] = False
    compression: Annotated[
        Codec | None, Meta(description="Parquet: `snappy` (default), `zstd`, `gzip`, `none`; others: `gzip`")
    ] = None


class S3Sink:
    """Exactly once by batch id; `sink` says how, and what a reader may see."""

    KIND: ClassVar[str] = "s3"
    Options: ClassVar[type[S3SinkOptions]] = S3SinkOptions
    VERSIONED: ClassVar[tuple[str, str]] = ("s3", "{}_{version}")

    def __init__(self, options: S3SinkOptions) -> None:
        self.options = options

    def problems(self) -> list[str]:
        options = self.options
        found = _problems(options)
        codecs = {"snappy", "zstd", "gzip", "none"} if options.format == "parquet" else {"gzip"}
        if options.compression is not None and options.compression not in codecs:
            found.append(f"compression: {options.format} takes {', '.join(sorted(codecs))}")
        return found

    def write(self, frame: DataFrame, batch: Batch) -> Written:
        options = self.options
        if options.format == "text":
            text_column(frame.drop(*options.partition_by))
        return write_objects(
            frame,
            batch,
            _store(options),
            file_format=options.format,
            partition_by=options.partition_by,
            parallel=options.parallel,
            compression=options.compression,
        )
