"""Which objects a stream has found, in order: an offset is a place in this list.

Listing tells what is there now, not what was there when a batch was planned, and an object that comes afterwards can
carry an earlier time. So each found object is written down before it is read, once, and a batch that is replayed finds
the same ones at the same places. Several queries may share a list: they take turns at its end.
"""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from ottla.pipelines.connectors.objects.store import StoredObject
from ottla.pipelines.errors import FatalFailure


class FoundLog:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._entries: list[StoredObject] = []
        self._paths: set[str] = set()
        self._read_bytes = 0

    def extend(self, list_now: Callable[[], list[StoredObject]]) -> int:
        """Add what is new, durably; the length of the list."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        found = list_now()
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            self._catch_up(descriptor)
            new = [entry for entry in found if entry.path not in self._paths]
            if new:
                lines = b"".join(msgspec.json.encode(entry) + b"\n" for entry in new)
                os.ftruncate(descriptor, self._read_bytes)  # a line that a crash cut off
                os.pwrite(descriptor, lines, self._read_bytes)
                os.fsync(descriptor)
                self._catch_up(descriptor)
        finally:
            os.close(descriptor)
        return len(self._entries)

    def between(self, start: int, end: int) -> list[StoredObject]:
        if len(self._entries) < end and self._path.exists():
            descriptor = os.open(self._path, os.O_RDONLY)
            try:
                self._catch_up(descriptor)
            finally:
                os.close(descriptor)
        if len(self._entries) < end:
            raise FatalFailure(
                f"the list of files that were found ({self._path}) is shorter than the checkpoint says: it was lost. "
                "Put it back, or delete the pipeline's checkpoint too and read everything anew"
            )
        return self._entries[start:end]

    def _catch_up(self, descriptor: int) -> None:
        size = os.fstat(descriptor).st_size
        content = os.pread(descriptor, size - self._read_bytes, self._read_bytes) if size > self._read_bytes else b""
        whole = content[: content.rfind(b"\n") + 1]
        for line in whole.splitlines():
            entry = msgspec.json.decode(line, type=StoredObject)
            self._entries.append(entry)
            self._paths.add(entry.path)
        self._read_bytes += len(whole)
