"""Which of a log's oldest segments may go. Pure."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ottla.config.topic import TopicSettings


class SegmentFacts(NamedTuple):
    base_offset: int
    next_base_offset: int
    """Where the following segment begins; for the active segment the end of the log."""
    size: int
    newest_ms: Callable[[], int]
    """Asked only when the decision depends on it: it may cost a read."""


def expired_segments(
    segments: Sequence[SegmentFacts],
    config: TopicSettings,
    *,
    now_ms: int,
    start_offset: int,
    high_watermark: int,
    total_bytes: int,
) -> int:
    """How many segments, counted from the oldest, have outlived the topic's limits.

    The active one may be among them when all of its records have; the caller then rolls first. Records that not every
    in-sync replica has yet are never deleted, nor is an empty segment.
    """
    deletes = "delete" in config.cleanup_policy
    retention_ms = config.retention_ms if deletes else -1
    excess_bytes = total_bytes - config.retention_bytes if deletes and config.retention_bytes >= 0 else -1
    count = 0
    for number, segment in enumerate(segments):
        is_active = number == len(segments) - 1
        if segment.size == 0 and is_active:
            break
        gone = not is_active and segment.next_base_offset <= start_offset
        too_much = excess_bytes - segment.size >= 0
        if segment.next_base_offset > high_watermark and not gone:
            break
        if not (gone or too_much or (retention_ms >= 0 and now_ms - segment.newest_ms() > retention_ms)):
            break
        excess_bytes -= segment.size
        count += 1
    return count
