"""The aborted transactions of one segment, in Kafka's .txnindex format.

An entry stands in the segment that has the marker, so entries come in the order of their markers and a search is a
bisection. Most segments have none, and then no file. An entry is written at once; should that fail it stays in memory
and goes out with the next flush. After a crash the index is made anew from the log.
"""

import contextlib
import os
import struct
import threading
from collections.abc import Iterable
from typing import NamedTuple

from ottla.broker.storage.disk import Disk, unlink_if_there
from ottla.broker.storage.index import IndexCache
from ottla.model.sentinels import NO_OFFSET
from ottla.protocol.compression import Buffer
from ottla.protocol.errors import CorruptBatch

SUFFIX_TXN_INDEX = ".txnindex"
ENTRY_BYTES = 34

_ENTRY = struct.Struct(">hqqqq")
_VERSION = 0
_LAST_OFFSET = struct.Struct(">18xq8x")


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    """That of the marker."""
    last_stable_offset: int
    """Where the log was stable up to once this transaction had ended."""


class TransactionIndex:
    """Only the event loop's thread adds and truncates; searching, writing and releasing is for any thread."""

    __slots__ = ("_base_offset", "_cache", "_data", "_disk", "_lock", "_stored", "_written_bytes", "path")

    def __init__(self, prefix: str, base_offset: int, *, disk: Disk, cache: IndexCache, empty: bool) -> None:
        self.path = prefix + SUFFIX_TXN_INDEX
        self._base_offset = base_offset
        self._disk = disk
        self._cache = cache
        self._lock = threading.Lock()
        self._written_bytes = 0
        if empty:
            unlink_if_there(self.path)
        self._stored = not empty and os.path.exists(self.path)
        self._data: bytearray | None = None if self._stored else bytearray()

    @property
    def stored(self) -> bool:
        """Whether there is a file; without one no transaction of the segment was aborted."""
        return self._stored

    @property
    def last_offset(self) -> int:
        """The offset of the last marker, or -1."""
        data = self.load()
        return _last_offset(data, len(data) // ENTRY_BYTES - 1) if data else NO_OFFSET

    def entries(self) -> list[AbortedTransaction]:
        return [AbortedTransaction._make(row[1:]) for row in _ENTRY.iter_unpack(self.load())]

    def collect(self, from_offset: int, to_offset: int, found: list[AbortedTransaction]) -> bool:
        """Add those that have records in [from_offset, to_offset); True when later segments cannot have more."""
        data = self.load()
        count = len(data) // ENTRY_BYTES
        for number in range(_first_at_or_after(data, count, from_offset), count):
            entry = AbortedTransaction._make(_ENTRY.unpack_from(data, number * ENTRY_BYTES)[1:])
            if entry.first_offset < to_offset:
                found.append(entry)
            if entry.last_stable_offset >= to_offset:
                return True
        return False

    def pin(self) -> None:
        """Keep what the file has in memory, because the segment is going to grow."""
        with self._lock:
            data = self._load_locked()
            self._cache.forget(self)
            self._data = data

    def add(self, entry: AbortedTransaction) -> None:
        """Note an abort. Should the disk refuse it, `write` brings it there later."""
        self.pin()
        with self._lock:
            data = self._load_locked()
            data += _ENTRY.pack(_VERSION, *entry)
        with contextlib.suppress(OSError):
            self.write()

    def write(self) -> bool:
        """Bring the file up to what memory holds; says whether anything was written."""
        with self._lock:
            data = self._data
            if data is None or len(data) == self._written_bytes:
                return False
            descriptor = self._disk.open(self.path, os.O_WRONLY | os.O_CREAT)
            try:
                self._disk.write_whole(descriptor, bytes(data[self._written_bytes :]), self._written_bytes)
            finally:
                os.close(descriptor)
            self._written_bytes = len(data)
            self._stored = True
            return True

    def truncate(self, offset: int) -> None:
        """Forget the transactions whose marker is at `offset` or beyond."""
        with self._lock:
            data = self._load_locked()
            self._data = data
            keep = _first_at_or_after(data, len(data) // ENTRY_BYTES, offset) * ENTRY_BYTES
            if keep == len(data):
                return
            del data[keep:]
            self._cut_file(keep)

    def replace(self, entries: Iterable[AbortedTransaction]) -> None:
        """Take these instead of whatever the file holds."""
        with self._lock:
            self._cache.forget(self)
            self._data = bytearray(encode_entries(entries))
            self._cut_file(0)
        self.write()

    def _cut_file(self, size: int) -> None:
        self._written_bytes = min(self._written_bytes, size)
        if self._stored and size == 0:
            unlink_if_there(self.path)
            self._stored = False
        elif self._stored:
            descriptor = self._disk.open(self.path, os.O_WRONLY)
            try:
                self._disk.ftruncate(descriptor, size)
            finally:
                os.close(descriptor)

    def release(self) -> None:
        """Forget what the file has; it is read again when needed."""
        if self._stored and self._data is not None and len(self._data) == self._written_bytes:
            self._data = None

    def load(self) -> bytearray:
        data = self._data
        if data is None:
            with self._lock:
                data = self._load_locked()
                self._data = data
                self._cache.hold(self, len(data), self.release)
        else:
            self._cache.touch(self)
        return data

    def _load_locked(self) -> bytearray:
        if self._data is not None:
            return self._data
        with open(self.path, "rb") as file:
            data = bytearray(file.read())
        if not _sound(data, self._base_offset):
            raise CorruptBatch(f"{self.path} is damaged")
        self._written_bytes = len(data)
        return data


def encode_entries(entries: Iterable[AbortedTransaction]) -> bytes:
    return b"".join([_ENTRY.pack(_VERSION, *entry) for entry in entries])


def _last_offset(data: Buffer, number: int) -> int:
    offset: int = _LAST_OFFSET.unpack_from(data, number * ENTRY_BYTES)[0]
    return offset


def _first_at_or_after(data: Buffer, count: int, offset: int) -> int:
    """Number of the first entry whose marker is at `offset` or later."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if _last_offset(data, middle) < offset:
            low = middle + 1
        else:
            high = middle
    return low


def _sound(data: Buffer, base_offset: int) -> bool:
    if len(data) % ENTRY_BYTES:
        return False
    before, stable_before = base_offset - 1, 0
    for version, producer_id, first, last, stable in _ENTRY.iter_unpack(data):
        if version != _VERSION or producer_id < 0 or not 0 <= first < last or last <= before:
            return False
        if not stable_before <= stable <= last + 1:
            return False
        before, stable_before = last, stable
    return True
