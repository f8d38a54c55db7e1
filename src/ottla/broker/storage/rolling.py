"""When the active segment is full, by whichever of a topic's limits comes first. The log does the rest."""

import zlib
from collections.abc import Iterator

from ottla.broker.storage.index import OFFSET_ENTRY_BYTES, RELATIVE_OFFSET_MAX, TIME_ENTRY_BYTES
from ottla.broker.storage.retention import longest_segment_ms
from ottla.broker.storage.segment import Segment
from ottla.config.topic import TopicSettings
from ottla.model.names import TopicPartition
from ottla.protocol.records import BatchHeader


class RollRules:
    """A topic's limits for one segment, in the form the append path asks for them."""

    __slots__ = ("_offset_entries_max", "_segment_bytes", "_segment_ms", "_time_entries_max")

    def __init__(self, config: TopicSettings, tp: TopicPartition, base_offset: int) -> None:
        self._segment_bytes = config.segment_bytes
        self._segment_ms = longest_segment_ms(config) - _jitter_ms(config, tp, base_offset)
        self._offset_entries_max = config.segment_index_bytes // OFFSET_ENTRY_BYTES - 1
        self._time_entries_max = config.segment_index_bytes // TIME_ENTRY_BYTES - 1

    def must_roll(self, active: Segment, length: int, last_offset: int, max_timestamp: int, now_ms: int) -> bool:
        """Whether a batch of this length, last offset and time must go to a new segment."""
        size = active.size
        if last_offset - active.base_offset > RELATIVE_OFFSET_MAX:
            return True
        if size == 0:
            return False
        if size > self._segment_bytes - length:
            return True
        first = active.first_timestamp
        if (max_timestamp - first if first >= 0 else now_ms - active.created_ms) > self._segment_ms:
            return True
        indexes = active.indexes_if_loaded
        return indexes is not None and (
            len(indexes.offsets) >= self._offset_entries_max or len(indexes.timestamps) >= self._time_entries_max
        )


def runs_of_batches(
    batches: list[tuple[int, BatchHeader]], segment_bytes: int
) -> Iterator[list[tuple[int, BatchHeader]]]:
    """Neighbours that one segment can hold together, in order; a batch that is too large for it stands alone."""
    run: list[tuple[int, BatchHeader]] = []
    size = 0
    for position, header in batches:
        too_far = run and header.last_offset - run[0][1].base_offset > RELATIVE_OFFSET_MAX
        if run and (size + header.size > segment_bytes or too_far):
            yield run
            run, size = [], 0
        run.append((position, header))
        size += header.size
    if run:
        yield run


def _jitter_ms(config: TopicSettings, tp: TopicPartition, base_offset: int) -> int:
    # Spread by name instead of by chance: the same for every run, different for every segment.
    bound = min(config.segment_jitter_ms, config.segment_ms)
    return zlib.crc32(f"{tp}-{base_offset}".encode()) % (bound + 1) if bound > 0 else 0
