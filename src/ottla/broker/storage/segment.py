"""One segment: a .log file of batches with its offset and time index.

Invariants: bytes [0, size) are whole batches with rising offsets; whatever the file holds beyond `size` was never
acknowledged. Only the event loop's thread appends and truncates; looking up, flushing and retiring is for any thread.
"""

import contextlib
import os
import struct
import threading
from bisect import bisect_left

from ottla.broker.storage.disk import Disk, SegmentFile, rename_if_there, unlink_if_there
from ottla.broker.storage.index import (
    RELATIVE_OFFSET_MAX,
    IndexBuilder,
    IndexCache,
    SegmentIndexes,
)
from ottla.broker.storage.index_files import (
    create_index_files,
    cut_index_files,
    last_offset_entry,
    last_time_entry,
    read_index_files,
    write_index_files,
)
from ottla.broker.storage.open_files import OpenFiles
from ottla.broker.storage.scan import iterate_headers
from ottla.broker.storage.segment_files import (
    SEGMENT_SUFFIXES,
    SUFFIX_DELETED,
    SUFFIX_INDEX,
    SUFFIX_LOG,
    SUFFIX_TIME_INDEX,
)
from ottla.broker.storage.transaction_index import SUFFIX_TXN_INDEX, TransactionIndex
from ottla.model.sentinels import NO_TIMESTAMP
from ottla.protocol.compression import Buffer
from ottla.protocol.errors import CorruptBatch
from ottla.protocol.records import BATCH_OVERHEAD, LENGTH_PREFIX_BYTES, read_header

_PLACE = struct.Struct(">qi11xi")  # base offset, batch length, last offset delta: what a search needs of a header
_LOOKUP_WINDOW_BYTES = 4096 + BATCH_OVERHEAD  # one index interval, so that a lookup is one read as a rule
_KNOWN_POSITIONS_MAX = 64
_BATCH_LENGTH_MIN = BATCH_OVERHEAD - LENGTH_PREFIX_BYTES


