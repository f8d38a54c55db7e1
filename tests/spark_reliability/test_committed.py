"""The judge of copies: whatever differs between two records, their hashes do."""

import pytest
from tests.committed import Record, hash_of

WAS = Record(0, 7, b"key", b"value", (("a", b"1"), ("b", None)), 1_000)


@pytest.mark.parametrize(
    "other",
    [
        WAS._replace(key=None), WAS._replace(key=b""), WAS._replace(key=b"keyv", value=b"alue"),
        WAS._replace(value=None), WAS._replace(value=b"valuE"), WAS._replace(headers=WAS.headers[::-1]),
        WAS._replace(headers=()), WAS._replace(headers=(("a", b"1"), ("b", b""))), WAS._replace(timestamp_ms=1_001),
    ],
)  # fmt: skip
def test_a_record_that_is_not_as_it_was_is_found(other: Record) -> None:
    assert hash_of([WAS, WAS]) != hash_of([WAS, other])


def test_records_that_are_lost_doubled_or_in_another_order_are_found() -> None:
    other = WAS._replace(key=b"other")
    found = {hash_of(records)[1] for records in ([WAS, other], [other, WAS], [WAS], [WAS, other, other])}
    assert len(found) == 4


def test_offsets_count_where_they_are_to_stay() -> None:
    moved = WAS._replace(offset=8)
    assert hash_of([WAS]) == hash_of([moved])
    assert hash_of([WAS], offsets=True) != hash_of([moved], offsets=True)
