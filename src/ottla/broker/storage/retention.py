"""How long a log's segments grow, and which of the oldest may go. Decides only; the log does the rest."""

from collections.abc import Sequence
from typing import Protocol

from ottla.config.topic import TopicSettings


class Ageing(Protocol):
    """What retention needs to know of a segment."""

    base_offset: int
    size: int

    def retention_timestamp(self) -> int:
        """When its newest record was written. Asked only when the decision depends on it: it may cost a read."""


def longest_segment_ms(config: TopicSettings) -> int:
    """A segment is cleaned only once it is finished, so one of a compacted topic must not outlast the longest lag."""
    if "compact" in config.cleanup_policy:
        return min(config.segment_ms, config.max_compaction_lag_ms)
    return config.segment_ms


def expired_segments(
    segments: Sequence[Ageing],
    config: TopicSettings,
    *,
    now_ms: int,
    start_offset: int,
    end_offset: int,
    high_watermark: int,
) -> int:
    """How many segments, counted from the oldest, have outlived the topic's limits.

    The active one may be among them when all of its records have; the caller then rolls first. Records that not every
    in-sync replica has yet are never deleted, nor is an empty active segment.
    """
    deletes = "delete" in config.cleanup_policy
    retention_ms = config.retention_ms if deletes else -1
    excess_bytes = -1
    if deletes and config.retention_bytes >= 0:
        excess_bytes = sum(segment.size for segment in segments) - config.retention_bytes
    count = 0
    for number, segment in enumerate(segments):
        is_active = number == len(segments) - 1
        following = end_offset if is_active else segments[number + 1].base_offset
        if (is_active and segment.size == 0) or following > high_watermark:
            break
        before_start = not is_active and following <= start_offset
        too_much = excess_bytes - segment.size >= 0
        if not (before_start or too_much):
            too_old = retention_ms >= 0 and now_ms - segment.retention_timestamp() > retention_ms
            if not too_old:
                break
        excess_bytes -= segment.size
        count += 1
    return count
