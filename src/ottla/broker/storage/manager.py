"""All logs of a broker, over all its log directories.

The loop's thread opens, creates, deletes and looks up. Of the periodic jobs `flush_due`, `checkpoint`,
`drop_expired` and `remove_deleted` block and are safe in a worker thread beside it; `roll_expired` and
`expire_producers` touch what appends touch, are quick, and belong on the loop.
"""

import logging
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

from ottla.broker.storage import copies
from ottla.broker.storage.checkpoints import (
    CLEANED_OFFSETS,
    HIGH_WATERMARKS,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    START_OFFSETS,
    format_partition_metadata,
)
from ottla.broker.storage.disk import PASSING_ERRORS, Disk
from ottla.broker.storage.index import IndexCache
from ottla.broker.storage.log import Log
from ottla.broker.storage.log_dir import STRAY_SUFFIX, LogDir
from ottla.broker.storage.open_files import OpenFiles
from ottla.broker.storage.recovery import KnownOffsets, create_log, open_log
from ottla.config.broker import BrokerSettings
from ottla.config.topic import TopicSettings
from ottla.model.clock import Clock
from ottla.model.errors import ApiError, ErrorCode, OttlaError
from ottla.model.names import NO_TOPIC_ID, TopicPartition

logger = logging.getLogger(__name__)

UNCLEAN_STOP = "Log directory %s gets no clean shutdown file, its logs are recovered at the next start: %s"

PREFERENCES_MAX = 100_000

Progress = Callable[[str, int, int], None]
"""Told (log directory, logs opened so far, logs in all) while a start goes on."""


