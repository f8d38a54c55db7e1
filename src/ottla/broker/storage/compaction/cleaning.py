"""Cleaning one log: first learn the newest offset of every key in its dirty part, then rewrite what lies before.

Runs in the cleaning process. It reads the partition's files and writes .cleaned ones beside them; only the broker
renames anything.
"""

import os
import resource
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from ottla.broker.storage.compaction.batches import Longs, Records, Stretch, check_crcs, read_records, read_stretch
from ottla.broker.storage.compaction.choice import SegmentSizes, group_segments
from ottla.broker.storage.compaction.digests import Digester
from ottla.broker.storage.compaction.jobs import CleanJob, Done, SegmentPlace, Stats, Swap
from ottla.broker.storage.compaction.offset_map import ROW_BYTES, OffsetMap
from ottla.broker.storage.compaction.output import CleanedSegment
from ottla.broker.storage.compaction.retain import BatchFacts, Judge, Verdict, discardable
from ottla.broker.storage.compaction.rewriting import Kept, empty_batch, rewrite_batch
from ottla.broker.storage.compaction.throttle import Throttle
from ottla.broker.storage.compaction.transactions import TransactionWalk
from ottla.broker.storage.disk import Disk
from ottla.broker.storage.segment_files import SUFFIX_INDEX, SUFFIX_LOG, SUFFIX_TIME_INDEX
from ottla.broker.storage.transaction_index import AbortedTransaction
from ottla.protocol.errors import CorruptBatch
from ottla.protocol.records import BATCH_OVERHEAD, CODEC_MASK, read_header

# A map for few records need not be as large as it may be; with room to spare it is quick.
_ROOM_FACTOR = 2
_KIB = 1024


class Covered(NamedTuple):
    newest: OffsetMap
    to_offset: int
    """The last offset that the map speaks for; records behind it stay as they are."""


