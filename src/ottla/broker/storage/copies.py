"""A log and its copy in another directory of the same broker, on the way to take the log's place.

The copy grows in `<topic>-<partition>.<id>-future`. It is filled as a follower's log is, so it has indexes, epochs and
producers of its own; the last records come on the event loop's thread, so that nothing can be appended in between.
Then it takes the log's place, in an order that survives a kill between any two steps:

1. The directory of the copy gets the partition's proper name. From here on appends go to the copy.
2. The copy is forced to disk, that name included.
3. The directory of the old log is renamed to -delete.
4. The mark that told where the copy came from goes.

Before 1 the old log is the partition and the copy is waste, or can be gone on with after a clean stop. Between 1 and 3
the next start finds the partition twice, one of the two with the mark: the one with the longer history stays. That is
the copy if anything was appended to it, and the old log if a power cut took records from the copy before step 2.
"""

import os
import uuid

from ottla.broker.storage.checkpoints import LEADER_EPOCHS, MOVE_MARK, format_epochs
from ottla.broker.storage.disk import Disk, unlink_if_there
from ottla.broker.storage.leader_epochs import LeaderEpochs
from ottla.broker.storage.log import Log
from ottla.broker.storage.log_dir import DIRECTORY_NAME_LENGTH_MAX, FUTURE_SUFFIX, LogDir
from ottla.broker.storage.recovery import create_log
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import TopicPartition
from ottla.protocol.records import BATCH_OVERHEAD, read_header

CHUNK_BYTES = 1024 * 1024


def future_name(tp: TopicPartition) -> str:
    """What the directory of a copy is called; ApiError if the topic's name leaves no room for it."""
    name = f"{tp.topic}-{tp.partition}.{uuid.uuid4().hex}{FUTURE_SUFFIX}"
    if len(name) > DIRECTORY_NAME_LENGTH_MAX:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"the name of topic {tp.topic} is too long for a move")
    return name


def begin_copy(source: Log, target: LogDir, now_ms: int) -> Log:
    """A new copy without records. OSError passes through."""
    directory = os.path.join(target.path, future_name(source.tp))
    copy = create_log(source.tp, source.topic_id, directory, source.config, target.environment, now_ms)
    put_mark(directory, target.environment.disk)
    if source.segments.first_base_offset:
        copy.restart_at(_first_base_offset(source))
    return copy


