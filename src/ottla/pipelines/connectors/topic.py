"""Topics: a source of records, a table (the latest value of each key), and a sink.

The sink only says which records a row becomes. Writing is the runner's: the rows of all topics of a batch, dead letters
and the source's offsets go into one transaction.
"""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import BinaryType

from ottla.model.errors import ApiError, OttlaError
from ottla.model.names import check_topic_name
from ottla.pipelines.connectors.base import Batch, SourceContext, Written
from ottla.pipelines.connectors.options import ConnectorOptions
from ottla.pipelines.connectors.transactional import TopicTarget
from ottla.pipelines.errors import ConnectorProblem
from ottla.pipelines.secrets import references
from ottla.spark import plain_json
from ottla.spark.formats.api import build_format, check_format, encode, encode_key, key_headers, record_headers
from ottla.spark.formats.registry_format import REGISTRY, key_options
from ottla.spark.formats.spec import FormatSpec
from ottla.spark.headers import HEADERS, never_null
from ottla.spark.reading import kept_option
from ottla.spark.reading.kept_table import KeptTableReader

Positive = Annotated[int, Meta(ge=1)]

BROADCAST_RECORDS = 50_000
"""A table in a stream whose topic has no more when the query starts is sent to every task: no shuffle."""

_CLUSTER = "Which of the file's `clusters` it is in; by default the one that `bootstrap` names"
_PATTERN = re.compile(r"/(?P<pattern>.+)/")
_PLAIN_FORMATS = frozenset({"json", "csv", "text", "raw"})
"""Written by Spark's own expressions."""


class TopicSourceOptions(ConnectorOptions, frozen=True, kw_only=True):
    topic: Annotated[
        str | list[str],
        Meta(
            description="A topic, a list of topics, or a pattern between slashes, `/orders-.*/`, which finds new ones"
        ),
    ]
    cluster: Annotated[str | None, Meta(description=_CLUSTER)] = None
    start: Annotated[
        str,
        Meta(description="Where a new pipeline begins: `earliest`, `latest` or a time such as `2026-01-31T12:00:00Z`"),
    ] = "earliest"
    min_partitions: Annotated[
        Positive | None, Meta(description="Cut big partitions so that there are about so many tasks")
    ] = None
    on_data_loss: Annotated[
        Literal["stop", "continue"],
        Meta(description="What to do if records that were not read yet have been deleted"),
    ] = "stop"
    isolation: Annotated[
        Literal["read_committed", "read_uncommitted"],
        Meta(description="Whether records of transactions that are open or aborted are read too"),
    ] = "read_committed"


class TopicSource:
    KIND: ClassVar[str] = "topic"
    Options: ClassVar[type[TopicSourceOptions]] = TopicSourceOptions
    RAW: ClassVar[bool] = True

    def __init__(self, options: TopicSourceOptions) -> None:
        self._options = options

    def problems(self) -> list[str]:
        options, problems = self._options, []
        for topic in self.topics:
            problems += _wrong_name(topic)
        if not self.topics and self.pattern is None:
            problems.append("`topic` names none")
        if self.pattern is not None:
            try:
                re.compile(self.pattern)
            except re.error as error:
                problems.append(f"`topic`: {self.pattern} is not a regular expression: {error}")
        if options.start not in ("earliest", "latest") and _milliseconds(options.start) is None:
            problems.append(f"`start: {options.start}` is not earliest, latest or a time such as 2026-01-31T12:00:00Z")
        return problems

    @property
    def topics(self) -> list[str]:
        if isinstance(self._options.topic, list):
            return self._options.topic
        return [] if self.pattern is not None else [self._options.topic]

    @property
    def pattern(self) -> str | None:
        if isinstance(self._options.topic, list):
            return None
        found = _PATTERN.fullmatch(self._options.topic)
        return found["pattern"] if found else None

    def reads(self, topic: str) -> bool:
        return topic in self.topics or (self.pattern is not None and bool(re.fullmatch(self.pattern, topic)))

    def stream(self, context: SourceContext) -> DataFrame:
        options = self._connection(context)
        if self._options.start in ("earliest", "latest"):
            options["startingOffsets"] = self._options.start
        else:
            options["startingTimestamp"] = str(_milliseconds(self._options.start))
            options["startingOffsetsByTimestampStrategy"] = "latest"
        if context.max_records is not None:
            options["maxOffsetsPerTrigger"] = str(context.max_records)
        if context.group is not None:
            options["groupId"] = context.group
        return context.spark.readStream.format("ottla").options(**options).load()

    def table(self, context: SourceContext) -> DataFrame:
        options = self._connection(context)
        if self._options.start not in ("earliest", "latest"):
            options["startingTimestamp"] = str(_milliseconds(self._options.start))
        reader = context.spark.read.format("ottla").options(**options)
        if not context.fresh:
            return reader.load()
        table = reader.option(kept_option.OPTION, "true").load()
        # Not more than what every task can well be sent; asked again at every start.
        return table.hint("broadcast") if KeptTableReader(options).records() <= BROADCAST_RECORDS else table

    def _connection(self, context: SourceContext) -> dict[str, str]:
        options = {f"kafka.{name}": value for name, value in context.client.items()}
        options["kafka.bootstrap.servers"] = context.bootstrap
        options["kafka.isolation.level"] = self._options.isolation
        options["includeHeaders"] = "true"
        if self.pattern is not None:
            options["subscribePattern"] = self.pattern
        else:
            options["subscribe"] = ",".join(self.topics)
        if self._options.min_partitions is not None:
            options["minPartitions"] = str(self._options.min_partitions)
        if context.objects is not None:
            options |= plain_json.written(context.objects)
        if self._options.on_data_loss == "continue":
            options["failOnDataLoss"] = "false"
        return options


