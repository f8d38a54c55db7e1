"""What the kernels' tests share: both kernels, records of every shape, and how to run them to the end."""

from hypothesis import strategies as st

from ottla.protocol.compression import Buffer
from ottla.protocol.records import NewRecord
from ottla.spark.kernel.interface import Bytes, ChunkCapacity, Columns, Int32s, Kernel, Status, cursor
from ottla.spark.kernel.native import LIBRARY, NativeKernel
from ottla.spark.kernel.twin import TwinKernel

KERNELS: list[Kernel] = [TwinKernel(), *([NativeKernel()] if LIBRARY.exists() else [])]

INT64_MAX = 2**63 - 1
contents = st.none() | st.binary(max_size=40) | st.integers(120, 300).map(lambda size: b"x" * size)
headers = st.lists(st.tuples(st.text(max_size=8), contents), max_size=4)
timestamps = st.integers(-1, 2**42) | st.integers(-(2**63), INT64_MAX)
new_records = st.builds(NewRecord, key=contents, value=contents, timestamp=st.integers(0, 2**42), headers=headers)

Parsed = tuple[Status, list[tuple[object, ...]], int]


def parse_all(
    kernel: Kernel, payload: Buffer, *, records: int, room: ChunkCapacity, with_headers: bool = True,
    base_offset: int = 0, base_timestamp: int = 0,
    log_append_time: int | None = None, start: int = 0, end: int = INT64_MAX,
) -> Parsed:  # fmt: skip
    """Parse to the end as a decoder does; returns the outcome, all rows, and how many chunks they came in."""
    at = cursor(
        payload, records=records, base_offset=base_offset, base_timestamp=base_timestamp,
        log_append_time=log_append_time, start=start, end=end,
    )  # fmt: skip
    rows: list[tuple[object, ...]] = []
    chunks = 0
    wanted = room
    while True:
        columns = Columns(wanted, with_headers=with_headers)
        status = kernel.parse(at, columns)
        rows += rows_of(columns)
        chunks += 1
        if status != Status.FULL:
            return status, rows, chunks
        assert columns.rows or wanted.at_least(columns.needed) != wanted, "FULL, and there is room"
        wanted = room.at_least(columns.needed)


def rows_of(columns: Columns) -> list[tuple[object, ...]]:
    """Offset, timestamp, key, value and headers of each row, read straight from the buffers."""
    found: list[tuple[object, ...]] = []
    for row in range(columns.rows):
        entries: list[tuple[bytes, bytes | None]] | None = None
        if columns.with_headers and columns.header_valid[row >> 3] >> (row & 7) & 1:
            entries = [_header(columns, at) for at in range(*columns.header_lists[row : row + 2].tolist())]
        key = _value(columns.key_offsets, columns.key_data, columns.key_valid, row)
        value = _value(columns.value_offsets, columns.value_data, columns.value_valid, row)
        found.append((int(columns.offsets[row]), int(columns.timestamps[row]), key, value, entries))
    nulls = (sum(row[2] is None for row in found), sum(row[3] is None for row in found))
    assert (columns.key_nulls, columns.value_nulls) == nulls
    if columns.with_headers:
        assert columns.header_nulls == sum(row[4] is None for row in found)
    return found


def _header(columns: Columns, entry: int) -> tuple[bytes, bytes | None]:
    start, end = columns.header_key_offsets[entry : entry + 2]
    value = _value(columns.header_value_offsets, columns.header_value_data, columns.header_value_valid, entry)
    return columns.header_key_data[start:end].tobytes(), value


def _value(offsets: Int32s, data: Bytes, valid: Bytes, row: int) -> bytes | None:
    start, end = offsets[row : row + 2]
    if not valid[row >> 3] >> (row & 7) & 1:
        assert start == end
        return None
    return data[start:end].tobytes()
