"""The kernel in Python: what the compiled one does, for machines where none was built, and to check it against."""

import numpy as np

from ottla.protocol import varint
from ottla.protocol.compression import Buffer
from ottla.protocol.partitioner import murmur2
from ottla.spark.kernel.interface import (
    INT32_MAX,
    Binary,
    Bytes,
    Columns,
    Cursor,
    Int32s,
    Int64s,
    Payload,
    Rows,
    Status,
)
from ottla.spark.kernel.json_columns import JsonColumns

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1
_MICROSECONDS = 1000

_Headers = list[tuple[bytes, bytes | None]]


class _Malformed(Exception):
    """The records do not parse, for the reason given."""

    def __init__(self, status: Status) -> None:
        self.status = status


class TwinKernel:
    name = "python"

    def parse(self, cursor: Cursor, columns: Columns) -> Status:
        view = memoryview(cursor.view)
        try:
            while cursor.records_left:
                position = _parse_record(view, cursor, columns)
                if position is None:
                    return Status.FULL
                cursor.position = position
                cursor.records_left -= 1
        except _Malformed as wrong:
            return wrong.status
        return Status.DONE

    def encode(self, rows: Rows, selected: Int64s, payload: Payload) -> int:
        for done, row in enumerate(selected.tolist()):
            delta = payload.timestamp_delta
            if rows.timestamps is not None:
                delta = int(rows.timestamps[row]) - payload.base_timestamp
            place = payload.records if rows.offsets is None else int(rows.offsets[row]) - payload.base_offset
            record = _encode_record(rows.columns, row, place, delta)
            end = payload.used + len(record)
            if end > payload.capacity:
                payload.need = len(record)
                return done
            payload.buffer[payload.used : end] = np.frombuffer(record, np.uint8)
            payload.used = end
            payload.records += 1
        return len(selected)

    def murmur2(self, column: Binary) -> Int32s:
        keys = map(column.get, range(column.count))
        return np.array([-1 if key is None else murmur2(key) & INT32_MAX for key in keys], np.int32)

    def read_json(self, values: Binary, into: JsonColumns) -> int:
        return 0  # Spark reads what a kernel leaves, and more quickly than Python

    def json_texts(self, values: Binary, columns: JsonColumns, number: int, offsets: Int32s, data: Bytes) -> None:
        """There are none."""


def _parse_record(view: memoryview, cursor: Cursor, columns: Columns) -> int | None:
    """Add the record at the cursor if it is wanted; returns where the next one starts, or None if there is no room."""
    length, position = _read_int(view, cursor.position, cursor.length)
    end = position + length
    if length < 0 or end > cursor.length:
        raise _Malformed(Status.CUT_SHORT)
    if not length:
        raise _Malformed(Status.CUT_SHORT)
    timestamp_delta, position = _read_long(view, position + 1, end)  # one byte of unused attributes first
    offset_delta, position = _read_int(view, position, end)
    key, position = _read_bytes(view, position, end)
    value, position = _read_bytes(view, position, end)
    headers, position = _read_headers(view, position, end)
    if position != end:
        raise _Malformed(Status.RECORD_LENGTH)
    offset = cursor.base_offset + offset_delta
    if not _INT64_MIN <= offset <= _INT64_MAX:
        raise _Malformed(Status.OFFSET)
    if not cursor.start <= offset < cursor.end:
        return end
    if not _has_room(columns, key, value, headers):
        return None
    timestamp = cursor.log_append_time if cursor.uses_log_append_time else cursor.base_timestamp + timestamp_delta
    _append(columns, offset, _bounded(_bounded(timestamp) * _MICROSECONDS), key, value, headers)
    return end


def _bounded(number: int) -> int:
    """Times that Spark cannot hold become the nearest that it can."""
    return min(max(number, _INT64_MIN), _INT64_MAX)


