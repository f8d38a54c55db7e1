"""What a kernel does, and the memory it works on.

A kernel allocates nothing: it reads a payload, or Arrow columns, and fills buffers that it is given. When the next
record does not fit it says FULL and stands at that record, so the caller can hand over what is there, or make room.
The structures have C's layout; the twin in Python uses their fields and the arrays beside them.
"""

import ctypes
from enum import IntEnum
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ottla.protocol.compression import Buffer

if TYPE_CHECKING:
    from ottla.spark.kernel.json_columns import JsonColumns

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

INT32_MAX = 2**31 - 1


class Status(IntEnum):
    """How parsing stopped; what is not DONE or FULL is wrong with the records."""

    DONE = 0
    FULL = 1
    VARINT = 2
    RECORD_LENGTH = 3
    CUT_SHORT = 4
    HEADER_COUNT = 5
    HEADER_NAME = 6
    OFFSET = 7


REASONS = {
    Status.VARINT: "a variable-length integer is too long",
    Status.RECORD_LENGTH: "a record has a wrong length",
    Status.CUT_SHORT: "a record is cut short",
    Status.HEADER_COUNT: "a record cannot have that many headers",
    Status.HEADER_NAME: "a header has no name, or one that is not UTF-8",
    Status.OFFSET: "an offset is out of range",
}


class Cursor(ctypes.Structure):
    """Where parsing stands in the records of one batch; [start, end) are the offsets wanted."""

    _fields_: ClassVar = [
        ("payload", ctypes.c_void_p),
        ("length", ctypes.c_int64),
        ("position", ctypes.c_int64),
        ("records_left", ctypes.c_int64),
        ("base_offset", ctypes.c_int64),
        ("base_timestamp", ctypes.c_int64),
        ("log_append_time", ctypes.c_int64),
        ("uses_log_append_time", ctypes.c_int64),
        ("start", ctypes.c_int64),
        ("end", ctypes.c_int64),
    ]
    payload: int
    length: int
    position: int
    records_left: int
    base_offset: int
    base_timestamp: int
    log_append_time: int
    uses_log_append_time: int
    start: int
    end: int
    view: Buffer
    """The same bytes as `payload`, which must outlive the cursor."""


def cursor(
    payload: Buffer,
    *,
    records: int,
    base_offset: int,
    base_timestamp: int,
    log_append_time: int | None,
    start: int,
    end: int,
) -> Cursor:
    array = np.frombuffer(payload, np.uint8)
    made = Cursor(
        array.ctypes.data, len(array), 0, records, base_offset, base_timestamp,
        log_append_time or 0, log_append_time is not None, start, end,
    )  # fmt: skip
    made.view = payload
    return made


class ChunkCapacity(NamedTuple):
    """How much a chunk of columns can hold."""

    rows: int
    key_bytes: int
    value_bytes: int
    headers: int
    header_key_bytes: int
    header_value_bytes: int

    def at_least(self, other: "ChunkCapacity") -> "ChunkCapacity":
        return ChunkCapacity._make(map(max, self, other))


class _Columns(ctypes.Structure):
    _fields_: ClassVar = [
        (name, ctypes.c_int64)
        for name in (
            "rows", "key_bytes", "value_bytes", "headers", "header_key_bytes", "header_value_bytes",
            "rows_max", "key_bytes_max", "value_bytes_max", "headers_max", "header_key_bytes_max",
            "header_value_bytes_max",
            "key_nulls", "value_nulls", "header_nulls", "header_value_nulls", "with_headers",
            "need_key_bytes", "need_value_bytes", "need_headers", "need_header_key_bytes", "need_header_value_bytes",
        )
    ] + [
        (name, ctypes.c_void_p)
        for name in (
            "key_offsets_at", "key_data_at", "key_valid_at", "value_offsets_at", "value_data_at", "value_valid_at",
            "offsets_at", "timestamps_at", "header_lists_at", "header_valid_at", "header_key_offsets_at",
            "header_key_data_at", "header_value_offsets_at", "header_value_data_at", "header_value_valid_at",
        )
    ]  # fmt: skip


