"""Rolling, reading, looking up by offset and by time."""

import dataclasses
import gc
import os
import struct
from collections.abc import Callable

import pytest
from tests.unit.broker.storage.conftest import NOW_MS, LogKit, batch, read_records, values

from ottla.broker.storage.index import IndexCache, SegmentIndexes, decode_indexes, encode_offsets, encode_times
from ottla.broker.storage.log import Log
from ottla.model.errors import ApiError, ErrorCode
from ottla.protocol.compression import Codec
from ottla.protocol.records import NewRecord, decode_batch, encode_batch, iterate_batches

SMALL = {"segment_bytes": 1000, "index_interval_bytes": 150, "max_message_bytes": 900}


def fill(log: Log, count: int, size: int = 100) -> None:
    for number in range(count):
        log.append_as_leader(batch(b"%06d" % number + b"x" * size, timestamp=NOW_MS + number * 10), 0, NOW_MS + 10**6)


def test_rolls_by_size(kit: LogKit) -> None:
    log = kit.create(**SMALL)
    fill(log, 50)
    assert len(log.segments) == 10
    assert all(file.stat().st_size <= 1000 for file in kit.files(".log"))
    bases = [int(file.stem) for file in kit.files(".log")]
    assert bases == [segment.base_offset for segment in log.segments.all]
    assert log.size_bytes == sum(file.stat().st_size for file in kit.files(".log"))
    assert [record.offset for record in read_records(log)] == list(range(50))


def test_rolls_by_time_between_records(kit: LogKit) -> None:
    log = kit.create(segment_ms=1000)
    log.append_as_leader(batch(timestamp=NOW_MS), 0, NOW_MS)
    log.append_as_leader(batch(timestamp=NOW_MS + 1000), 0, NOW_MS)
    assert len(log.segments) == 1
    log.append_as_leader(batch(timestamp=NOW_MS + 1001), 0, NOW_MS)
    assert len(log.segments) == 2
    reopened = kit.reopen(log, clean=True)
    reopened.append_as_leader(batch(timestamp=NOW_MS + 2002), 0, NOW_MS)
    assert len(reopened.segments) == 3, "a restart must not forget when the segment began"


def test_records_without_time_roll_by_the_clock(kit: LogKit) -> None:
    log = kit.create(segment_ms=1000)
    log.append_as_leader(encode_batch([NewRecord(None, b"v", -1)]), 0, NOW_MS)
    log.append_as_leader(encode_batch([NewRecord(None, b"v", -1)]), 0, NOW_MS + 1000)
    assert len(log.segments) == 1
    log.append_as_leader(encode_batch([NewRecord(None, b"v", -1)]), 0, NOW_MS + 1001)
    assert len(log.segments) == 2


def test_jitter_shortens_the_time_within_its_bound(kit: LogKit) -> None:
    log = kit.create(segment_ms=1000, segment_jitter_ms=900)
    log.append_as_leader(batch(timestamp=NOW_MS), 0, NOW_MS)
    rolled_after = next(
        delta for delta in range(50, 1100, 50) if _rolls(log, NOW_MS + delta)
    )  # fmt: skip
    assert 100 <= rolled_after <= 1050


def _rolls(log: Log, timestamp: int) -> bool:
    log.append_as_leader(batch(timestamp=timestamp), 0, NOW_MS)
    return len(log.segments) > 1


def test_rolls_when_the_index_is_full(kit: LogKit) -> None:
    log = kit.create(segment_index_bytes=48, index_interval_bytes=0)
    fill(log, 30)
    assert len(log.segments) > 4
    assert all(file.stat().st_size <= 48 for file in kit.files(".index"))
    assert [record.offset for record in read_records(log)] == list(range(30))


def test_rolls_before_relative_offsets_overflow(kit: LogKit) -> None:
    log = kit.create()
    log.append_as_follower(batch(base_offset=0), NOW_MS)
    log.append_as_follower(batch(base_offset=2**31 - 1), NOW_MS)
    assert len(log.segments) == 1
    log.append_as_follower(batch(base_offset=2**31), NOW_MS)
    assert [segment.base_offset for segment in log.segments.all] == [0, 2**31]
    assert [record.offset for record in read_records(log)] == [0, 2**31 - 1, 2**31]


def test_preallocated_segments_read_like_others(kit: LogKit) -> None:
    log = kit.create(preallocate=True, **SMALL)
    fill(log, 12)
    assert kit.files(".log")[-1].stat().st_size == 1000
    assert kit.files(".log")[0].stat().st_size == log.segments.all[0].size
    assert len(read_records(log)) == 12
    crashed = kit.reopen(log, clean=False)
    assert len(read_records(crashed)) == 12
    clean = kit.reopen(crashed, clean=True)
    assert clean.size_bytes == sum(file.stat().st_size for file in kit.files(".log"))
    assert len(read_records(clean)) == 12


