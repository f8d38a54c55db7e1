"""Topics as Spark tables for `ottla sql`."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from ottla.cli.common.output import CommandError
from ottla.spark.formats.api import parse
from ottla.spark.formats.spec import ERROR, PARSED, FormatSpec

SAMPLE_ROWS = 1_000
"""So many records of a topic tell what fields its JSON has."""


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
            schema = _inferred(spark, topic, looking)
        parsed = parse(records, FormatSpec(name=name, schema=schema))
        key = _text("key").alias("_key")
        frame = parsed.select(f"{PARSED}.*", key, *_rest("_", records), sf.col(ERROR).alias("_error"))
    frame.createOrReplaceTempView(f"`{topic}`")


def _records(spark: SparkSession, topic: str, looking: TopicAccess) -> DataFrame:
    options = {f"kafka.{name}": value for name, value in looking.client.items()}
    options |= {"subscribe": topic, "includeHeaders": "true"}
    if looking.start in ("earliest", "latest"):
        options["startingOffsets"] = looking.start
    else:
        options |= {"startingTimestamp": looking.start, "startingOffsetsByTimestampStrategy": "latest"}
    reader = spark.readStream.format("ottla") if looking.follow else spark.read.format("ottla")
    return reader.options(**options).load()


def _text(column: str) -> Column:
    """Bytes as text; what is no UTF-8 shows as replacement characters instead of failing the look."""
    return sf.make_valid_utf8(sf.col(column).cast("string"))


def _rest(prefix: str, records: DataFrame) -> list[Column]:
    """Where a record is. Its fields may have these names too, so beside fields they begin with `_`."""
    names = [name for name in ("partition", "offset", "timestamp", "headers") if name in records.columns]
    return [sf.col(name).alias(prefix + name) for name in names if not (prefix and name == "headers")]


def _inferred(spark: SparkSession, topic: str, looking: TopicAccess) -> StructType:
    """The fields of the JSON in a topic, from its first records."""
    past = TopicAccess(client=looking.client, start="earliest", follow=False)
    values = [row.value for row in _records(spark, topic, past).select(_text("value").alias("value")).take(SAMPLE_ROWS)]
    sample = spark.sparkContext.parallelize([value for value in values if value is not None], 1)
    schema = spark.read.option("columnNameOfCorruptRecord", "_corrupt_record").json(sample).schema
    fields = [field for field in schema.fields if field.name != "_corrupt_record"]
    if not fields:
        what = "is empty" if not values else f"has no JSON objects in its first {len(values):,} records"
        raise CommandError(
            f"topic `{topic}` {what}, so its fields cannot be guessed: name them with "
            f"--schema {topic}='id STRING, amount DOUBLE'"
        )
    return StructType(fields)