class Columns(_Columns):
    """Arrow's layout of some rows, being filled: values lie one after another, offsets say where each starts."""

    rows: int
    key_bytes: int
    value_bytes: int
    headers: int
    header_key_bytes: int
    header_value_bytes: int
    rows_max: int
    key_bytes_max: int
    value_bytes_max: int
    headers_max: int
    header_key_bytes_max: int
    header_value_bytes_max: int
    key_nulls: int
    value_nulls: int
    header_nulls: int
    """Rows without headers: Spark's connector gives null for them, not an empty list."""
    header_value_nulls: int
    with_headers: int
    need_key_bytes: int
    need_value_bytes: int
    need_headers: int
    need_header_key_bytes: int
    need_header_value_bytes: int

    def __init__(self, room: ChunkCapacity, *, with_headers: bool) -> None:
        super().__init__()
        rows, key_bytes, value_bytes, headers, header_key_bytes, header_value_bytes = room
        self.rows_max, self.key_bytes_max, self.value_bytes_max = rows, key_bytes, value_bytes
        self.headers_max, self.header_key_bytes_max, self.header_value_bytes_max = room[3:]
        self.with_headers = int(with_headers)
        self.key_offsets, self.key_data, self.key_valid = _binary(rows, key_bytes)
        self.value_offsets, self.value_data, self.value_valid = _binary(rows, value_bytes)
        self.offsets: Int64s = np.empty(rows, np.int64)
        self.timestamps: Int64s = np.empty(rows, np.int64)
        lists, entries = (rows, headers) if with_headers else (0, 0)
        self.header_lists: Int32s = np.zeros(lists + 1, np.int32)
        self.header_valid: Bytes = np.zeros(lists // 8 + 1, np.uint8)
        self.header_key_offsets, self.header_key_data, _ = _binary(entries, header_key_bytes if entries else 0)
        self.header_value_offsets, self.header_value_data, self.header_value_valid = _binary(
            entries, header_value_bytes if entries else 0
        )
        for name, *_ in _Columns._fields_:
            if name.endswith("_at"):
                setattr(self, name, getattr(self, name.removesuffix("_at")).ctypes.data)

    @property
    def needed(self) -> ChunkCapacity:
        """What the record needs at which parsing stopped as FULL."""
        return ChunkCapacity(
            1, self.need_key_bytes, self.need_value_bytes, self.need_headers, self.need_header_key_bytes,
            self.need_header_value_bytes,
        )  # fmt: skip


def _binary(count: int, data_bytes: int) -> tuple[Int32s, Bytes, Bytes]:
    offsets = np.empty(count + 1, np.int32)
    offsets[0] = 0
    return offsets, memory(data_bytes), np.zeros(count // 8 + 1, np.uint8)


def memory(size: int) -> Bytes:
    """From Arrow's pool, which keeps what is given back: pages of the system's would all be faulted in again."""
    if not size:
        return np.empty(0, np.uint8)
    return np.frombuffer(memoryview(pa.allocate_buffer(size)), np.uint8)


class Binary(ctypes.Structure):
    """A column of byte strings to be read; `bits_from` is the bit of `valid` that belongs to the first row."""

    _fields_: ClassVar = [
        ("count", ctypes.c_int64),
        ("offsets_at", ctypes.c_void_p),
        ("data_at", ctypes.c_void_p),
        ("valid_at", ctypes.c_void_p),
        ("bits_from", ctypes.c_int64),
    ]
    count: int
    bits_from: int

    def __init__(self, offsets: Int32s, data: Bytes, valid: Bytes | None, bits_from: int) -> None:
        self.offsets, self.data, self.valid = offsets, data, valid
        super().__init__(
            len(offsets) - 1, offsets.ctypes.data, data.ctypes.data,
            None if valid is None else valid.ctypes.data, bits_from,
        )  # fmt: skip

    def is_null(self, row: int) -> bool:
        if row >= self.count:
            return True
        bit = row + self.bits_from
        return self.valid is not None and not self.valid[bit >> 3] >> (bit & 7) & 1

    def get(self, row: int) -> bytes | None:
        return None if self.is_null(row) else self.data[self.offsets[row] : self.offsets[row + 1]].tobytes()


NO_BINARY = Binary(np.zeros(1, np.int32), np.empty(0, np.uint8), None, 0)


class Rows(ctypes.Structure):
    """The columns that become records. A column of no rows stands for one that is not there: all null."""

    _fields_: ClassVar = [
        ("key", Binary),
        ("value", Binary),
        ("headers", Binary),
        ("header_key", Binary),
        ("header_value", Binary),
        ("timestamps_at", ctypes.c_void_p),
        ("offsets_at", ctypes.c_void_p),
    ]
    key: Binary
    value: Binary
    headers: Binary
    """Its offsets say which entries of the next two belong to a row."""
    header_key: Binary
    header_value: Binary

    def __init__(
        self,
        key: Binary,
        value: Binary,
        headers: Binary,
        header_key: Binary,
        header_value: Binary,
        timestamps: Int64s | None = None,
        offsets: Int64s | None = None,
    ) -> None:
        """`timestamps` are those of the rows in milliseconds; without them all have the payload's. `offsets` are those
        that the records get; without them records are counted."""
        addresses = [None if column is None else column.ctypes.data for column in (timestamps, offsets)]
        super().__init__(key, value, headers, header_key, header_value, *addresses)
        self.columns = (key, value, headers, header_key, header_value)  # the structure alone keeps no array alive
        self.timestamps = timestamps
        self.offsets = offsets


class Payload(ctypes.Structure):
    """The records of one batch, being written; `need` is what the record needs at which writing stopped."""

    _fields_: ClassVar = [
        ("buffer_at", ctypes.c_void_p),
        ("capacity", ctypes.c_int64),
        ("used", ctypes.c_int64),
        ("records", ctypes.c_int64),
        ("timestamp_delta", ctypes.c_int64),
        ("need", ctypes.c_int64),
        ("base_timestamp", ctypes.c_int64),
        ("base_offset", ctypes.c_int64),
    ]
    capacity: int
    used: int
    records: int
    timestamp_delta: int
    """Of rows that have no timestamps of their own."""
    need: int
    base_timestamp: int
    """What the timestamps of rows are counted from."""
    base_offset: int
    """What the offsets of rows are counted from."""

    def __init__(self, capacity: int) -> None:
        self.buffer = memory(capacity)
        super().__init__(self.buffer.ctypes.data, capacity)


class Kernel(Protocol):
    name: str

    def parse(self, cursor: Cursor, columns: Columns) -> Status:
        """Put the wanted records from the cursor on into the columns, until all are read or one does not fit."""
        ...

    def encode(self, rows: Rows, selected: Int64s, payload: Payload) -> int:
        """Append the selected rows as records, in this order; returns how many fitted."""
        ...

    def murmur2(self, column: Binary) -> Int32s:
        """The hash of each value as Kafka's default partitioner takes it, never negative; -1 for null."""
        ...

    def read_json(self, values: Binary, into: "JsonColumns") -> int:
        """Read the values that are plain JSON objects; how many are. The others are left to Spark."""
        ...

    def json_texts(self, values: Binary, columns: "JsonColumns", number: int, offsets: Int32s, data: Bytes) -> None:
        """Copy the texts of one column of what was read, each to where the offsets say."""
        ...
