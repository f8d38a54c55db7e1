"""What may be cleaned, what is due, and which segments become one."""

from typing import NamedTuple

import pytest

from ottla.broker.storage.compaction.choice import Cleanable, SegmentSizes, find_cleanable, group_segments
from ottla.config.topic import TopicSettings

NOW_MS = 10_000_000


class Fake(NamedTuple):
    base_offset: int
    size: int
    first_timestamp: int = NOW_MS
    largest: int = NOW_MS

    def find_largest_timestamp(self) -> int:
        return self.largest


def look(segments: list[Fake], *, cleaned_to: int | None = None, start: int = 0, stable: int = 1000,
         **config: object) -> Cleanable:  # fmt: skip
    return find_cleanable(
        segments, TopicSettings(cleanup_policy=("compact",), **config),  # type: ignore[arg-type]
        cleaned_to=cleaned_to, start_offset=start, end_offset=1000, stable_offset=stable, now_ms=NOW_MS,
    )  # fmt: skip


FOUR = [Fake(0, 10), Fake(100, 20), Fake(200, 40), Fake(300, 80)]


def test_everything_before_the_active_segment_is_dirty_at_first() -> None:
    found = look(FOUR)
    assert (found.first_dirty_offset, found.end_offset, found.clean_bytes, found.dirty_bytes) == (0, 300, 0, 70)
    assert found.dirty_ratio == 1


def test_what_was_cleaned_is_clean() -> None:
    found = look(FOUR, cleaned_to=200)
    assert (found.first_dirty_offset, found.end_offset, found.clean_bytes, found.dirty_bytes) == (200, 300, 30, 40)
    assert not look(FOUR, cleaned_to=300).is_due(TopicSettings())
    assert look(FOUR, cleaned_to=300).dirty_bytes == 0


@pytest.mark.parametrize("cleaned_to", [40, 1001])
def test_a_checkpoint_outside_of_the_log_counts_for_nothing(cleaned_to: int) -> None:
    assert look(FOUR, cleaned_to=cleaned_to, start=50).first_dirty_offset == 50


def test_a_checkpoint_in_the_middle_of_a_segment() -> None:
    found = look(FOUR, cleaned_to=150)
    assert (found.first_dirty_offset, found.clean_bytes, found.dirty_bytes) == (150, 30, 60)


@pytest.mark.parametrize(("stable", "end"), [(1000, 300), (300, 300), (299, 200), (200, 200), (150, 100), (50, 0)])
def test_nothing_is_cleaned_beyond_an_open_transaction(stable: int, end: int) -> None:
    assert look(FOUR, stable=stable).end_offset == end


def test_an_open_transaction_before_the_dirty_part_leaves_nothing() -> None:
    assert look(FOUR, stable=50, cleaned_to=200).dirty_bytes == 0


def test_young_segments_wait() -> None:
    segments = [
        Fake(0, 10, largest=NOW_MS - 900),
        Fake(100, 20, largest=NOW_MS - 400),
        Fake(200, 40, largest=0),
        FOUR[3],
    ]
    assert look(segments, min_compaction_lag_ms=500).end_offset == 100
    assert look(segments, min_compaction_lag_ms=300).end_offset == 300


def test_due_by_share_or_by_age() -> None:
    segments = [Fake(0, 60, first_timestamp=NOW_MS - 9000), Fake(100, 40, first_timestamp=NOW_MS - 1000), FOUR[3]]
    assert look(segments, cleaned_to=100).dirty_ratio == 0.4
    assert not look(segments, cleaned_to=100).is_due(TopicSettings())
    assert look(segments, cleaned_to=100).is_due(TopicSettings(min_cleanable_dirty_ratio=0.39))
    old = look(segments, cleaned_to=100, max_compaction_lag_ms=900)
    assert old.overdue_ms == 100
    assert old.is_due(TopicSettings())
    assert not look(segments, cleaned_to=100, max_compaction_lag_ms=1000).is_due(TopicSettings())


def sizes(*rows: tuple[int, int]) -> list[SegmentSizes]:
    return [SegmentSizes(base, size, 8, 12) for base, size in rows]


def bases(groups: list[list[SegmentSizes]]) -> list[list[int]]:
    return [[segment.base_offset for segment in group] for group in groups]


def test_neighbours_that_fit_become_one() -> None:
    segments = sizes((0, 40), (10, 40), (20, 40), (30, 100), (40, 1), (50, 0))
    groups = group_segments(segments, segment_bytes=100, index_bytes=1000, end_offset=60)
    assert bases(groups) == [[0, 10], [20], [30], [40, 50]]


def test_indexes_bound_a_group_too() -> None:
    segments = sizes((0, 1), (10, 1), (20, 1))
    assert bases(group_segments(segments, segment_bytes=100, index_bytes=24, end_offset=60)) == [[0, 10], [20]]
    assert bases(group_segments(segments, segment_bytes=100, index_bytes=36, end_offset=60)) == [[0, 10, 20]]


def test_offsets_within_a_group_fit_an_index() -> None:
    segments = sizes((0, 1), (10, 1), (2**31, 1))
    assert bases(group_segments(segments, segment_bytes=9, index_bytes=99, end_offset=2**31 + 1)) == [
        [0, 10],
        [2**31],
    ]
    assert bases(group_segments(sizes((0, 1), (10, 1)), segment_bytes=9, index_bytes=99, end_offset=2**31 + 1)) == [
        [0],
        [10],
    ]
