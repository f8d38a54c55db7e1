"""Putting a cleaned segment in the place of those it was made from, while others read and append.

The steps and what a crash between them means are told in `leftovers`. It waits for the disk, so it runs in a worker
thread; whoever reads a replaced segment meanwhile keeps its file.
"""

import os
from collections.abc import Callable

from ottla.broker.storage.compaction.leftovers import LOG_LAST, SUFFIX_CLEANED, SUFFIX_SWAP
from ottla.broker.storage.log import Log
from ottla.broker.storage.segment import Segment
from ottla.broker.storage.segment_files import SUFFIX_DELETED, SUFFIX_LOG, segment_prefix

Step = Callable[[str], None]
"""Told before each step that changes the disk, so that a test can stop there as a crash would."""


class SegmentsChanged(Exception):
    """The segments that were cleaned are no longer what they were; the cleaning is worth nothing."""


def swap_in(log: Log, replaced: list[Segment], sizes: list[int], new_size: int, *, step: Step | None = None) -> None:
    """Raises SegmentsChanged if retention, a truncation or a deletion came first, and OSError."""
    with log.maintenance:
        _check_unchanged(log, replaced, sizes)
        # By descriptor: should the partition be deleted and created again, the new one's files are not touched.
        try:
            directory = os.open(log.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise SegmentsChanged(f"{log.tp} was deleted while it was cleaned") from None
        try:
            to_delete = _Renaming(directory, log, replaced, step or (lambda _: None)).run()
        finally:
            os.close(directory)
        new = _new_segment(log, replaced, new_size)
        if not log.segments.swap(replaced, new):  # their records were deleted in the meantime
            to_delete += new.retire()
    log.environment.discard(to_delete, log.config.file_delete_delay_ms)


def _check_unchanged(log: Log, replaced: list[Segment], sizes: list[int]) -> None:
    if log.failure is not None:
        raise SegmentsChanged(log.failure)
    if log.being_copied:
        raise SegmentsChanged(f"{log.tp} is on its way to another directory")
    current = log.segments.all
    same = [segment.size for segment in replaced] == sizes and all(segment in current for segment in replaced)
    if not same or log.segments.active in replaced:
        raise SegmentsChanged(f"segments of {log.tp} were dropped or cut while they were cleaned")


class _Renaming:
    """The three steps on disk."""

    def __init__(self, directory: int, log: Log, replaced: list[Segment], step: Step) -> None:
        self._directory = directory
        self._log = log
        self._replaced = replaced
        self._step = step

    def run(self) -> list[str]:
        """Returns the paths of what may be unlinked."""
        for segment in self._replaced:
            segment.detach()
        first = self._replaced[0].base_offset
        for suffix in LOG_LAST:
            self._move(first, suffix + SUFFIX_CLEANED, suffix + SUFFIX_SWAP)
        self._sync()
        to_delete = [
            segment_prefix(self._log.directory, segment.base_offset) + suffix + SUFFIX_DELETED
            for segment in self._replaced
            for suffix in LOG_LAST
            if self._move(segment.base_offset, suffix, suffix + SUFFIX_DELETED)
        ]
        for suffix in LOG_LAST:
            self._move(first, suffix + SUFFIX_SWAP, suffix)
        self._sync()
        return to_delete

    def _move(self, base_offset: int, old: str, new: str) -> bool:
        self._step(f"{base_offset}{old} -> {new}")
        stem = f"{base_offset:020d}"
        try:
            os.rename(stem + old, stem + new, src_dir_fd=self._directory, dst_dir_fd=self._directory)
        except FileNotFoundError:
            if old == SUFFIX_LOG + SUFFIX_CLEANED:
                raise SegmentsChanged(f"the cleaned segment {base_offset} of {self._log.tp} is gone") from None
            return False
        return True

    def _sync(self) -> None:
        self._step("sync")
        os.fsync(self._directory)


def _new_segment(log: Log, replaced: list[Segment], size: int) -> Segment:
    base_offset = replaced[0].base_offset
    return Segment(
        segment_prefix(log.directory, base_offset), base_offset, size,
        disk=log.environment.disk, cache=log.environment.cache, files=log.environment.files,
        created_ms=replaced[-1].created_ms, index_interval_bytes=log.config.index_interval_bytes,
    )  # fmt: skip