class LogManager:
    def __init__(
        self,
        settings: BrokerSettings,
        topic_settings: Callable[[str], TopicSettings],
        clock: Clock,
        *,
        cluster_id: str | None = None,
        disk: Disk | None = None,
        high_watermark: Callable[[TopicPartition], int | None] | None = None,
        progress: Progress | None = None,
        on_dir_failure: Callable[[LogDir], None] | None = None,
        open_files_max: int | None = None,
    ) -> None:
        self._settings = settings
        self._topic_settings = topic_settings
        self._clock = clock
        self._cluster_id = cluster_id
        self._progress = progress
        self.high_watermark: Callable[[TopicPartition], int | None] = high_watermark or self._log_end
        """Supplies the high watermarks that `checkpoint` stores; without replication the log's end is it."""
        disk = self._disk = disk or Disk()
        cache, self.files = IndexCache(), OpenFiles(open_files_max)
        self.dirs = [LogDir(path, clock, disk, cache, self.files) for path in settings.data_dirs]
        for directory in self.dirs:
            directory.on_failure = on_dir_failure
        self._logs: dict[TopicPartition, Log] = {}
        self._homes: dict[TopicPartition, LogDir] = {}
        self._stored_high_watermarks: dict[TopicPartition, int] = {}
        self._preferred: OrderedDict[TopicPartition, LogDir] = OrderedDict()
        self.moves: dict[TopicPartition, copies.LogCopy] = {}
        """Logs that are on their way to another directory."""
        self._retiring: dict[TopicPartition, copies.LogCopy] = {}
        """Logs that have arrived there while their old directory still has its name."""
        self.interrupted_moves: list[tuple[TopicPartition, LogDir]] = []
        """What the last run was moving when it was killed, and where to: to be begun again."""

    # -- starting and stopping

    def open(self, *, tails_may_be_lost: bool = False) -> None:
        """Load every partition of every directory, mending after a crash. Blocks; call before serving.

        `tails_may_be_lost` tells that the machine crashed, not only the process.
        """
        try:
            for directory in self.dirs:
                directory.claim(self._cluster_id, self._settings.node_id)
            for directory in self.dirs:
                self._open_dir(directory, tails_may_be_lost)
            for directory in self.dirs:
                self._take_up_copies(directory)
        except BaseException:
            self.abandon()
            raise

    def _open_dir(self, directory: LogDir, tails_may_be_lost: bool) -> None:
        started = time.monotonic()
        try:
            found = directory.partition_directories()
            clean = directory.stopped_cleanly = directory.take_clean_marker()
            points = directory.read_checkpoint(RECOVERY_POINTS)
            starts = directory.read_checkpoint(START_OFFSETS)
            cleaned = directory.read_checkpoint(CLEANED_OFFSETS)
            marks = directory.read_checkpoint(HIGH_WATERMARKS)
            self._stored_high_watermarks |= {tp: mark for tp, mark in marks.items() if tp in found}
        except OSError as error:
            directory.fail(error)
            return
        twice = {tp for tp in self._logs.keys() & found.keys() if not self._was_moving(tp, found[tp])}
        if twice:
            raise OttlaError(f"partition {min(twice)} lies in {directory.path} and in another log directory")
        if found and not clean:
            logger.info(
                "Unclean shutdown: recovering %d logs of log directory %s, which has no clean shutdown file",
                len(found), directory.path,
            )  # fmt: skip

        def load(tp: TopicPartition) -> Log:
            known = KnownOffsets(starts.get(tp, 0), points.get(tp, 0), clean, tails_may_be_lost)
            config = self._topic_settings(tp.topic)
            return open_log(tp, found[tp], config, directory.environment, known, self._clock.now_ms())

        threads = self._settings.num_recovery_threads_per_data_dir
        with ThreadPoolExecutor(threads, thread_name_prefix="log-recovery") as pool:
            futures = {tp: pool.submit(load, tp) for tp in found}
            for number, (tp, future) in enumerate(futures.items(), 1):
                try:
                    opened = future.result()
                    opened.cleaned_to = cleaned.get(tp)
                    self._adopt_opened(opened, directory)
                except OSError as error:
                    logger.exception("%s: Cannot load the log: log directory %s goes offline", tp, directory.path)
                    directory.fail(error)
                    for waiting in futures.values():
                        waiting.cancel()
                    return
                if self._progress is not None:
                    self._progress(directory.path, number, len(found))
        if found:
            logger.info(
                "Loaded %d logs of log directory %s in %.2f s", len(found), directory.path, time.monotonic() - started
            )

    def _was_moving(self, tp: TopicPartition, path: str) -> bool:
        return copies.has_mark(path) or copies.has_mark(self._logs[tp].directory)

    def _adopt_opened(self, log: Log, directory: LogDir) -> None:
        """Take up a log, unless another directory has a better one: a move was cut short at its very end."""
        rival = self._logs.get(log.tp)
        if rival is None:
            self._adopt(log, directory)
            return
        home = self._homes[log.tp]
        kept = copies.longer_history(rival, log)
        loser, place = (log, directory) if kept is rival else (rival, home)
        logger.warning(
            "%s: The interrupted move of the replica left it in two log directories: deleting %s, keeping %s",
            log.tp, loser.directory, kept.directory,
        )  # fmt: skip
        loser.release()
        place.rename_away(loser)
        if kept is log:
            del home.logs[log.tp]
            self._adopt(log, directory)

    def _take_up_copies(self, directory: LogDir) -> None:
        """What moves left behind in a directory: go on where that is safe, else begin again."""
        try:
            for log in directory.logs.values():
                copies.remove_mark(log.directory)
            for tp, path in directory.found_copies.items():
                if self._homes.get(tp) not in (None, directory) and not self._resume(tp, path, directory):
                    directory.delete_copy(path)
                    self.interrupted_moves.append((tp, directory))
                elif self._homes.get(tp) is directory:
                    directory.delete_copy(path)
                elif tp not in self._homes:
                    logger.warning(
                        "%s: Leaving the future replica %s alone: this broker has no current replica of the partition",
                        tp,
                        path,
                    )
        except OSError as error:
            directory.fail(error)

    def _resume(self, tp: TopicPartition, path: str, directory: LogDir) -> bool:
        source, home = self._logs[tp], self._homes[tp]
        if not (home.stopped_cleanly and directory.stopped_cleanly):
            return False
        known = KnownOffsets(directory.stored_offset(START_OFFSETS, tp), 0, clean=True)
        copy = open_log(tp, path, source.config, directory.environment, known, self._clock.now_ms())
        if copy.topic_id != source.topic_id or not copies.is_beginning_of(copy, source):
            copy.release()
            return False
        copies.put_mark(path, self._disk)  # one that another broker program began has none
        self._register_move(copies.LogCopy(source, home, copy, directory, self._disk))
        return True

    def _adopt(self, log: Log, directory: LogDir) -> None:
        directory.logs[log.tp] = log
        self._logs[log.tp] = log
        self._homes[log.tp] = directory

    def close(self) -> None:
        """Flush everything and leave each directory so that the next start can trust it. Blocks."""
        for directory in self.dirs:
            try:
                self._close_dir(directory)
            finally:
                directory.unlock()
                directory.logs.clear()
                directory.copies.clear()
        self._logs.clear()
        self.moves.clear()
        self._retiring.clear()
        self._homes.clear()

    def _close_dir(self, directory: LogDir) -> None:
        threads = self._settings.num_recovery_threads_per_data_dir
        with ThreadPoolExecutor(threads, thread_name_prefix="log-close") as pool:
            logs = [*directory.logs.values(), *directory.copies.values()]
            futures = [pool.submit(log.close) for log in logs]
        problems = [error for future in futures if (error := future.exception()) is not None]
        if problems or directory.failure is not None:
            logger.error(UNCLEAN_STOP, directory.path, problems[0] if problems else directory.failure)
            for log in logs:
                log.release()
            return
        try:
            directory.write_checkpoints(self.high_watermark)
            directory.write_clean_marker()
        except OSError as error:
            logger.error(UNCLEAN_STOP, directory.path, error)  # noqa: TRY400  # the trace adds nothing

    def abandon(self) -> None:
        """Let go of everything without writing, as a crash would. For tests and for a start that fails half-way."""
        for log in self._logs.values():
            log.release()
        for move in self.moves.values():
            move.copy.release()
        for directory in self.dirs:
            directory.unlock()

    # -- logs

    def get(self, tp: TopicPartition) -> Log | None:
        return self._logs.get(tp)

    def has(self, tp: TopicPartition, topic_id: UUID) -> bool:
        """Whether there is a log of this partition, and not of a former topic with the same name."""
        log = self._logs.get(tp)
        return log is not None and log.topic_id in (topic_id, NO_TOPIC_ID)

    def all(self) -> list[Log]:
        return list(self._logs.values())

    def directory_of(self, tp: TopicPartition) -> LogDir | None:
        return self._homes.get(tp)

    def stored_high_watermark(self, tp: TopicPartition) -> int | None:
        """The high watermark that the last run stored."""
        return self._stored_high_watermarks.get(tp)

    def create(self, tp: TopicPartition, topic_id: UUID, config: TopicSettings | None = None) -> Log:
        """A new log in the directory that was asked for, else in the working one that holds the fewest partitions."""
        if tp in self._logs:
            raise ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"{tp} already has a log")
        online = [directory for directory in self.dirs if directory.failure is None]
        if not online:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "every log directory is offline")
        directory = self._preferred.pop(tp, None) or min(online, key=lambda candidate: len(candidate.logs))
        if directory.failure is not None:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, directory.failure)
        if config is None:
            config = self._topic_settings(tp.topic)
        path = f"{directory.path}/{tp.topic}-{tp.partition}"
        try:
            if directory.remembers(tp):
                # A topic of this name was deleted a moment ago; its offsets must not be taken for the new one's.
                self._stored_high_watermarks.pop(tp, None)
                directory.write_checkpoints(self.high_watermark)
            log = create_log(tp, topic_id, path, config, directory.environment, self._clock.now_ms())
        except OSError as error:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"cannot create {tp}: {error}") from error
        self._adopt(log, directory)
        return log

    @property
    def any_offline(self) -> bool:
        return any(directory.failure is not None for directory in self.dirs)

    @property
    def all_offline(self) -> bool:
        return all(directory.failure is not None for directory in self.dirs)

    def check_all_online(self, tp: TopicPartition) -> None:
        """Refuse to take an empty log for that of an old partition: its own may lie in a directory that failed."""
        failed = [directory.failure for directory in self.dirs if directory.failure is not None]
        if failed:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"{tp} has no log in the directories that work: {failed[0]}")

    def delete(self, tp: TopicPartition) -> None:
        """Take a partition out of service at once; its files go later, in `remove_deleted`."""
        self._remove(tp)

    def mark_stray(self, tp: TopicPartition) -> str | None:
        """Set aside a directory that the cluster does not know, without deleting it; returns where it is now."""
        return self._remove(tp, STRAY_SUFFIX)

    def _remove(self, tp: TopicPartition, suffix: str | None = None) -> str | None:
        self.end_move(tp)
        self.retire_old_directory(tp)
        log = self._logs.pop(tp, None)
        if log is None:
            return None
        directory = self._homes.pop(tp)
        directory.logs.pop(tp, None)
        self._stored_high_watermarks.pop(tp, None)
        log.fail(f"{tp} was deleted")
        try:
            return directory.rename_away(log, suffix) if suffix is not None else directory.rename_away(log)
        except OSError as error:
            if directory.failure is not None:
                return None
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"cannot remove {tp}: {error}") from error
        finally:
            log.release()

    def strays(self, known: Mapping[TopicPartition, UUID]) -> list[Log]:
        """Logs that the cluster does not know, or knows under another topic id. What becomes of them is its choice."""
        found = []
        for tp, log in self._logs.items():
            topic_id = known.get(tp)
            if topic_id is None or (NO_TOPIC_ID not in (topic_id, log.topic_id) and topic_id != log.topic_id):
                found.append(log)
        return found

    def identify(self, log: Log, topic_id: UUID) -> None:
        """Note whose log this is. A crash can take the note of that with it while it leaves records."""
        log.topic_id = topic_id
        path = os.path.join(log.directory, PARTITION_METADATA)
        log.environment.disk.replace_file(path, format_partition_metadata(topic_id), durable=True)

    def reconfigure(self, topics: Iterable[str] | None = None) -> None:
        """Give logs their topics' settings anew; all of them when no topics are named."""
        wanted = None if topics is None else set(topics)
        for tp, log in self._logs.items():
            if wanted is None or tp.topic in wanted:
                log.reconfigure(self._topic_settings(tp.topic))

    # -- moving logs to other directories; all on the loop

    def directory_at(self, path: str) -> LogDir | None:
        """The one at a path that a client names, which may be no path at all."""
        if "\0" in path:
            return None
        resolved = os.path.realpath(path)
        return next((directory for directory in self.dirs if directory.path == resolved), None)

    def prefer(self, tp: TopicPartition, directory: LogDir) -> None:
        """Remember where a partition's log is to be when it is created."""
        self._preferred[tp] = directory
        if len(self._preferred) > PREFERENCES_MAX:
            self._preferred.popitem(last=False)

    def begin_move(self, tp: TopicPartition, target: LogDir) -> copies.LogCopy:
        """Create an empty copy of the log in another directory. ApiError if that is not possible."""
        source, home = self._logs[tp], self._homes[tp]
        try:
            copy = copies.begin_copy(source, target, self._clock.now_ms())
            move = self._register_move(copies.LogCopy(source, home, copy, target, self._disk))
            if target.remembers(tp):
                # The partition was here before; what is remembered of that must not be taken for the copy's.
                target.write_checkpoints(self.high_watermark)
        except OSError as error:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"cannot copy {tp} to {target.path}: {error}") from error
        return move

    def _register_move(self, move: copies.LogCopy) -> copies.LogCopy:
        self.moves[move.source.tp] = move
        move.target.copies[move.source.tp] = move.copy
        move.source.cut_to = None
        move.source.being_copied = True
        return move

    def end_move(self, tp: TopicPartition) -> None:
        """Give a move up: the copy goes, the log stays as and where it is."""
        move = self.moves.pop(tp, None)
        if move is None:
            return
        move.source.being_copied = False
        move.target.copies.pop(tp, None)
        move.copy.fail(f"the move of {tp} was given up")
        try:
            move.target.delete_copy(move.copy.directory)
        except OSError as error:
            logger.warning("%s: Cannot delete the future replica %s: %s", tp, move.copy.directory, error)
        move.copy.release()

    def finish_move(self, tp: TopicPartition) -> Log:
        """Let the complete copy take the log's place; `retire_old_directory` is to follow. OSError passes through."""
        move = self.moves[tp]
        move.take_over()
        del self.moves[tp], move.target.copies[tp], move.home.logs[tp]
        self._adopt(move.copy, move.target)
        self._retiring[tp] = move
        return move.copy

    def retire_old_directory(self, tp: TopicPartition) -> None:
        """The directory that a moved log has left stops counting."""
        move = self._retiring.pop(tp, None)
        if move is not None:
            try:
                move.retire_source()
            except OSError as error:
                logger.warning(
                    "%s: Cannot rename the old replica %s for deletion; the next start deletes it: %s",
                    tp, move.source.directory, error,
                )  # fmt: skip

    # -- periodic jobs

    def roll_expired(self, now_ms: int) -> int:
        """On the loop: begin new segments where every record of the active one has outlived its topic's limits."""
        return sum(self._guarded(log, lambda log: log.roll_if_expired(now_ms, self._mark(log))) for log in self.all())

    def drop_expired(self, now_ms: int) -> int:
        """In a worker: drop inactive segments that have outlived their topics' limits; returns how many."""
        return sum(self._guarded(log, lambda log: log.drop_expired(now_ms, self._mark(log))) for log in self.all())

    def apply_retention(self, now_ms: int) -> int:
        """Both of the above, for whoever runs on the loop's thread anyway."""
        self.roll_expired(now_ms)
        return self.drop_expired(now_ms)

    def flush_due(self, now_ms: int) -> int:
        """In a worker: flush logs whose policy asks for it and segments that were finished; returns how many logs."""
        due = [log for log in self.all() if log.failure is None and log.flush_due(now_ms)]
        for log in due:
            self._guarded(log, Log.flush)
            log.last_flush_ms = now_ms
        return len(due)

    def checkpoint(self) -> None:
        """In a worker: store recovery points, log starts and high watermarks of every working directory."""
        for directory in self.dirs:
            if directory.failure is None:
                try:
                    directory.write_checkpoints(self.high_watermark)
                except OSError as error:
                    # The old checkpoint stays: the next start has more to check, nothing is lost.
                    logger.warning("Cannot write the checkpoint files of log directory %s: %s", directory.path, error)
                    if error.errno not in PASSING_ERRORS:
                        directory.fail(error)

    def remove_deleted(self, now_ms: int) -> int:
        """In a worker: unlink deleted segments and partitions whose delay is over."""
        return sum(directory.delete_due(now_ms) for directory in self.dirs if directory.failure is None)

    def expire_producers(self, now_ms: int, expiration_ms: int | None = None) -> int:
        """On the loop: forget producers that have been silent for producer.id.expiration.ms, or the time given."""
        limit_ms = self._settings.producer_id_expiration_ms if expiration_ms is None else expiration_ms
        return sum(log.producers.expire(now_ms, limit_ms) for log in self._logs.values() if log.producers.entries)

    def _guarded(self, log: Log, job: Callable[[Log], int | None]) -> int:
        """One log's trouble must not keep the job from the others."""
        try:
            return job(log) or 0
        except ApiError as error:
            logger.warning("%s: Log retention or flush failed: %s", log.tp, error)
            return 0

    def _mark(self, log: Log) -> int | None:
        return self.high_watermark(log.tp)

    def _log_end(self, tp: TopicPartition) -> int | None:
        log = self._logs.get(tp)
        return log.end_offset if log is not None else None
