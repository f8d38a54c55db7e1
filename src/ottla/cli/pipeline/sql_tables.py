"""Topics as Spark tables for `ottla sql`."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from ottla.cli.common.output import CommandError
from ottla.spark.formats.api import parse
from ottla.spark.formats.spec import ERROR, PARSED, FormatSpec
from ottla.spark.reading.reader import BatchReader

SAMPLE_ROWS = 1_000
"""So many records of a topic tell what fields its JSON has."""
_CORRUPT = "_corrupt_record"
_BETWEEN = "\x1e"
"""No JSON has it as it is."""


@dataclass(frozen=True, kw_only=True)
class TopicAccess:
    """How topics are looked at."""

    client: Mapping[str, str]
    """Settings of the Kafka client, `bootstrap.servers` among them."""
    start: str
    """`earliest`, `latest`, or milliseconds since 1970."""
    follow: bool
    formats: Mapping[str, str] = field(default_factory=dict)
    schemas: Mapping[str, str] = field(default_factory=dict)
    explained: bool = True
    """Somebody may look at what is wrong with records (`_error`): the words for it are most of a plan."""

    def format_of(self, topic: str) -> str:
        return self.formats.get(topic) or ("json" if topic in self.schemas else "text")


def register(spark: SparkSession, topic: str, looking: TopicAccess) -> None:
    """Make a topic a table of its own name."""
    name = looking.format_of(topic)
    records = _records(spark, topic, looking)
    if name == "text":
        frame = records.select(_text("key").alias("key"), _text("value").alias("value"), *_rest("", records))
    elif name == "raw":
        frame = records.select("key", "value", *_rest("", records))
    else:
        schema: str | StructType | None = looking.schemas.get(topic)
        if schema is None and name == "json":
            schema = _inferred(spark, topic, looking.client)
        parsed = parse(records, FormatSpec(name=name, schema=schema, explains=looking.explained))
        key = _text("key").alias("_key")
        frame = parsed.select(f"{PARSED}.*", key, *_rest("_", records), sf.col(ERROR).alias("_error"))
    frame.createOrReplaceTempView(f"`{topic}`")


def _records(spark: SparkSession, topic: str, looking: TopicAccess) -> DataFrame:
    reader = spark.readStream.format("ottla") if looking.follow else spark.read.format("ottla")
    return reader.options(**_options(topic, looking.client, looking.start)).load()


def _options(topic: str, client: Mapping[str, str], start: str) -> dict[str, str]:
    options = {f"kafka.{name}": value for name, value in client.items()}
    options |= {"subscribe": topic, "includeHeaders": "true"}
    if start in ("earliest", "latest"):
        return options | {"startingOffsets": start}
    return options | {"startingTimestamp": start, "startingOffsetsByTimestampStrategy": "latest"}


def _text(column: str) -> Column:
    """Bytes as text; what is no UTF-8 shows as replacement characters instead of failing the look."""
    return sf.make_valid_utf8(sf.col(column).cast("string"))


def _rest(prefix: str, records: DataFrame) -> list[Column]:
    """Where a record is. Its fields may have these names too, so beside fields they begin with `_`."""
    names = [name for name in ("partition", "offset", "timestamp", "headers") if name in records.columns]
    return [sf.col(name).alias(prefix + name) for name in names if not (prefix and name == "headers")]


def _inferred(spark: SparkSession, topic: str, client: Mapping[str, str]) -> StructType:
    """The fields of the JSON in a topic, from its first records."""
    values = _first_values(topic, client)
    fields = [field for field in _schema_of(spark, values).fields if field.name != _CORRUPT] if values else []
    if not fields:
        what = "is empty" if not values else f"has no JSON objects in its first {len(values):,} records"
        raise CommandError(
            f"topic `{topic}` {what}, so its fields cannot be guessed: name them with "
            f"--schema {topic}='id STRING, amount DOUBLE'"
        )
    return StructType(fields)


def _first_values(topic: str, client: Mapping[str, str]) -> list[bytes | None]:
    """Read here: to have Spark read them takes a job, and processes of Python for it."""
    reader = BatchReader(_options(topic, client, "earliest"))
    batches = (batch for part in reader.partitions() for batch in reader.read(part))
    values: list[bytes | None] = []
    for batch in batches:
        values += batch.column("value").slice(0, SAMPLE_ROWS - len(values)).to_pylist()
        if len(values) == SAMPLE_ROWS:
            break
    return values


def _schema_of(spark: SparkSession, values: Sequence[bytes | None]) -> StructType:
    """As Spark itself guesses it, of a frame that is in the JVM already: lists would go through Python once more."""
    text = _BETWEEN.join(value.decode("utf-8", "replace") for value in values if value is not None)
    lines = spark.sql("SELECT explode(split(:text, :between))", {"text": text, "between": _BETWEEN})
    jvm: Any = spark._jvm
    reader: Any = spark.read.option("columnNameOfCorruptRecord", _CORRUPT)
    encoder = jvm.org.apache.spark.sql.Encoders.STRING()
    found = reader._jreader.json(getattr(lines._jdf, "as")(encoder))
    return StructType.fromJson(json.loads(found.schema().json()))
