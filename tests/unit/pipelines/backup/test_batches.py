"""Raw batches: which count, wherever objects are cut between them."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.pipelines.backup.batches import Walk, pieces, sum_of
from ottla.protocol.errors import CorruptBatch
from ottla.protocol.records import NewRecord, encode_batch

RECORDS = [NewRecord(b"k", b"v", 5), NewRecord(None, None, 7)]
ABORT, COMMIT = b"\x00\x00\x00\x00", b"\x00\x00\x00\x01"


def data(offset: int, producer: int = 1) -> bytes:
    return bytes(
        encode_batch(
            RECORDS, base_offset=offset, producer_id=producer, producer_epoch=0, base_sequence=0, transactional=True
        )
    )


def marker(offset: int, kind: bytes, producer: int = 1) -> bytes:
    records = [NewRecord(kind, b"\x00\x00\x00\x00\x00\x00", 5)]
    return bytes(
        encode_batch(
            records, base_offset=offset, producer_id=producer, producer_epoch=0, transactional=True, control=True
        )
    )


LOG = [
    data(0), data(2, 2), marker(4, ABORT), data(5), marker(7, COMMIT), data(8), marker(10, COMMIT, 2), data(11),
    marker(13, ABORT),
]  # fmt: skip
ABORTED = [(1, 0), (1, 8)]
COUNTED = [2, 5]


@given(st.integers(0, len(LOG)), st.integers(0, len(LOG)))
def test_objects_may_be_cut_anywhere(one: int, other: int) -> None:
    cuts = [0, *sorted((one, other)), len(LOG)]
    aborted, counted, records = ABORTED, [], 0
    for first, end in pairwise(cuts):
        content = b"".join(LOG[first:end])
        walk = Walk(aborted)
        counted += [found.header.base_offset for found in walk.batches(content) if found.counts]
        total = sum_of(content, aborted)
        records += total.records
        assert total.in_order
        assert total.left == walk.left()
        aborted = walk.left()
    assert sum_of(b"".join(LOG), ABORTED, 6).records == 1, "the log begins inside a batch"
    assert counted == COUNTED
    assert records == 4
    assert aborted == []


@given(st.integers(0, 14), st.integers(1, 400))
def test_pieces_are_the_batches_that_have_anything_behind_a_start(start: int, size: int) -> None:
    ends = [2, 4, 5, 7, 8, 10, 11, 13, 14]
    wanted = [batch for batch, end in zip(LOG, ends, strict=True) if end > start]
    found = [*pieces(b"".join(LOG), ABORTED, start, size)]
    assert b"".join(piece.content for piece in found) == b"".join(wanted)
    assert all(len(piece.content) >= size for piece in found[:-1])
    assert sum(piece.records for piece in found) == sum(offset >= start for offset in (2, 3, 5, 6))
    if found:
        assert found[0].first_offset == ([0, 2, 4, 5, 7, 8, 10, 11, 13])[len(LOG) - len(wanted)]


def test_a_changed_byte_and_a_missing_end_are_found() -> None:
    content = b"".join(LOG)
    for position in range(len(LOG[0]) - 20, len(LOG[0])):
        damaged = bytearray(content)
        damaged[position] ^= 1
        with pytest.raises(CorruptBatch):
            sum_of(bytes(damaged), ABORTED)
    with pytest.raises(CorruptBatch, match="bytes behind the last batch"):
        sum_of(content[:-1], ABORTED)
