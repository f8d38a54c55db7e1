"""The log cleaner of a broker: picks the dirtiest log, has it cleaned, swaps the result in. Runs on the event loop."""

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Coroutine

from ottla.broker.storage.compaction.choice import Cleanable, find_cleanable
from ottla.broker.storage.compaction.jobs import CleanJob, Done, Failed, KnownProducer, SegmentPlace, Stats, Swap
from ottla.broker.storage.compaction.leftovers import SUFFIX_CLEANED
from ottla.broker.storage.compaction.process import CleaningProcess, WorkerDied
from ottla.broker.storage.compaction.swapping import SegmentsChanged, swap_in
from ottla.broker.storage.disk import PASSING_ERRORS, unlink_if_there
from ottla.broker.storage.log import Log
from ottla.broker.storage.manager import LogManager
from ottla.config.broker import BrokerSettings
from ottla.model.clock import Clock
from ottla.model.names import TopicPartition
from ottla.protocol.compression import Codec
from ottla.protocol.errors import CorruptBatch

logger = logging.getLogger(__name__)

_MIB = 1024 * 1024


class LogCleaner:
    def __init__(self, logs: LogManager, settings: Callable[[], BrokerSettings], clock: Clock) -> None:
        self._logs = logs
        self._settings = settings
        self._clock = clock
        self._processes: list[CleaningProcess] = []
        self._busy: set[Log] = set()
        """Logs that are being cleaned, and those that this round has given up."""
        self.last_stats: Stats | None = None
        """Of the last cleaning that was finished."""
        self.last_run_ms: int | None = None
        """When it last looked for logs to clean."""
        self.max_dirty_ratio = 0.0
        """Of the logs it looked at then."""
        self.uncleanable: dict[TopicPartition, Log] = {}
        """Logs that could not be cleaned because they are damaged; left alone until the next start."""

    async def run(self) -> int:
        """One round: clean until no log is due. Returns how many cleanings were done."""
        settings = self._settings()
        if not settings.log_cleaner_enable:
            return 0
        self._busy.clear()
        self.last_run_ms = self._clock.now_ms()
        self.max_dirty_ratio = 0.0
        self.uncleanable = {tp: log for tp, log in self.uncleanable.items() if self._logs.get(tp) is log}
        while len(self._processes) < settings.log_cleaner_threads:
            self._processes.append(CleaningProcess())
        for surplus in self._processes[settings.log_cleaner_threads :]:
            await surplus.stop()
            self._processes.remove(surplus)
        return sum(await asyncio.gather(*[self._clean_while_due(process) for process in self._processes]))

    async def stop(self) -> None:
        """End the cleaning processes. Whoever runs a round cancels it first."""
        for process in self._processes:
            await process.stop()
        self._processes.clear()

    async def _clean_while_due(self, process: CleaningProcess) -> int:
        done = 0
        while (choice := self._choose()) is not None:
            log, cleanable = choice
            self._busy.add(log)
            if await self._clean(log, cleanable, process):
                self._busy.discard(log)
                done += 1
        return done

    # -- choosing

    def _choose(self) -> tuple[Log, Cleanable] | None:
        """The due log with the largest share of dirty bytes."""
        best: tuple[Log, Cleanable] | None = None
        for log in self._logs.all():
            if len(log.segments) < 2 or "compact" not in log.config.cleanup_policy or log.failure is not None:
                continue
            if log.being_copied or log in self._busy or self.uncleanable.get(log.tp) is log:
                continue
            cleanable = self._cleanable(log)
            if cleanable is None:
                continue
            self.max_dirty_ratio = max(self.max_dirty_ratio, cleanable.dirty_ratio)
            if not cleanable.is_due(log.config):
                continue
            if best is None or cleanable.dirty_ratio > best[1].dirty_ratio:
                best = log, cleanable
        return best

    def _cleanable(self, log: Log) -> Cleanable | None:
        high_watermark = self._logs.high_watermark(log.tp) or 0
        try:
            return find_cleanable(
                log.segments.all, log.config, cleaned_to=log.cleaned_to, start_offset=log.start_offset,
                end_offset=log.end_offset, stable_offset=min(log.first_unstable_offset, high_watermark),
                now_ms=self._clock.now_ms(),
            )  # fmt: skip
        except (OSError, CorruptBatch) as error:
            self._give_up(log, str(error))
            return None

    # -- cleaning

    async def _clean(self, log: Log, cleanable: Cleanable, process: CleaningProcess) -> bool:
        """Whether it was done; otherwise it is tried again in the next round."""
        by_base = {segment.base_offset: segment for segment in log.segments.all}
        job = self._job(log, cleanable)
        sizes = {place.base_offset: place.size for place in job.segments}

        async def swap(report: Swap) -> None:
            replaced = [by_base[base] for base in report.replaced]
            before = [sizes[base] for base in report.replaced]
            await _finish(asyncio.to_thread(swap_in, log, replaced, before, report.size))

        try:
            result = await process.run(job, swap)
        except (SegmentsChanged, WorkerDied) as reason:
            logger.info("%s: Log cleaner aborted the cleaning and tries again in its next round: %s", log.tp, reason)
            await asyncio.to_thread(_remove_cleaned, log.directory)
        except OSError as error:
            log.environment.on_failure(error)
        except asyncio.CancelledError:
            await _finish(asyncio.to_thread(_remove_cleaned, log.directory))
            raise
        else:
            return await self._conclude(log, cleanable, result)
        return False

    def _job(self, log: Log, cleanable: Cleanable) -> CleanJob:
        settings, config = self._settings(), log.config
        segments = [s for s in log.segments.all if s.base_offset < cleanable.end_offset]
        levels = {codec: level for codec in Codec if (level := log.rules.level(codec)) is not None}
        return CleanJob(
            directory=log.directory,
            segments=[SegmentPlace(s.base_offset, s.size) for s in segments],
            first_dirty_offset=cleanable.first_dirty_offset,
            end_offset=cleanable.end_offset,
            now_ms=self._clock.now_ms(),
            delete_retention_ms=config.delete_retention_ms,
            segment_bytes=config.segment_bytes,
            segment_index_bytes=config.segment_index_bytes,
            index_interval_bytes=config.index_interval_bytes,
            codec_levels={int(codec): level for codec, level in levels.items()},
            aborted=list(log.aborted_transactions(segments[0].base_offset, cleanable.end_offset)),
            producers=[
                KnownProducer(entry.producer_id, entry.epoch, entry.batches[-1].last_offset if entry.batches else -1)
                for entry in log.producers.entries.values()
            ],
            map_bytes=settings.log_cleaner_dedupe_buffer_size // settings.log_cleaner_threads,
            map_load_factor=settings.log_cleaner_io_buffer_load_factor,
            read_bytes=settings.log_cleaner_io_buffer_size // settings.log_cleaner_threads,
            bytes_per_second=settings.log_cleaner_io_max_bytes_per_second / settings.log_cleaner_threads,
        )

    async def _conclude(self, log: Log, cleanable: Cleanable, result: Done | Failed) -> bool:
        if isinstance(result, Done):
            if self._logs.get(log.tp) is log and result.cleaned_to <= log.end_offset:
                log.cleaned_to = result.cleaned_to
                directory = self._logs.directory_of(log.tp)
                if directory is not None:
                    await _finish(asyncio.to_thread(directory.write_checkpoints, self._logs.high_watermark))
            self.last_stats = result.stats
            logger.info("%s", describe(log.tp, cleanable.first_dirty_offset, result))
            return True
        await asyncio.to_thread(_remove_cleaned, log.directory)
        if result.reason == "damaged":
            self._give_up(log, result.message)
        elif result.reason == "disk" and result.errno not in PASSING_ERRORS:
            log.environment.on_failure(OSError(result.errno, result.message))
        else:
            logger.warning(
                "%s: Log cleaner aborted the cleaning and tries again in its next round: %s", log.tp, result.message
            )
        return False

    def _give_up(self, log: Log, reason: str) -> None:
        logger.warning("%s: Log cleaner marks the partition as uncleanable until the next start: %s", log.tp, reason)
        self.uncleanable[log.tp] = log


async def _finish(work: Coroutine[None, None, None]) -> None:
    """Await a thread's work to its end even if the caller is cancelled: the disk must not be left half-way."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise


def _remove_cleaned(directory: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        for name in os.listdir(directory):
            if name.endswith(SUFFIX_CLEANED):
                unlink_if_there(os.path.join(directory, name))


def describe(tp: TopicPartition, first_dirty_offset: int, result: Done) -> str:
    """A cleaning in one line."""
    stats: Stats = result.stats
    seconds = max(stats.seconds, 1e-6)
    return (
        f"{tp}: Log cleaner cleaned the dirty offsets {first_dirty_offset} to {result.cleaned_to}: "
        f"{stats.records_read} records became {stats.records_written}, "
        f"{stats.bytes_read / _MIB:.1f} MiB became {stats.bytes_written / _MIB:.1f} MiB in {stats.seconds:.2f} s "
        f"({(stats.bytes_read + stats.map_bytes_read) / _MIB / seconds:.1f} MiB/s read, "
        f"{stats.map_entries} keys in {stats.map_slots} slots, {stats.memory_bytes_max / _MIB:.0f} MiB of memory)"
    )
