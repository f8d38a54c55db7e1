"""Rejected rows as records of the dead-letter topic, and back.

A dead letter is the original record (key, value, headers) with headers that say what happened. Text in UTF-8, all of
them; those that do not apply are left out.
"""

from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from ottla.spark.headers import HEADERS, never_null

PREFIX = "ottla.error."
PIPELINE = "ottla.error.pipeline"
STEP = "ottla.error.step"
MESSAGE = "ottla.error.message"
ROW = "ottla.error.row"
SOURCE = "ottla.error.source"
TOPIC = "ottla.error.topic"
PARTITION = "ottla.error.partition"
OFFSET = "ottla.error.offset"
TIMESTAMP = "ottla.error.timestamp"
"""Milliseconds since 1970, as records have it."""

MESSAGE_CHARS_MAX = 4000
ROW_CHARS_MAX = 100_000


def topic_rows(rejected: Sequence[DataFrame], pipeline: str, topic: str) -> DataFrame:
    """In the shape of `frames.TOPIC_ROW`. A row that never was a record has its JSON as the value."""
    rows = reduce(DataFrame.unionByName, rejected)
    said = {name: sf.col(name) for name in ("step", "error", "row")}
    return rows.select(*letter_columns(sf.col("origin"), said, pipeline, topic))


def letter_columns(origin: Column, why: Mapping[str, Column], pipeline: str, topic: str) -> list[Column]:
    """`why` has the `step`, the `error` and the `row` as JSON."""
    said = {
        PIPELINE: sf.lit(pipeline),
        STEP: why["step"],
        MESSAGE: sf.substring(why["error"], 1, MESSAGE_CHARS_MAX),
        ROW: sf.substring(why["row"], 1, ROW_CHARS_MAX),
        SOURCE: origin["source"],
        TOPIC: origin["topic"],
        PARTITION: origin["partition"].cast("string"),
        OFFSET: origin["offset"].cast("string"),
        TIMESTAMP: sf.unix_millis(origin["timestamp"]).cast("string"),
    }
    added = sf.array(*(_header(name, value) for name, value in said.items()))
    known = never_null(origin["headers"])
    was_record = origin["topic"].isNotNull()  # its value may well be null
    value = sf.when(was_record, origin["value"]).otherwise(sf.coalesce(origin["value"], why["row"].cast("binary")))
    return [
        origin["key"].alias("key"),
        value.alias("value"),
        sf.concat(known, sf.filter(added, lambda header: header["value"].isNotNull())).cast(HEADERS).alias("headers"),
        sf.lit(topic).alias("topic"),
        sf.lit(None).cast("int").alias("partition"),
        sf.lit(None).cast("timestamp").alias("timestamp"),
    ]


def _header(name: str, value: Column) -> Column:
    return sf.struct(sf.lit(name).alias("key"), value.cast("binary").alias("value"))
