"""Snapshot files of the producer state, and rebuilding the state from a snapshot and the log behind it."""

import logging
import struct
from collections.abc import Sequence

from ottla.broker.storage.disk import Disk, unlink_if_there
from ottla.broker.storage.producer_state import ProducerState, decode_snapshot, encode_snapshot
from ottla.broker.storage.scan import iterate_headers
from ottla.broker.storage.segment import SUFFIX_SNAPSHOT, Segment, segment_prefix
from ottla.protocol.compression import Buffer
from ottla.protocol.errors import CorruptBatch
from ottla.protocol.records import NO_PRODUCER_ID, decode_batch

logger = logging.getLogger(__name__)

KEPT = 2
_END_TXN_MARKER = struct.Struct(">hi")


class SnapshotFiles:
    """The .snapshot files of one partition; each holds the state before the record at its offset."""

    __slots__ = ("_directory", "_disk", "offsets")

    def __init__(self, directory: str, disk: Disk, offsets: list[int]) -> None:
        self._directory = directory
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

    def load_latest(self) -> tuple[int, ProducerState] | None:
        """The newest sound snapshot; damaged ones are deleted."""
        while self.offsets:
            try:
                with open(self._path(self.offsets[-1]), "rb") as file:
                    state = decode_snapshot(file.read())
            except FileNotFoundError:
                state = None
            if state is not None:
                return self.offsets[-1], state
            unlink_if_there(self._path(self.offsets.pop()))
        return None

    def _path(self, offset: int) -> str:
        return segment_prefix(self._directory, offset) + SUFFIX_SNAPSHOT


def rebuild_producers(snapshots: SnapshotFiles, segments: Sequence[Segment], end_offset: int) -> ProducerState:
    """The producer state at the end of the log: the newest snapshot, and what the log says after it."""
    snapshots.remove_above(end_offset)
    latest = snapshots.load_latest()
    from_offset, state = latest if latest is not None else (0, ProducerState())
    if from_offset >= end_offset:
        return state
    for number, segment in enumerate(segments):
        if number + 1 < len(segments) and segments[number + 1].base_offset <= from_offset:
            continue
        try:
            position = segment.find(from_offset) if from_offset > segment.base_offset else 0
            if position is not None:
                _replay(state, segment, position, from_offset)
        except CorruptBatch as error:
            # Only segments from before the recovery point can be damaged here; what lies behind them counts for more.
            logger.warning("producers of %s are known in part only: %s", segment.prefix, error)
    return state


def _replay(state: ProducerState, segment: Segment, position: int, from_offset: int) -> None:
    for at, header in iterate_headers(segment.file, position, segment.size, segment.base_offset):
        if header.producer_id != NO_PRODUCER_ID and header.base_offset >= from_offset:
            epoch = control_epoch(segment.read_batch(at)) if header.is_control else -1
            state.update(header, header.base_offset, header.max_timestamp, epoch)


def control_epoch(batch: Buffer) -> int:
    """The coordinator's epoch in a transaction marker; -1 for other control batches."""
    try:
        records = decode_batch(batch)
    except CorruptBatch:
        return -1
    value = records[0].value if records else None
    if value is None or len(value) < _END_TXN_MARKER.size:
        return -1
    epoch: int = _END_TXN_MARKER.unpack_from(value)[1]
    return epoch
