"""One directory of log.dirs: who may use it, what it remembers, whether it still works."""

import fcntl
import logging
import os
import pathlib
import re
import shutil
import threading
import uuid
from collections import deque
from collections.abc import Callable, Mapping

from ottla.broker.storage.checkpoints import (
    CLEAN_SHUTDOWN,
    CLEANED_OFFSETS,
    HIGH_WATERMARKS,
    LOCK,
    META_PROPERTIES,
    RECOVERY_POINTS,
    START_OFFSETS,
    check_meta_properties,
    format_clean_shutdown,
    format_offsets,
    format_properties,
    parse_offsets,
    parse_properties,
    read_text,
)
from ottla.broker.storage.disk import Disk, unlink_if_there
from ottla.broker.storage.index import IndexCache
from ottla.broker.storage.log import Log, LogEnvironment
from ottla.broker.storage.open_files import OpenFiles
from ottla.model.clock import Clock
from ottla.model.errors import OttlaError
from ottla.model.names import TopicPartition, format_topic_id, new_topic_id

logger = logging.getLogger(__name__)

DELETE_SUFFIX = "-delete"
STRAY_SUFFIX = "-stray"
FUTURE_SUFFIX = "-future"
# Kafka's own metadata log may lie in a directory that was moved here; it is not a partition of ours.
_NOT_PARTITIONS = frozenset({"__cluster_metadata-0"})
DIRECTORY_NAME_LENGTH_MAX = 255
PASSING_ERROR_TOLD_MS = 60_000
"""A full disk refuses every write: saying so once in this time is enough."""
_PARTITION_NAME = re.compile(r"(.+)-(\d+)")
_FUTURE_NAME = re.compile(r"(.+)-(\d+)\.[0-9a-f]+" + FUTURE_SUFFIX)


