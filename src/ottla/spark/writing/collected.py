"""A small batch, encoded by tasks and written by the driver.

Tasks that write nothing can fail, run twice and be lost as Spark likes; and what they do is the same in every batch, so
it is part of the plan.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import Row

from ottla.client.producer import TransactionPart
from ottla.client.producer_settings import ProducerSettings
from ottla.model.names import TopicPartition
from ottla.protocol.compression import Codec
from ottla.spark.writing.beside import SideWriter, notes_of, open_all, take_parcels
from ottla.spark.writing.encode import UnfinishedBatch
from ottla.spark.writing.rows_to_records import produce


class Written(NamedTuple):
    """What became of a batch's rows."""

    counts: dict[TopicPartition, int]
    """The records of each partition that got any."""
    notes: list[str]
    """What those beside have to say (`beside.notes_of`), from each who wrote."""


def is_cut(rows: Sequence[Row]) -> bool:
    """Whether a task had more than a driver can take."""
    return any(row.payload is None for row in rows)


def write_collected(
    rows: Sequence[Row],
    settings: ProducerSettings,
    transaction: TransactionPart | None,
    others: Sequence[SideWriter | None],
) -> Written:
    """Rows as `batch_tasks.ENCODED` has them, in the order of the tasks that made them."""
    opened = open_all(others)
    take_parcels(_parcels(rows), opened)
    batches = [_record_batch(row) for row in rows if row.beside is None]
    return Written(produce([batches], settings, transaction), [notes_of(opened)] if opened else [])


def _parcels(rows: Sequence[Row]) -> Iterator[tuple[int, pa.Buffer]]:
    for row in rows:
        if row.beside is not None:
            yield row.beside, pa.py_buffer(row.payload)


def _record_batch(row: Row) -> UnfinishedBatch:
    return UnfinishedBatch(
        row.topic, row.partition, row.record_count, row.base_timestamp, row.max_timestamp, memoryview(row.payload),
        Codec(row.codec),
    )  # fmt: skip
