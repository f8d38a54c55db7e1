"""dump-log's view of .index and .timeindex files, compared with the log they index."""

import itertools
import os
import struct
from collections.abc import Iterator
from typing import NamedTuple

from ottla.cli.common.output import CommandError
from ottla.cli.dump.segment import base_offset_of, mapped
from ottla.protocol.records import BatchHeader, CorruptBatch, decode_batch, read_header

OFFSET_ENTRY = struct.Struct(">ii")
TIME_ENTRY = struct.Struct(">qi")


class OffsetEntry(NamedTuple):
    offset: int
    position: int


class TimeEntry(NamedTuple):
    timestamp: int
    offset: int


class IndexProblems:
    """What does not fit between indexes and logs; printed after everything else, as Kafka does."""

    def __init__(self) -> None:
        self._mismatches: dict[str, list[tuple[int, int]]] = {}
        self._timestamps: dict[str, list[tuple[int, int]]] = {}
        self._out_of_order: dict[str, list[tuple[int, int]]] = {}
        self._not_found: dict[str, list[tuple[int, int]]] = {}

    def __bool__(self) -> bool:
        return any((self._mismatches, self._timestamps, self._out_of_order, self._not_found))

    def mismatch(self, path: str, indexed: int, logged: int) -> None:
        self._mismatches.setdefault(os.path.realpath(path), []).append((indexed, logged))

    def wrong_timestamp(self, path: str, indexed: int, logged: int) -> None:
        self._timestamps.setdefault(os.path.realpath(path), []).append((indexed, logged))

    def out_of_order(self, path: str, timestamp: int, before: int) -> None:
        self._out_of_order.setdefault(os.path.realpath(path), []).append((timestamp, before))

    def not_found(self, path: str, indexed: int, found: int) -> None:
        self._not_found.setdefault(os.path.realpath(path), []).append((indexed, found))

    def lines(self) -> Iterator[str]:
        for path, pairs in self._mismatches.items():
            yield f"Mismatches in :{path}"
            yield from (f"  Index offset: {a}, log offset: {b}" for a, b in pairs)
        for path, pairs in self._timestamps.items():
            yield f"Found timestamp mismatch in :{path}"
            yield from (f"  Index timestamp: {a}, log timestamp: {b}" for a, b in pairs)
        for path, pairs in self._out_of_order.items():
            yield f"Found out of order timestamp in :{path}"
            yield from (f"  Index timestamp: {a}, Previously indexed timestamp: {b}" for a, b in pairs)
        for pairs in self._not_found.values():
            yield "The following indexed offsets are not found in the log."
            yield from (f"Indexed offset: {a}, found log offset: {b}" for a, b in pairs)


def dump_index(
    path: str, problems: IndexProblems, *, sanity_only: bool, verify_only: bool, max_message_size: int
) -> bool:
    base = base_offset_of(path)
    entries = _offset_entries(path, base)
    if not entries and not (sanity_only and os.path.getsize(path)):
        print(f"{path} is empty.")
        return True
    if sanity_only:
        _check_offset_index(path, base, entries)
        print(f"{path} passed sanity check.")
        return True
    with mapped(_sibling(path, ".log")) as log:
        for entry in entries:
            header = _batch_at(log, entry.position)
            if header is None:
                problems.mismatch(path, entry.offset, -1)
            elif header.size > max_message_size:
                raise CommandError(
                    f"the batch at position {entry.position} has {header.size} bytes, more than --max-message-size"
                )
            elif header.last_offset != entry.offset:
                problems.mismatch(path, entry.offset, header.last_offset)
            if not verify_only:
                print(f"offset: {entry.offset} position: {entry.position}")
    return True


def dump_time_index(path: str, problems: IndexProblems, *, sanity_only: bool, verify_only: bool) -> bool:
    base = base_offset_of(path)
    entries = _time_entries(path, base)
    if sanity_only:
        _check_time_index(path, base, entries)
        print(f"{path} passed sanity check.")
        return True
    index_path = _sibling(path, ".index")
    offsets = _offset_entries(index_path, base) if os.path.exists(index_path) else []
    before = -1
    with mapped(_sibling(path, ".log")) as log:
        for entry in entries:
            _check_time_entry(path, log, entry, offsets, before, problems)
            if not verify_only:
                print(f"timestamp: {entry.timestamp} offset: {entry.offset}")
            before = entry.timestamp
    return True