class LogDir:
    def __init__(self, path: str, clock: Clock, disk: Disk, cache: IndexCache, files: OpenFiles) -> None:
        self.path = str(pathlib.Path(path).resolve())
        self.failure: str | None = None
        self.logs: dict[TopicPartition, Log] = {}
        self.copies: dict[TopicPartition, Log] = {}
        """Copies of logs that lie in other directories, on their way here."""
        self.found_copies: dict[TopicPartition, str] = {}
        """Where the last run left such copies."""
        self.stopped_cleanly = False
        """Whether the last run left everything here as it should be."""
        self.environment = LogEnvironment(disk, cache, self._discard, self.fail, self.note_passing, files=files)
        self.on_failure: Callable[[LogDir], None] | None = None
        self.directory_id = ""
        self._clock = clock
        self._disk = disk
        self._lock_descriptor: int | None = None
        self._told_passing_ms: int | None = None
        self._written: dict[str, Mapping[TopicPartition, int]] = {}
        self._checkpointing = threading.Lock()
        # (due in ms, paths): deque because the loop adds while a worker takes.
        self._to_delete: deque[tuple[int, list[str]]] = deque()

    # -- opening and closing

    def claim(self, cluster_id: str | None, node_id: int) -> None:
        """Create the directory if needed, make sure that no other broker uses it and that it is ours."""
        try:
            os.makedirs(self.path, exist_ok=True)
            self._lock()
            self._identify(cluster_id, node_id)
        except OSError as error:
            raise OttlaError(f"cannot use log directory {self.path}: {error}") from error

    def _lock(self) -> None:
        descriptor = self._disk.open(os.path.join(self.path, LOCK), os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise OttlaError(
                f"log directory {self.path} is in use by another broker; stop it or give this one its own log.dirs"
            ) from None
        self._lock_descriptor = descriptor

    def _identify(self, cluster_id: str | None, node_id: int) -> None:
        path = os.path.join(self.path, META_PROPERTIES)
        text = read_text(path)
        if text is not None and text.strip():
            properties = parse_properties(text)
            check_meta_properties(properties, cluster_id, node_id, path)
            self.directory_id = properties.get("directory.id", "")
        elif cluster_id is not None:
            self.directory_id = format_topic_id(new_topic_id())
            properties = {
                "version": "1",
                "cluster.id": cluster_id,
                "node.id": str(node_id),
                "directory.id": self.directory_id,
            }
            self._disk.replace_file(path, format_properties(properties), durable=True)

    def take_clean_marker(self) -> bool:
        """Whether the last stop was clean. The marker goes at once and for good: it must not vouch for this run."""
        if not unlink_if_there(os.path.join(self.path, CLEAN_SHUTDOWN)):
            return False
        self._disk.sync_path(self.path)
        return True

    def write_clean_marker(self) -> None:
        self._disk.replace_file(os.path.join(self.path, CLEAN_SHUTDOWN), format_clean_shutdown(), durable=True)

    def unlock(self) -> None:
        if self._lock_descriptor is not None:
            os.close(self._lock_descriptor)
            self._lock_descriptor = None

    # -- what lies in it

    def partition_directories(self) -> dict[TopicPartition, str]:
        """The partitions found here. Directories that are being deleted are queued for removal on the way."""
        found = {}
        with os.scandir(self.path) as entries:
            for entry in entries:
                if not entry.is_dir() or entry.name in _NOT_PARTITIONS:
                    continue
                if entry.name.endswith(DELETE_SUFFIX):
                    self._to_delete.append((0, [entry.path]))
                    continue
                future = _FUTURE_NAME.fullmatch(entry.name)
                if future:
                    self._note_copy(TopicPartition(future[1], int(future[2])), entry.path)
                match = _PARTITION_NAME.fullmatch(entry.name)
                if match and not entry.name.endswith((STRAY_SUFFIX, FUTURE_SUFFIX)):
                    found[TopicPartition(match[1], int(match[2]))] = entry.path
        return found

    def _note_copy(self, tp: TopicPartition, path: str) -> None:
        # Two of one partition: the making of one was cut short before the other was gone. Neither is worth keeping.
        earlier = self.found_copies.pop(tp, None)
        if earlier is None:
            self.found_copies[tp] = path
        else:
            self._to_delete.append((0, [earlier, path]))

    def read_checkpoint(self, name: str) -> dict[TopicPartition, int]:
        text = read_text(os.path.join(self.path, name))
        offsets = parse_offsets(text)
        if offsets is None and text is not None:
            logger.warning("Corrupt checkpoint file %s in log directory %s: ignoring it", name, self.path)
        self._written[name] = offsets or {}
        return offsets or {}

    def write_checkpoints(self, high_watermark: Callable[[TopicPartition], int | None]) -> None:
        """Store recovery points, log starts, high watermarks and where logs are clean. Blocks; safe in any thread."""
        with self._checkpointing:
            logs = [*self.copies.items(), *self.logs.items()]
            starts = {tp: log.start_offset for tp, log in logs if log.start_offset > log.segments.first_base_offset}
            marks = {tp: mark for tp, _ in logs if (mark := high_watermark(tp)) is not None}
            self._write(CLEANED_OFFSETS, {tp: log.cleaned_to for tp, log in logs if log.cleaned_to is not None})
            self._write(START_OFFSETS, starts)
            self._write(HIGH_WATERMARKS, marks)
            self._write(RECOVERY_POINTS, {tp: log.recovery_point for tp, log in logs})

    def _write(self, name: str, offsets: dict[TopicPartition, int]) -> None:
        if self._written.get(name) == offsets:
            return
        self._disk.replace_file(os.path.join(self.path, name), format_offsets(offsets), durable=True)
        self._written[name] = offsets

    def stored_offset(self, name: str, tp: TopicPartition) -> int:
        """What a checkpoint said of a partition when it was last read or written; 0 if nothing."""
        return self._written.get(name, {}).get(tp, 0)

    def remembers(self, tp: TopicPartition) -> bool:
        """Whether the checkpoints on disk speak of this partition: perhaps of a deleted one with the same name."""
        return any(tp in offsets for offsets in self._written.values())

    # -- failing

    def note_passing(self, error: OSError) -> None:
        """Tell the operator of what refuses writes until somebody mends it, such as a full disk. Any thread."""
        now_ms = self._clock.now_ms()
        if self._told_passing_ms is None or now_ms - self._told_passing_ms >= PASSING_ERROR_TOLD_MS:
            self._told_passing_ms = now_ms
            logger.error(
                "Log directory %s cannot be written: %s. It stays online, producers get KAFKA_STORAGE_ERROR and retry: "
                "free space, shorten retention, or move replicas away",
                self.path, error,
            )  # fmt: skip

    def fail(self, error: OSError) -> None:
        """Take the directory out of service: its partitions refuse everything, the others go on. Any thread."""
        if self.failure is not None:
            return
        self.failure = f"log directory {self.path} is offline after: {error}"
        logger.error(
            "Stopping serving replicas in %s: %s. Other directories go on; mend the disk and restart the broker",
            self.path, self.failure,
        )  # fmt: skip
        for log in [*self.logs.values(), *self.copies.values()]:
            log.fail(self.failure)
        if self.on_failure is not None:
            self.on_failure(self)

    # -- removing

    def rename_away(self, log: Log, suffix: str = DELETE_SUFFIX) -> str:
        """Rename a partition's directory so that it no longer counts; returns the new path."""
        topic, partition = log.tp
        ending = f"-{partition}.{uuid.uuid4().hex}{suffix}"
        target = os.path.join(self.path, topic[: DIRECTORY_NAME_LENGTH_MAX - len(ending)] + ending)
        os.rename(log.directory, target)
        if suffix == DELETE_SUFFIX:
            self._discard([target], log.config.file_delete_delay_ms)
        return target

    def delete_copy(self, path: str) -> None:
        """Remove the directory of a copy that is of no use, soon. OSError passes through."""
        target = path.removesuffix(FUTURE_SUFFIX) + DELETE_SUFFIX
        os.rename(path, target)
        self._to_delete.append((0, [target]))

    def _discard(self, paths: list[str], delay_ms: int) -> None:
        if paths:
            self._to_delete.append((self._clock.now_ms() + delay_ms, paths))

    def delete_due(self, now_ms: int) -> int:
        """Unlink what is due; returns how many paths went. Blocks; meant for a worker thread."""
        removed = 0
        for _ in range(len(self._to_delete)):
            due_ms, paths = self._to_delete.popleft()
            if due_ms > now_ms:
                self._to_delete.append((due_ms, paths))
                continue
            for path in paths:
                try:
                    if os.path.isdir(path):
                        shutil.rmtree(path)
                    else:
                        unlink_if_there(path)
                    removed += 1
                except OSError as error:
                    logger.warning("Cannot delete %s; the next start tries again: %s", path, error)
        return removed
