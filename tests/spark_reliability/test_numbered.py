"""The judge of copies whose originals are compacted or expire: it finds each kind of mistake."""

import pytest
from tests.spark_reliability.numbered import KEYS, leads_to, problems

WRITTEN = {10 * number: number for number in range(100)}
"""Numbers by offset."""
GOOD = [(3 * number, number) for number in range(100)]


def test_a_good_copy_has_no_problems() -> None:
    assert problems(WRITTEN, GOOD, compacted=False, same_offsets=False) == []
    assert problems(WRITTEN, [*WRITTEN.items()], compacted=False, same_offsets=True) == []
    cleaned = [each for each in GOOD if each[1] >= 100 - KEYS]
    assert problems(WRITTEN, cleaned, compacted=True, same_offsets=False) == []


@pytest.mark.parametrize(
    ("came", "compacted", "found"),
    [
        (GOOD[:50] + GOOD[51:], False, "1 did not come, first [50]"),
        (GOOD[:-1], True, "1 did not come, first [99]"),
        ([*GOOD, (300, 99)], False, "99 came after 99"),
        ([*GOOD[:2], GOOD[3], GOOD[2], *GOOD[4:]], False, "2 came after 3"),
        ([*GOOD, (300, 100)], False, "1 came that nobody has written, first [100]"),
    ],
    ids=["lost", "lost the newest of a key", "twice", "out of order", "a stranger"],
)
def test_each_kind_of_mistake_is_found(came: list[tuple[int, int]], compacted: bool, found: str) -> None:
    assert problems(WRITTEN, came, compacted=compacted, same_offsets=False) == [found]


def test_other_offsets_are_found_where_they_should_be_the_same() -> None:
    assert len(problems(WRITTEN, GOOD, compacted=False, same_offsets=True)) == 99


def test_a_place_leads_to_the_next_unread_record_or_not() -> None:
    assert leads_to(WRITTEN, GOOD, 500, 150)
    assert leads_to(WRITTEN, GOOD, 495, 149)
    assert not leads_to(WRITTEN, GOOD, 500, 151)
    assert not leads_to(WRITTEN, GOOD, 500, 147)
    assert leads_to(WRITTEN, GOOD, 991, 298)
