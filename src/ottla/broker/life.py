"""How far a broker's start and stop have come, and the clock it lives by."""

import logging
import time
from enum import IntEnum

from ottla.model.clock import Clock

logger = logging.getLogger(__name__)

PROGRESS_INTERVAL_SECONDS = 1.0


class BrokerState(IntEnum):
    """Kafka's numbers, which operators know."""

    STARTING = 1
    RECOVERY = 2
    RUNNING = 3
    PENDING_CONTROLLED_SHUTDOWN = 6
    SHUTTING_DOWN = 7


class OpeningProgress:
    """How many logs of each directory are still to be opened; said in the log, once a second at most."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._said_at = clock.monotonic()
        self.remaining: dict[str, int] = {}

    def __call__(self, directory: str, opened: int, total: int) -> None:
        self.remaining[directory] = total - opened
        if opened < total and self._clock.monotonic() - self._said_at >= PROGRESS_INTERVAL_SECONDS:
            self._said_at = self._clock.monotonic()
            logger.info("Loading logs of log directory %s: %d of %d loaded", directory, opened, total)


class SystemClock:
    """The clock of this machine."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()
