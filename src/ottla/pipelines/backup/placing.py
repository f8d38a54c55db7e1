"""Records of an object in new batches without a producer, each at the offset that it had. Does no I/O.

Markers and aborted records are left out, so there are gaps; whoever appends these batches says that it knows of them.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ottla.model.names import TopicPartition
from ottla.pipelines.backup.batches import BatchPiece, Walk
from ottla.pipelines.backup.manifest import StoredObject
from ottla.pipelines.backup.reading_back import batch_rows, rows_of
from ottla.protocol.compression import Codec
from ottla.protocol.records import (
    BATCH_OVERHEAD,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TRANSACTIONAL,
    iterate_batches,
    seal_batch,
)
from ottla.spark.writing.placed import PlacedEncoder

NOWHERE = TopicPartition("", 0)
"""Rows of a batch say where they are from, and nobody looks here."""


class _Placed(NamedTuple):
    batch: bytearray
    first_offset: int
    records: int


def written_anew(
    content: bytes, stored: StoredObject, wanted: tuple[int, int], codec: Codec, batch_bytes: int, piece_bytes: int
) -> Iterator[BatchPiece]:
    """The records of an object from an offset up to another. The codec is for rows; raw batches keep theirs."""
    if stored.kind == "parquet":
        placed = _placed(rows_of(content, stored), wanted, codec, batch_bytes)
    else:
        placed = _without_producer(content, stored, wanted, batch_bytes)
    together: list[_Placed] = []
    size = 0
    for each in placed:
        together.append(each)
        size += len(each.batch)
        if size >= piece_bytes:
            yield _piece(together)
            together, size = [], 0
    if together:
        yield _piece(together)


def _piece(together: list[_Placed]) -> BatchPiece:
    content = b"".join(each.batch for each in together)
    return BatchPiece(memoryview(content), together[0].first_offset, sum(each.records for each in together))


def _placed(
    batches: Iterator[pa.RecordBatch], wanted: tuple[int, int], codec: Codec, batch_bytes: int
) -> Iterator[_Placed]:
    encoder = PlacedEncoder(codec=codec, batch_bytes=batch_bytes)
    for rows in batches:
        offsets = rows.column("offset").to_numpy()
        begin, end = map(int, np.searchsorted(offsets, wanted))
        for batch in encoder.add(rows.slice(begin, end - begin), offsets[begin:end]):
            yield _Placed(batch, *_first_and_count(batch))
    for batch in encoder.flush():
        yield _Placed(batch, *_first_and_count(batch))


def _first_and_count(batch: bytearray) -> tuple[int, int]:
    ((_, header),) = iterate_batches(batch)
    return header.base_offset, header.record_count


def _without_producer(
    content: bytes, stored: StoredObject, wanted: tuple[int, int], batch_bytes: int
) -> Iterator[_Placed]:
    """Batches with their records as they are; of those of which only a part is wanted, that part."""
    start, end = wanted
    for found in Walk(stored.aborted).batches(content):
        header = found.header
        if not found.counts or header.next_offset <= start or header.base_offset >= end:
            continue
        if header.base_offset < start or header.next_offset > end:
            rows = batch_rows(content, found.position, NOWHERE, max(start, header.base_offset), end)
            yield from _placed(rows, wanted, Codec(header.codec), batch_bytes)
            continue
        batch = seal_batch(
            memoryview(content)[found.position + BATCH_OVERHEAD : found.position + header.size],
            base_offset=header.base_offset, leader_epoch=0, attributes=header.attributes & ~TRANSACTIONAL,
            last_offset_delta=header.last_offset_delta, base_timestamp=header.base_timestamp,
            max_timestamp=header.max_timestamp, producer_id=NO_PRODUCER_ID, producer_epoch=-1,
            base_sequence=NO_SEQUENCE, record_count=header.record_count,
        )  # fmt: skip
        yield _Placed(batch, header.base_offset, header.record_count)
