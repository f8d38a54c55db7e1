"""Flushing, truncating, deleting records, retention, leader epochs."""

import errno
import os
import threading

import pytest
from tests.unit.broker.storage.conftest import NOW_MS, LogKit, batch, read_records, values

from ottla.broker.storage.leader_epochs import LeaderEpochs
from ottla.broker.storage.log import Log
from ottla.broker.storage.retention import expired_segments
from ottla.config.topic import TopicSettings
from ottla.model.errors import ApiError, ErrorCode
from ottla.protocol.records import NewRecord, encode_batch

SMALL = {"segment_bytes": 400, "index_interval_bytes": 0}
HOUR_MS = 3_600_000


def fill(log: Log, count: int, *, epoch: int = 0, step_ms: int = 1000) -> None:
    start = log.end_offset
    for number in range(start, start + count):
        log.append_as_leader(batch(b"%06d" % number + b"x" * 50, timestamp=NOW_MS + number * step_ms), epoch, NOW_MS)


def offsets(log: Log) -> list[int]:
    return [record.offset for record in read_records(log)]


# -- flushing


def test_flush_advances_the_recovery_point(kit: LogKit) -> None:
    log = kit.create(**SMALL)
    fill(log, 10)
    assert (log.recovery_point, log.unflushed_records) == (0, 10)
    log.flush()
    assert (log.recovery_point, log.unflushed_records) == (10, 0)
    assert len(kit.disk.syncs) == len(log.segments)
    fill(log, 1)
    kit.disk.syncs.clear()
    log.flush()
    assert len(kit.disk.syncs) == 1, "segments that are on disk already are left alone"
    log.flush()
    assert len(kit.disk.syncs) == 1


def test_indexes_of_finished_segments_are_on_disk_after_a_flush(kit: LogKit) -> None:
    log = kit.create(**SMALL)
    fill(log, 10)
    log.flush()
    log.release()
    reopened = kit.open(clean=False, recovery_point=log.recovery_point)
    assert offsets(reopened) == list(range(10))
    for number in range(10):
        assert reopened.offset_for_timestamp(NOW_MS + number * 1000) == (NOW_MS + number * 1000, number, 0)


def test_flush_policies(kit: LogKit) -> None:
    log = kit.create(flush_messages=3, flush_ms=5000)
    assert not log.flush_due(NOW_MS + 10**9), "nothing to flush"
    fill(log, 2)
    assert not log.flush_due(NOW_MS + 4999)
    assert log.flush_due(NOW_MS + 5000)
    required = [log.flush_required]
    fill(log, 1)
    required.append(log.flush_required)
    assert log.flush_due(NOW_MS)
    log.flush()
    assert [*required, log.flush_required] == [False, True, False]


def test_a_finished_segment_is_due_for_a_flush(kit: LogKit) -> None:
    log = kit.create(**SMALL)
    fill(log, 2)
    assert not log.flush_due(NOW_MS)
    fill(log, 5)
    assert log.flush_due(NOW_MS)
    log.flush()
    assert not log.flush_due(NOW_MS)


def test_a_failed_sync_is_never_forgotten(kit: LogKit) -> None:
    log = kit.create()
    fill(log, 1)
    kit.disk.sync_error = errno.ENOSPC
    with pytest.raises(ApiError) as caught:
        log.flush()
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert log.recovery_point == 0
    assert kit.failures


def test_flush_and_retention_beside_appends(kit: LogKit) -> None:
    log = kit.create(retention_bytes=4000, max_message_bytes=400, **SMALL)
    stop = threading.Event()
    problems: list[BaseException] = []

    def housekeeping() -> None:
        try:
            while not stop.is_set():
                log.flush()
                log.drop_expired(NOW_MS)
        except BaseException as error:  # noqa: BLE001 - the test asserts that there is none
            problems.append(error)

    worker = threading.Thread(target=housekeeping)
    worker.start()
    try:
        for number in range(1200):
            log.append_as_leader(batch(b"%d" % number), 0, NOW_MS)
            if number % 7 == 0:
                start = log.start_offset
                try:
                    first = log.read(start, 1000, log.end_offset, min_one_batch=True).read()
                except ApiError as error:
                    assert error.code is ErrorCode.OFFSET_OUT_OF_RANGE  # noqa: PT017  # dropped in between
                else:
                    assert int.from_bytes(first[:8]) >= start
    finally:
        stop.set()
        worker.join()
    assert not problems
    log.flush()
    log.drop_expired(NOW_MS)
    assert log.recovery_point == log.end_offset == 1200
    assert 0 < log.start_offset < 1200
    assert log.size_bytes == sum(file.stat().st_size for file in kit.files(".log"))
    expected = [b"%d" % number for number in range(log.start_offset, 1200)]
    assert values(log) == expected
    assert values(kit.reopen(log, clean=True)) == expected


