"""The log of one partition: segments in a directory, appended at one end. readable_log.py has what readers call.

Threads. The event loop's thread appends, rolls and truncates. Any thread may read, `flush` and `drop_expired`.
Appending and reading take no lock. The flusher's lock is held while a flush or a drop runs, and by the loop only to
truncate; the list of segments has a lock of its own, held for the moment of a change.
"""

import os
import time
from uuid import UUID

from ottla.broker.storage.append_rules import AppendRules
from ottla.broker.storage.checkpoints import LEADER_EPOCHS, format_epochs
from ottla.broker.storage.environment import LogEnvironment
from ottla.broker.storage.flushing import Flusher
from ottla.broker.storage.leader_epochs import LeaderEpochs
from ottla.broker.storage.markers import Marker, encode_marker, read_marker
from ottla.broker.storage.producer_state import EPOCH_BUMPED_BY_END, ProducerState
from ottla.broker.storage.readable_log import ReadableLog
from ottla.broker.storage.results import AppendResult, LogSlice
from ottla.broker.storage.retention import expired_segments
from ottla.broker.storage.rolling import RollRules, runs_of_batches
from ottla.broker.storage.segment import Segment
from ottla.broker.storage.segment_files import segment_prefix
from ottla.broker.storage.snapshots import SnapshotFiles, rebuild_producers, recent_producers
from ottla.broker.storage.transaction_index import AbortedTransaction
from ottla.broker.storage.validation import (
    AppendOrigin,
    check_batch,
    check_replicated,
    needs_recompression,
    recompress,
    stamp_offset,
    stamp_time,
)
from ottla.config.topic import TopicSettings
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import TopicPartition
from ottla.model.sentinels import NO_OFFSET, NO_TIMESTAMP
from ottla.protocol.compression import Buffer
from ottla.protocol.errors import CorruptBatch
from ottla.protocol.records import CONTROL, LOG_APPEND_TIME, BatchHeader

__all__ = ["AbortedTransaction", "AppendOrigin", "AppendResult", "Log", "LogEnvironment", "LogSlice"]