def test_every_offset_can_be_read(kit: LogKit) -> None:
    log = kit.create(**SMALL)
    for number in range(40):
        log.append_as_leader(batch(*[b"%d" % number] * (number % 3 + 1)), 0, NOW_MS)
    for opened in (log, kit.reopen(log, clean=True)):
        for offset in range(opened.end_offset):
            data = opened.read(offset, 10_000, opened.end_offset, min_one_batch=True).read()
            first = next(header for _, header in iterate_batches(data))
            assert first.base_offset <= offset <= first.last_offset


def test_outside_the_log(kit: LogKit) -> None:
    log = kit.create()
    fill(log, 3)
    assert log.read(3, 100, 3, min_one_batch=True).length == 0
    for offset in (-1, 4):
        with pytest.raises(ApiError) as caught:
            log.read(offset, 100, 3, min_one_batch=True)
        assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_the_bound_is_never_passed(kit: LogKit) -> None:
    log = kit.create(**SMALL)
    fill(log, 30)
    for bound in range(31):
        assert [record.offset for record in read_records(log, 0, bound)] == list(range(bound))


def test_a_bound_inside_a_batch_leaves_the_batch_out(kit: LogKit) -> None:
    log = kit.create()
    log.append_as_leader(batch(b"a", b"b", b"c"), 0, NOW_MS)
    log.append_as_leader(batch(b"d", b"e", b"f"), 0, NOW_MS)
    data = log.read(0, 10_000, 5, min_one_batch=True).read()
    assert [header.base_offset for _, header in iterate_batches(data)] == [0]


def test_max_bytes_cuts_but_the_first_batch_can_be_whole(kit: LogKit) -> None:
    log = kit.create()
    one = len(batch(b"x" * 100))
    for _ in range(3):
        log.append_as_leader(batch(b"x" * 100), 0, NOW_MS)
    assert log.read(0, one + 10, 3, min_one_batch=True).length == one + 10
    assert log.read(0, 10, 3, min_one_batch=True).length == one
    assert log.read(0, 10, 3, min_one_batch=False).length == 0
    assert log.read(1, one, 3, min_one_batch=False).length == one


def test_a_slice_outlives_its_segment(kit: LogKit, open_descriptors: Callable[[], int]) -> None:
    log = kit.create(**SMALL)
    fill(log, 30)
    before = open_descriptors()
    piece = log.read(0, 500, log.end_offset, min_one_batch=True)
    log.delete_records_before(25)
    for path in kit.doomed:
        os.unlink(path)
    assert decode_batch(piece.read())[0].offset == 0
    del piece
    gc.collect()
    assert open_descriptors() <= before


def test_one_descriptor_a_segment_and_none_after_close(kit: LogKit, open_descriptors: Callable[[], int]) -> None:
    before = open_descriptors()
    log = kit.create(**SMALL)
    fill(log, 50)
    read_records(log)
    assert open_descriptors() - before == len(log.segments)
    log.close()
    assert open_descriptors() == before


def test_index_files_have_kafkas_format(kit: LogKit) -> None:
    log = kit.create(**SMALL)
    fill(log, 30)
    log.close()
    for file in kit.files(".log"):
        data = file.read_bytes()
        headers = dict(iterate_batches(data))
        entries = list(struct.iter_unpack(">ii", file.with_suffix(".index").read_bytes()))
        assert entries == sorted(entries)
        assert all(headers[position].last_offset == int(file.stem) + relative for relative, position in entries)
        times = list(struct.iter_unpack(">qi", file.with_suffix(".timeindex").read_bytes()))
        assert times == sorted(set(times))
        by_last = {header.last_offset: header.max_timestamp for header in headers.values()}
        assert all(by_last[int(file.stem) + relative] == timestamp for timestamp, relative in times)
        assert times[-1][0] == max(by_last.values())


def test_indexes_written_and_read_back() -> None:
    indexes = SegmentIndexes()
    for number in range(1, 200):
        indexes.add(number * 10, number * 500, NOW_MS + number, number * 10)
    data = encode_offsets(indexes.offsets, indexes.positions)
    times = encode_times(indexes.timestamps, indexes.time_offsets)
    assert data[:8] == struct.pack(">ii", 10, 500)
    assert times[:12] == struct.pack(">qi", NOW_MS + 1, 10)
    again = decode_indexes(data, times, 200 * 500)
    assert again is not None
    assert (again.offsets, again.positions) == (indexes.offsets, indexes.positions)
    assert (again.timestamps, again.time_offsets) == (indexes.timestamps, indexes.time_offsets)
    assert decode_indexes(data, times, 199 * 500) is None, "points at the end of the log"
    assert decode_indexes(data[:-1], times, 200 * 500) is None
    assert decode_indexes(data[8:16] + data[:8], times, 200 * 500) is None


