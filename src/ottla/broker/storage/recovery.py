"""Opening a partition's directory: trusting it after a clean stop, checking and mending it after a crash."""

import logging
import os
import shutil
from collections.abc import Iterable
from uuid import UUID

import msgspec

from ottla.broker.storage.checkpoints import (
    LEADER_EPOCHS,
    PARTITION_METADATA,
    format_epochs,
    format_partition_metadata,
    parse_epochs,
    parse_partition_metadata,
    read_text,
)
from ottla.broker.storage.compaction.leftovers import finish_swaps
from ottla.broker.storage.disk import unlink_if_there
from ottla.broker.storage.index import OFFSET_ENTRY_BYTES, TIME_ENTRY_BYTES, IndexBuilder
from ottla.broker.storage.leader_epochs import LeaderEpochs
from ottla.broker.storage.log import Log, LogEnvironment
from ottla.broker.storage.scan import iterate_headers, verify_batches
from ottla.broker.storage.segment import Segment
from ottla.broker.storage.segment_files import (
    SUFFIX_DELETED,
    SUFFIX_INDEX,
    SUFFIX_LOG,
    SUFFIX_SNAPSHOT,
    SUFFIX_TIME_INDEX,
    base_offsets,
    segment_prefix,
)
from ottla.broker.storage.snapshots import SnapshotFiles, rebuild_producers
from ottla.broker.storage.transaction_index import SUFFIX_TXN_INDEX
from ottla.config.topic import TopicSettings
from ottla.model.names import TopicPartition
from ottla.protocol.errors import CorruptBatch

logger = logging.getLogger(__name__)

_LEFTOVERS = (SUFFIX_DELETED, ".tmp")


class KnownOffsets(msgspec.Struct, frozen=True):
    """What the directory's checkpoints say about a partition."""

    start_offset: int = 0
    recovery_point: int = 0
    clean: bool = True
    tails_may_be_lost: bool = False
    """Whether the machine crashed: then the end of any file may be missing that was not flushed."""


def create_log(
    tp: TopicPartition, topic_id: UUID, directory: str, config: TopicSettings, environment: LogEnvironment, now_ms: int
) -> Log:
    """A new, empty log. Nothing is forced to disk: until its first flush a power cut loses no more than its records."""
    _make_directory(directory)
    try:
        environment.disk.write_file(os.path.join(directory, PARTITION_METADATA), format_partition_metadata(topic_id))
        environment.disk.write_file(os.path.join(directory, LEADER_EPOCHS), format_epochs(()))
        opening = _Opening(tp, directory, config, environment, now_ms)
        return opening.finish(topic_id, [opening.create_segment(0)], KnownOffsets(), 0, LeaderEpochs(), [])
    except OSError:
        shutil.rmtree(directory, ignore_errors=True)  # fails where no more files can be opened: see below
        raise


def _make_directory(directory: str) -> None:
    """Also where an attempt that failed has left one, with nothing in its log."""
    try:
        os.makedirs(directory)
    except FileExistsError:
        with os.scandir(directory) as found:
            if any(entry.name.endswith(SUFFIX_LOG) and entry.stat().st_size for entry in found):
                raise
        shutil.rmtree(directory)
        os.makedirs(directory)


def open_log(
    tp: TopicPartition,
    directory: str,
    config: TopicSettings,
    environment: LogEnvironment,
    known: KnownOffsets,
    now_ms: int,
) -> Log:
    """Open an existing directory. Whatever state its files are in, a usable log comes out; OSError passes through."""
    return _Opening(tp, directory, config, environment, now_ms).open(known)


