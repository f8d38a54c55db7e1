"""How many .log files are open at once.

A broker with more partitions than file descriptors has to work too, and needs some of them for connections. So segments
share a number of open files: who opens one more lets go of the one that was opened longest ago, which opens its file
again when it is wanted. Whoever reads or sends from a file that was let go has a reference, and goes on.
"""

import resource
import threading
from collections import OrderedDict
from typing import Protocol

SHARE = 0.75
"""Of what a process may open; the rest is for connections, and for files that are open for a moment."""


class HasFile(Protocol):
    def release_file(self) -> None:
        """Let go of the open file; the next use opens it again."""


def for_segments() -> int:
    """How many files segments may have open, of what this process may."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 2**31 if allowed == resource.RLIM_INFINITY else int(allowed * SHARE)


class OpenFiles:
    """Any thread. Nothing is noted when a file is used, so appending pays nothing: the oldest goes, busy or not."""

    def __init__(self, limit: int | None = None) -> None:
        self._limit = for_segments() if limit is None else limit
        self._lock = threading.Lock()
        self._open: OrderedDict[HasFile, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def opened(self, owner: HasFile) -> None:
        with self._lock:
            self._open[owner] = None
            while len(self._open) > self._limit and len(self._open) > 1:
                oldest, _ = self._open.popitem(last=False)
                oldest.release_file()

    def forget(self, owner: HasFile) -> None:
        """It has none open any more, or keeps it whatever happens. Once this returns it is not told to let go."""
        with self._lock:
            self._open.pop(owner, None)