def test_reading_in_another_thread_beside_appends(kit: LogKit) -> None:
    log = kit.create(segment_bytes=2000, index_interval_bytes=100)
    count = 1500
    seen: list[bytes | None] = []

    def follow() -> None:
        while len(seen) < count:
            seen.extend(values(log, len(seen)))

    reader = threading.Thread(target=follow, daemon=True)
    reader.start()
    for number in range(count):
        log.append_as_leader(batch(b"%d" % number), 0, NOW_MS)
    reader.join(timeout=60)
    assert seen == [b"%d" % number for number in range(count)]


# -- truncating


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("target", range(13))
def test_truncate_anywhere(kit: LogKit, target: int, clean: bool) -> None:
    log = kit.create(**SMALL)
    fill(log, 12)
    if target % 2:
        log.flush()
    log.truncate_to(target)
    assert log.end_offset == target
    assert log.recovery_point <= target
    assert offsets(log) == list(range(target))
    fill(log, 4, epoch=1)
    assert offsets(log) == list(range(target + 4))
    log = kit.reopen(log, clean=clean)
    assert offsets(log) == list(range(target + 4))
    assert log.leader_epochs.entries() == ([(0, 0), (1, target)] if target else [(1, 0)])
    for number in range(target):
        assert log.offset_for_timestamp(NOW_MS + number * 1000) == (NOW_MS + number * 1000, number, 0)


def test_truncate_into_a_batch_drops_all_of_it(kit: LogKit) -> None:
    log = kit.create()
    log.append_as_leader(batch(b"a", b"b"), 0, NOW_MS)
    log.append_as_leader(batch(b"c", b"d", b"e"), 0, NOW_MS)
    log.truncate_to(4)
    assert log.end_offset == 2
    assert values(log) == [b"a", b"b"]


def test_truncate_takes_producer_state_back(kit: LogKit) -> None:
    log = kit.create(**SMALL)
    for sequence in range(12):
        log.append_as_leader(batch(b"x" * 50, producer_id=1, sequence=sequence), 0, NOW_MS)
    log.truncate_to(5)
    assert log.append_as_leader(batch(b"x" * 50, producer_id=1, sequence=4), 0, NOW_MS).duplicate
    assert log.append_as_leader(batch(b"x" * 50, producer_id=1, sequence=5), 0, NOW_MS).base_offset == 5


# -- deleting records


def test_delete_records(kit: LogKit) -> None:
    log = kit.create(**SMALL)
    fill(log, 12)
    segments = len(log.segments)
    log.delete_records_before(5)
    assert log.start_offset == 5
    assert len(log.segments) < segments
    assert offsets(log) == list(range(5, 12))
    with pytest.raises(ApiError) as caught:
        log.read(4, 100, 12, min_one_batch=True)
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    log.delete_records_before(3)
    assert log.start_offset == 5, "the start never goes back"
    with pytest.raises(ApiError):
        log.delete_records_before(13)
    log.delete_records_before(12)
    assert offsets(log) == []
    log = kit.reopen(log, clean=False)
    assert (log.start_offset, log.end_offset) == (12, 12)
    fill(log, 1)
    assert offsets(log) == [12]


def test_files_are_renamed_at_once_and_left_to_be_unlinked(kit: LogKit) -> None:
    log = kit.create(**SMALL)
    fill(log, 12)
    log.delete_records_before(10)
    assert kit.doomed
    assert all(path.endswith(".deleted") and os.path.exists(path) for path in kit.doomed)
    reopened = kit.reopen(log, clean=True)
    assert not any(os.path.exists(path) for path in kit.doomed), "a restart finishes the job"
    assert offsets(reopened) == [10, 11]


# -- retention


