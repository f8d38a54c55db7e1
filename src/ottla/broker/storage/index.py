"""Sparse indexes of one segment, held in memory as arrays and stored in Kafka's .index and .timeindex formats.

An offset entry says "the batch that ends at this offset begins at this position"; a time entry says "the largest
timestamp up to here is this one, in the batch that ends at this offset". Offsets are relative to the segment's base.
Both are sparse, so a file that holds fewer entries than memory is still right: entries reach the disk when the log is
flushed, not at every append, and whatever a crash loses is rebuilt from the log.
"""

import contextlib
import operator
import sys
import threading
from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Hashable

from ottla.model.sentinels import NO_TIMESTAMP
from ottla.protocol.records import BatchHeader

OFFSET_ENTRY_BYTES = 8
TIME_ENTRY_BYTES = 12
RELATIVE_OFFSET_MAX = 2**31 - 1

_LITTLE = sys.byteorder == "little"
# Where the low and high halves of an int64 lie when it is seen as two native 32-bit words.
_LOW, _HIGH = (0, 1) if _LITTLE else (1, 0)


class SegmentIndexes:
    """Both indexes of one segment. `written_*` counts the entries that are already in the files."""

    __slots__ = ("offsets", "positions", "time_offsets", "timestamps", "written_offsets", "written_times")

    def __init__(self) -> None:
        self.offsets = array("I")
        self.positions = array("I")
        self.timestamps = array("q")
        self.time_offsets = array("I")
        self.written_offsets = 0
        self.written_times = 0

    def add(self, relative_offset: int, position: int, timestamp: int, timestamp_offset: int) -> None:
        """Add an offset entry, and a time entry if the largest timestamp has grown since the last one."""
        # The offset goes last: a flush in another thread counts `offsets` and must find the rest in place.
        self.positions.append(position)
        self.offsets.append(relative_offset)
        self.add_time(timestamp, timestamp_offset)

    def add_time(self, timestamp: int, timestamp_offset: int) -> None:
        if timestamp > (self.timestamps[-1] if self.timestamps else NO_TIMESTAMP):
            self.time_offsets.append(timestamp_offset)
            self.timestamps.append(timestamp)

    def floor(self, relative_offset: int) -> int:
        """Number of the last offset entry at or below, or -1."""
        return bisect_right(self.offsets, relative_offset) - 1

    def time_floor(self, timestamp: int) -> int:
        """Number of the last time entry at or below, or -1."""
        return bisect_right(self.timestamps, timestamp) - 1

    def truncate(self, relative_offset: int) -> None:
        """Drop the entries at and above an offset."""
        keep = bisect_left(self.offsets, relative_offset)
        del self.offsets[keep:], self.positions[keep:]
        keep_times = bisect_left(self.time_offsets, relative_offset)
        del self.timestamps[keep_times:], self.time_offsets[keep_times:]
        self.written_offsets = min(self.written_offsets, keep)
        self.written_times = min(self.written_times, keep_times)

    @property
    def memory_bytes(self) -> int:
        return OFFSET_ENTRY_BYTES * len(self.offsets) + TIME_ENTRY_BYTES * len(self.timestamps)


class IndexBuilder:
    """Makes the indexes of a whole segment anew, batch by batch, apart from the segment itself."""

    __slots__ = (
        "_base_offset",
        "_interval_bytes",
        "_since_entry_bytes",
        "indexes",
        "largest_offset",
        "largest_timestamp",
    )

    def __init__(self, base_offset: int, interval_bytes: int) -> None:
        self.indexes = SegmentIndexes()
        self.largest_timestamp = NO_TIMESTAMP
        self.largest_offset = base_offset
        self._base_offset = base_offset
        self._interval_bytes = interval_bytes
        self._since_entry_bytes = 0

    def note(self, position: int, header: BatchHeader) -> None:
        """The next batch of the segment; entries fall where appending it would have put them."""
        if header.max_timestamp > self.largest_timestamp:
            self.largest_timestamp, self.largest_offset = header.max_timestamp, header.last_offset
        if self._since_entry_bytes > self._interval_bytes:
            largest_offset = self.largest_offset - self._base_offset
            self.indexes.add(header.last_offset - self._base_offset, position, self.largest_timestamp, largest_offset)
            self._since_entry_bytes = 0
        self._since_entry_bytes += header.size

    def finish(self) -> SegmentIndexes:
        self.indexes.add_time(self.largest_timestamp, self.largest_offset - self._base_offset)
        return self.indexes


