"""A manifest is read as it was written, or not at all."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.pipelines.backup.samples import manifest, partition, stored, topic

from ottla.pipelines.backup.manifest import DamagedBackup, decode_manifest, encode_manifest, wrong_partition

SAMPLE = manifest([topic(partition(stored(0, 10), stored(10, 30)), name="orders", retention_ms="7")])
WRITTEN = encode_manifest(SAMPLE)


def test_it_is_read_as_it_was_written() -> None:
    assert decode_manifest(WRITTEN, "m") == SAMPLE
    assert SAMPLE.records == 30
    assert WRITTEN.count(b"\n") == 2


@given(st.integers(0, len(WRITTEN) - 2))
def test_one_that_was_cut_short_is_refused(length: int) -> None:
    with pytest.raises(DamagedBackup):
        decode_manifest(WRITTEN[:length], "m")


@given(st.integers(0, len(WRITTEN) - 2), st.integers(1, 255))
def test_a_byte_that_was_changed_is_found(position: int, change: int) -> None:
    damaged = bytearray(WRITTEN)
    damaged[position] ^= change
    with pytest.raises(DamagedBackup, match=r"^m "):
        decode_manifest(bytes(damaged), "m")


def test_what_contradicts_itself_is_told() -> None:
    good = partition(stored(0, 10), stored(10, 30))
    assert wrong_partition("t", good) == []
    overlapping = partition(stored(0, 10), stored(5, 30))
    assert "before" in wrong_partition("t", overlapping)[0]
    hole = partition(stored(0, 10), stored(12, 30))
    assert wrong_partition("t", hole) == ["t-0: no object answers for the offsets 10 to 11"]
    assert wrong_partition("t", msgspec.structs.replace(hole, lost=[(10, 12)])) == []
    assert "no object answers" in wrong_partition("t", partition(stored(0, 10), end=11))[0]
    other = msgspec.structs.replace(good, objects=[stored(0, 10), stored(10, 30, records=19)])
    assert wrong_partition("t", other) == ["t-0: the checksum of the partition does not fit its objects"]


def test_offsets_stay_the_same_only_without_gaps_from_0_on() -> None:
    assert partition(stored(0, 10), stored(10, 30)).is_dense
    assert not partition(stored(0, 10), stored(10, 30, records=19)).is_dense
    assert not partition(stored(5, 10), log_start=5).is_dense
