"""The cleaner's rules one by one: deletions, transactions, producers, maps that are too small, leftovers of a crash."""

import contextlib
import os
from pathlib import Path

import pytest
from tests.unit.broker.storage.compaction.conftest import Crash, append, clean, compacted, roll
from tests.unit.broker.storage.conftest import NOW_MS, LogKit, batch, read_records

from ottla.broker.storage.compaction.leftovers import finish_swaps
from ottla.broker.storage.compaction.swapping import SegmentsChanged
from ottla.broker.storage.compaction.throttle import PERIOD_SECONDS, Throttle
from ottla.broker.storage.compaction.transactions import TransactionWalk
from ottla.broker.storage.disk import Disk
from ottla.broker.storage.log import Log
from ottla.broker.storage.markers import ABORT, COMMIT, Marker
from ottla.broker.storage.scan import iterate_headers
from ottla.broker.storage.transaction_index import AbortedTransaction
from ottla.config.topic import TopicSettings
from ottla.protocol.compression import Codec
from ottla.protocol.records import HAS_DELETE_HORIZON, BatchHeader

RETENTION_MS = 1000


def headers(log: Log) -> list[BatchHeader]:
    return [
        header
        for segment in log.segments.all
        for _, header in iterate_headers(segment.file, 0, segment.size, segment.base_offset)
    ]


def offsets(log: Log, key: bytes) -> list[int]:
    return [record.offset for record in read_records(log) if record.key == key]


# -- deletions


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_a_deletion_goes_after_its_horizon_and_not_before(kit: LogKit, codec: Codec) -> None:
    log = compacted(kit, delete_retention_ms=RETENTION_MS)
    append(log, (b"k", b"v"), (b"stays", b"w"))
    append(log, (b"k", None), (b"also", b"z"), codec=codec, timestamp=NOW_MS - 77)
    roll(log)
    before = {record.offset: record for record in read_records(log)}
    clean(log, NOW_MS)
    assert offsets(log, b"k") == [2]
    marked = next(header for header in headers(log) if header.last_offset == 3)
    assert marked.attributes & HAS_DELETE_HORIZON
    assert marked.base_timestamp == NOW_MS + RETENTION_MS
    assert marked.max_timestamp == NOW_MS - 76
    roll(log)
    clean(log, NOW_MS + RETENTION_MS - 1)
    assert offsets(log, b"k") == [2]
    roll(log)
    clean(log, NOW_MS + RETENTION_MS)
    assert offsets(log, b"k") == []
    assert all(before[r.offset] == r for r in read_records(log) if r.offset < 4)
    assert offsets(log, b"also") == [3]


def test_deletions_of_a_topic_with_the_brokers_time(kit: LogKit) -> None:
    log = compacted(kit, delete_retention_ms=RETENTION_MS, message_timestamp_type="LogAppendTime")
    append(log, (b"k", b"v"), (b"k", None), (b"l", b"w"))
    roll(log)
    clean(log)
    assert [(r.key, r.value, r.timestamp) for r in read_records(log)][:2] == [
        (b"k", None, NOW_MS),
        (b"l", b"w", NOW_MS),
    ]


def test_records_without_a_key_go(kit: LogKit) -> None:
    log = kit.create(segment_bytes=400, index_interval_bytes=100)
    log.append_as_leader(batch(b"a", b"b", key=None), 0, NOW_MS)
    roll(log)
    done = clean(log)
    assert done is not None
    assert done.stats.records_without_key == 2
    assert offsets(log, None) == []  # type: ignore[arg-type]


# -- transactions


def end(log: Log, producer_id: int, *, commit: bool) -> int:
    marker = Marker(commit, 0)
    return log.append_marker(producer_id, 0, marker, 0, NOW_MS, transaction_version=1).base_offset


def test_what_was_aborted_goes_and_does_not_count(log: Log) -> None:
    append(log, (b"k", b"old"))
    append(log, (b"k", b"never"), producer_id=1, sequence=0, transactional=True)
    append(log, (b"l", b"new"), producer_id=2, sequence=0, transactional=True)
    aborted, committed = end(log, 1, commit=False), end(log, 2, commit=True)
    roll(log)
    clean(log)
    assert [(r.key, r.value) for r in read_records(log) if r.key in (b"k", b"l")] == [(b"k", b"old"), (b"l", b"new")]
    assert {aborted, committed} <= {header.base_offset for header in headers(log) if header.is_control}
    assert [entry.first_offset for entry in log.aborted_transactions(0, log.end_offset)] == [1]