class Cleaning:
    def __init__(self, job: CleanJob, throttle: Throttle, disk: Disk | None = None) -> None:
        self._job = job
        self._throttle = throttle
        self._disk = disk or Disk()
        self._digester = Digester()
        self._aborted = [AbortedTransaction(*entry) for entry in job.aborted]
        self.stats = Stats()

    def run(self, swap: Callable[[Swap], None]) -> Done:
        """Clean the log; `swap` is called for every group of segments and returns when it has been swapped in."""
        began, cpu_began = time.monotonic(), time.process_time()
        directory = os.open(self._job.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            covered = self._build_map(directory)
            self.stats.map_seconds = time.monotonic() - began
            self._rewrite(directory, covered, swap)
        finally:
            os.close(directory)
        self.stats.seconds = time.monotonic() - began
        self.stats.cpu_seconds = time.process_time() - cpu_began
        self.stats.memory_bytes_max = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KIB
        self.stats.map_entries, self.stats.map_slots = covered.newest.size, covered.newest.slots
        return Done(covered.to_offset + 1, self.stats)

    # -- first pass

    def _build_map(self, directory: int) -> Covered:
        job = self._job
        records_max = job.end_offset - job.first_dirty_offset
        slots = int(records_max / job.map_load_factor) * _ROOM_FACTOR
        newest = OffsetMap(min(job.map_bytes // ROW_BYTES, slots))
        entries_max = int(newest.slots * job.map_load_factor)
        covered_to = job.first_dirty_offset - 1
        following = [segment.base_offset for segment in job.segments[1:]] + [job.end_offset]
        dirty = [pair for pair in zip(job.segments, following, strict=True) if pair[1] > job.first_dirty_offset]
        walk = self._walk_from(dirty[0][0].base_offset if dirty else job.end_offset)
        for segment, after in dirty:
            for stretch in self._stretches(directory, segment):
                self._throttle.spend(stretch.length)
                self.stats.map_bytes_read += stretch.length
                last_offset, full = self._learn(stretch, walk, newest, entries_max)
                covered_to = max(covered_to, last_offset)
                if full:
                    if covered_to < job.first_dirty_offset:
                        raise CorruptBatch(f"one batch has more keys than a map of {job.map_bytes} bytes holds")
                    return Covered(newest, covered_to)
            covered_to = after - 1
        return Covered(newest, covered_to)

    def _learn(self, stretch: Stretch, walk: TransactionWalk, newest: OffsetMap, entries_max: int) -> tuple[int, bool]:
        """Put the stretch's keys into the map; the last offset that it now covers, and whether it is full."""
        facts = BatchFacts.of(stretch)
        discard = discardable(stretch, facts, walk)
        wanted = ~facts.control & ~discard & (facts.record_count > 0) & (
            facts.last_offset >= self._job.first_dirty_offset
        )  # fmt: skip
        chosen = np.flatnonzero(wanted)
        self.stats.map_records_read += int(facts.record_count.sum())
        if not len(chosen):
            return int(facts.last_offset[-1]), False
        records = read_records(stretch, chosen)
        useful = np.flatnonzero((records.key_length >= 0) & (records.offset >= self._job.first_dirty_offset))
        high, low = self._digester.digest(records.data, records.key_start[useful], records.key_length[useful])
        offsets = records.offset[useful]
        if newest.size + len(useful) <= entries_max:
            newest.put(high, low, offsets)
            return int(facts.last_offset[-1]), False
        # Close to full, the batches go in one by one, and the first that does not fit ends the pass.
        owner = records.batch[useful]
        covered_to = -1
        for number in range(len(facts.last_offset)):
            mine = slice(*np.searchsorted(owner, (number, number + 1)).tolist())
            room = entries_max - newest.size
            if offsets[mine].size > room and newest.missing(high[mine], low[mine]) > room:
                return covered_to, True
            newest.put(high[mine], low[mine], offsets[mine])
            covered_to = int(facts.last_offset[number])
        return covered_to, False

    # -- second pass

    def _rewrite(self, directory: int, covered: Covered, swap: Callable[[Swap], None]) -> None:
        job = self._job
        sizes = [_sizes(directory, s) for s in job.segments if s.base_offset <= covered.to_offset]
        groups = group_segments(
            sizes, segment_bytes=job.segment_bytes, index_bytes=job.segment_index_bytes, end_offset=job.end_offset
        )
        walk = self._walk_from(job.segments[0].base_offset)
        judge = Judge(
            covered.newest, self._digester, covered.to_offset, end_offset=job.end_offset, now_ms=job.now_ms,
            producers=job.producers, walk=walk,
        )  # fmt: skip
        for group in groups:
            size = self._rewrite_group(directory, group, judge, walk)
            swap(Swap([segment.base_offset for segment in group], size))
        self.stats.records_without_key = judge.records_without_key

    def _rewrite_group(self, directory: int, group: list[SegmentSizes], judge: Judge, walk: TransactionWalk) -> int:
        output = CleanedSegment(directory, group[0].base_offset, self._job.index_interval_bytes, self._disk)
        try:
            for segment in group:
                place = SegmentPlace(segment.base_offset, segment.size)
                for stretch in self._stretches(directory, place):
                    self._throttle.spend(stretch.length)
                    self.stats.bytes_read += stretch.length
                    self.stats.records_read += int(stretch.headers["record_count"].sum())
                    before = output.size
                    verdict = judge.judge(stretch)
                    self._emit(stretch, verdict, output)
                    self.stats.bytes_written += output.size - before
                    self.stats.records_written += int(verdict.kept_count.sum())
                    self._throttle.spend(output.size - before)
            modified = os.stat(_name(group[-1].base_offset, SUFFIX_LOG), dir_fd=directory).st_mtime
            output.finish(walk.take_kept(), modified)
        finally:
            output.close()
        return output.size

    def _emit(self, stretch: Stretch, verdict: Verdict, output: CleanedSegment) -> None:
        headers = stretch.headers
        whole = (verdict.kept_count == headers["record_count"]) & ~verdict.needs_horizon & (verdict.kept_count > 0)
        stays = (verdict.kept_count > 0) | verdict.keep_empty
        numbers = np.flatnonzero(stays)
        last_offsets = (headers["base_offset"] + headers["last_offset_delta"]).tolist()
        view = memoryview(stretch.data)
        waiting: list[tuple[int, int, int]] = []  # whole batches that lie behind each other are written in one go
        copy_start = copy_end = 0
        for number, is_whole in zip(numbers.tolist(), whole[numbers].tolist(), strict=True):
            start, size = int(stretch.starts[number]), stretch.size(number)
            if is_whole and start == copy_end:
                copy_end = start + size
                waiting.append((size, last_offsets[number], int(headers["max_timestamp"][number])))
                continue
            if waiting:
                output.add(view[copy_start:copy_end], waiting)
                waiting = []
            if is_whole:
                copy_start, copy_end = start, start + size
                waiting.append((size, last_offsets[number], int(headers["max_timestamp"][number])))
            else:
                copy_start = copy_end = -1
                batch = self._changed_batch(stretch, verdict, number)
                output.add(batch, [(len(batch), last_offsets[number], read_header(batch).max_timestamp)])
        if waiting:
            output.add(view[copy_start:copy_end], waiting)

    def _changed_batch(self, stretch: Stretch, verdict: Verdict, number: int) -> bytearray:
        batch = stretch.batch(number)
        if not verdict.kept_count[number]:
            return empty_batch(batch)
        job = self._job
        header = read_header(batch)
        horizon = job.now_ms + job.delete_retention_ms if verdict.needs_horizon[number] else None
        level = job.codec_levels.get(header.attributes & CODEC_MASK)
        if header.is_control:
            payload = batch[BATCH_OVERHEAD:]
            kept = Kept(header.record_count, [(0, len(payload))], header.max_timestamp)
            return rewrite_batch(header, payload, kept, delete_horizon_ms=horizon, level=level)
        assert verdict.records is not None
        records = verdict.records
        mine = slice(*np.searchsorted(records.batch, (number, number + 1)).tolist())
        keep = np.flatnonzero(verdict.keep[mine]) + mine.start
        max_timestamp = header.max_timestamp
        if not header.uses_log_append_time:
            max_timestamp = header.base_timestamp + int(records.timestamp_delta[keep].max())
        kept = Kept(len(keep), _runs(records, keep), max_timestamp)
        return rewrite_batch(header, records.data.data, kept, delete_horizon_ms=horizon, level=level)

    # -- reading

    def _walk_from(self, offset: int) -> TransactionWalk:
        """A walk that begins here meets no marker of transactions that ended before."""
        return TransactionWalk([entry for entry in self._aborted if entry.last_offset >= offset])

    def _stretches(self, directory: int, segment: SegmentPlace) -> Iterator[Stretch]:
        name = _name(segment.base_offset, SUFFIX_LOG)
        descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=directory)
        try:
            position, wanted_bytes = 0, self._job.read_bytes
            while position < segment.size:
                stretch = read_stretch(descriptor, position, segment.size, wanted_bytes)
                check_crcs(stretch)
                yield stretch
                position += stretch.length
                # Where a stretch had too many records for its bytes, the next one will have too.
                wanted_bytes = min(self._job.read_bytes, 2 * stretch.length)
        finally:
            os.close(descriptor)


def _runs(records: Records, keep: Longs) -> list[tuple[int, int]]:
    """Kept records as stretches of bytes: neighbours in one piece."""
    starts, ends = records.start[keep], records.end[keep]
    breaks = np.flatnonzero(starts[1:] != ends[:-1])
    first = np.concatenate(([0], breaks + 1))
    last = np.concatenate((breaks, [len(keep) - 1]))
    return list(zip(starts[first].tolist(), ends[last].tolist(), strict=True))


def _name(base_offset: int, suffix: str) -> str:
    return f"{base_offset:020d}{suffix}"


def _sizes(directory: int, segment: SegmentPlace) -> SegmentSizes:
    return SegmentSizes(
        segment.base_offset, segment.size,
        _file_size(directory, _name(segment.base_offset, SUFFIX_INDEX)),
        _file_size(directory, _name(segment.base_offset, SUFFIX_TIME_INDEX)),
    )  # fmt: skip


def _file_size(directory: int, name: str) -> int:
    try:
        return os.stat(name, dir_fd=directory).st_size
    except FileNotFoundError:
        return 0
