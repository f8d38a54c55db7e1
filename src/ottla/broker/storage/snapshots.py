"""Snapshot files of the producer state, and rebuilding the state from a snapshot and the log behind it."""

import logging
from collections.abc import Sequence

from ottla.broker.storage.disk import Disk, unlink_if_there
from ottla.broker.storage.markers import read_marker
from ottla.broker.storage.producer_state import ProducerState, decode_snapshot, encode_snapshot
from ottla.broker.storage.scan import iterate_headers
from ottla.broker.storage.segment import Segment
from ottla.broker.storage.segment_files import SUFFIX_SNAPSHOT, segment_prefix
from ottla.broker.storage.transaction_index import AbortedTransaction
from ottla.protocol.errors import CorruptBatch
from ottla.protocol.records import NO_PRODUCER_ID

logger = logging.getLogger(__name__)

KEPT = 2
LOOKED_BACK_MAX = 100_000
"""Offsets from the end within which batches are found that a producer sends again. Those on their way are few."""


class SnapshotFiles:
    """The .snapshot files of one partition; each holds the state before the record at its offset."""

    __slots__ = ("_disk", "directory", "offsets")

    def __init__(self, directory: str, disk: Disk, offsets: list[int]) -> None:
        self.directory = directory
        self._disk = disk
        self.offsets = sorted(offsets)

    def take(self, state: ProducerState, end_offset: int) -> None:
        """Write the state as of the end of the log. Not forced to disk: a torn file is known by its checksum."""
        if end_offset == 0 or (self.offsets and self.offsets[-1] == end_offset):
            return
        self._disk.write_file(self._path(end_offset), encode_snapshot(state.entries.values()))
        self.offsets.append(end_offset)
        for old in self.offsets[:-KEPT]:
            unlink_if_there(self._path(old))
        del self.offsets[:-KEPT]

    def remove_above(self, end_offset: int) -> None:
        """A log that ends here cannot have a state from further on."""
        for offset in [offset for offset in self.offsets if offset > end_offset]:
            unlink_if_there(self._path(offset))
            self.offsets.remove(offset)

    def load_latest(self, at_most: int | None = None) -> tuple[int, ProducerState] | None:
        """The newest sound snapshot (that is not above an offset, if one is given); damaged ones are deleted."""
        for offset in reversed([offset for offset in self.offsets if at_most is None or offset <= at_most]):
            try:
                with open(self._path(offset), "rb") as file:
                    state = decode_snapshot(file.read())
            except FileNotFoundError:
                state = None
            if state is not None:
                return offset, state
            unlink_if_there(self._path(offset))
            self.offsets.remove(offset)
        return None

    def _path(self, offset: int) -> str:
        return segment_prefix(self.directory, offset) + SUFFIX_SNAPSHOT


def rebuild_producers(
    snapshots: SnapshotFiles,
    segments: Sequence[Segment],
    end_offset: int,
    *,
    index_from: int | None = None,
    replicated: bool = False,
) -> ProducerState:
    """The producer state at the end of the log: the newest snapshot, and what the log says after it.

    With `index_from` the aborted transactions of the segments from that base offset on are listed anew as well.
    """
    snapshots.remove_above(end_offset)
    latest = snapshots.load_latest()
    from_offset, state = latest if latest is not None else (0, ProducerState())
    state.replicated = replicated
    if index_from is None:
        if from_offset < end_offset:
            _replay(state, segments, from_offset, end_offset)
        return state
    aborted: dict[int, list[AbortedTransaction]] = {}
    if index_from < from_offset:
        # The newest state is too late to tell where the transactions began that end in these segments.
        earlier = snapshots.load_latest(index_from)
        at, past = earlier if earlier is not None else (0, ProducerState())
        _replay(past, segments, at, from_offset, aborted)
    _replay(state, segments, from_offset, end_offset, aborted)
    for segment in segments:
        if segment.base_offset >= index_from:
            segment.transactions.replace(aborted.get(segment.base_offset, ()))
    return state


def recent_producers(segments: Sequence[Segment], end_offset: int) -> ProducerState:
    """What the end of the log alone tells of producers."""
    state = ProducerState()
    _replay(state, segments, max(segments[0].base_offset, end_offset - LOOKED_BACK_MAX), end_offset)
    return state


def _replay(
    state: ProducerState,
    segments: Sequence[Segment],
    from_offset: int,
    to_offset: int,
    aborted: dict[int, list[AbortedTransaction]] | None = None,
) -> None:
    """Let the batches in [from_offset, to_offset) change the state; note aborts by their segment's base offset."""
    for number, segment in enumerate(segments):
        if number + 1 < len(segments) and segments[number + 1].base_offset <= from_offset:
            continue
        if segment.base_offset >= to_offset:
            return
        try:
            position = segment.find(from_offset) if from_offset > segment.base_offset else 0
            if position is not None:
                ends = _replay_segment(state, segment, position, from_offset, to_offset)
                if aborted is not None and ends:
                    aborted.setdefault(segment.base_offset, []).extend(ends)
        except CorruptBatch as error:
            # Only segments from before the recovery point can be damaged here; what lies behind them counts for more.
            logger.warning("Producer state rebuilt in part only, segment %s.log is corrupt: %s", segment.prefix, error)


def _replay_segment(
    state: ProducerState, segment: Segment, position: int, from_offset: int, to_offset: int
) -> list[AbortedTransaction]:
    aborted = []
    for at, header in iterate_headers(segment.file, position, segment.size, segment.base_offset):
        if header.base_offset >= to_offset:
            break
        if header.producer_id == NO_PRODUCER_ID or header.base_offset < from_offset:
            continue
        if not header.is_control:
            state.update(header, header.base_offset, header.max_timestamp)
        else:
            marker = read_marker(segment.read_batch(at))
            ended = state.end(header, header.base_offset, marker) if marker is not None else None
            if marker is not None and ended is not None and not marker.commit:
                aborted.append(AbortedTransaction(*ended))
    return aborted