def test_markers_go_when_their_transactions_are_gone(kit: LogKit) -> None:
    log = compacted(kit, delete_retention_ms=RETENTION_MS)
    append(log, (b"k", b"never"), producer_id=1, sequence=0, transactional=True)
    aborted = end(log, 1, commit=False)
    append(log, (b"k", b"old"), producer_id=2, sequence=0, transactional=True)
    committed = end(log, 2, commit=True)
    append(log, (b"k", b"new"))
    log.producers.entries.clear()  # as if both had expired, or they would be remembered by their last batches

    def markers(now_ms: int) -> set[int]:
        roll(log)
        clean(log, now_ms)
        return {header.base_offset for header in headers(log) if header.is_control}

    assert markers(NOW_MS) == {aborted, committed}
    assert markers(NOW_MS + 1) == {aborted, committed}
    assert not log.aborted_transactions(0, log.end_offset)
    assert all(header.attributes & HAS_DELETE_HORIZON for header in headers(log) if header.is_control)
    assert markers(NOW_MS + RETENTION_MS) == {aborted, committed}
    assert markers(NOW_MS + RETENTION_MS + 1) == set()


def test_an_abort_of_old_does_not_spoil_what_the_producer_commits_later(log: Log) -> None:
    append(log, (b"k", b"never"), producer_id=1, sequence=0, transactional=True)
    end(log, 1, commit=False)
    roll(log)
    clean(log)
    for sequence in (1, 2):
        append(log, (b"k", b"%d" % sequence), producer_id=1, sequence=sequence, transactional=True)
        end(log, 1, commit=True)
    roll(log)
    clean(log)
    assert [record.value for record in read_records(log) if record.key == b"k"] == [b"2"]


def test_an_open_transaction_bounds_the_cleaning(log: Log) -> None:
    append(log, (b"k", b"1"))
    roll(log)
    append(log, (b"k", b"2"), producer_id=1, sequence=0, transactional=True)
    for _ in range(3):
        roll(log)
        append(log, (b"k", b"3"))
    done = clean(log)
    assert done is not None
    assert done.cleaned_to <= log.first_unstable_offset
    assert offsets(log, b"k")[0] == 0


def test_a_walk_begins_after_what_ended_before() -> None:
    walk = TransactionWalk([AbortedTransaction(1, 10, 20, 0)])
    assert not walk.is_aborted(2, 12)
    assert walk.is_aborted(1, 13)
    assert not walk.marker_ends_nothing(1, 20, ABORT)
    assert not walk.is_aborted(1, 21)
    assert not walk.marker_ends_nothing(1, 22, COMMIT)
    assert walk.marker_ends_nothing(1, 23, COMMIT)
    assert walk.marker_ends_nothing(1, 24, ABORT)
    assert walk.marker_ends_nothing(1, 25, None)
    assert not walk.marker_ends_nothing(1, 26, 2)
    assert [entry.last_offset for entry in walk.take_kept()] == [20]
    assert walk.take_kept() == []


# -- producers


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_sequence_numbers_survive_cleaning_without_snapshots(kit: LogKit, codec: Codec) -> None:
    log = compacted(kit)
    append(log, (b"k", b"1"), (b"k", b"2"), producer_id=9, sequence=0, codec=codec)
    append(log, (b"k", b"3"), (b"l", b"4"), producer_id=9, sequence=2, codec=codec)
    append(log, (b"k", b"5"), (b"l", b"6"))
    roll(log)
    clean(log)
    assert [h.record_count for h in headers(log) if h.producer_id == 9] == [0]
    log.release()
    for path in kit.files(".snapshot"):
        path.unlink()
    log = kit.open(clean=False)
    assert log.append_as_leader(batch(b"3", b"4", producer_id=9, sequence=2), 0, NOW_MS).duplicate
    assert not log.append_as_leader(batch(b"7", producer_id=9, sequence=4), 0, NOW_MS).duplicate


# -- maps


def test_more_keys_than_the_map_holds(kit: LogKit) -> None:
    log = compacted(kit, segment_bytes=20_000)
    keys = [b"key-%d" % number for number in range(3000)]
    for _ in range(2):
        for begin in range(0, len(keys), 50):
            append(log, *((key, b"v") for key in keys[begin : begin + 50]))
    roll(log)
    expected = {record.key: record.offset for record in read_records(log)}
    goes = 0
    while (done := clean(log, map_bytes=1009 * 24)) is not None:
        assert done.stats.map_entries <= 1009 * 0.9
        goes += 1
    assert goes > 3
    found = [record for record in read_records(log) if record.offset < log.segments.active.base_offset]
    assert {record.key: record.offset for record in read_records(log)} == expected
    assert len(found) == len({record.key for record in found})


