"""Reading many batches at once into arrays: headers of a stretch of log, and the records inside them.

Only what the cleaner asks about a record is read: where it lies, its offset, its time, its key, whether it has a value.
The only thing that must be done one after the other is to step from record to record by their lengths; that is done
for all batches of the stretch side by side, so that numpy has something to chew on.
"""

import os
import struct
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from crc32c import crc32c

from ottla.protocol import varint
from ottla.protocol.compression import Codec, decompress
from ottla.protocol.errors import CorruptBatch, MalformedMessage
from ottla.protocol.records import (
    BATCH_OVERHEAD,
    CODEC_MASK,
    CRC_START,
    LENGTH_PREFIX_BYTES,
    MAGIC,
)
from ottla.protocol.varint import VARINT_BYTES_MAX

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

HEADER = np.dtype(
    [
        ("base_offset", ">i8"), ("batch_length", ">i4"), ("leader_epoch", ">i4"), ("magic", "i1"), ("crc", ">u4"),
        ("attributes", ">i2"), ("last_offset_delta", ">i4"), ("base_timestamp", ">i8"), ("max_timestamp", ">i8"),
        ("producer_id", ">i8"), ("producer_epoch", ">i2"), ("base_sequence", ">i4"), ("record_count", ">i4"),
    ]
)  # fmt: skip

# Fields are read with overlapping loads, which may look a few bytes past the last record.
PADDING_BYTES = 16
# From this many batches on, stepping through them side by side beats stepping through them one by one.
SIDE_BY_SIDE_MIN = 48
# Compressed records may be many in few bytes; arrays are made for this many at a time, or for one batch.
RECORDS_MAX = 50_000
_LENGTH = struct.Struct(">i")
_LENGTH_POSITION = 8


class Stretch(NamedTuple):
    """Whole batches that lie behind each other in a segment."""

    data: bytearray
    """Their bytes, and some padding."""
    starts: Longs
    headers: "npt.NDArray[np.void]"
    length: int

    def batch(self, number: int) -> memoryview:
        start = int(self.starts[number])
        return memoryview(self.data)[start : start + self.size(number)]

    def size(self, number: int) -> int:
        return int(self.headers["batch_length"][number]) + LENGTH_PREFIX_BYTES


class Records(NamedTuple):
    """Every record of some batches, one array per field. Positions are in `data`."""

    data: Bytes
    batch: Longs
    """Number of the batch within its stretch."""
    start: Longs
    end: Longs
    offset: Longs
    timestamp_delta: Longs
    key_start: Longs
    key_length: Longs
    value_length: Longs


def read_stretch(descriptor: int, position: int, end: int, wanted_bytes: int) -> Stretch:
    """As many whole batches as fit, at least one; raises CorruptBatch where there is none."""
    data, length = _read(descriptor, position, min(max(wanted_bytes, BATCH_OVERHEAD), end - position))
    starts, needed = _batch_starts(data, length)
    if not starts:
        if needed > end - position:
            raise CorruptBatch(f"the batch at position {position} is cut short")
        data, length = _read(descriptor, position, needed)
        starts, _ = _batch_starts(data, length)
        if not starts:
            raise CorruptBatch(f"the batch at position {position} is cut short")
    array = np.frombuffer(data, np.uint8)
    places = np.array(starts, np.int64)
    headers = array[places[:, None] + np.arange(BATCH_OVERHEAD)].view(HEADER)[:, 0]
    if (headers["magic"] != MAGIC).any():
        raise CorruptBatch(f"a batch after position {position} is not of format {MAGIC}")
    fitting = int(np.searchsorted(np.cumsum(headers["record_count"], dtype=np.int64), RECORDS_MAX, side="right"))
    places, headers = places[: max(fitting, 1)], headers[: max(fitting, 1)]
    return Stretch(data, places, headers, int(places[-1]) + int(headers["batch_length"][-1]) + LENGTH_PREFIX_BYTES)


def _read(descriptor: int, position: int, length: int) -> tuple[bytearray, int]:
    data = bytearray(length + PADDING_BYTES)
    view = memoryview(data)
    done = 0
    while done < length:
        count = os.preadv(descriptor, [view[done:length]], position + done)
        if count == 0:
            break
        done += count
    return data, done