class Segment:
    __slots__ = (
        "_cache", "_detached", "_disk", "_file", "_files", "_first_timestamp", "_indexes", "_known",
        "_largest_from_file", "_largest_known", "_loading", "_pwrite", "_ready", "_since_index_bytes",
        "base_offset", "created_ms", "index_interval_bytes", "largest_timestamp", "largest_timestamp_offset", "prefix",
        "size", "transactions",
    )  # fmt: skip

    def __init__(
        self, prefix: str, base_offset: int, size: int, *, disk: Disk, cache: IndexCache, files: OpenFiles,
        created_ms: int, index_interval_bytes: int, new: bool = False,
    ) -> None:  # fmt: skip
        self.prefix = prefix
        self.base_offset = base_offset
        self.size = size
        self.created_ms = created_ms
        self.index_interval_bytes = index_interval_bytes
        self.largest_timestamp = NO_TIMESTAMP
        self.largest_timestamp_offset = base_offset
        self._largest_known = size == 0
        self._largest_from_file = False
        self._disk = disk
        self._pwrite = disk.pwrite
        self._cache = cache
        self._files = files
        self.transactions = TransactionIndex(prefix, base_offset, disk=disk, cache=cache, empty=new)
        self._file: SegmentFile | None = None
        self._loading = threading.RLock()  # opening the file and loading indexes, which any thread may be first to need
        self._indexes: SegmentIndexes | None = None
        self._detached = False
        self._ready = False  # for appending: the indexes are loaded and stay, the largest timestamp is known
        self._since_index_bytes = 0
        self._first_timestamp: int | None = None
        # Offsets whose position a reader will soon ask for again: where the last slices ended.
        self._known: dict[int, int] = {}

    @classmethod
    def create(
        cls, prefix: str, base_offset: int, *, disk: Disk, cache: IndexCache, files: OpenFiles, created_ms: int,
        index_interval_bytes: int, preallocate_bytes: int = 0,
    ) -> "Segment":  # fmt: skip
        segment = cls(
            prefix, base_offset, 0, disk=disk, cache=cache, files=files, created_ms=created_ms,
            index_interval_bytes=index_interval_bytes, new=True,
        )  # fmt: skip
        descriptor = disk.open(prefix + SUFFIX_LOG, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        segment._file = SegmentFile(descriptor)
        if preallocate_bytes:
            os.posix_fallocate(descriptor, 0, preallocate_bytes)
        create_index_files(disk, prefix)
        segment._indexes = SegmentIndexes()
        segment._ready = True
        files.opened(segment)
        return segment

    # -- the file

    @property
    def file(self) -> SegmentFile:
        """The open file; segments that nobody reads or writes have none. Hold it for as long as its number is used: it
        may be closed at any moment once nobody does."""
        file = self._file
        if file is None:
            with self._loading:
                file = self._file
                if file is None:
                    file = self._file = SegmentFile(self._disk.open(self.prefix + SUFFIX_LOG, os.O_RDWR))
                    self._files.opened(self)
        return file

    def release_file(self) -> None:
        """Others want to open theirs; whoever uses this one goes on, and the next who needs it opens it again."""
        self._file = None

    @property
    def first_timestamp(self) -> int:
        """Largest timestamp of the first batch: what a roll by time is measured from. -1 when there is none."""
        if self._first_timestamp is None:
            if self.size < BATCH_OVERHEAD:
                return NO_TIMESTAMP
            self._first_timestamp = read_header(_pread(self.file, BATCH_OVERHEAD, 0)).max_timestamp
        return self._first_timestamp

    def append(self, batch: Buffer, last_offset: int, max_timestamp: int) -> None:
        """Write one batch at the end. On OSError and CorruptBatch the segment is as it was before."""
        if not self._ready:
            self.load_for_append()
        position = self.size
        length = len(batch)
        file = self._file or self.file
        try:
            written = self._pwrite(file.fd, batch, position)
            if written != length:
                self._disk.write_whole(file.fd, memoryview(batch)[max(written, 0) :], position + max(written, 0))
        except OSError:
            self.cut_file()
            raise
        self._note(position, length, last_offset, max_timestamp)

    def append_many(self, data: Buffer, batches: list[tuple[int, int, int]]) -> None:
        """Write several batches in one go; `batches` gives (length, last offset, max timestamp) of each."""
        if not self._ready:
            self.load_for_append()
        position = self.size
        file = self.file
        try:
            self._disk.write_whole(file.fd, data, position)
        except OSError:
            self.cut_file()
            raise
        for length, last_offset, max_timestamp in batches:
            self._note(position, length, last_offset, max_timestamp)
            position += length

    def _note(self, position: int, length: int, last_offset: int, max_timestamp: int) -> None:
        indexes = self._indexes
        assert indexes is not None
        if position == 0:
            self._first_timestamp = max_timestamp
        if max_timestamp > self.largest_timestamp:
            self.largest_timestamp = max_timestamp
            self.largest_timestamp_offset = last_offset
        if self._since_index_bytes > self.index_interval_bytes:
            base = self.base_offset
            indexes.add(
                last_offset - base, position, self.largest_timestamp, self.largest_timestamp_offset - base
            )  # fmt: skip
            self._since_index_bytes = 0
        self._since_index_bytes += length
        self.size = position + length

    def cut_file(self) -> None:
        """Bring the file back to the last good byte; if even that fails, the next write overwrites the rest."""
        with contextlib.suppress(OSError):
            file = self.file
            self._disk.ftruncate(file.fd, self.size)

    # -- looking up

    def find(self, offset: int) -> int | None:
        """Position of the first batch whose last offset is at or above `offset`; None when there is none."""
        position = self._known.get(offset)
        if position is not None:
            return position if position < self.size else None
        try:
            return self._search(offset)
        except CorruptBatch:
            # Either the index or the log is damaged; making the index anew tells which, and heals it if it can.
            with contextlib.suppress(CorruptBatch):
                self.rebuild_indexes()
            return self._search(offset)

    def _search(self, offset: int) -> int | None:
        base_offset, size, file = self.base_offset, self.size, self.file
        last_offset_max = base_offset + RELATIVE_OFFSET_MAX
        indexes = self.indexes
        number = indexes.floor(offset - base_offset)
        position = indexes.positions[number] if number >= 0 else 0
        # An index entry is believed only if the log agrees with it.
        expected = base_offset + indexes.offsets[number] if number >= 0 else None
        while position < size:
            window = os.pread(file.fd, min(_LOOKUP_WINDOW_BYTES, size - position), position)
            at, last_start = 0, len(window) - BATCH_OVERHEAD
            if last_start < 0:
                raise CorruptBatch(f"{self.prefix}{SUFFIX_LOG} is shorter than it should be")
            while at <= last_start:
                base, length, delta = _PLACE.unpack_from(window, at)
                last_offset = base + delta
                if (
                    length < _BATCH_LENGTH_MIN
                    or delta < 0
                    or not base_offset <= base <= last_offset_max
                    or expected not in (None, last_offset)
                ):
                    raise CorruptBatch(f"{self.prefix}{SUFFIX_LOG} has no batch at position {position + at}")
                if last_offset >= offset:
                    return position + at
                expected = None
                at += length + LENGTH_PREFIX_BYTES
            position += at
        return None

    def find_time(self, timestamp: int) -> int:
        """A position with no batch as recent as `timestamp` before it."""
        for _ in range(2):
            indexes = self.indexes
            number = indexes.time_floor(timestamp)
            if number < 0:
                return 0
            offset = self.base_offset + indexes.time_offsets[number]
            position = self.find(offset)
            if position is not None:
                header = read_header(_pread(self.file, BATCH_OVERHEAD, position))
                if header.last_offset == offset and header.max_timestamp == indexes.timestamps[number]:
                    return position
            self.rebuild_indexes()
        raise CorruptBatch(f"{self.prefix}{SUFFIX_LOG} contradicts its own fresh time index")

    def remember(self, offset: int, position: int) -> None:
        """Note that the batch that begins with `offset` lies (or will lie) at `position`."""
        if len(self._known) >= _KNOWN_POSITIONS_MAX:
            self._known.clear()
        self._known[offset] = position

    def offset_bound(self, position: int) -> int | None:
        """An offset that no batch before `position` reaches; None when the index knows none."""
        indexes = self.indexes
        number = bisect_left(indexes.positions, position)
        return self.base_offset + indexes.offsets[number] if number < len(indexes.offsets) else None

    def batch_size(self, position: int) -> int:
        return read_header(_pread(self.file, BATCH_OVERHEAD, position)).size

    def read_batch(self, position: int) -> bytes:
        return _pread(self.file, self.batch_size(position), position)

    def next_offset(self) -> int:
        """The offset after the last record, found from the last index entry on. CorruptBatch if they disagree."""
        entry = last_offset_entry(self._disk, self.prefix)
        relative, position = entry or (None, 0)
        if position > self.size or (entry and position == self.size):
            raise CorruptBatch(f"{self.prefix}{SUFFIX_INDEX} points behind the end of its log")
        after = self.base_offset
        for _, header in iterate_headers(self.file, position, self.size, self.base_offset):
            if relative is not None and header.last_offset != self.base_offset + relative:
                raise CorruptBatch(f"{self.prefix}{SUFFIX_INDEX} does not fit its log")
            relative, after = None, header.next_offset
        return after

    # -- indexes

    @property
    def indexes_if_loaded(self) -> SegmentIndexes | None:
        return self._indexes

    @property
    def indexes(self) -> SegmentIndexes:
        indexes = self._indexes
        if indexes is None:
            with self._loading:
                return self._indexes or self._load_indexes()
        self._cache.touch(self)
        return indexes

    def load_for_append(self) -> SegmentIndexes:
        """Load what appending needs: indexes that stay, and the largest timestamp so far."""
        with self._loading:
            indexes = self._indexes or self._load_indexes()
            self._cache.forget(self)
            self.find_largest_timestamp()
            self._ready = True
            return indexes

    def _load_indexes(self) -> SegmentIndexes:
        indexes = None
        with contextlib.suppress(FileNotFoundError):
            indexes = read_index_files(self.prefix, self.size)
        if indexes is None:
            with contextlib.suppress(CorruptBatch):  # what lies behind damage is told to whoever asks for it
                self.rebuild_indexes()
            indexes = self._indexes
            assert indexes is not None
        self._indexes = indexes
        self._cache.hold(self, indexes.memory_bytes, self.release_indexes)
        return indexes

    def rebuild_indexes(self) -> None:
        """Make both indexes from the batch headers and store them.

        Raises CorruptBatch if the log is damaged; the indexes then lead to everything that lies before the damage.
        """
        with self._loading:
            builder = IndexBuilder(self.base_offset, self.index_interval_bytes)
            try:
                for position, header in iterate_headers(self.file, 0, self.size, self.base_offset):
                    builder.note(position, header)
            finally:
                self.adopt_indexes(builder)

    def adopt_indexes(self, builder: IndexBuilder) -> None:
        """Take freshly made indexes, in memory and on disk."""
        with self._loading:
            self._known.clear()
            self._indexes = builder.finish()
            self._set_largest_timestamp(builder.largest_timestamp, builder.largest_offset)
            if self._detached:
                return
            for suffix in (SUFFIX_INDEX, SUFFIX_TIME_INDEX):
                unlink_if_there(self.prefix + suffix)
            self.write_indexes()

    def release_indexes(self) -> None:
        """Forget the indexes if the files have all of them; they are read again when needed."""
        indexes = self._indexes
        if (
            indexes is not None
            and indexes.written_offsets == len(indexes.offsets)
            and indexes.written_times == len(indexes.timestamps)
        ):
            self._ready = False
            self._indexes = None

    def seal_time_index(self) -> None:
        """The last time entry must tell the largest timestamp of the whole segment."""
        if self._indexes is not None:
            self._indexes.add_time(self.largest_timestamp, self.largest_timestamp_offset - self.base_offset)

    def write_indexes(self) -> bool:
        """Bring the files up to what memory holds; says whether anything was written. Safe in any thread."""
        self.transactions.write()
        indexes = self._indexes
        return indexes is not None and write_index_files(self._disk, self.prefix, indexes)

    def find_largest_timestamp(self) -> int:
        """The largest timestamp, also of a segment that has not been touched since the start."""
        if not self._largest_known:
            timestamp, relative_offset = last_time_entry(self._disk, self.prefix) or (NO_TIMESTAMP, 0)
            if timestamp == NO_TIMESTAMP and self.size:
                self._set_largest_timestamp(*self._scan_largest_timestamp(NO_TIMESTAMP, self.base_offset, 0))
            else:
                self._set_largest_timestamp(timestamp, self.base_offset + relative_offset)
                self._largest_from_file = True
        return self.largest_timestamp

    def checked_largest_timestamp(self) -> int:
        """Like `find_largest_timestamp`, but what came from a file is held against the log. For the loop's thread."""
        timestamp = self.find_largest_timestamp()
        if self._largest_from_file:
            position = self.find(self.largest_timestamp_offset)
            header = read_header(_pread(self.file, BATCH_OVERHEAD, position)) if position is not None else None
            if header is None or header.max_timestamp != timestamp:
                self.rebuild_indexes()
            self._largest_from_file = False
        return self.largest_timestamp

    def retention_timestamp(self) -> int:
        """When the newest record was written, as retention sees it: records without a time count from the file's."""
        timestamp = self.find_largest_timestamp()
        return timestamp if timestamp >= 0 else int(os.stat(self.prefix + SUFFIX_LOG).st_mtime * 1000)

    def confirm_retention_timestamp(self) -> bool:
        """Ask the log itself if the time came from an index; says whether it was right.

        A flipped bit in an index must not delete data. Reads every batch header; safe in any thread.
        """
        if not self._largest_from_file:
            return True
        before = self.largest_timestamp
        self._set_largest_timestamp(*self._scan_largest_timestamp(NO_TIMESTAMP, self.base_offset, 0))
        return self.largest_timestamp == before

    def _set_largest_timestamp(self, timestamp: int, offset: int) -> None:
        self.largest_timestamp, self.largest_timestamp_offset = timestamp, offset
        self._largest_known, self._largest_from_file = True, False

    def _scan_largest_timestamp(self, timestamp: int, offset: int, position: int) -> tuple[int, int]:
        for _, header in iterate_headers(self.file, position, self.size, self.base_offset):
            if header.max_timestamp > timestamp:
                timestamp, offset = header.max_timestamp, header.last_offset
        return timestamp, offset

    # -- the end of its life

    def truncate(self, offset: int) -> int:
        """Drop every batch that reaches to `offset` or beyond; returns the offset after what is left."""
        position = self.find(offset)
        indexes = self.load_for_append()
        kept_end = self.base_offset
        if position is None:
            return self.next_offset()
        indexes.truncate(max(offset - self.base_offset, 0))
        number = len(indexes.offsets) - 1
        start = indexes.positions[number] if number >= 0 else 0
        file = self.file
        self._disk.ftruncate(file.fd, position)
        self.size = position
        self._known.clear()
        if position == 0:
            self._first_timestamp = None
        cut_index_files(self._disk, self.prefix, indexes)
        self.transactions.truncate(offset)
        for _, header in iterate_headers(self.file, start, position, self.base_offset):
            kept_end = header.next_offset
        self._restore_largest_timestamp(indexes)
        return kept_end

    def _restore_largest_timestamp(self, indexes: SegmentIndexes) -> None:
        timestamp, offset, position = NO_TIMESTAMP, self.base_offset, 0
        if indexes.timestamps:
            timestamp, offset = indexes.timestamps[-1], self.base_offset + indexes.time_offsets[-1]
            number = indexes.floor(indexes.time_offsets[-1])
            position = indexes.positions[number] if number >= 0 else 0
        self._set_largest_timestamp(*self._scan_largest_timestamp(timestamp, offset, position))

    def trim(self) -> None:
        """Give back what was preallocated."""
        if os.stat(self.prefix + SUFFIX_LOG).st_size != self.size:
            file = self.file
            self._disk.ftruncate(file.fd, self.size)

    def close(self) -> None:
        """Let go of memory and descriptor; readers in flight keep theirs."""
        self._cache.forget(self)
        self._cache.forget(self.transactions)
        self._files.forget(self)
        self._ready = False
        self._indexes = None
        self._file = None

    def relocate(self, prefix: str) -> None:
        """The files have moved with their directory. For the loop's thread, while nobody else uses the segment."""
        self.prefix = prefix
        self.transactions.path = prefix + SUFFIX_TXN_INDEX

    def detach(self) -> None:
        """Let go of the files' names, which another segment is about to take; readers of this one go on without."""
        with self._loading:
            self.load_for_append()
            self.transactions.pin()
            file = self.file
            self._files.forget(self)  # by its name another would be opened
            self._file = file
            self._detached = True

    def retire(self) -> list[str]:
        """Leave the log: rename the files so that a restart knows they are going; returns the new paths.

        The descriptor stays with whoever still reads this segment and closes with the last of them.
        """
        if self._detached:  # then the names are another segment's, or about to be
            return []
        self._cache.forget(self)
        self._cache.forget(self.transactions)
        self._files.forget(self)
        renamed = []
        for suffix in SEGMENT_SUFFIXES:
            target = self.prefix + suffix + SUFFIX_DELETED
            if rename_if_there(self.prefix + suffix, target):
                renamed.append(target)
        return renamed


def _pread(file: SegmentFile, length: int, position: int) -> bytes:
    # A function of its own so that the reference to the file outlives the call: the descriptor must not close under it.
    return os.pread(file.fd, length, position)
