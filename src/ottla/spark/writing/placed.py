"""Rows to batches in which every record has the offset that it is told, gaps included: for logs that are put back."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from ottla.protocol.compression import Buffer, Codec, compress
from ottla.protocol.records import BATCH_OVERHEAD, NO_PRODUCER_ID, NO_SEQUENCE, seal_batch
from ottla.spark.kernel.choice import chosen_kernel
from ottla.spark.kernel.interface import Int64s, Kernel, Payload, Rows
from ottla.spark.writing.encode import BATCH_BYTES, kernel_rows


class PlacedEncoder:
    """Of one partition. A kernel numbers records by how many there are: behind a gap it is told a higher number."""

    def __init__(
        self, *, codec: Codec, level: int | None = None, batch_bytes: int = BATCH_BYTES, kernel: Kernel | None = None
    ) -> None:
        self._codec, self._level = codec, level
        self._capacity = max(1, batch_bytes - BATCH_OVERHEAD)
        self._kernel = kernel or chosen_kernel()
        self._open: _OpenBatch | None = None

    def add(self, batch: pa.RecordBatch, offsets: Int64s) -> Iterator[bytearray]:
        """Take rows with a time each, whose offsets go up; batches that are full come out."""
        if not len(offsets):
            return
        rows = kernel_rows(batch, 0)
        ends = [*(np.flatnonzero(np.diff(offsets) != 1) + 1), len(offsets)]
        at = 0
        for end in ends:
            while at < end:
                fitted = self._fit(rows, offsets, at, int(end))
                at += fitted
                if at < end:
                    yield from self.flush()

    def _fit(self, rows: Rows, offsets: Int64s, at: int, end: int) -> int:
        """How many rows of a run without gaps went into the open batch."""
        assert rows.timestamps is not None, "rows of a backup have times"
        if self._open is None:
            self._open = _OpenBatch(int(offsets[at]), int(rows.timestamps[at]), self._capacity)
        filling = self._open
        payload = filling.payload
        payload.base_timestamp = filling.base_timestamp
        payload.records = int(offsets[at]) - filling.base_offset
        fitted = self._kernel.encode(rows, np.arange(at, end, dtype=np.int64), payload)
        if fitted:
            filling.count += fitted
            filling.last_offset = int(offsets[at + fitted - 1])
            filling.max_timestamp = max(filling.max_timestamp, int(rows.timestamps[at : at + fitted].max()))
        elif not filling.count:  # one record larger than a batch should be: it gets a batch of its own
            filling.payload = Payload(payload.need)
        return fitted

    def flush(self) -> Iterator[bytearray]:
        """The batch that is open, if it has anything."""
        filling = self._open
        if filling is None or not filling.count:
            return
        self._open = None
        payload: Buffer = filling.payload.buffer[: filling.payload.used].data
        yield seal_batch(
            compress(self._codec, payload, self._level) if self._codec else payload,
            base_offset=filling.base_offset, leader_epoch=0, attributes=int(self._codec),
            last_offset_delta=filling.last_offset - filling.base_offset, base_timestamp=filling.base_timestamp,
            max_timestamp=filling.max_timestamp, producer_id=NO_PRODUCER_ID, producer_epoch=-1,
            base_sequence=NO_SEQUENCE, record_count=filling.count,
        )  # fmt: skip


class _OpenBatch:
    __slots__ = ("base_offset", "base_timestamp", "count", "last_offset", "max_timestamp", "payload")

    def __init__(self, base_offset: int, base_timestamp: int, capacity: int) -> None:
        self.base_offset = self.last_offset = base_offset
        self.base_timestamp = self.max_timestamp = base_timestamp
        self.count = 0
        self.payload = Payload(capacity)