def encode_offsets(offsets: "array[int]", positions: "array[int]") -> bytes:
    words = array("I", bytes(OFFSET_ENTRY_BYTES * len(offsets)))
    words[0::2] = offsets
    words[1::2] = positions
    if _LITTLE:
        words.byteswap()
    return words.tobytes()


def encode_times(timestamps: "array[int]", offsets: "array[int]") -> bytes:
    halves = array("I")
    halves.frombytes(timestamps.tobytes())
    words = array("I", bytes(TIME_ENTRY_BYTES * len(timestamps)))
    words[0::3] = halves[_HIGH::2]
    words[1::3] = halves[_LOW::2]
    words[2::3] = offsets
    if _LITTLE:
        words.byteswap()
    return words.tobytes()


def decode_indexes(offset_data: bytes, time_data: bytes, log_size: int) -> SegmentIndexes | None:
    """Read both files' content; None when they cannot belong to a sound segment of this size."""
    if len(offset_data) % OFFSET_ENTRY_BYTES or len(time_data) % TIME_ENTRY_BYTES:
        return None
    indexes = SegmentIndexes()
    words = _words(offset_data)
    indexes.offsets, indexes.positions = words[0::2], words[1::2]
    words = _words(time_data)
    halves = array("I", bytes(8 * (len(words) // 3)))
    halves[_HIGH::2] = words[0::3]
    halves[_LOW::2] = words[1::3]
    indexes.timestamps.frombytes(halves.tobytes())
    indexes.time_offsets = words[2::3]
    indexes.written_offsets = len(indexes.offsets)
    indexes.written_times = len(indexes.timestamps)
    return indexes if _sound(indexes, log_size) else None


def _words(data: bytes) -> "array[int]":
    words = array("I")
    words.frombytes(data)
    if _LITTLE:
        words.byteswap()
    return words


def _sound(indexes: SegmentIndexes, log_size: int) -> bool:
    if indexes.offsets and (indexes.offsets[-1] > RELATIVE_OFFSET_MAX or indexes.positions[-1] >= log_size):
        return False
    if indexes.timestamps and (indexes.timestamps[0] < 0 or indexes.time_offsets[-1] > RELATIVE_OFFSET_MAX):
        return False
    return (
        _rising(indexes.offsets)
        and _rising(indexes.positions)
        and _rising(indexes.timestamps)
        and _rising(indexes.time_offsets, operator.le)
    )


def _rising(values: "array[int]", ordered: Callable[[int, int], bool] = operator.lt) -> bool:
    return all(map(ordered, values, values[1:]))


class IndexCache:
    """Bounds the memory that indexes of inactive segments take: the least recently used are let go. Any thread."""

    def __init__(self, limit_bytes: int = 64 * 1024 * 1024) -> None:
        self._limit_bytes = limit_bytes
        self._lock = threading.Lock()
        self._held: OrderedDict[Hashable, tuple[int, Callable[[], None]]] = OrderedDict()
        self.total_bytes = 0

    def hold(self, owner: Hashable, size_bytes: int, release: Callable[[], None]) -> None:
        """Remember that `owner` has loaded its indexes; `release` makes it forget them."""
        with self._lock:
            self._forget(owner)
            self._held[owner] = (size_bytes, release)
            self.total_bytes += size_bytes
            while self.total_bytes > self._limit_bytes and len(self._held) > 1:
                _, (freed, let_go) = self._held.popitem(last=False)
                self.total_bytes -= freed
                let_go()

    def touch(self, owner: Hashable) -> None:
        if owner in self._held:
            with self._lock, contextlib.suppress(KeyError):
                self._held.move_to_end(owner)

    def forget(self, owner: Hashable) -> None:
        with self._lock:
            self._forget(owner)

    def _forget(self, owner: Hashable) -> None:
        held = self._held.pop(owner, None)
        if held is not None:
            self.total_bytes -= held[0]