class _Opening:
    def __init__(
        self, tp: TopicPartition, directory: str, config: TopicSettings, environment: LogEnvironment, now_ms: int
    ) -> None:
        self._tp = tp
        self._directory = directory
        self._config = config
        self._environment = environment
        self._now_ms = now_ms
        self._index_from: int | None = None
        """The first segment whose list of aborted transactions cannot be trusted, by its base offset."""

    def open(self, known: KnownOffsets) -> Log:
        names = set(os.listdir(self._directory))
        finish_swaps(self._directory, names, self._environment.disk)
        self._remove_leftovers(names)
        segments = [self._segment(base) for base in base_offsets(names, SUFFIX_LOG)]
        snapshots = base_offsets(names, SUFFIX_SNAPSHOT)
        epochs = self._read_epochs(segments)
        noted = epochs.entries()
        if known.clean:
            segments, end_offset = self._trust(segments, epochs, names)
        else:
            segments, end_offset = self._recover(segments, epochs, known.recovery_point, known.tails_may_be_lost)
        self._find_damaged_transactions(segments)
        start_offset = max(known.start_offset, segments[0].base_offset if segments else 0)
        if not segments or start_offset > end_offset:
            # Every record that is left lies before the start: the log is empty and goes on from there. Its producers
            # are forgotten, for a state from before the loss would refuse what they send next.
            self._discard(segments)
            segments, end_offset = [self.create_segment(start_offset)], start_offset
            SnapshotFiles(self._directory, self._environment.disk, snapshots).remove_above(-1)
            snapshots = []
        epochs.truncate_end(end_offset)
        epochs.truncate_start(start_offset)
        if epochs.entries() != noted:
            self._write_epochs(epochs)
        topic_id = parse_partition_metadata(read_text(os.path.join(self._directory, PARTITION_METADATA)))
        known = msgspec.structs.replace(known, start_offset=start_offset)
        return self.finish(topic_id, segments, known, end_offset, epochs, snapshots)

    def finish(
        self,
        topic_id: UUID,
        segments: list[Segment],
        known: KnownOffsets,
        end_offset: int,
        epochs: LeaderEpochs,
        snapshot_offsets: list[int],
    ) -> Log:
        snapshots = SnapshotFiles(self._directory, self._environment.disk, snapshot_offsets)
        return Log(
            self._tp, topic_id, self._directory, self._config, self._environment,
            segments=segments, start_offset=known.start_offset, end_offset=end_offset,
            recovery_point=end_offset if known.clean else min(known.recovery_point, end_offset),
            leader_epochs=epochs, snapshots=snapshots, now_ms=self._now_ms,
            producers=rebuild_producers(snapshots, segments, end_offset, index_from=self._index_from),
        )  # fmt: skip

    def create_segment(self, base_offset: int) -> Segment:
        return Segment.create(
            segment_prefix(self._directory, base_offset), base_offset, disk=self._environment.disk,
            cache=self._environment.cache, files=self._environment.files, created_ms=self._now_ms,
            index_interval_bytes=self._config.index_interval_bytes,
            preallocate_bytes=self._config.segment_bytes if self._config.preallocate else 0,
        )  # fmt: skip

    def _segment(self, base_offset: int) -> Segment:
        prefix = segment_prefix(self._directory, base_offset)
        facts = os.stat(prefix + SUFFIX_LOG)
        return Segment(
            prefix, base_offset, facts.st_size, disk=self._environment.disk, cache=self._environment.cache,
            files=self._environment.files, created_ms=int(facts.st_mtime * 1000),
            index_interval_bytes=self._config.index_interval_bytes,
        )  # fmt: skip

    def _remove_leftovers(self, names: set[str]) -> None:
        """Finish deletions that were under way, and drop indexes whose log is gone."""
        logs = {name.removesuffix(SUFFIX_LOG) for name in names if name.endswith(SUFFIX_LOG)}
        for name in list(names):
            stem, _, _ = name.partition(".")
            orphan = name.endswith((SUFFIX_INDEX, SUFFIX_TIME_INDEX, SUFFIX_TXN_INDEX)) and stem not in logs
            if orphan or name.endswith(_LEFTOVERS):
                unlink_if_there(os.path.join(self._directory, name))
                names.discard(name)

    # -- after a clean stop

    def _trust(self, segments: list[Segment], epochs: LeaderEpochs, names: set[str]) -> tuple[list[Segment], int]:
        for segment in segments:
            if not self._indexes_plausible(segment, names):
                self._rebuild_indexes(segment)
        if not segments:
            return segments, 0
        try:
            return segments, segments[-1].next_offset()
        except CorruptBatch as error:
            logger.warning("%s: Recovering the last segment, corrupt in spite of a clean shutdown: %s", self._tp, error)
            return self._recover(segments, epochs, segments[-1].base_offset)

    def _indexes_plausible(self, segment: Segment, names: set[str]) -> bool:
        stem = os.path.basename(segment.prefix)
        for suffix, entry_bytes in ((SUFFIX_INDEX, OFFSET_ENTRY_BYTES), (SUFFIX_TIME_INDEX, TIME_ENTRY_BYTES)):
            if stem + suffix not in names or os.stat(segment.prefix + suffix).st_size % entry_bytes:
                return False
        return True

    def _rebuild_indexes(self, segment: Segment) -> None:
        logger.warning("%s: Rebuilding the missing or corrupt index files of segment %d", self._tp, segment.base_offset)
        try:
            segment.rebuild_indexes()
        except CorruptBatch as error:
            # Reads beyond the damage will say so; everything before it stays readable.
            logger.warning("%s: Corrupt segment %d: %s", self._tp, segment.base_offset, error)
        segment.release_indexes()

    def _find_damaged_transactions(self, segments: list[Segment]) -> None:
        for segment in segments:
            if self._index_from is not None and segment.base_offset >= self._index_from:
                return
            try:
                if segment.transactions.stored and segment.transactions.last_offset >= 0:
                    continue
            except CorruptBatch as error:
                logger.warning("%s: Rebuilding the corrupt transaction index: %s", self._tp, error)
                self._index_from = segment.base_offset

    # -- after a crash

    def _recover(
        self, segments: list[Segment], epochs: LeaderEpochs, recovery_point: int, tails_may_be_lost: bool = False
    ) -> tuple[list[Segment], int]:
        """Check everything from the recovery point's segment on; cut the log at the first batch that is not whole.

        A finished segment that was not flushed may have lost its end with nothing to show for it, while the next one
        is there: after a crash of the machine a gap between two segments is a loss, and what follows is no use.
        """
        first = 0
        for number, segment in enumerate(segments):
            if segment.base_offset <= recovery_point:
                first = number
        end_offset = self._index_from = segments[first].base_offset if segments else 0
        kept = segments[:first]
        whole = True
        for segment in segments[first:]:
            if segment.base_offset < end_offset:
                logger.warning(
                    "%s: Deleting segment %d and those behind it: it overlaps the segment before",
                    self._tp,
                    segment.base_offset,
                )
                break
            if segment.base_offset > end_offset and (tails_may_be_lost or not whole):
                # Records are missing in between; if none are, only space that was set aside has been cut.
                logger.warning(
                    "%s: Offsets %d to %d were lost in the crash: deleting the segments behind them",
                    self._tp, end_offset, segment.base_offset - 1,
                )  # fmt: skip
                break
            kept.append(segment)
            end_offset, whole = self._recover_segment(segment, epochs)
        self._discard(segments[len(kept) :])
        return kept, end_offset

    def _recover_segment(self, segment: Segment, epochs: LeaderEpochs) -> tuple[int, bool]:
        """(offset after the last whole batch, whether nothing had to be cut)"""
        builder = IndexBuilder(segment.base_offset, segment.index_interval_bytes)
        next_offset, valid_bytes = segment.base_offset, 0
        damage = None
        try:
            for position, header in verify_batches(segment.file, 0, segment.size, segment.base_offset):
                builder.note(position, header)
                next_offset, valid_bytes = header.next_offset, position + header.size
                epochs.confirm(header.leader_epoch, header.base_offset)
        except CorruptBatch as error:
            damage = str(error)
        if damage is not None:
            cut = segment.size - valid_bytes
            logger.warning(
                "%s: Corruption found in segment %d, truncating to offset %d (%d bytes less): %s",
                self._tp, segment.base_offset, next_offset, cut, damage,
            )  # fmt: skip
            segment.size = valid_bytes
            file = segment.file
            self._environment.disk.ftruncate(file.fd, valid_bytes)
        segment.adopt_indexes(builder)
        segment.release_indexes()
        return next_offset, damage is None

    # -- epochs

    def _read_epochs(self, segments: Iterable[Segment]) -> LeaderEpochs:
        entries = parse_epochs(read_text(os.path.join(self._directory, LEADER_EPOCHS)))
        if entries is not None:
            return LeaderEpochs(entries)
        epochs = LeaderEpochs()
        try:
            for segment in segments:
                for _, header in iterate_headers(segment.file, 0, segment.size, segment.base_offset):
                    if header.leader_epoch > epochs.latest:
                        epochs.assign(header.leader_epoch, header.base_offset)
        except CorruptBatch as error:
            logger.warning("%s: Leader epoch checkpoint rebuilt in part only: %s", self._tp, error)
        self._write_epochs(epochs)
        return epochs

    def _write_epochs(self, epochs: LeaderEpochs) -> None:
        path = os.path.join(self._directory, LEADER_EPOCHS)
        self._environment.disk.overwrite_file(path, format_epochs(epochs.entries()))

    def _discard(self, segments: list[Segment]) -> None:
        for segment in segments:
            self._environment.discard(segment.retire(), 0)
