"""Copies of a partition compared batch by batch."""

from ottla.cli.admin.replica_comparison import Batch, batches_in, compare
from ottla.protocol.records import NewRecord, encode_batch

FIRST, SECOND = Batch(0, 4, 11), Batch(5, 5, 22)


def test_batches_are_found_and_a_part_of_one_is_left_out() -> None:
    one = encode_batch([NewRecord(None, b"x", 5)] * 3)
    two = encode_batch([NewRecord(None, b"y", 5)], base_offset=3)
    found = batches_in(one + two + two[:-1])
    assert [(batch.first, batch.last) for batch in found] == [(0, 2), (3, 3)]
    assert found[0].crc != found[1].crc


def test_equal_copies_are_equal_as_far_as_all_have_them() -> None:
    assert compare(0, {1: [FIRST, SECOND], 2: [FIRST, SECOND]}) == (6, [])
    assert compare(0, {1: [FIRST, SECOND], 2: [FIRST]}) == (5, [])
    assert compare(7, {1: [FIRST], 2: []}) == (7, [])
    assert compare(7, {}) == (7, [])


def test_another_checksum_is_told_and_passed() -> None:
    result = compare(0, {1: [FIRST, SECOND], 2: [FIRST._replace(crc=12), SECOND]})
    assert result.next_offset == 5
    assert result.problems == ["offsets 0 to 4 have checksum 11 on broker 1 and 12 on broker 2"]


def test_other_offsets_are_told_and_passed() -> None:
    result = compare(0, {1: [FIRST], 2: [Batch(0, 9, 11)], 3: [FIRST]})
    assert result.next_offset == 10
    assert result.problems == ["broker 1 has a batch of offsets 0 to 4, broker 2 one of 0 to 9"]
