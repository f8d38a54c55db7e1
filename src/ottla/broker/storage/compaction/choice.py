"""Which log to clean next, and how far. Decides only.

A log is clean up to some offset and dirty behind it. Its dirty part may be cleaned up to the active segment, the first
open transaction, and the first segment that min.compaction.lag.ms protects, whichever comes first, in whole segments.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from ottla.broker.storage.index import RELATIVE_OFFSET_MAX
from ottla.config.topic import TopicSettings


class Ageing(Protocol):
    """What the choice needs to know of a segment. Times are asked for only when a lag is set: they may cost a read."""

    base_offset: int
    size: int

    @property
    def first_timestamp(self) -> int:
        """Of its first batch; -1 when there is none."""

    def find_largest_timestamp(self) -> int: ...


class Cleanable(NamedTuple):
    """What could be cleaned of one log."""

    first_dirty_offset: int
    end_offset: int
    """Base offset of the first segment that must not be touched."""
    clean_bytes: int
    dirty_bytes: int
    overdue_ms: int
    """How long max.compaction.lag.ms has passed for the oldest dirty record."""

    @property
    def dirty_ratio(self) -> float:
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0

    def is_due(self, config: TopicSettings) -> bool:
        overdue = self.overdue_ms > 0 and self.dirty_bytes > 0
        return overdue or self.dirty_ratio > config.min_cleanable_dirty_ratio


def find_cleanable(
    segments: Sequence[Ageing],
    config: TopicSettings,
    *,
    cleaned_to: int | None,
    start_offset: int,
    end_offset: int,
    stable_offset: int,
    now_ms: int,
) -> Cleanable:
    """What a log has to clean. `cleaned_to` is what the checkpoint says; outside of the log it counts for nothing."""
    first_dirty = start_offset
    if cleaned_to is not None and start_offset <= cleaned_to <= end_offset:
        first_dirty = cleaned_to
    inactive = segments[:-1]
    dirty = [
        segment
        for segment, following in zip(inactive, segments[1:], strict=True)
        if following.base_offset > first_dirty
    ]
    bound = min(stable_offset, segments[-1].base_offset)
    if config.min_compaction_lag_ms > 0:
        young = (s for s in dirty if s.find_largest_timestamp() > now_ms - config.min_compaction_lag_ms)
        protected = next(young, None)
        if protected is not None:
            bound = min(bound, protected.base_offset)
    bound = max(bound, first_dirty)
    stop = next(
        (s.base_offset for s, following in zip(inactive, segments[1:], strict=True) if following.base_offset > bound),
        segments[-1].base_offset,
    )
    return Cleanable(
        first_dirty_offset=first_dirty,
        end_offset=stop,
        clean_bytes=sum(s.size for s in inactive if s.base_offset < first_dirty),
        dirty_bytes=sum(s.size for s in dirty if s.base_offset < stop),
        overdue_ms=_overdue_ms(dirty, config.max_compaction_lag_ms, now_ms),
    )


def _overdue_ms(dirty: Iterable[Ageing], lag_ms: int, now_ms: int) -> int:
    latest_allowed = now_ms - lag_ms
    if latest_allowed <= 0:  # nobody has records from before 1970, so the lag is as good as none
        return 0
    times = [time for segment in dirty if (time := segment.first_timestamp) > 0]
    return max(latest_allowed - min(times), 0) if times else 0


class SegmentSizes(NamedTuple):
    base_offset: int
    size: int
    index_bytes: int
    time_index_bytes: int


def group_segments(
    segments: Sequence[SegmentSizes], *, segment_bytes: int, index_bytes: int, end_offset: int
) -> list[list[SegmentSizes]]:
    """Neighbours whose records would fit into one segment even if every one of them stayed.

    `end_offset` bounds the offsets of the last segment.
    """
    groups: list[list[SegmentSizes]] = []
    sizes = indexes = time_indexes = 0
    for number, segment in enumerate(segments):
        after = segments[number + 1].base_offset if number + 1 < len(segments) else end_offset
        fits = (
            groups
            and sizes + segment.size <= segment_bytes
            and indexes + segment.index_bytes <= index_bytes
            and time_indexes + segment.time_index_bytes <= index_bytes
            and (segment.size == 0 or after - 1 - groups[-1][0].base_offset <= RELATIVE_OFFSET_MAX)
        )
        if fits:
            groups[-1].append(segment)
        else:
            groups.append([segment])
            sizes = indexes = time_indexes = 0
        sizes += segment.size
        indexes += segment.index_bytes
        time_indexes += segment.time_index_bytes
    return groups
