"""One hash over records as they are read: offsets, timestamps, keys, values and headers. Pure.

Each column is hashed on its own, lengths beside bytes, so that neither the size of Arrow's batches nor the way of
compressing changes it: null differs from empty, and headers keep their order.
"""

import hashlib
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

COLUMNS = ("offset", "timestamp", "timestamp_type", "key", "value", "headers")


class RecordSum:
    """Feed it batches of records with the columns of a backup's Parquet."""

    def __init__(self) -> None:
        self._hashes: dict[str, Any] = {}
        self.records = 0
        self.first = -1
        self.last = -1
        self.max_timestamp = -1
        self.record_bytes_max = 0
        self.in_order = True
        """Whether offsets only went up."""

    def add(self, batch: pa.RecordBatch) -> None:
        if not batch.num_rows:
            return
        offsets = batch.column("offset").cast(pa.int64()).to_numpy()
        self.in_order &= bool(offsets[0] > self.last and (np.diff(offsets) > 0).all())
        if not self.records:
            self.first = int(offsets[0])
        self.last = int(offsets[-1])
        self.records += batch.num_rows
        times: Any = batch.column("timestamp").cast(pa.timestamp("us", "UTC")).cast(pa.int64())
        self.max_timestamp = max(self.max_timestamp, int(times.to_numpy().max()) // 1000)
        self._numbers("offset", offsets)
        self._numbers("timestamp", times.to_numpy())
        self._numbers("timestamp_type", batch.column("timestamp_type").cast(pa.int32()).to_numpy())
        sizes = self._texts("key", batch.column("key")) + self._texts("value", batch.column("value"))
        self.record_bytes_max = max(self.record_bytes_max, int(sizes.max()))
        self._headers(batch.column("headers"))

    def digest(self) -> str:
        named = [f"{name} {found.hexdigest()}\n" for name, found in sorted(self._hashes.items())]
        return hashlib.sha256(f"{self.records}\n{''.join(named)}".encode()).hexdigest()

    def _headers(self, column: Any) -> None:
        """No headers and an empty list are the same to a record."""
        self._numbers("headers", pc.fill_null(pc.list_value_length(column), 0).cast(pa.int32()).to_numpy())
        entries: Any = column.flatten()
        if len(entries):
            self._texts("header_key", entries.field("key"))
            sizes = self._texts("header_value", entries.field("value"))
            self.record_bytes_max = max(self.record_bytes_max, int(sizes.sum()))

    def _numbers(self, name: str, values: Any) -> None:
        self._hash(name).update(np.ascontiguousarray(values).data)

    def _texts(self, name: str, column: Any) -> Any:
        """The lengths, with -1 for null, and the bytes; the lengths."""
        column = column.cast(pa.binary())
        lengths = pc.fill_null(pc.binary_length(column), -1).cast(pa.int32()).to_numpy()
        self._numbers(f"{name}_lengths", lengths)
        _, offsets, data = column.buffers()
        if data is not None:
            places = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
            self._hash(name).update(memoryview(data)[int(places[0]) : int(places[-1])])
        return np.maximum(lengths, 0)

    def _hash(self, name: str) -> Any:
        found = self._hashes.get(name)
        if found is None:
            found = self._hashes[name] = hashlib.sha256()
        return found