def test_retention_by_time(kit: LogKit) -> None:
    log = kit.create(retention_ms=HOUR_MS, **SMALL)
    fill(log, 12)
    last_of_first = NOW_MS + (log.segments.all[1].base_offset - 1) * 1000
    assert log.apply_retention(last_of_first + HOUR_MS) == 0
    assert log.apply_retention(last_of_first + HOUR_MS + 1) == 1
    assert log.start_offset == log.segments.all[0].base_offset
    assert offsets(log) == list(range(log.start_offset, 12))


def test_retention_rolls_the_active_segment_when_all_is_old(kit: LogKit) -> None:
    log = kit.create(retention_ms=HOUR_MS, **SMALL)
    fill(log, 12)
    segments = len(log.segments)
    assert log.apply_retention(NOW_MS + 10 * HOUR_MS) == segments
    assert (log.start_offset, log.end_offset, log.size_bytes) == (12, 12, 0)
    assert log.apply_retention(NOW_MS + 20 * HOUR_MS) == 0, "an empty segment stays"
    fill(log, 1)
    assert offsets(log) == [12]


def test_retention_in_a_worker_leaves_the_active_segment(kit: LogKit) -> None:
    log = kit.create(retention_ms=HOUR_MS, **SMALL)
    fill(log, 12)
    assert log.drop_expired(NOW_MS + 10 * HOUR_MS) == 3
    assert len(log.segments) == 1
    assert offsets(log)[-1] == 11


def test_retention_by_size(kit: LogKit) -> None:
    log = kit.create(retention_bytes=700, retention_ms=-1, **SMALL)
    fill(log, 12)
    log.apply_retention(NOW_MS + 10**12)
    assert log.size_bytes >= 700
    assert log.size_bytes - log.segments.all[0].size < 700


def test_retention_spares_what_is_not_committed(kit: LogKit) -> None:
    log = kit.create(retention_ms=HOUR_MS, **SMALL)
    fill(log, 12)
    second = log.segments.all[1].base_offset
    assert log.apply_retention(NOW_MS + 10 * HOUR_MS, high_watermark=second - 1) == 0
    assert log.apply_retention(NOW_MS + 10 * HOUR_MS, high_watermark=second) == 1


def test_compacted_topics_keep_everything(kit: LogKit) -> None:
    log = kit.create(retention_ms=1, cleanup_policy=("compact",), **SMALL)
    fill(log, 12)
    assert log.apply_retention(NOW_MS + 10 * HOUR_MS) == 0


def test_records_without_time_age_with_their_file(kit: LogKit) -> None:
    log = kit.create(retention_ms=HOUR_MS)
    log.append_as_leader(encode_batch([NewRecord(None, b"v", -1)]), 0, NOW_MS)
    written_ms = int(kit.files(".log")[0].stat().st_mtime * 1000)
    assert log.apply_retention(written_ms + HOUR_MS - 1000) == 0
    assert log.apply_retention(written_ms + HOUR_MS + 1000) == 1


def test_a_damaged_time_index_deletes_nothing(kit: LogKit) -> None:
    log = kit.create(retention_ms=HOUR_MS, **SMALL)
    fill(log, 12)
    log.close()
    for file in kit.files(".timeindex"):
        data = file.read_bytes()
        file.write_bytes(data[:-12] + (1).to_bytes(8) + data[-4:])
    log = kit.open(clean=True)
    log.apply_retention(NOW_MS + HOUR_MS)
    assert offsets(log) == list(range(12))


def test_retention_decides_from_the_oldest_on() -> None:
    class Piece:
        def __init__(self, base_offset: int, size: int, newest_ms: int) -> None:
            self.base_offset, self.size, self.newest_ms = base_offset, size, newest_ms

        def retention_timestamp(self) -> int:
            return self.newest_ms

    pieces = [Piece(0, 10, 100), Piece(10, 10, 900), Piece(20, 10, 100), Piece(30, 0, -1)]
    config = TopicSettings(retention_ms=500)

    def count(config: TopicSettings, start_offset: int = 0, high_watermark: int = 30) -> int:
        return expired_segments(
            pieces, config, now_ms=1000, start_offset=start_offset, end_offset=30, high_watermark=high_watermark
        )

    assert count(config) == 1, "a young segment protects the old one behind it"
    assert count(config, start_offset=20) == 3
    assert count(TopicSettings(retention_ms=-1, retention_bytes=10)) == 2
    assert count(TopicSettings(retention_ms=-1, retention_bytes=11)) == 1
    assert count(TopicSettings(retention_ms=500, cleanup_policy=()), start_offset=10) == 1
    assert count(TopicSettings(retention_ms=-1)) == 0


