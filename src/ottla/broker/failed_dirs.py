"""Log directories that failed: their replicas play no part here any more, and other brokers take over what they can."""

import asyncio
import logging
from collections.abc import Callable

from ottla.broker.controller import lost_logs
from ottla.broker.replication.partitions import Partitions
from ottla.broker.storage.manager import LogManager
from ottla.cluster.image import ImageChange
from ottla.cluster.store import MetadataStore
from ottla.model.clock import Clock

logger = logging.getLogger(__name__)


class FailedLogDirs:
    """Nothing is done before `start`, which looks at all that failed until then, nor after `stop`."""

    def __init__(
        self, node_id: int, logs: LogManager, partitions: Partitions, store: MetadataStore, clock: Clock
    ) -> None:
        self._node_id = node_id
        self._logs = logs
        self._partitions = partitions
        self._store = store
        self._clock = clock
        self._loop: asyncio.AbstractEventLoop | None = None
        self._leaving: set[asyncio.Task[None]] = set()
        self.on_all_failed: Callable[[], None] | None = None
        """Told when this broker has no disk left and had better end."""

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._leave()

    def stop(self) -> None:
        self._loop = None
        for task in self._leaving:
            task.cancel()

    def on_failure(self) -> None:
        """Called in any thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._leave)

    def follow(self, change: ImageChange) -> None:
        """A replica may have been given to this broker on a disk that failed long ago."""
        if change.topics and self._loop is not None and self._logs.any_offline:
            self._leave()

    def _leave(self) -> None:
        if self._logs.all_offline and self.on_all_failed is not None:
            logger.error("Shutting down the broker because all log directories have failed")
            self.on_all_failed()
        lost = self._partitions.leave_failed()
        if lost:
            work = lost_logs.leave_to_others(self._store, self._node_id, self._clock, lost)
            task = asyncio.get_running_loop().create_task(work, name="lost logs")
            self._leaving.add(task)
            task.add_done_callback(self._leaving.discard)
