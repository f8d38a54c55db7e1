"""What a task that copies tells: one row for each range, in the form of a record, so that any plan can carry it."""

import time

import msgspec
import pyarrow as pa

from ottla.model.names import TopicPartition
from ottla.spark.reading.decode import SCHEMA, SCHEMA_WITH_HEADERS


class Copied(msgspec.Struct, frozen=True, kw_only=True):
    records: int
    bytes: int
    end: int
    """Where the target's log ends now."""
    epoch: int = -1
    """The leader epoch that the source gave to the last batch; -1 if nothing was copied."""


def to_batch(partition: TopicPartition, copied: Copied, *, include_headers: bool) -> pa.RecordBatch:
    row: dict[str, list[object]] = {
        "key": [None],
        "value": [msgspec.json.encode(copied)],
        "topic": [partition.topic],
        "partition": [partition.partition],
        "offset": [copied.end],
        "timestamp": [time.time_ns() // 1_000],
        "timestampType": [0],
        "headers": [None],
    }
    schema = SCHEMA_WITH_HEADERS if include_headers else SCHEMA
    return pa.RecordBatch.from_arrays([pa.array(row[field.name], field.type) for field in schema], schema=schema)


def from_value(value: bytes | bytearray) -> Copied:
    return msgspec.json.decode(value, type=Copied)
