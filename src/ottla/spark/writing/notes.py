"""Single records that a driver writes itself, beside what tasks write."""

from collections.abc import Sequence

import pyarrow as pa

from ottla.client.producer import TransactionPart
from ottla.client.producer_settings import ProducerSettings
from ottla.spark.kernel.arrow import Column
from ottla.spark.writing.copied import Note
from ottla.spark.writing.rows_to_records import RowEncoding, encode_rows, produce


def send_notes(notes: Sequence[Note], settings: ProducerSettings, transaction: TransactionPart | None = None) -> None:
    """To partition 0 of their topics; it returns when the brokers have them."""
    if not notes:
        return
    columns: dict[str, Column] = {
        "topic": pa.array([note.topic for note in notes], pa.string()),
        "key": pa.array([note.key for note in notes], pa.binary()),
        "value": pa.array([note.value for note in notes], pa.binary()),
        "partition": pa.array([0] * len(notes), pa.int32()),
    }
    produce(encode_rows([pa.RecordBatch.from_pydict(columns)], RowEncoding(settings)), settings, transaction)
