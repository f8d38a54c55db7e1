"""What all logs of a directory share."""

from collections.abc import Callable

import msgspec

from ottla.broker.storage.disk import Disk
from ottla.broker.storage.index import IndexCache
from ottla.broker.storage.open_files import OpenFiles


class LogEnvironment(msgspec.Struct, gc=False):
    """What all logs of a directory share."""

    disk: Disk
    cache: IndexCache
    discard: Callable[[list[str], int], None]
    """Takes paths that are to be unlinked, and the delay in ms after which they may be."""
    on_failure: Callable[[OSError], None]
    """Told about errors that do not pass by themselves; `on_passing` about those that do."""
    on_passing: Callable[[OSError], None] = lambda error: None
    on_flushed: Callable[[float], None] = lambda seconds: None
    """Told in any thread how long it took to force a log to disk."""
    files: OpenFiles = msgspec.field(default_factory=OpenFiles)