def _batch_starts(data: bytearray, length: int) -> tuple[list[int], int]:
    """Where whole batches begin, and how many bytes the first one needs that is not whole."""
    starts: list[int] = []
    at = 0
    unpack, append = _LENGTH.unpack_from, starts.append
    while at + BATCH_OVERHEAD <= length:
        size: int = unpack(data, at + _LENGTH_POSITION)[0] + LENGTH_PREFIX_BYTES
        if size < BATCH_OVERHEAD:
            raise CorruptBatch(f"a record batch cannot be {size} bytes long")
        if at + size > length:
            return starts, size
        append(at)
        at += size
    return starts, BATCH_OVERHEAD


def check_crcs(stretch: Stretch) -> None:
    """What is rewritten gets a new CRC, so damage must be found before, or it would be sealed in."""
    view = memoryview(stretch.data)
    ends = stretch.starts + stretch.headers["batch_length"] + LENGTH_PREFIX_BYTES
    crcs = stretch.headers["crc"].tolist()
    for start, end, crc in zip(stretch.starts.tolist(), ends.tolist(), crcs, strict=True):
        if crc32c(view[start + CRC_START : end]) != crc:
            raise CorruptBatch(f"the batch at offset {_LONG.unpack_from(view, start)[0]} fails its CRC")


_LONG = struct.Struct(">q")


def read_records(stretch: Stretch, chosen: Longs) -> Records:
    """The records of the chosen batches, by number. Raises CorruptBatch."""
    headers = stretch.headers[chosen]
    data, starts, ends = _payloads(stretch, chosen, headers)
    counts = headers["record_count"].astype(np.int64)
    if (counts < 0).any() or (counts > ends - starts).any():
        raise CorruptBatch("a batch claims more records than it has bytes")
    first = np.zeros(len(chosen), np.int64)
    np.cumsum(counts[:-1], out=first[1:])
    record_starts = _step_through(data, starts, ends, counts, first)
    record_ends = np.empty_like(record_starts)
    record_ends[:-1] = record_starts[1:]
    has_records = counts > 0
    record_ends[(first + counts - 1)[has_records]] = ends[has_records]
    _, bodies = _varints(data, record_starts)
    timestamp_delta, at = _varints(data, bodies + 1)  # one byte of unused attributes first
    offset_delta, at = _varints(data, at)
    key_length, key_start = _varints(data, at)
    key_end = key_start + np.maximum(key_length, 0)
    if (key_length < -1).any() or (key_end >= record_ends).any():
        raise CorruptBatch("a record's key is longer than the record")
    value_length, at = _varints(data, key_end)
    if (value_length < -1).any() or (at + np.maximum(value_length, 0) > record_ends).any():
        raise CorruptBatch("a record's value is longer than the record")
    return Records(
        data, np.repeat(chosen, counts), record_starts, record_ends,
        np.repeat(headers["base_offset"].astype(np.int64), counts) + offset_delta,
        timestamp_delta, key_start, key_length, value_length,
    )  # fmt: skip


def _payloads(stretch: Stretch, chosen: Longs, headers: "npt.NDArray[np.void]") -> tuple[Bytes, Longs, Longs]:
    """Where the (decompressed) records of each batch begin and end, and in which bytes."""
    starts = stretch.starts[chosen] + BATCH_OVERHEAD
    ends = stretch.starts[chosen] + headers["batch_length"] + LENGTH_PREFIX_BYTES
    codecs = headers["attributes"] & CODEC_MASK
    if not codecs.any():
        return np.frombuffer(stretch.data, np.uint8), starts, ends
    view = memoryview(stretch.data)
    parts = []
    for start, end, number in zip(starts.tolist(), ends.tolist(), codecs.tolist(), strict=True):
        try:
            codec = Codec(number)
        except ValueError:
            raise CorruptBatch(f"compression codec {number} is unknown") from None
        parts.append(decompress(codec, view[start:end]) if codec else view[start:end])
    sizes = np.array([len(part) for part in parts], np.int64)
    ends = np.cumsum(sizes)
    parts.append(bytes(PADDING_BYTES))
    return np.frombuffer(b"".join(parts), np.uint8), ends - sizes, ends