# -- epochs


def test_epoch_end_offsets() -> None:
    epochs = LeaderEpochs()
    assert epochs.end_offset(0, 50) == (-1, -1)
    assert epochs.assign(2, 10)
    assert epochs.assign(4, 30)
    assert not epochs.assign(4, 40)
    assert epochs.end_offset(4, 50) == (4, 50)
    assert epochs.end_offset(3, 50) == (2, 30)
    assert epochs.end_offset(2, 50) == (2, 30)
    assert epochs.end_offset(1, 50) == (1, 10)
    assert epochs.end_offset(5, 50) == (-1, -1)
    assert epochs.end_offset(-1, 50) == (-1, -1)
    assert [epochs.epoch_at(offset) for offset in (9, 10, 29, 30)] == [-1, 2, 2, 4]


def test_contradicting_epochs_give_way() -> None:
    epochs = LeaderEpochs([(1, 0), (2, 10), (3, 20)])
    assert epochs.assign(4, 10)
    assert epochs.entries() == [(1, 0), (4, 10)]
    assert epochs.assign(2, 30)
    assert epochs.entries() == [(1, 0), (2, 30)]


def test_epochs_follow_the_ends_of_the_log() -> None:
    epochs = LeaderEpochs([(1, 0), (2, 10), (3, 20)])
    assert epochs.truncate_start(15)
    assert epochs.entries() == [(2, 15), (3, 20)]
    assert not epochs.truncate_start(15)
    assert epochs.truncate_end(20)
    assert epochs.entries() == [(2, 15)]
    assert epochs.latest == 2


def test_epochs_are_kept_in_kafkas_file(kit: LogKit) -> None:
    log = kit.create()
    fill(log, 2, epoch=1)
    fill(log, 2, epoch=4)
    assert (kit.directory / "leader-epoch-checkpoint").read_text() == "0\n2\n1 0\n4 2\n"
    assert (kit.directory / "partition.metadata").read_text() == "version: 0\ntopic_id: AAAAAAAAAAASNFZ4kKvN7w"
    log = kit.reopen(log, clean=True)
    assert log.epoch_end_offset(2) == (1, 2)
    assert log.epoch_end_offset(4) == (4, 4)


def test_a_new_epoch_replaces_no_file(kit: LogKit, monkeypatch: pytest.MonkeyPatch) -> None:
    """On some file systems that waits for the disk, and a broker that starts leads thousands of partitions anew."""
    log = kit.create()
    file = kit.directory / "leader-epoch-checkpoint"
    inode = file.stat().st_ino

    def refuse(*_: object) -> None:
        raise AssertionError("a file takes another's name")

    monkeypatch.setattr(os, "rename", refuse)
    for epoch in (1, 2, 30):
        log.begin_epoch(epoch)
        fill(log, 2, epoch=epoch)
    assert file.read_text() == "0\n3\n1 0\n2 2\n30 4\n"
    log.truncate_to(2)
    assert file.read_text() == "0\n1\n1 0\n", "nothing of the longer one is left"
    assert file.stat().st_ino == inode


@pytest.mark.parametrize(
    "content", [None, "", "0\n9\n", "junk", "0\n1\n5 -3\n", "0\n2\n4 0\n1 2\n", "0\n1\n1 0\n4 6\n", "0\n2\n1 0\n4"]
)
def test_a_damaged_epoch_file_is_rebuilt_from_the_log(kit: LogKit, content: str | None) -> None:
    log = kit.create(**SMALL)
    fill(log, 6, epoch=1)
    fill(log, 6, epoch=4)
    log.close()
    file = kit.directory / "leader-epoch-checkpoint"
    if content is None:
        file.unlink()
    else:
        file.write_text(content)
    assert kit.open(clean=True).leader_epochs.entries() == [(1, 0), (4, 6)]
    assert file.read_text() == "0\n2\n1 0\n4 6\n"