def test_the_cache_lets_go_of_what_was_used_longest_ago() -> None:
    cache = IndexCache(limit_bytes=100)
    gone: list[str] = []
    for name in "abc":
        cache.hold(name, 40, lambda name=name: gone.append(name))  # type: ignore[misc]
        cache.touch("a")
    assert gone == ["b"]
    assert cache.total_bytes == 80
    cache.forget("a")
    assert cache.total_bytes == 40


def test_times_are_exact_to_the_record(kit: LogKit) -> None:
    log = kit.create(segment_bytes=700, index_interval_bytes=0)
    for number in range(20):
        log.append_as_leader(
            batch(b"a", b"b", b"c", timestamp=NOW_MS + number * 100, codec=Codec(number % 5)), 0, NOW_MS + 10**4
        )
    expected = [(record.timestamp, record.offset) for record in read_records(log)]
    for opened in (log, kit.reopen(log, clean=True)):
        for timestamp in [0, NOW_MS, NOW_MS + 1, NOW_MS + 3, NOW_MS + 555, NOW_MS + 1900, NOW_MS + 1902]:
            wanted = next(pair for pair in expected if pair[0] >= timestamp)
            assert opened.offset_for_timestamp(timestamp) == (*wanted, 0)
        assert opened.offset_for_timestamp(NOW_MS + 1903) is None
        assert opened.max_timestamp_offset() == (NOW_MS + 1902, 59, 0)


def test_times_that_go_back_and_forth(kit: LogKit) -> None:
    log = kit.create(segment_bytes=400, index_interval_bytes=0)
    stamps = [50, 10, 90, 20, 90, 30, 70, 5]
    for stamp in stamps:
        log.append_as_leader(batch(b"x" * 50, timestamp=NOW_MS + stamp), 2, NOW_MS)
    for opened in (log, kit.reopen(log, clean=True)):
        for wanted in (0, 11, 50, 51, 90):
            offset = next(number for number, stamp in enumerate(stamps) if stamp >= wanted)
            assert opened.offset_for_timestamp(NOW_MS + wanted) == (NOW_MS + stamps[offset], offset, 2)
        assert opened.max_timestamp_offset() == (NOW_MS + 90, 2, 2)


def test_times_respect_the_start_of_the_log(kit: LogKit) -> None:
    log = kit.create()
    log.append_as_leader(batch(b"a", b"b", b"c", timestamp=NOW_MS), 0, NOW_MS)
    log.append_as_leader(batch(b"d", timestamp=NOW_MS + 50), 0, NOW_MS)
    log.delete_records_before(2)
    assert log.offset_for_timestamp(NOW_MS) == (NOW_MS + 2, 2, 0)


def test_an_empty_log_has_no_times(kit: LogKit) -> None:
    log = kit.create()
    assert log.offset_for_timestamp(0) is None
    assert log.max_timestamp_offset() is None


def test_records_without_time(kit: LogKit) -> None:
    log = kit.create()
    log.append_as_leader(encode_batch([NewRecord(None, b"v", -1)]), 0, NOW_MS)
    assert log.offset_for_timestamp(0) is None
    assert log.max_timestamp_offset() is None


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_a_damaged_index_is_found_out_when_used(kit: LogKit, suffix: str) -> None:
    log = kit.create(**SMALL)
    fill(log, 30)
    log.close()
    for file in kit.files(suffix):
        data = bytearray(file.read_bytes())
        if data:
            data[-1] ^= 1
            file.write_bytes(data)
    opened = kit.open(clean=True)
    assert [record.offset for record in read_records(opened)] == list(range(30))
    for number in range(30):
        assert opened.read(number, 10, 30, min_one_batch=True).read()[:8] == number.to_bytes(8)
        assert opened.offset_for_timestamp(NOW_MS + number * 10) == (NOW_MS + number * 10, number, 0)


def test_a_slice_read_after_more_appends_continues_where_it_ended(kit: LogKit) -> None:
    log = kit.create(**SMALL)
    seen: list[bytes | None] = []
    for number in range(60):
        log.append_as_leader(batch(b"%d" % number), 0, NOW_MS)
        if number % 3 == 0:
            seen += values(log, len(seen))
    assert seen == [b"%d" % number for number in range(58)]


def test_a_smaller_segment_size_applies_to_the_next_append(kit: LogKit) -> None:
    log = kit.create()
    fill(log, 3)
    log.reconfigure(dataclasses.replace(log.config, segment_bytes=400))
    fill(log, 1)
    assert len(log.segments) == 2
