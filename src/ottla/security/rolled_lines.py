"""Lines of JSON in a file that is rolled when it is large: who did what.

Lines are made and written by a thread; the loop only hands over what happened. If the disk cannot keep up the rest is
dropped rather than waited for, and counted: the next line that is written says how many are missing before it.
"""

import logging
import queue
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

logger = logging.getLogger(__name__)

WAITING_MAX = 20_000
"""Entries that may wait to be written."""
AT_ONCE_MAX = 500
STOP_SECONDS_MAX = 5.0
COMPLAINT_SECONDS = 60.0

E = TypeVar("E")


class RolledLines(Generic[E]):
    """Begins with the first entry, in a thread of its own, which also makes lines of them; each has its `time`."""

    def __init__(
        self,
        path: str,
        max_bytes: int,
        backups: int,
        line_of: Callable[[E], dict[str, Any]],
        *,
        room: int = WAITING_MAX,
    ) -> None:
        self._path = Path(path)
        self._max_bytes = max_bytes
        self._backups = backups
        self._line_of = line_of
        self._waiting: queue.Queue[E | None] = queue.Queue(room)
        self._thread: threading.Thread | None = None
        self._told_dropped = 0
        self._complained_at = float("-inf")
        self.dropped = 0
        """Entries that are not in the log: it was behind, or could not be written."""

    def put(self, entry: E) -> None:
        try:
            self._waiting.put_nowait(entry)
        except queue.Full:
            self.dropped += 1
        if self._thread is None:
            self._thread = threading.Thread(target=self._write_all, name="audit log", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Returns when what waits is written, or after a while."""
        if self._thread is None:
            return
        try:
            self._waiting.put(None, timeout=STOP_SECONDS_MAX)
        except queue.Full:
            logger.warning("The audit log is behind; %d entries are lost", self._waiting.qsize())
        self._thread.join(STOP_SECONDS_MAX)

    # -- in the thread

    def _write_all(self) -> None:
        while True:
            entries, ends = self._take()
            try:
                self._write(entries)
            except OSError as error:
                self.dropped += len(entries)
                self._complain(error)
            if ends:
                return

    def _take(self) -> tuple[list[E], bool]:
        """All that waits, at least one; and whether this was the end."""
        entries: list[E] = []
        waiting = self._waiting
        entry = waiting.get()
        while entry is not None:
            entries.append(entry)
            if len(entries) == AT_ONCE_MAX or waiting.empty():
                return entries, False
            entry = waiting.get()
        return entries, True

    def _write(self, entries: list[E]) -> None:
        if not entries:
            return
        lines = [self._line_of(entry) for entry in entries]
        missing = self.dropped - self._told_dropped
        if missing:
            lines.insert(0, {"time": lines[0]["time"], "dropped": missing})
        data = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
        if self._size() and self._size() + len(data) > self._max_bytes:
            self._roll()
        with self._path.open("ab") as file:
            file.write(data)
        self._told_dropped += missing

    def _size(self) -> int:
        try:
            return self._path.stat().st_size
        except FileNotFoundError:
            return 0

    def _roll(self) -> None:
        """FILE becomes FILE.1, FILE.1 becomes FILE.2, and the oldest goes."""
        numbered = [self._path, *(Path(f"{self._path}.{number}") for number in range(1, self._backups + 1))]
        for older, newer in zip(reversed(numbered), [*reversed(numbered[:-1])], strict=False):
            if newer.exists():
                newer.replace(older)
        if not self._backups:
            self._path.unlink()

    def _complain(self, error: OSError) -> None:
        now = time.monotonic()
        if now - self._complained_at >= COMPLAINT_SECONDS:
            self._complained_at = now
            logger.error("Cannot write the audit log %s: %s", self._path, error.strerror or error)