# -- leftovers


def test_segments_that_lost_everything_stay_in_their_place(kit: LogKit) -> None:
    log = compacted(kit)
    for _ in range(5):
        append(log, (b"same", b"v" * 300))
    clean(log)
    assert offsets(log, b"same")[-1] == 4
    assert [segment.size for segment in log.segments.all][:2] == [0, 0]
    log = kit.reopen(log, clean=True)
    assert read_records(log, 0)[0].offset == read_records(log)[0].offset


def test_a_crash_between_any_two_steps(tmp_path: Path) -> None:
    steps = 0
    while True:
        kit = LogKit(tmp_path / str(steps))
        log = compacted(kit, segment_bytes=1000)
        for number in range(20):
            append(log, (b"k%d" % (number % 3), b"%d" % number + b"x" * 40))
        append(log, (b"never", b"x"), producer_id=1, sequence=0, transactional=True)
        end(log, 1, commit=False)
        roll(log)
        table = {record.key: record.offset for record in read_records(log) if record.key != b"never"}
        left = steps

        def step(_: str) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise Crash

        try:
            clean(log, step=step)
        except Crash:
            log = kit.reopen(log, clean=False)
            assert not [*kit.files(".swap"), *kit.files(".cleaned")]
            found = read_records(log)
            assert {record.key: record.offset for record in found if record.key != b"never"} == table
            assert [record.offset for record in found] == sorted({record.offset for record in found})
            clean(log)
        assert {r.key: r.offset for r in read_records(log) if r.key in table} == table
        if left >= 0:
            break
        steps += 1
    assert steps > 15


@pytest.mark.parametrize("deleted_to", [9, 12, 1000])
@pytest.mark.parametrize("at", range(0, 40, 3))
def test_records_are_deleted_in_the_middle_of_a_swap(kit: LogKit, deleted_to: int, at: int) -> None:
    """DeleteRecords takes no lock, so it may come between any two steps."""
    log = compacted(kit, segment_bytes=1000)
    for number in range(60):
        append(log, (b"k%d" % number, b"x" * 40))
    left, start = at, min(deleted_to, log.segments.active.base_offset)

    def step(_: str) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            log.delete_records_before(start)

    log.config = TopicSettings(cleanup_policy=("compact",), segment_bytes=10**6)
    with contextlib.suppress(SegmentsChanged):
        clean(log, step=step)
    expected = [(b"k%d" % number) for number in range(log.start_offset, 60)]
    assert [record.key for record in read_records(log)] == expected
    log = kit.reopen(log, clean=False)
    assert [record.key for record in read_records(log)] == expected


def test_waste_is_removed_and_a_begun_swap_is_not(tmp_path: Path) -> None:
    log = tmp_path / f"{0:020d}.log"
    log.write_bytes(batch(b"old"))
    for name in (f"{0:020d}.index.swap", f"{0:020d}.timeindex.cleaned", f"{7:020d}.log.cleaned"):
        (tmp_path / name).write_bytes(b"")
    names = set(os.listdir(tmp_path))
    finish_swaps(str(tmp_path), names, Disk())
    assert names == set(os.listdir(tmp_path)) == {log.name}
    (tmp_path / f"{0:020d}.log.swap").write_bytes(batch(b"new", b"er"))
    (tmp_path / f"{1:020d}.log").write_bytes(batch(b"old", base_offset=1))
    (tmp_path / f"{2:020d}.log").write_bytes(batch(b"next", base_offset=2))
    names = set(os.listdir(tmp_path))
    finish_swaps(str(tmp_path), names, Disk())
    assert names == set(os.listdir(tmp_path)) == {log.name, f"{2:020d}.log"}
    assert log.read_bytes() == batch(b"new", b"er")


# -- pace


def test_the_cleaner_keeps_to_its_pace() -> None:
    now = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    throttle = Throttle(1000, lambda: now, sleep)
    for _ in range(100):
        throttle.spend(50)
    assert now == pytest.approx(5, abs=2 * PERIOD_SECONDS)
    unbounded = Throttle(1e308, lambda: now, sleep)
    before = now
    unbounded.spend(10**12)
    assert now == before