def latest_by_key(records: DataFrame) -> DataFrame:
    """A compacted topic as a table: of each key the last record, unless that says that the key is gone.

    A key lives in one partition, where offsets say what is last. Where it moved (partitions were added), time does.
    """
    record = sf.struct(*(name for name in records.columns if name != "key"))
    of_partition = (
        records.filter(sf.col("key").isNotNull())
        .groupBy("key", "topic", "partition")
        .agg(sf.max_by(record, "offset").alias("__last"))
    )
    last = of_partition.groupBy("key").agg(sf.max_by("__last", sf.col("__last.timestamp")).alias("__last"))
    return last.select("key", "__last.*").filter(sf.col("value").isNotNull())


class TopicSinkOptions(ConnectorOptions, frozen=True, kw_only=True):
    topic: Annotated[str, Meta(description="The topic; it is made if it is not there")]
    cluster: Annotated[str | None, Meta(description=_CLUSTER)] = None
    key: Annotated[
        str | list[str] | None,
        Meta(
            description="The key: a column or a SQL expression, as text; a binary column as it is. With `key_format` "
            "also a list of columns. By default none"
        ),
    ] = None
    key_format: Annotated[
        str | None, Meta(description="How the key is written, where it is more than text: json, avro, protobuf, raw")
    ] = None
    key_schema: Annotated[str | None, Meta(description="The schema of the key's format, where it has one")] = None
    key_format_options: Annotated[dict[str, Any], Meta(description="The options of the key's format")] = msgspec.field(
        default_factory=dict
    )
    format: Annotated[str, Meta(description="How the value is written: json, csv, avro, protobuf, text or raw")] = (
        "json"
    )
    schema: Annotated[str | None, Meta(description="The format's schema, where it has one")] = None
    format_options: Annotated[dict[str, Any], Meta(description="The format's own options")] = msgspec.field(
        default_factory=dict
    )
    columns: Annotated[list[str] | None, Meta(description="What the value is made of; by default all columns")] = None
    headers: Annotated[
        dict[str, str], Meta(description="Headers: their names, and the columns or SQL expressions they come from")
    ] = msgspec.field(default_factory=dict)
    partition: Annotated[
        str | None,
        Meta(description="A column or SQL expression with the partition's number; by default the key decides"),
    ] = None
    timestamp: Annotated[str | None, Meta(description="A column or SQL expression; by default the time of writing")] = (
        None
    )
    delivery: Annotated[
        Literal["exactly_once", "at_least_once"],
        Meta(
            description="One transaction per batch with the source's offsets, or none. All topics of a query share it"
        ),
    ] = "exactly_once"
    compression: Annotated[
        Literal["none", "gzip", "snappy", "lz4", "zstd"], Meta(description="The codec of the records")
    ] = "lz4"