class LogCopy:
    """One move. `advance` and `flush` wait for the disk and may run in a worker, one at a time; the rest is quick."""

    __slots__ = ("_cut", "_disk", "copy", "home", "source", "target")

    def __init__(self, source: Log, home: LogDir, copy: Log, target: LogDir, disk: Disk) -> None:
        self.source = source
        self.home = home
        self.copy = copy
        self.target = target
        self._disk = disk
        self._cut: int | None = None

    @property
    def lag(self) -> int:
        """How many offsets the copy is behind."""
        return max(0, self.source.end_offset - self.copy.end_offset)

    def take_note(self) -> None:
        """On the loop, before each `advance`: what was cut off the log must be cut off the copy."""
        cut, self.source.cut_to = self.source.cut_to, None
        if cut is not None:
            self._cut = cut if self._cut is None else min(self._cut, cut)

    @property
    def is_complete(self) -> bool:
        """On the loop: whether the copy is the same as the log."""
        source, copy = self.source, self.copy
        return (
            source.cut_to is None
            and self._cut is None
            and copy.end_offset == source.end_offset
            and copy.start_offset == source.start_offset
        )

    def advance(self, now_ms: int, bytes_max: int = CHUNK_BYTES) -> int:
        """Bring some of what is missing over; returns how many bytes."""
        source, copy = self.source, self.copy
        cut, self._cut = self._cut, None
        if cut is not None:
            copy.truncate_to(cut)
        if source.start_offset > copy.end_offset:
            first = _first_base_offset(source)
            if first > copy.end_offset:  # retention has overtaken the copy
                copy.restart_at(first)
        count = self._append_next(now_ms, bytes_max)
        start_offset = min(source.start_offset, copy.end_offset)
        if start_offset > copy.start_offset:
            copy.delete_records_before(start_offset)
        return count

    def _append_next(self, now_ms: int, bytes_max: int) -> int:
        source, copy = self.source, self.copy
        end_offset = source.end_offset
        if copy.end_offset >= end_offset:
            return 0
        try:
            offset = max(copy.end_offset, source.start_offset)
            records = source.read(offset, bytes_max, end_offset, min_one_batch=True).read()
        except ApiError as error:
            if error.code == ErrorCode.OFFSET_OUT_OF_RANGE:
                return 0  # the log was cut or shortened this moment; the next round knows
            raise
        if not records:
            copy.skip_to(end_offset, now_ms)
            return 0
        return copy.append_as_follower(records, now_ms).byte_count

    def flush(self) -> None:
        """Force to disk what the copy has, so that little is left to do when it takes over."""
        self.copy.flush()

    def take_over(self) -> None:
        """On the loop, when complete: step 1. OSError and ApiError pass through, and the old log is still the one."""
        source, copy = self.source, self.copy
        copy.leader_epochs = LeaderEpochs(source.leader_epochs.entries())
        epochs = format_epochs(source.leader_epochs.entries())
        self._disk.overwrite_file(os.path.join(copy.directory, LEADER_EPOCHS), epochs)
        copy.cleaned_to = source.cleaned_to
        # What the log knows of producers may be older than its records, and is what questions under way refer to.
        copy.snapshots.remove_above(copy.end_offset - 1)
        copy.snapshots.take(source.producers, copy.end_offset)
        directory = os.path.join(self.target.path, f"{copy.tp.topic}-{copy.tp.partition}")
        os.rename(copy.directory, directory)
        copy.relocate(directory)
        copy.producers = source.producers
        copy.last_flush_ms = source.last_flush_ms
        copy.reconfigure(source.config)
        source.fail(f"{source.tp} has moved to {self.target.path}")

    def make_durable(self) -> None:
        """In a worker: step 2."""
        self.copy.flush()
        self._disk.sync_path(self.target.path)

    def retire_source(self) -> None:
        """Step 3. OSError passes through."""
        self.home.rename_away(self.source)
        self.source.release()

    def forget_mark(self) -> None:
        """In a worker: step 4, when the step before it is on disk."""
        self._disk.sync_path(self.home.path)
        remove_mark(self.copy.directory)


def has_mark(directory: str) -> bool:
    return os.path.exists(os.path.join(directory, MOVE_MARK))


def put_mark(directory: str, disk: Disk) -> None:
    disk.write_file(os.path.join(directory, MOVE_MARK), b"")


def remove_mark(directory: str) -> bool:
    return unlink_if_there(os.path.join(directory, MOVE_MARK))


def longer_history(first: Log, second: Log) -> Log:
    """Of two logs of one partition the one that lived on; the copy when they are the same."""

    def age(log: Log) -> tuple[int, int, bool]:
        return log.leader_epochs.latest, log.end_offset, has_mark(log.directory)

    return second if age(second) > age(first) else first


def is_beginning_of(copy: Log, source: Log) -> bool:
    """Whether everything in the copy stands in the log too, as far as their epochs tell."""
    if copy.end_offset > source.end_offset:
        return False
    if copy.leader_epochs.latest < 0:
        return True
    epoch, end_offset = source.epoch_end_offset(copy.leader_epochs.latest)
    return epoch == copy.leader_epochs.latest and copy.end_offset <= end_offset


def _first_base_offset(log: Log) -> int:
    """Where the first batch begins that the log still needs: perhaps before the log's start, which may be inside."""
    start_offset = log.start_offset
    found = log.read(start_offset, BATCH_OVERHEAD, log.end_offset, min_one_batch=True)
    if found.file is None:
        return start_offset
    return min(start_offset, read_header(os.pread(found.file.fd, BATCH_OVERHEAD, found.position)).base_offset)
