"""The .index and .timeindex files of a segment: read, brought up to what memory holds, and cut with their log."""

import os
import struct
from typing import NamedTuple

from ottla.broker.storage.disk import Disk
from ottla.broker.storage.index import (
    OFFSET_ENTRY_BYTES,
    TIME_ENTRY_BYTES,
    SegmentIndexes,
    decode_indexes,
    encode_offsets,
    encode_times,
)
from ottla.broker.storage.segment_files import SUFFIX_INDEX, SUFFIX_TIME_INDEX

_OFFSET_ENTRY = struct.Struct(">II")
_TIME_ENTRY = struct.Struct(">qI")


class OffsetEntry(NamedTuple):
    relative_offset: int
    position: int


class TimeEntry(NamedTuple):
    timestamp: int
    relative_offset: int


def create_index_files(disk: Disk, prefix: str) -> None:
    """Both files, empty."""
    for suffix in (SUFFIX_INDEX, SUFFIX_TIME_INDEX):
        os.close(disk.open(prefix + suffix, os.O_WRONLY | os.O_CREAT | os.O_TRUNC))


def read_index_files(prefix: str, log_size: int) -> SegmentIndexes | None:
    """What the files say of a log of this size; None if they cannot be right. FileNotFoundError if one is missing."""
    return decode_indexes(_content(prefix + SUFFIX_INDEX), _content(prefix + SUFFIX_TIME_INDEX), log_size)


def write_index_files(disk: Disk, prefix: str, indexes: SegmentIndexes) -> bool:
    """Add the entries that the files do not have yet; says whether anything was written.

    Safe beside appends in another thread: entries are only added, and the same entry always has the same bytes.
    """
    offsets, times = len(indexes.offsets), len(indexes.timestamps)
    start, time_start = indexes.written_offsets, indexes.written_times
    data = encode_offsets(indexes.offsets[start:offsets], indexes.positions[start:offsets])
    time_data = encode_times(indexes.timestamps[time_start:times], indexes.time_offsets[time_start:times])
    _write_at(disk, prefix + SUFFIX_INDEX, data, start * OFFSET_ENTRY_BYTES)
    _write_at(disk, prefix + SUFFIX_TIME_INDEX, time_data, time_start * TIME_ENTRY_BYTES)
    indexes.written_offsets, indexes.written_times = offsets, times
    return bool(data or time_data)


def cut_index_files(disk: Disk, prefix: str, indexes: SegmentIndexes) -> None:
    """Take away the entries behind those that are counted as written."""
    for suffix, size in (
        (SUFFIX_INDEX, indexes.written_offsets * OFFSET_ENTRY_BYTES),
        (SUFFIX_TIME_INDEX, indexes.written_times * TIME_ENTRY_BYTES),
    ):
        descriptor = disk.open(prefix + suffix, os.O_WRONLY | os.O_CREAT)
        try:
            disk.ftruncate(descriptor, size)
        finally:
            os.close(descriptor)


def last_offset_entry(disk: Disk, prefix: str) -> OffsetEntry | None:
    entry = _last_entry(disk, prefix + SUFFIX_INDEX, OFFSET_ENTRY_BYTES)
    return OffsetEntry(*_OFFSET_ENTRY.unpack(entry)) if entry else None


def last_time_entry(disk: Disk, prefix: str) -> TimeEntry | None:
    entry = _last_entry(disk, prefix + SUFFIX_TIME_INDEX, TIME_ENTRY_BYTES)
    return TimeEntry(*_TIME_ENTRY.unpack(entry)) if entry else None


def _write_at(disk: Disk, path: str, data: bytes, position: int) -> None:
    if not data and position:
        return
    descriptor = disk.open(path, os.O_WRONLY | os.O_CREAT)
    try:
        disk.write_whole(descriptor, data, position)
    finally:
        os.close(descriptor)


def _last_entry(disk: Disk, path: str, entry_bytes: int) -> bytes:
    try:
        descriptor = disk.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return b""
    try:
        size = os.fstat(descriptor).st_size
        return os.pread(descriptor, entry_bytes, size - entry_bytes) if size >= entry_bytes else b""
    finally:
        os.close(descriptor)


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