class TopicSink:
    KIND: ClassVar[str] = "topic"
    Options: ClassVar[type[TopicSinkOptions]] = TopicSinkOptions
    VERSIONED: ClassVar[tuple[str, str]] = ("topic", "{}.{version}")

    def __init__(self, options: TopicSinkOptions) -> None:
        self.options = options

    def problems(self) -> list[str]:
        problems = [*_wrong_name(self.options.topic), *self._wrong_key()]
        for spec in self._formats(Path()):
            try:
                build_format(spec)
            except OttlaError as error:
                problems.append(str(error))
        return problems

    def file_problems(self, base_dir: Path) -> list[str]:
        problems = []
        for spec in self._formats(base_dir):
            try:
                check_format(spec)
            except OttlaError as error:
                problems.append(str(error))
        return problems

    def _wrong_key(self) -> list[str]:
        options = self.options
        if options.key_format is None:
            if options.key_schema is not None or options.key_format_options:
                return ["`key_schema` and `key_format_options` are about the key's format: say which, in `key_format`"]
            if isinstance(options.key, list):
                return ["`key`: several columns make a key in a format: say which, in `key_format` (json, avro, ...)"]
        elif not options.key:
            return ["`key_format` says how a key is written, and there is none: name it in `key`"]
        return []

    def target(self) -> TopicTarget:
        options = self.options
        return TopicTarget(
            topic=options.topic,
            compression=options.compression,
            exactly_once=options.delivery == "exactly_once",
            in_plan=options.format in _PLAIN_FORMATS and self._plain_key,
        )

    def columns(self, frame: DataFrame, base_dir: Path) -> list[Column]:
        options = self.options
        null = sf.lit(None)
        return [
            self._key(frame, base_dir).alias("key"),
            encode(frame, self._format(base_dir), options.columns).alias("value"),
            self._all_headers(frame, base_dir).alias("headers"),
            sf.lit(options.topic).alias("topic"),
            (sf.expr(options.partition) if options.partition else null).cast("int").alias("partition"),
            (sf.expr(options.timestamp) if options.timestamp else null).cast("timestamp").alias("timestamp"),
        ]

    def write(self, frame: DataFrame, batch: Batch) -> Written:
        raise ConnectorProblem("topics are written by the runner, all of a batch in one transaction")

    @property
    def _plain_key(self) -> bool:
        return self.options.key_format in (None, *_PLAIN_FORMATS) and self.options.key_schema != REGISTRY

    def _key(self, frame: DataFrame, base_dir: Path) -> Column:
        key, spec = self.options.key, self._key_format(base_dir)
        if spec is not None and key is not None:
            return encode_key(frame, spec, key)
        assert not isinstance(key, list), "the problems say so"
        return _bytes(frame, key)

    def _formats(self, base_dir: Path) -> list[FormatSpec]:
        of_key = self._key_format(base_dir)
        return [self._format(base_dir), *([of_key] if of_key is not None else [])]

    def _key_format(self, base_dir: Path) -> FormatSpec | None:
        options = self.options
        if options.key_format is None:
            return None
        own = key_options(options.key_schema, options.key_format_options, options.format_options, options.topic)
        return FormatSpec(name=options.key_format, schema=options.key_schema, options=own, base_dir=base_dir)

    def _format(self, base_dir: Path) -> FormatSpec:
        options = self.options
        told = {"topic": options.topic} if options.schema == REGISTRY else {}
        own = {**told, **options.format_options}
        return FormatSpec(name=options.format, schema=options.schema, options=own, base_dir=base_dir)

    def _all_headers(self, frame: DataFrame, base_dir: Path) -> Column:
        """Those that were asked for, and those of the format."""
        key, of_key = self.options.key, self._key_format(base_dir)
        found = [record_headers(frame, self._format(base_dir), self.options.columns)]
        if key is not None and of_key is not None:
            found.append(key_headers(frame, of_key, key))
        more = [each.cast(HEADERS) for each in found if each is not None]
        own = self._headers(frame)
        return sf.concat(never_null(own), *more) if more else own

    def _headers(self, frame: DataFrame) -> Column:
        if not self.options.headers:
            return sf.lit(None).cast(HEADERS)
        return sf.array(
            *(
                sf.struct(sf.lit(name).alias("key"), _bytes(frame, column).alias("value"))
                for name, column in self.options.headers.items()
            )
        ).cast(HEADERS)


def _bytes(frame: DataFrame, expression: str | None) -> Column:
    if expression is None:
        return sf.lit(None).cast("binary")
    chosen = sf.expr(expression)
    if isinstance(frame.select(chosen).schema.fields[0].dataType, BinaryType):
        return chosen
    return chosen.cast("string").cast("binary")


def _wrong_name(topic: str) -> list[str]:
    if references(topic):
        return ["`topic`: Spark shows names of topics in its plans, so they cannot be secrets"]
    try:
        check_topic_name(topic)
    except ApiError as error:
        return [f"`topic`: {error}"]
    return []


def _milliseconds(text: str) -> int | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
