"""Forcing a log to disk: what must be there before its recovery point may advance, and nothing more."""

import contextlib
import os
import threading

from ottla.broker.storage.checkpoints import LEADER_EPOCHS, PARTITION_METADATA
from ottla.broker.storage.disk import Disk
from ottla.broker.storage.segment import Segment
from ottla.broker.storage.segment_files import SUFFIX_INDEX, SUFFIX_TIME_INDEX
from ottla.broker.storage.segments import SegmentList


class Flusher:
    """Runs in any thread while the loop appends. `lock` is held for a whole flush."""

    __slots__ = ("_directory", "_disk", "_segments", "epochs_dirty", "lock", "names_dirty")

    def __init__(self, directory: str, disk: Disk, segments: SegmentList) -> None:
        self.lock = threading.Lock()
        self.names_dirty = True
        """The directory's list of files is not known to be on disk."""
        self.epochs_dirty = True
        self._directory = directory
        self._disk = disk
        self._segments = segments

    def relocated(self, directory: str) -> None:
        """The directory has another name now, which the next flush brings to disk too."""
        self._directory = directory
        self.names_dirty = self.epochs_dirty = True

    def flush_once(self, from_offset: int) -> bool:
        """Force what was appended from `from_offset` on to disk. The caller holds `lock`.

        False when the active segment was finished meanwhile: its indexes are wanted on disk too, so flush again.
        """
        segments = self._segments.from_offset(from_offset)
        active = segments[-1]
        for segment in segments:
            file = segment.file  # held, so that a deletion meanwhile cannot close it under the call
            self._disk.fdatasync(file.fd)
            # After a crash the segment with the recovery point gets new indexes; the ones before it keep theirs.
            if segment is not active:
                self._flush_indexes(segment)
        self._flush_names()
        return self._segments.still_active(active)

    def _flush_indexes(self, segment: Segment) -> None:
        segment.write_indexes()
        segment.release_indexes()
        for suffix in (SUFFIX_INDEX, SUFFIX_TIME_INDEX):
            self._disk.sync_path(segment.prefix + suffix)
        if segment.transactions.stored:
            self._disk.sync_path(segment.transactions.path)
            segment.transactions.release()

    def flush_transactions(self, segment: Segment) -> None:
        """Force the aborted transactions of the last segment to disk, before a mark vouches for a clean stop.

        After it everything is taken as it is found, and that one is missing cannot be seen. Lost indexes can, and cost
        no more than a rebuilding should the machine crash before the system has written them.
        """
        if segment.transactions.stored:
            self._disk.sync_path(segment.transactions.path)
            self._disk.sync_path(self._directory)

    def _flush_names(self) -> None:
        epochs_dirty, self.epochs_dirty = self.epochs_dirty, False
        if epochs_dirty:
            self._disk.sync_path(os.path.join(self._directory, LEADER_EPOCHS))
        names_dirty, self.names_dirty = self.names_dirty, False
        if names_dirty:
            with contextlib.suppress(FileNotFoundError):  # a directory that came from elsewhere may have none
                self._disk.sync_path(os.path.join(self._directory, PARTITION_METADATA))
        if names_dirty or epochs_dirty:
            self._disk.sync_path(self._directory)
        if names_dirty:
            self._disk.sync_path(os.path.dirname(self._directory))  # that the directory itself has this name
