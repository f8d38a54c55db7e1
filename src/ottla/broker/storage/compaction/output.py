"""A segment in the making: the .cleaned files that a swap puts in the place of others."""

import os
from collections.abc import Iterable

from ottla.broker.storage.compaction.leftovers import SUFFIX_CLEANED
from ottla.broker.storage.disk import Disk
from ottla.broker.storage.index import SegmentIndexes, encode_offsets, encode_times
from ottla.broker.storage.segment_files import SUFFIX_INDEX, SUFFIX_LOG, SUFFIX_TIME_INDEX
from ottla.broker.storage.transaction_index import SUFFIX_TXN_INDEX, AbortedTransaction, encode_entries
from ottla.model.sentinels import NO_TIMESTAMP
from ottla.protocol.compression import Buffer

# The disk gets the data in steps: one long flush at the end would hold up the broker's own.
SYNC_INTERVAL_BYTES = 16 * 1024 * 1024
WRITE_BYTES = 1024 * 1024
SIZE_MAX = 2**31 - 1


class CleanedSegment:
    def __init__(self, directory: int, base_offset: int, index_interval_bytes: int, disk: Disk) -> None:
        """`directory` is a descriptor: should the partition be deleted and made anew, this goes to the old one."""
        self._directory = directory
        self._base_offset = base_offset
        self._interval_bytes = index_interval_bytes
        self._disk = disk
        self._indexes = SegmentIndexes()
        self._largest_timestamp = NO_TIMESTAMP
        self._largest_offset = base_offset
        self._since_entry_bytes = 0
        self._waiting: list[Buffer] = []
        self._waiting_bytes = 0
        self._unsynced_bytes = 0
        self._written_bytes = 0
        self._log = self._create(SUFFIX_LOG)
        self.size = 0

    def _create(self, suffix: str) -> int:
        name = f"{self._base_offset:020d}{suffix}{SUFFIX_CLEANED}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        return os.open(name, flags, 0o644, dir_fd=self._directory)

    def add(self, data: Buffer, batches: Iterable[tuple[int, int, int]]) -> None:
        """Append whole batches; `batches` gives (length, last offset, largest timestamp) of each."""
        position = self.size
        base_offset = self._base_offset
        for length, last_offset, max_timestamp in batches:
            if max_timestamp > self._largest_timestamp:
                self._largest_timestamp, self._largest_offset = max_timestamp, last_offset
            if self._since_entry_bytes > self._interval_bytes:
                largest_offset = self._largest_offset - base_offset
                self._indexes.add(last_offset - base_offset, position, self._largest_timestamp, largest_offset)
                self._since_entry_bytes = 0
            self._since_entry_bytes += length
            position += length
        if position > SIZE_MAX:
            raise OverflowError(f"segment {base_offset} would grow beyond {SIZE_MAX} bytes")
        self.size = position
        self._waiting.append(data)
        self._waiting_bytes += len(data)
        if self._waiting_bytes >= WRITE_BYTES:
            self._write()

    def _write(self) -> None:
        data = b"".join(self._waiting)
        self._waiting.clear()
        self._waiting_bytes = 0
        self._disk.write_whole(self._log, data, self._written_bytes)
        self._written_bytes += len(data)
        self._unsynced_bytes += len(data)
        if self._unsynced_bytes >= SYNC_INTERVAL_BYTES:
            self._disk.fdatasync(self._log)
            self._unsynced_bytes = 0

    def finish(self, aborted: list[AbortedTransaction], modified: float) -> None:
        """Put everything on disk. `modified` is the time that retention takes for records which have none."""
        self._write()
        os.utime(self._log, (modified, modified))
        self._disk.fdatasync(self._log)
        self._indexes.add_time(self._largest_timestamp, self._largest_offset - self._base_offset)
        indexes = self._indexes
        self._store(SUFFIX_INDEX, encode_offsets(indexes.offsets, indexes.positions))
        self._store(SUFFIX_TIME_INDEX, encode_times(indexes.timestamps, indexes.time_offsets))
        if aborted:
            self._store(SUFFIX_TXN_INDEX, encode_entries(aborted))

    def _store(self, suffix: str, content: bytes) -> None:
        descriptor = self._create(suffix)
        try:
            self._disk.write_whole(descriptor, content, 0)
            self._disk.fdatasync(descriptor)
        finally:
            os.close(descriptor)

    def close(self) -> None:
        os.close(self._log)
