"""Logs: directories, flushes, cleaning."""

from collections import Counter, deque
from collections.abc import Callable, Iterator

from ottla.broker.life import OpeningProgress
from ottla.broker.storage.compaction.cleaner import LogCleaner
from ottla.broker.storage.manager import LogManager
from ottla.telemetry.declared import logs as declared
from ottla.telemetry.histogram import Histogram
from ottla.telemetry.metric import Distribution, Row
from ottla.telemetry.registry import Telemetry

FLUSHES_KEPT_MAX = 100_000
_CLEANING = (declared.RECOPY_PERCENT, declared.CLEAN_TIME, declared.BUFFER_USED)


class FlushTimes:
    """Flushes end in threads; what they tell is put in a queue there and taken up on the loop."""

    def __init__(self) -> None:
        self._told: deque[float] = deque(maxlen=FLUSHES_KEPT_MAX)
        self._histogram = Histogram(1 / 1000)
        self.note = self._told.append

    def read(self) -> Distribution:
        self._take_up()
        return self._histogram.read()

    def fold(self) -> None:
        self._take_up()
        self._histogram.fold()

    def _take_up(self) -> None:
        while self._told:
            self._histogram.record(int(1e6 * self._told.popleft()))


def show(telemetry: Telemetry, logs: LogManager, opening: OpeningProgress) -> FlushTimes:
    flushes = FlushTimes()
    for directory in logs.dirs:
        directory.environment.on_flushed = flushes.note

    def read_directories() -> Iterator[tuple[tuple[str], int]]:
        for directory in logs.dirs:
            yield (directory.path,), int(directory.failure is not None)

    telemetry.observe_one(declared.FLUSH_TIME, flushes.read)
    telemetry.observe(declared.DIRECTORY_OFFLINE, read_directories)
    telemetry.observe(
        declared.LOGS_TO_RECOVER, lambda: (((path,), left) for path, left in tuple(opening.remaining.items()))
    )
    return flushes


def show_cleaner(telemetry: Telemetry, cleaner: LogCleaner, logs: LogManager, now_ms: Callable[[], int]) -> None:
    def read_last() -> Iterator[Row]:
        stats = cleaner.last_stats
        if stats is not None:
            recopied = 100 * stats.bytes_written // max(stats.bytes_read, 1)
            yield (), (recopied, stats.seconds, round(100 * stats.map_entries / max(stats.map_slots, 1), 6))

    def read_rounds() -> Iterator[Row]:
        if cleaner.last_run_ms is not None:
            yield (), (round(100 * cleaner.max_dirty_ratio), now_ms() - cleaner.last_run_ms)

    def read_uncleanable() -> Iterator[Row]:
        count: Counter[str] = Counter()
        size: Counter[str] = Counter()
        for tp, log in tuple(cleaner.uncleanable.items()):
            home = logs.directory_of(tp)
            if home is not None:
                count[home.path] += 1
                size[home.path] += log.size_bytes
        for directory in logs.dirs:
            yield (directory.path,), (count[directory.path], size[directory.path])

    telemetry.observe_together(_CLEANING, read_last)
    telemetry.observe_together((declared.MAX_DIRTY, declared.SINCE_LAST_RUN), read_rounds)
    telemetry.observe_together((declared.UNCLEANABLE, declared.UNCLEANABLE_BYTES), read_uncleanable)
