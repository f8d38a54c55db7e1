"""Rows to batches in which every record has the offset that it is told, gaps included: for logs that are put back."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from ottla.protocol.compression import Buffer, Codec, compress
from ottla.protocol.records import BATCH_OVERHEAD, NO_PRODUCER_ID, NO_SEQUENCE, seal_batch
from ottla.spark.kernel.choice import chosen_kernel
from ottla.spark.kernel.interface import INT32_MAX, Int64s, Kernel, Payload, Rows
from ottla.spark.writing.encode import BATCH_BYTES, kernel_rows


class PlacedEncoder:
    """Of one partition."""

    def __init__(
        self, *, codec: Codec, level: int | None = None, batch_bytes: int = BATCH_BYTES, kernel: Kernel | None = None
    ) -> None:
        self._codec, self._level = codec, level
        self._capacity = max(1, batch_bytes - BATCH_OVERHEAD)
        self._kernel = kernel or chosen_kernel()
        self._open: _OpenBatch | None = None

    def add(self, batch: pa.RecordBatch, offsets: Int64s) -> Iterator[bytearray]:
        """Take rows with a time each, whose offsets go up; batches that are full come out."""
        offsets = np.ascontiguousarray(offsets)
        rows = kernel_rows(batch, 0, offsets)
        numbers = np.arange(len(offsets), dtype=np.int64)
        at = 0
        while at < len(offsets):
            at += self._fit(rows, offsets, numbers[at:])
            if at < len(offsets):
                yield from self.flush()

    def _fit(self, rows: Rows, offsets: Int64s, wanted: Int64s) -> int:
        """How many of the rows went into the open batch: as many as it has room for, bytes and offsets."""
        assert rows.timestamps is not None, "rows of a backup have times"
        at = int(wanted[0])
        if self._open is None:
            self._open = _OpenBatch(int(offsets[at]), int(rows.timestamps[at]), self._capacity)
        filling = self._open
        payload = filling.payload
        within = int(np.searchsorted(offsets, filling.base_offset + INT32_MAX, "right")) - at
        fitted = self._kernel.encode(rows, wanted[: max(within, 0)], payload)
        if fitted:
            filling.last_offset = int(offsets[at + fitted - 1])
            filling.max_timestamp = max(filling.max_timestamp, int(rows.timestamps[at : at + fitted].max()))
        elif not payload.records:  # one record larger than a batch should be: it gets a batch of its own
            filling.grow(payload.need)
        return fitted

    def flush(self) -> Iterator[bytearray]:
        """The batch that is open, if it has anything."""
        filling = self._open
        if filling is None or not filling.payload.records:
            return
        self._open = None
        payload: Buffer = filling.payload.buffer[: filling.payload.used].data
        yield seal_batch(
            compress(self._codec, payload, self._level) if self._codec else payload,
            base_offset=filling.base_offset, leader_epoch=0, attributes=int(self._codec),
            last_offset_delta=filling.last_offset - filling.base_offset, base_timestamp=filling.base_timestamp,
            max_timestamp=filling.max_timestamp, producer_id=NO_PRODUCER_ID, producer_epoch=-1,
            base_sequence=NO_SEQUENCE, record_count=filling.payload.records,
        )  # fmt: skip


class _OpenBatch:
    __slots__ = ("base_offset", "base_timestamp", "last_offset", "max_timestamp", "payload")

    def __init__(self, base_offset: int, base_timestamp: int, capacity: int) -> None:
        self.base_offset = self.last_offset = base_offset
        self.base_timestamp = self.max_timestamp = base_timestamp
        self.grow(capacity)

    def grow(self, capacity: int) -> None:
        self.payload = Payload(capacity)
        self.payload.base_offset, self.payload.base_timestamp = self.base_offset, self.base_timestamp