def _read_long(view: Buffer, position: int, end: int) -> tuple[int, int]:
    raw = shift = 0
    while position < end:
        byte = view[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            if raw >= 2**64:
                break
            return (raw >> 1) ^ -(raw & 1), position
        shift += 7
        if shift == 70:
            break
    else:
        raise _Malformed(Status.CUT_SHORT)
    raise _Malformed(Status.VARINT)


def _read_int(view: Buffer, position: int, end: int) -> tuple[int, int]:
    number, position = _read_long(view, position, end)
    if not -INT32_MAX - 1 <= number <= INT32_MAX:
        raise _Malformed(Status.VARINT)
    return number, position


def _read_bytes(view: Buffer, position: int, end: int) -> tuple[bytes | None, int]:
    length, position = _read_int(view, position, end)
    if length < 0:
        return None, position
    if position + length > end:
        raise _Malformed(Status.CUT_SHORT)
    return bytes(view[position : position + length]), position + length


def _read_headers(view: Buffer, position: int, end: int) -> tuple[_Headers, int]:
    count, position = _read_int(view, position, end)
    if count < 0 or count > end - position:
        raise _Malformed(Status.HEADER_COUNT)
    headers: _Headers = []
    for _ in range(count):
        name, position = _read_bytes(view, position, end)
        if name is None or not _is_utf8(name):
            raise _Malformed(Status.HEADER_NAME)
        content, position = _read_bytes(view, position, end)
        headers.append((name, content))
    return headers, position


def _is_utf8(name: bytes) -> bool:
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True


def _has_room(columns: Columns, key: bytes | None, value: bytes | None, headers: _Headers) -> bool:
    if not columns.with_headers:
        headers = []
    columns.need_key_bytes = len(key or b"")
    columns.need_value_bytes = len(value or b"")
    columns.need_headers = len(headers)
    columns.need_header_key_bytes = sum(len(name) for name, _ in headers)
    columns.need_header_value_bytes = sum(len(content or b"") for _, content in headers)
    return (
        columns.rows < columns.rows_max
        and columns.key_bytes + columns.need_key_bytes <= columns.key_bytes_max
        and columns.value_bytes + columns.need_value_bytes <= columns.value_bytes_max
        and columns.headers + columns.need_headers <= columns.headers_max
        and columns.header_key_bytes + columns.need_header_key_bytes <= columns.header_key_bytes_max
        and columns.header_value_bytes + columns.need_header_value_bytes <= columns.header_value_bytes_max
    )


def _append(
    columns: Columns, offset: int, timestamp: int, key: bytes | None, value: bytes | None, headers: _Headers
) -> None:
    row = columns.rows
    columns.offsets[row] = offset
    columns.timestamps[row] = timestamp
    columns.key_bytes = _put(columns.key_data, columns.key_bytes, columns.key_valid, row, key)
    columns.key_offsets[row + 1] = columns.key_bytes
    columns.key_nulls += key is None
    columns.value_bytes = _put(columns.value_data, columns.value_bytes, columns.value_valid, row, value)
    columns.value_offsets[row + 1] = columns.value_bytes
    columns.value_nulls += value is None
    columns.rows = row + 1
    if columns.with_headers:
        _append_headers(columns, row, headers)


def _append_headers(columns: Columns, row: int, headers: _Headers) -> None:
    for name, content in headers:
        entry = columns.headers
        columns.header_key_bytes = _put(columns.header_key_data, columns.header_key_bytes, None, entry, name)
        columns.header_key_offsets[entry + 1] = columns.header_key_bytes
        columns.header_value_bytes = _put(
            columns.header_value_data, columns.header_value_bytes, columns.header_value_valid, entry, content
        )
        columns.header_value_offsets[entry + 1] = columns.header_value_bytes
        columns.header_value_nulls += content is None
        columns.headers = entry + 1
    columns.header_lists[row + 1] = columns.headers
    if headers:
        columns.header_valid[row >> 3] |= 1 << (row & 7)
    else:
        columns.header_nulls += 1


def _put(data: Bytes, used: int, valid: Bytes | None, row: int, content: bytes | None) -> int:
    if content is None:
        return used
    if valid is not None:
        valid[row >> 3] |= 1 << (row & 7)
    end = used + len(content)
    data[used:end] = np.frombuffer(content, np.uint8)
    return end


def _encode_record(columns: tuple[Binary, ...], row: int, offset_delta: int, timestamp_delta: int) -> bytes:
    key, value, headers, header_key, header_value = columns
    parts = [b"\x00", varint.signed(timestamp_delta), varint.signed(offset_delta)]
    _add_bytes(parts, key.get(row))
    _add_bytes(parts, value.get(row))
    entries = range(0) if headers.is_null(row) else range(int(headers.offsets[row]), int(headers.offsets[row + 1]))
    parts.append(varint.signed(len(entries)))
    for entry in entries:
        _add_bytes(parts, header_key.get(entry))
        _add_bytes(parts, header_value.get(entry))
    body = b"".join(parts)
    return varint.signed(len(body)) + body


def _add_bytes(parts: list[bytes], content: bytes | None) -> None:
    parts += (_NULL,) if content is None else (varint.signed(len(content)), content)


_NULL = varint.signed(-1)