def _check_time_entry(
    path: str, log: memoryview, entry: TimeEntry, offsets: list[OffsetEntry], before: int, problems: IndexProblems
) -> None:
    start = max((found.position for found in offsets if found.offset <= entry.offset), default=0)
    position, header = _batch_holding(log, start, entry.offset)
    if header is None:
        problems.not_found(path, entry.offset, -1)
    elif header.last_offset != entry.offset:
        problems.not_found(path, entry.offset, header.last_offset)
    else:
        try:
            newest = max(record.timestamp for record in decode_batch(log, position))
        except CorruptBatch as error:
            raise CommandError(f"the batch at position {position} of the log cannot be read: {error}") from error
        if newest != entry.timestamp:
            problems.wrong_timestamp(path, entry.timestamp, newest)
        if before >= entry.timestamp:
            problems.out_of_order(path, entry.timestamp, before)


def _batch_at(log: memoryview, position: int) -> BatchHeader | None:
    try:
        return read_header(log, position) if 0 <= position < len(log) else None
    except CorruptBatch:
        return None


def _batch_holding(log: memoryview, position: int, offset: int) -> tuple[int, BatchHeader | None]:
    """The first batch from `position` on that reaches `offset`."""
    while (header := _batch_at(log, position)) is not None and position + header.size <= len(log):
        if header.last_offset >= offset:
            return position, header
        position += header.size
    return position, None


def _sibling(path: str, suffix: str) -> str:
    return f"{path.rpartition('.')[0]}{suffix}"


def _entries(path: str, layout: struct.Struct) -> Iterator[tuple[int, int]]:
    """Entries up to the first that was never written: a file in use is allocated ahead and ends in zeroes."""
    with open(path, "rb") as file:
        content = file.read()
    whole = len(content) - len(content) % layout.size
    for number, (first, second) in enumerate(layout.iter_unpack(content[:whole])):
        if number > 0 and not (first or second):
            return
        yield first, second


def _offset_entries(path: str, base: int) -> list[OffsetEntry]:
    entries = [OffsetEntry(base + relative, position) for relative, position in _entries(path, OFFSET_ENTRY)]
    # A lone entry for the base offset at position 0 is what an unused, preallocated file looks like.
    return [] if entries == [OffsetEntry(base, 0)] else entries


def _time_entries(path: str, base: int) -> list[TimeEntry]:
    entries = [TimeEntry(timestamp, base + relative) for timestamp, relative in _entries(path, TIME_ENTRY)]
    return [] if entries == [TimeEntry(0, base)] else entries


def _check_offset_index(path: str, base: int, entries: list[OffsetEntry]) -> None:
    _check_size(path, OFFSET_ENTRY.size)
    if entries and entries[-1].offset < base:
        raise CommandError(f"corrupt index: the last offset {entries[-1].offset} is below the base offset {base}")
    for earlier, later in itertools.pairwise(entries):
        if later.offset <= earlier.offset or later.position <= earlier.position:
            raise CommandError(f"corrupt index: {later} does not come after {earlier}")


def _check_time_index(path: str, base: int, entries: list[TimeEntry]) -> None:
    _check_size(path, TIME_ENTRY.size)
    if entries and entries[-1].timestamp < entries[0].timestamp:
        raise CommandError(
            f"corrupt time index: the last timestamp {entries[-1].timestamp} is before the first {entries[0].timestamp}"
        )
    if entries and entries[-1].offset < base:
        raise CommandError(f"corrupt time index: the last offset {entries[-1].offset} is below the base offset {base}")


def _check_size(path: str, entry_size: int) -> None:
    size = os.path.getsize(path)
    if size % entry_size:
        raise CommandError(f"corrupt index: {size} bytes are no whole number of entries of {entry_size}")
