"""What all frames inside a pipeline share: where a row came from, and how a rejected row looks."""

from pyspark.sql import DataFrame
from pyspark.sql.types import (
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from ottla.spark.headers import HEADERS

ORIGIN = "__origin"
"""The column that carries a row's original record until the sinks drop it. Only there when rows can be rejected."""

ORIGIN_TYPE = StructType(
    [
        StructField("source", StringType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("headers", HEADERS),
    ]
)

BAD_RECORD = "ottla: a record was rejected and errors.dead_letter names no topic for it:"
"""How the text of Spark's exception is recognised where a bad record stops a query."""

REJECTED = StructType(
    [
        StructField("origin", ORIGIN_TYPE),
        StructField("step", StringType()),
        StructField("error", StringType()),
        StructField("row", StringType()),  # the row as JSON where it was rejected; null where it could not be read
    ]
)
"""The schema of rejected rows, from the step that rejects them to the dead-letter topic."""

MARK = "__rejected"
"""Why a row was rejected; null for the good ones. Where rows are marked, a failed one stays in the frame, so that
nothing has to be read twice: steps pass it on as it is, and the last one of all makes a dead letter of it."""

MARK_TYPE = StructType([field for field in REJECTED.fields if field.name != "origin"])

HIDDEN = frozenset({ORIGIN, MARK})
"""Columns that are not the user's."""

TOPIC_ROW = StructType(
    [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("headers", HEADERS),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),  # null: the partitioner decides
        StructField("timestamp", TimestampType()),  # null: the time of writing
    ]
)
"""What is written to topics, whatever the sink's format was."""


def without_origin(frame: DataFrame) -> DataFrame:
    return frame.drop(ORIGIN, MARK)
