"""Rejected rows as records of the dead-letter topic, and back.

A dead letter is the original record (key, value, headers) with headers that say what happened. Text in UTF-8, all of
them; those that do not apply are left out. Spark's plan tells what there is to say as JSON (`letter_text`); the task
that writes the batch makes the record of it (`LetterMaker`).
"""

import base64
import json
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import StringType, StructField, StructType

from ottla.pipelines.frames import ORIGIN_TYPE, TOPIC_ROW
from ottla.spark.writing.made_later import UNMADE

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

UNMADE_ROW = StructType([*TOPIC_ROW.fields, StructField(UNMADE, StringType())])
"""What is written to topics, with dead letters that are still to be made."""

MESSAGE_CHARS_MAX = 4000
ROW_CHARS_MAX = 100_000


def letter_text(origin: Column, why: Mapping[str, Column]) -> Column:
    """`why` has the `step`, the `error` and the `row` as JSON. Bytes are in base 64, nulls are left out."""
    known = {field.name: origin[field.name] for field in ORIGIN_TYPE.fields}
    known["timestamp"] = sf.unix_millis(origin["timestamp"])
    record = sf.struct(*(value.alias(name) for name, value in known.items()))
    said = sf.struct(*(value.alias(name) for name, value in why.items()))
    return sf.to_json(sf.struct(record.alias("origin"), said.alias("why")))


def unmade_letters(rejected: Sequence[DataFrame]) -> DataFrame:
    """The rows of frames as `chain.rejected` has them, for the task that writes."""
    rows = reduce(DataFrame.unionByName, rejected)
    said = {name: sf.col(name) for name in ("step", "error", "row")}
    return rows.select(letter_text(sf.col("origin"), said).alias(UNMADE))


class LetterMaker(NamedTuple):
    """A text of `letter_text` to a record, in the shape of `frames.TOPIC_ROW`."""

    pipeline: str
    topic: str

    def __call__(self, text: str) -> dict[str, Any]:
        told = json.loads(text)
        origin, why = told["origin"], told["why"]
        said = {
            PIPELINE: self.pipeline,
            STEP: why.get("step"),
            MESSAGE: _cut(why.get("error"), MESSAGE_CHARS_MAX),
            ROW: _cut(why.get("row"), ROW_CHARS_MAX),
            SOURCE: origin.get("source"),
            TOPIC: origin.get("topic"),
            PARTITION: origin.get("partition"),
            OFFSET: origin.get("offset"),
            TIMESTAMP: origin.get("timestamp"),
        }
        value = _bytes(origin.get("value"))
        if value is None and origin.get("topic") is None:  # of a record the value may well be null; a row is its JSON
            value = _text(why.get("row"))
        known = [
            {"key": header.get("key"), "value": _bytes(header.get("value"))} for header in origin.get("headers") or ()
        ]
        added = [{"key": name, "value": _text(words)} for name, words in said.items() if words is not None]
        return {"key": _bytes(origin.get("key")), "value": value, "headers": [*known, *added], "topic": self.topic}


def _cut(text: str | None, chars_max: int) -> str | None:
    return None if text is None else text[:chars_max]


def _text(words: object) -> bytes | None:
    return None if words is None else str(words).encode("utf-8", "replace")


def _bytes(encoded: str | None) -> bytes | None:
    return None if encoded is None else base64.b64decode(encoded)