class Log(ReadableLog):
    def __init__(
        self,
        tp: TopicPartition,
        topic_id: UUID,
        directory: str,
        config: TopicSettings,
        environment: LogEnvironment,
        *,
        segments: list[Segment],
        start_offset: int,
        end_offset: int,
        recovery_point: int,
        leader_epochs: LeaderEpochs,
        producers: ProducerState,
        snapshots: SnapshotFiles,
        now_ms: int,
    ) -> None:
        super().__init__(tp, environment, segments, start_offset, end_offset, leader_epochs, producers)
        self.topic_id = topic_id
        self.directory = directory
        self.recovery_point = recovery_point
        self.producers.look_back = self._recent_producers
        self.last_flush_ms = now_ms
        self.cleaned_to: int | None = None
        """Up to where the log cleaner has been through; None when it never was."""
        self.cut_to: int | None = None
        """The lowest end that truncations gave the log since whoever copies it last took note."""
        self.being_copied = False
        """A copy in another directory is being made: until it is done the log must not be cleaned."""
        self.segments.active.transactions.pin()
        self.snapshots = snapshots
        self._flusher = Flusher(directory, environment.disk, self.segments)
        self.maintenance = self._flusher.lock
        """Held by whoever takes segments away or syncs them; never needed to append or read."""
        self.reconfigure(config)

    # -- facts

    @property
    def unflushed_records(self) -> int:
        return self.end_offset - self.recovery_point

    @property
    def flush_required(self) -> bool:
        """Whether flush.messages asks for a flush before the last append is acknowledged."""
        return self.end_offset - self.recovery_point >= self.config.flush_messages

    def flush_due(self, now_ms: int) -> bool:
        """Whether a flush should happen soon: by count, by time, or because a finished segment is not on disk yet."""
        if self.end_offset == self.recovery_point:
            return False
        return (
            self.flush_required
            or now_ms - self.last_flush_ms >= self.config.flush_ms
            or self.recovery_point < self.segments.active.base_offset
        )

    def reconfigure(self, config: TopicSettings) -> None:
        self.config = config
        self.rules = AppendRules(config)
        if self.rules.read_only or self.producers.of_another_cluster:
            self.producers.belong_to_another_cluster(another=self.rules.read_only)
        self._roll_rules = RollRules(config, self.tp, self.segments.active.base_offset)
        self.segments.active.index_interval_bytes = config.index_interval_bytes

    def needs_recompression(self, records: Buffer) -> bool:
        return needs_recompression(records, self.rules)

    def recompress(self, records: Buffer) -> bytearray:
        """The batch in the topic's codec; slow, safe to run in another thread."""
        return recompress(records, self.rules)

    # -- appending

    def append_as_leader(
        self,
        records: bytearray | memoryview,
        leader_epoch: int,
        now_ms: int,
        *,
        origin: AppendOrigin = AppendOrigin.CLIENT,
    ) -> AppendResult:
        """Check one batch, give it the next offsets in place and write it. Raises ApiError and changes nothing then."""
        self._check_alive()
        rules = self.rules
        if rules.target_codec is not None and needs_recompression(records, rules):
            records = recompress(records, rules)
        header = check_batch(records, rules, now_ms, origin)
        if header.producer_id >= 0:
            sent = self.producers.check(header, from_client=origin is AppendOrigin.CLIENT)
            if sent is not None:
                time_ms = sent.timestamp if rules.log_append_time else NO_TIMESTAMP
                return AppendResult(
                    sent.base_offset, sent.last_offset, time_ms, self.start_offset, True, header.record_count, 0
                )
        append_time_ms = NO_TIMESTAMP
        if rules.log_append_time:
            append_time_ms = now_ms
            header = stamp_time(records, header, now_ms)
        elif header.attributes & LOG_APPEND_TIME:
            header = stamp_time(records, header, None)
        base_offset = self.end_offset
        last_offset = base_offset + header.last_offset_delta
        stamp_offset(records, base_offset, leader_epoch)
        length = len(records)
        try:
            active = self.segments.active
            if self._roll_rules.must_roll(active, length, last_offset, header.max_timestamp, now_ms):
                active = self._roll(now_ms)
            if leader_epoch != self.leader_epochs.latest:
                self._assign_epoch(leader_epoch, base_offset)
            active.append(records, last_offset, header.max_timestamp)
        except (OSError, CorruptBatch) as error:
            raise self._storage_error(error, "cannot append to") from error
        self._set_end(last_offset + 1, active)
        if header.producer_id >= 0:
            if header.attributes & CONTROL:
                self._end_transaction(header, base_offset, records)
            else:
                self.producers.update(header, base_offset, header.max_timestamp)
        return AppendResult(
            base_offset, last_offset, append_time_ms, self.start_offset, False, header.record_count, length
        )

    def append_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        marker: Marker,
        leader_epoch: int,
        now_ms: int,
        *,
        transaction_version: int,
    ) -> AppendResult:
        """End the producer's transaction in this log. Raises ApiError if the marker comes from the past."""
        self.producers.check_marker(producer_id, producer_epoch, marker.coordinator_epoch, transaction_version)
        batch = encode_marker(producer_id, producer_epoch, marker, now_ms)
        result = self.append_as_leader(batch, leader_epoch, now_ms, origin=AppendOrigin.COORDINATOR)
        if transaction_version < EPOCH_BUMPED_BY_END:
            # Its epoch is that of the records it ends, also where they were sent as in the newer version.
            self.producers.forget_verification(producer_id)
        return result

    def _end_transaction(self, header: BatchHeader, offset: int, batch: Buffer) -> None:
        marker = read_marker(batch)
        if marker is None:
            return
        ended = self.producers.end(header, offset, marker)
        if ended is not None and not marker.commit:
            self.segments.active.transactions.add(AbortedTransaction(*ended))
            self._last_abort = offset

    def append_as_follower(
        self, records: Buffer, now_ms: int, batches: list[tuple[int, BatchHeader]] | None = None
    ) -> AppendResult:
        """Append batches that a leader has already checked and numbered; a last one cut short is left out."""
        self._check_alive()
        if batches is None:
            batches = check_replicated(records, self.end_offset)
        if not batches:
            return AppendResult(self.end_offset, self.end_offset - 1, NO_TIMESTAMP, self.start_offset, False, 0, 0, 0)
        try:
            for run in runs_of_batches(batches, self.config.segment_bytes):
                self._append_run(records, run, now_ms)
        except (OSError, CorruptBatch) as error:
            raise self._storage_error(error, "cannot append to") from error
        count = sum(header.record_count for _, header in batches)
        length = batches[-1][0] + batches[-1][1].size
        return AppendResult(
            batches[0][1].base_offset, self.end_offset - 1, NO_TIMESTAMP, self.start_offset, False, count, length,
            len(batches),
        )  # fmt: skip

    def _append_run(self, records: Buffer, batches: list[tuple[int, BatchHeader]], now_ms: int) -> None:
        """Neighbouring batches that fit into one segment, in one write."""
        first, last = batches[0], batches[-1]
        start, end = first[0], last[0] + last[1].size
        newest = max(header.max_timestamp for _, header in batches)
        if self._roll_rules.must_roll(self.segments.active, end - start, last[1].last_offset, newest, now_ms):
            self._roll(now_ms, base_offset=first[1].base_offset)
        for _, header in batches:
            if header.leader_epoch > self.leader_epochs.latest:
                self._assign_epoch(header.leader_epoch, header.base_offset)
        self.segments.active.append_many(
            memoryview(records)[start:end], [(h.size, h.last_offset, h.max_timestamp) for _, h in batches]
        )
        self._set_end(last[1].next_offset, self.segments.active)
        for position, header in batches:
            if header.is_control:
                self._end_transaction(header, header.base_offset, memoryview(records)[position:])
            else:
                self.producers.update(header, header.base_offset, header.max_timestamp)

    def skip_to(self, offset: int, now_ms: int) -> None:
        """Go on at `offset`: the log that this one follows has nothing between its end and there any more."""
        self._check_alive()
        if offset <= self.end_offset:
            return
        try:
            self._roll(now_ms, base_offset=offset)
        except (OSError, CorruptBatch) as error:
            raise self._storage_error(error, "cannot roll") from error
        self._set_end(offset, self.segments.active)

    def _roll(self, now_ms: int, base_offset: int | None = None) -> Segment:
        """Begin a new segment. The finished one is forced to disk by the next flush, not here."""
        old = self.segments.active
        base = self.end_offset if base_offset is None else base_offset
        self.snapshots.take(self.producers, self.end_offset)
        new = self._new_segment(base, now_ms)
        old.load_for_append()
        old.seal_time_index()
        if self.config.preallocate:
            old.trim()
        self.segments.add(new)
        self._set_end(self.end_offset, new)
        self._flusher.names_dirty = True
        self._roll_rules = RollRules(self.config, self.tp, base)
        return new

    def _new_segment(self, base_offset: int, now_ms: int) -> Segment:
        return Segment.create(
            segment_prefix(self.directory, base_offset), base_offset,
            disk=self.environment.disk, cache=self.environment.cache, files=self.environment.files, created_ms=now_ms,
            index_interval_bytes=self.config.index_interval_bytes,
            preallocate_bytes=self.config.segment_bytes if self.config.preallocate else 0,
        )  # fmt: skip

    def begin_epoch(self, epoch: int) -> None:
        """A new leader epoch begins at the end of the log, whether or not it will write anything."""
        self._check_alive()
        if epoch <= self.leader_epochs.latest:
            return
        try:
            self._assign_epoch(epoch, self.end_offset)
        except OSError as error:
            raise self._storage_error(error, "cannot write the epochs of") from error

    def _assign_epoch(self, epoch: int, base_offset: int) -> None:
        if self.leader_epochs.assign(epoch, base_offset):
            self._write_epochs()

    def _write_epochs(self) -> None:
        # Not forced to disk here: until the next flush the log itself tells the epochs, after it `flush` has synced.
        path = os.path.join(self.directory, LEADER_EPOCHS)
        self.environment.disk.overwrite_file(path, format_epochs(self.leader_epochs.entries()))
        self._flusher.epochs_dirty = True

    # -- flushing

    def flush(self) -> None:
        """Force everything appended so far to disk and advance the recovery point. Blocks; safe in any thread."""
        with self._flusher.lock:
            began = time.monotonic()
            try:
                while True:
                    end_offset = self.end_offset
                    if end_offset <= self.recovery_point:
                        return
                    if self._flusher.flush_once(self.recovery_point):
                        self.recovery_point = end_offset
                        self.environment.on_flushed(time.monotonic() - began)
                        return
            except OSError as error:
                # What the kernel could not write it may have dropped: nothing after this can be trusted.
                if self.failure is None:
                    self.environment.on_failure(error)
                raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"cannot flush {self.tp}: {error}") from error

    # -- removing

    def truncate_to(self, offset: int) -> None:
        """Cut off every batch that reaches to `offset` or beyond, so that `end_offset` is at most `offset`."""
        self._check_alive()
        with self._flusher.lock:
            try:
                if offset < self.end_offset:
                    self._truncate(offset)
                elif self.leader_epochs.truncate_end(offset):  # an epoch without records may have begun at the end
                    self._write_epochs()
            except (OSError, CorruptBatch) as error:
                raise self._storage_error(error, "cannot read") from error

    def restart_at(self, offset: int) -> None:
        """Drop every record and go on from `offset`, where the log that this one follows now begins."""
        self._check_alive()
        with self._flusher.lock:
            try:
                self._restart(offset)
            except (OSError, CorruptBatch) as error:
                raise self._storage_error(error, "cannot truncate") from error

    def _restart(self, offset: int) -> None:
        segments = self.segments.all
        self._note_cut(min(offset, self.start_offset))
        self._discard(segments)
        self.segments.replace([self._new_segment(offset, segments[-1].created_ms)])
        self.segments.active.transactions.pin()
        self._flusher.names_dirty = True
        self.start_offset = self.recovery_point = offset
        self._set_end(offset, self.segments.active)
        self.cleaned_to = None
        self.leader_epochs = LeaderEpochs()
        self._write_epochs()
        self.snapshots.remove_above(NO_OFFSET)
        self.producers.clear()
        self._last_abort = NO_OFFSET
        self._roll_rules = RollRules(self.config, self.tp, offset)

    def _note_cut(self, offset: int) -> None:
        self.cut_to = offset if self.cut_to is None else min(self.cut_to, offset)

    def _truncate(self, offset: int) -> None:
        self._note_cut(offset)
        segments = self.segments.all
        kept = [segment for segment in segments if segment.base_offset < offset]
        end_offset = kept[-1].truncate(offset) if kept else offset
        self._discard(segments[len(kept) :])
        self.segments.replace(kept or [self._new_segment(offset, segments[0].created_ms)])
        self.segments.active.transactions.pin()
        self._set_end(end_offset, self.segments.active)
        self._roll_rules = RollRules(self.config, self.tp, self.segments.active.base_offset)
        self.recovery_point = min(self.recovery_point, end_offset)
        self.start_offset = min(self.start_offset, end_offset)
        if self.cleaned_to is not None:
            self.cleaned_to = min(self.cleaned_to, end_offset)
        if self.leader_epochs.truncate_end(end_offset):
            self._write_epochs()
        self.producers = rebuild_producers(self.snapshots, kept, end_offset, replicated=self.producers.replicated)
        self.producers.look_back = self._recent_producers
        self.producers.belong_to_another_cluster(another=self.rules.read_only)

    def _recent_producers(self) -> ProducerState:
        return recent_producers(self.segments.all, self.end_offset)

    def delete_records_before(self, offset: int) -> None:
        """Make `offset` the start of the log and drop the segments that lie wholly before it."""
        self._check_alive()
        if offset > self.end_offset or offset < 0:
            raise self.out_of_range(offset)
        if offset > self.start_offset:
            self._advance_start(offset)
        segments = self.segments.all
        gone = sum(following.base_offset <= self.start_offset for following in segments[1:])
        self._discard(self.segments.drop_oldest(gone))

    def _advance_start(self, offset: int) -> None:
        self.start_offset = max(self.start_offset, offset)
        if self.leader_epochs.truncate_start(self.start_offset):
            try:
                self._write_epochs()
            except OSError as error:
                raise self._storage_error(error, "cannot write the epochs of") from error

    def apply_retention(self, now_ms: int, high_watermark: int | None = None) -> int:
        """Drop what the topic's limits no longer keep; returns the number of segments. For the loop's thread."""
        self.roll_if_expired(now_ms, high_watermark)
        return self.drop_expired(now_ms, high_watermark)

    def roll_if_expired(self, now_ms: int, high_watermark: int | None = None) -> bool:
        """Begin a new segment if every record of the active one may go. Cheap; for the loop's thread."""
        if self.failure is not None or self._expired(now_ms, high_watermark) < len(self.segments):
            return False
        try:
            self._roll(now_ms)
        except (OSError, CorruptBatch) as error:
            raise self._storage_error(error, "cannot roll") from error
        return True

    def drop_expired(self, now_ms: int, high_watermark: int | None = None) -> int:
        """Drop inactive segments that have outlived the topic's limits. Safe in any thread beside appends."""
        if self.failure is not None:
            return 0
        with self._flusher.lock:
            count = self._expired(now_ms, high_watermark)
            while not self._confirmed(count):
                count = self._expired(now_ms, high_watermark)
            dropped = self.segments.drop_oldest(count)
            if dropped:
                self._advance_start(self.segments.first_base_offset)
                self._discard(dropped)
        return len(dropped)

    def _expired(self, now_ms: int, high_watermark: int | None) -> int:
        end_offset = self.end_offset
        mark = end_offset if high_watermark is None else high_watermark
        try:
            return expired_segments(
                self.segments.all, self.config, now_ms=now_ms, start_offset=self.start_offset,
                end_offset=end_offset, high_watermark=mark,
            )  # fmt: skip
        except (OSError, CorruptBatch) as error:
            raise self._storage_error(error, "cannot read") from error

    def _confirmed(self, count: int) -> bool:
        try:
            doubtful = [segment for segment in self.segments.all[:count] if not segment.confirm_retention_timestamp()]
        except (OSError, CorruptBatch) as error:
            raise self._storage_error(error, "cannot read") from error
        return not doubtful

    def _discard(self, segments: list[Segment]) -> None:
        for segment in segments:
            self.environment.discard(segment.retire(), self.config.file_delete_delay_ms)

    # -- the end

    def relocate(self, directory: str) -> None:
        """The directory has got this name. For the loop's thread, while nobody else uses the log."""
        self.directory = directory
        self.snapshots.directory = directory
        self._flusher.relocated(directory)
        for segment in self.segments.all:
            segment.relocate(segment_prefix(directory, segment.base_offset))

    def close(self) -> None:
        """Bring files up to what memory knows, in the order a clean start trusts them. Blocks."""
        if self.failure is not None:
            self.release()
            return
        active = self.segments.active
        try:
            if active.indexes_if_loaded is not None:
                active.seal_time_index()
            self.flush()
            if self.config.preallocate:
                active.trim()
            for segment in self.segments.all:
                segment.write_indexes()
            self._flusher.flush_transactions(active)
            self.snapshots.take(self.producers, self.end_offset)
        except OSError as error:
            raise self._storage_error(error, "cannot close") from error
        self.release()

    def release(self) -> None:
        """Let go of descriptors and memory without touching the disk. Slices in flight stay readable."""
        for segment in self.segments.all:
            segment.close()

    def fail(self, reason: str) -> None:
        """The directory is gone: refuse everything from now on."""
        self.failure = reason