def _step_through(data: Bytes, starts: Longs, ends: Longs, counts: Longs, first: Longs) -> Longs:
    """Where every record begins, batch after batch. Raises CorruptBatch unless each batch's records just fill it."""
    record_starts = np.empty(int(counts.sum()), np.int64)
    pairs = np.ndarray((len(data) - 1,), "<u2", data.data, strides=(1,))  # every two bytes that lie side by side
    order = np.argsort(-counts, kind="stable")
    at, slot, limit, left = starts[order], first[order], ends[order], counts[order]
    alive = int(np.count_nonzero(left))
    done = 0
    while alive >= SIDE_BY_SIDE_MIN:
        record_starts[slot] = at
        step = _STEPS[pairs[at]]
        if not step.all():
            step = _long_steps(data, at)
        at, slot = at + step, slot + 1
        done += 1
        still_alive = int(np.searchsorted(-left, -done))  # `left` falls, so the batches with more records come first
        # A batch with records left has at least a byte left, and one without has none.
        if (at[:still_alive] >= limit[:still_alive]).any() or (at[still_alive:] != limit[still_alive:]).any():
            raise CorruptBatch("the records of a batch do not fill it")
        alive = still_alive
        at, slot, limit = at[:alive], slot[:alive], limit[:alive]
    for number in range(alive):
        rows = _step_through_one(data.data, int(at[number]), int(limit[number]), int(left[number]) - done)
        record_starts[int(slot[number]) : int(slot[number]) + len(rows)] = rows
    if (starts != ends)[counts == 0].any():
        raise CorruptBatch("a batch without records is not empty")
    return record_starts


def _step_through_one(view: memoryview, at: int, limit: int, count: int) -> list[int]:
    starts: list[int] = []
    append = starts.append
    for _ in range(count):
        if at >= limit:
            raise CorruptBatch("a batch ends before its last record")
        append(at)
        byte, following = view[at], view[at + 1]
        if byte < 0x80:
            length = byte
            at += 1
        elif following < 0x80:
            length = byte & 0x7F | following << 7
            at += 2
        else:
            try:
                length, at = varint.read_unsigned(view, at)
            except MalformedMessage as error:
                raise CorruptBatch(str(error)) from None
        if length & 1 or not length:
            raise CorruptBatch("a record's length is not a positive number")
        at += length >> 1
    if at != limit:
        raise CorruptBatch("the records of a batch do not fill it")
    return starts


def _make_steps() -> Longs:
    """From the first two bytes of a record to its whole size; 0 where they do not tell it."""
    pair = np.arange(1 << 16)
    low, high = pair & 0xFF, pair >> 8
    raw = np.where(low < 0x80, low, (low & 0x7F) | (high << 7))
    size = np.where(low < 0x80, 1, 2) + (raw >> 1)
    told = ((low < 0x80) | (high < 0x80)) & (raw & 1 == 0) & (raw > 0)
    return np.where(told, size, 0)


_STEPS = _make_steps()


def _long_steps(data: Bytes, at: Longs) -> Longs:
    length, body = _varints(data, at)
    if (length <= 0).any() or (length > len(data)).any():
        raise CorruptBatch("a record's length is not a positive number")
    return body - at + length


def _varints(data: Bytes, at: Longs) -> tuple[Longs, Longs]:
    """Signed variable-length numbers at these positions, and the positions behind them."""
    limit = len(data)
    if len(at) and int(at.max()) >= limit:
        raise CorruptBatch("a record is cut short")
    byte = data[at]
    value = (byte & 0x7F).astype(np.uint64)
    after = at + 1
    rest = np.flatnonzero(byte > 0x7F)
    shift = 7
    while len(rest):
        if shift >= 7 * VARINT_BYTES_MAX:
            raise CorruptBatch("a variable-length integer is longer than ten bytes")
        position = after[rest]
        if int(position.max()) >= limit:
            raise CorruptBatch("a record is cut short")
        byte = data[position]
        value[rest] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
        after[rest] = position + 1
        rest = rest[byte > 0x7F]
        shift += 7
    signed = (value >> np.uint64(1)).view(np.int64) ^ -(value & np.uint64(1)).view(np.int64)
    return signed, after
