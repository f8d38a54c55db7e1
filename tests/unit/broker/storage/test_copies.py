"""A log that is copied to another directory and takes its place there, whatever comes between."""

import os
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.broker.storage.conftest import NOW_MS, ManagerKit, batch, read_records, values

from ottla.broker.storage.copies import LogCopy
from ottla.broker.storage.log import Log
from ottla.broker.storage.manager import LogManager
from ottla.broker.storage.markers import Marker
from ottla.config.topic import TopicSettings
from ottla.model.errors import ApiError, ErrorCode, OttlaError
from ottla.model.names import TopicPartition

TP = TopicPartition("t", 0)
TOPIC_ID = uuid.UUID(int=77)


def fill(log: Log, count: int, epoch: int = 0) -> None:
    for number in range(log.end_offset, log.end_offset + count):
        log.append_as_leader(batch(b"%d" % number), epoch, NOW_MS)


def numbers(log: Log) -> list[int]:
    return [int(value or b"") for value in values(log)]


class Moving:
    """A manager of two directories with one log, and its move step by step."""

    def __init__(self, kit: ManagerKit) -> None:
        self.kit = kit
        self.manager = kit.open("one", "two")
        self.log = self.manager.create(TP, TOPIC_ID)
        self.old, self.new = (self.manager.directory_of(TP), self.manager.dirs[1])
        assert self.old is self.manager.dirs[0]

    def begin(self) -> LogCopy:
        return self.manager.begin_move(TP, self.new)

    def copy_all(self) -> None:
        move = self.manager.moves[TP]
        for _ in range(100):
            move.take_note()
            move.advance(NOW_MS, 4096)
            if move.is_complete:
                return
        raise AssertionError("the copy never becomes complete")

    def flush(self) -> None:
        self.manager.moves[TP].flush()
        self.new.write_checkpoints(self.manager.high_watermark)

    def finish(self) -> Log:
        self.log = self.manager.finish_move(TP)
        return self.log

    def crash(self) -> LogManager:
        self.manager.abandon()
        self.manager = self.kit.open("one", "two")
        return self.manager

    def stop(self) -> LogManager:
        self.manager.close()
        self.manager = self.kit.open("one", "two")
        return self.manager

    def names(self, directory: str) -> list[str]:
        return sorted(path.name for path in (self.kit.root / directory).iterdir() if path.is_dir())


@pytest.fixture
def moving(managers: ManagerKit) -> Moving:
    return Moving(managers)


def test_a_copy_takes_the_logs_place(moving: Moving) -> None:
    moving.kit.topics["t"] = TopicSettings(segment_bytes=500)
    moving.log.reconfigure(moving.kit.topics["t"])
    fill(moving.log, 30)
    fill(moving.log, 30, epoch=3)
    move = moving.begin()
    assert move.lag == 60
    assert moving.names("two")[0].endswith("-future")
    moving.copy_all()
    assert move.lag == 0
    fill(moving.log, 5, epoch=3)
    moving.copy_all()
    moving.flush()
    before = moving.log
    after = moving.finish()
    assert moving.manager.get(TP) is after
    assert moving.manager.directory_of(TP) is moving.new
    assert after.directory == str(Path(moving.new.path) / "t-0")
    assert before.failure is not None
    with pytest.raises(ApiError, match="has moved"):
        fill(before, 1)
    fill(after, 5, epoch=3)
    move.make_durable()
    moving.manager.retire_old_directory(TP)
    move.forget_mark()
    assert numbers(after) == list(range(70))
    assert after.leader_epochs.entries() == [(0, 0), (3, 30)]
    assert (moving.names("two"), [name[-7:] for name in moving.names("one")]) == (["t-0"], ["-delete"])
    moving.manager.remove_deleted(NOW_MS + 10**9)
    assert moving.names("one") == []
    for reopened in (moving.stop(), moving.crash()):
        log = reopened.get(TP)
        assert log is not None
        assert log.topic_id == TOPIC_ID
        assert numbers(log) == list(range(70))


def test_a_moved_log_can_be_cut_cleaned_of_segments_and_rolled(moving: Moving) -> None:
    moving.kit.topics["t"] = TopicSettings(segment_bytes=300)
    moving.log.reconfigure(moving.kit.topics["t"])
    fill(moving.log, 20)
    moving.begin()
    moving.copy_all()
    log = moving.finish()
    log.truncate_to(15)
    fill(log, 10)
    log.delete_records_before(12)
    log.flush()
    assert numbers(log) == list(range(12, 25))
    assert all(str(moving.kit.root / "two" / "t-0") in segment.prefix for segment in log.segments.all)


def test_producers_and_aborted_transactions_come_along(moving: Moving) -> None:
    log = moving.log
    log.append_as_leader(batch(b"1", producer_id=5, sequence=0), 0, NOW_MS)
    log.append_as_leader(batch(b"2", producer_id=6, sequence=0, transactional=True), 0, NOW_MS)
    log.append_marker(6, 0, Marker(commit=False, coordinator_epoch=0), 0, NOW_MS, transaction_version=1)
    log.append_as_leader(batch(b"3", producer_id=7, sequence=0, transactional=True), 0, NOW_MS)
    aborted = log.aborted_transactions(0, 10)
    assert len(aborted) == 1
    moving.begin()
    moving.copy_all()
    verification = log.producers
    log = moving.finish()
    assert log.producers is verification
    assert log.append_as_leader(batch(b"1", producer_id=5, sequence=0), 0, NOW_MS).duplicate
    assert log.aborted_transactions(0, 10) == aborted
    assert log.first_unstable_offset == 3
    moving.manager.retire_old_directory(TP)
    after = moving.crash().get(TP)
    assert after is not None
    assert after.aborted_transactions(0, 10) == aborted
    assert after.first_unstable_offset == 3
    assert after.append_as_leader(batch(b"1", producer_id=5, sequence=0), 0, NOW_MS).duplicate


def test_producers_whose_records_are_gone_are_still_known(moving: Moving) -> None:
    log = moving.log
    log.append_as_leader(batch(b"1", producer_id=5, sequence=0), 0, NOW_MS)
    fill(log, 3)
    log.append_as_leader(batch(b"4"), 0, NOW_MS)
    log.delete_records_before(3)
    moving.begin()
    moving.copy_all()
    moving.finish()
    moving.manager.retire_old_directory(TP)
    after = moving.crash().get(TP)
    assert after is not None
    assert 5 in after.producers.entries


def test_what_is_cut_off_the_log_is_cut_off_the_copy(moving: Moving) -> None:
    fill(moving.log, 20)
    move = moving.begin()
    moving.copy_all()
    moving.log.truncate_to(8)
    fill(moving.log, 4, epoch=2)
    assert not move.is_complete
    moving.copy_all()
    moving.log.truncate_to(3)
    assert not move.is_complete
    moving.copy_all()
    fill(moving.log, 20, epoch=5)
    moving.copy_all()
    log = moving.finish()
    assert numbers(log) == list(range(23))
    assert log.leader_epochs.entries() == [(0, 0), (5, 3)]


def test_a_log_that_begins_anew_makes_the_copy_begin_anew(moving: Moving) -> None:
    fill(moving.log, 20)
    moving.begin()
    moving.copy_all()
    moving.log.restart_at(500)
    fill(moving.log, 3, epoch=1)
    moving.copy_all()
    log = moving.finish()
    assert (log.start_offset, log.end_offset) == (500, 503)
    assert numbers(log) == [500, 501, 502]


def test_retention_may_overtake_the_copy(moving: Moving) -> None:
    moving.kit.topics["t"] = TopicSettings(segment_bytes=300)
    moving.log.reconfigure(moving.kit.topics["t"])
    fill(moving.log, 10)
    move = moving.begin()
    move.take_note()
    move.advance(NOW_MS, 100)
    fill(moving.log, 30)
    moving.log.delete_records_before(33)
    moving.copy_all()
    log = moving.finish()
    assert log.start_offset == 33
    assert numbers(log) == list(range(33, 40))


@pytest.mark.parametrize("when", ["before", "during"])
def test_a_start_inside_of_a_batch_stays_there(moving: Moving, when: str) -> None:
    moving.log.append_as_leader(batch(*[b"%d" % number for number in range(10)]), 0, NOW_MS)
    fill(moving.log, 5)
    if when == "before":
        moving.log.delete_records_before(4)
    moving.begin()
    moving.copy_all()
    moving.log.delete_records_before(4)
    moving.copy_all()
    moving.flush()
    log = moving.finish()
    assert (log.start_offset, numbers(log)) == (4, list(range(4, 15)))
    after = moving.crash().get(TP)
    assert after is not None
    assert (after.start_offset, numbers(after)) == (4, list(range(4, 15)))


def test_an_end_that_has_no_records_any_more_is_reached(moving: Moving) -> None:
    fill(moving.log, 3)
    moving.log.skip_to(50, NOW_MS)
    moving.begin()
    moving.copy_all()
    log = moving.finish()
    assert log.end_offset == 50
    fill(log, 1)
    assert [record.offset for record in read_records(log)] == [0, 1, 2, 50]


def test_an_empty_log_moves_too(moving: Moving) -> None:
    moving.log.restart_at(9)
    moving.begin()
    moving.copy_all()
    log = moving.finish()
    assert (log.start_offset, log.end_offset) == (9, 9)
    fill(log, 2)
    after = moving.crash().get(TP)
    assert after is not None
    assert numbers(after) == [9, 10]


def test_a_move_that_is_given_up_leaves_nothing(moving: Moving) -> None:
    fill(moving.log, 5)
    move = moving.begin()
    moving.copy_all()
    moving.manager.end_move(TP)
    assert [name[-7:] for name in moving.names("two")] == ["-delete"]
    assert not moving.log.being_copied
    with pytest.raises(ApiError):
        fill(move.copy, 1)
    fill(moving.log, 5)
    moving.manager.remove_deleted(NOW_MS + 1)
    assert moving.names("two") == []
    moving.begin()
    moving.copy_all()
    assert numbers(moving.finish()) == list(range(10))


def test_deleting_the_partition_ends_its_move(moving: Moving) -> None:
    fill(moving.log, 5)
    moving.begin()
    moving.manager.delete(TP)
    assert not moving.manager.moves
    for name in moving.names("one") + moving.names("two"):
        assert name.endswith("-delete")
    moving.manager.create(TP, uuid.uuid4())


def test_a_partition_deleted_right_after_its_move_can_be_created_again(moving: Moving) -> None:
    fill(moving.log, 5)
    moving.begin()
    moving.copy_all()
    moving.finish()
    moving.manager.delete(TP)
    moving.manager.prefer(TP, moving.manager.dirs[0])
    fresh = moving.manager.create(TP, uuid.uuid4())
    assert (fresh.end_offset, moving.manager.directory_of(TP)) == (0, moving.manager.dirs[0])


def test_there_and_back_again(moving: Moving) -> None:
    fill(moving.log, 5)
    for target in (moving.manager.dirs[1], moving.manager.dirs[0]) * 2:
        moving.manager.checkpoint()
        moving.manager.begin_move(TP, target)
        moving.copy_all()
        moving.flush()
        move = moving.manager.moves[TP]
        fill(moving.finish(), 5)
        move.make_durable()
        moving.manager.retire_old_directory(TP)
        move.forget_mark()
    log = moving.crash().get(TP)
    assert log is not None
    assert numbers(log) == list(range(25))
    assert moving.manager.directory_of(TP) is moving.manager.dirs[0]


def to_begin(moving: Moving) -> int:
    moving.begin()
    return 20


def to_some(moving: Moving) -> int:
    move = moving.begin()
    move.take_note()
    move.advance(NOW_MS, 300)
    assert 0 < move.copy.end_offset < 20
    return 20


def to_all(moving: Moving) -> int:
    moving.begin()
    moving.copy_all()
    moving.flush()
    fill(moving.log, 2)
    return 22


def to_taken_over(moving: Moving) -> int:
    moving.begin()
    moving.copy_all()
    moving.finish()
    return 20


def to_used(moving: Moving) -> int:
    to_taken_over(moving)
    fill(moving.log, 3, epoch=1)
    return 23


def to_retired(moving: Moving) -> int:
    to_used(moving)
    moving.manager.retire_old_directory(TP)
    return 23


@pytest.mark.parametrize("reach", [to_begin, to_some, to_all, to_taken_over, to_used, to_retired])
def test_a_kill_at_any_step_loses_nothing(moving: Moving, reach: Callable[[Moving], int]) -> None:
    fill(moving.log, 20)
    moved = reach in (to_taken_over, to_used, to_retired)
    end = reach(moving)
    for _ in range(2):
        manager = moving.crash()
        log = manager.get(TP)
        assert log is not None
        assert numbers(log) == list(range(end))
        assert [name for name in moving.names("one") + moving.names("two") if name == "t-0"] == ["t-0"]
        assert not os.path.exists(f"{log.directory}/move-under-way")
        manager.remove_deleted(NOW_MS + 10**9)
        assert moving.names("one") + moving.names("two") == ["t-0"]
        if not moved:
            assert manager.interrupted_moves == [(TP, manager.dirs[1])]
            assert manager.directory_of(TP) is manager.dirs[0]
            break
    if not moved:
        assert log is not None
        moving.log = log
        moving.new = manager.dirs[1]
        moving.begin()
        moving.copy_all()
        assert numbers(moving.finish()) == list(range(end))


def test_a_power_cut_that_took_the_copys_records_leaves_the_old_log(moving: Moving) -> None:
    fill(moving.log, 20)
    to_taken_over(moving)
    moving.manager.abandon()
    file = moving.kit.root / "two" / "t-0" / f"{0:020d}.log"
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    log = moving.crash().get(TP)
    assert log is not None
    assert numbers(log) == list(range(20))
    assert moving.manager.directory_of(TP) is moving.manager.dirs[0]
    assert [name[-7:] for name in moving.names("two")] == ["-delete"]


def test_two_directories_of_a_partition_that_was_not_moved_are_refused(moving: Moving) -> None:
    fill(moving.log, 20)
    to_taken_over(moving)
    moving.manager.abandon()
    (moving.kit.root / "two" / "t-0" / "move-under-way").unlink()
    with pytest.raises(OttlaError, match="in another log directory"):
        moving.kit.open("one", "two")


def test_after_a_clean_stop_the_copy_goes_on_growing(moving: Moving) -> None:
    fill(moving.log, 20)
    to_some(moving)
    copied = moving.manager.moves[TP].copy.end_offset
    manager = moving.stop()
    assert manager.interrupted_moves == []
    move = manager.moves[TP]
    assert move.copy.end_offset == copied
    assert move.source.being_copied
    moving.log = move.source
    fill(moving.log, 5)
    moving.copy_all()
    assert numbers(moving.finish()) == list(range(25))


def test_a_copy_that_the_log_has_left_behind_is_made_anew(moving: Moving) -> None:
    fill(moving.log, 20)
    moving.begin()
    moving.copy_all()
    moving.log.truncate_to(5)
    fill(moving.log, 30, epoch=1)
    manager = moving.stop()
    assert not manager.moves
    assert manager.interrupted_moves == [(TP, manager.dirs[1])]


def test_a_copy_of_nothing_is_left_alone(moving: Moving) -> None:
    to_some_future = moving.kit.root / "two" / f"gone-3.{uuid.uuid4().hex}-future"
    to_some_future.mkdir()
    manager = moving.stop()
    assert to_some_future.exists()
    assert not manager.moves
    assert not manager.interrupted_moves


def test_a_directory_that_fails_takes_its_copies_along(moving: Moving) -> None:
    fill(moving.log, 5)
    move = moving.begin()
    moving.new.fail(OSError("gone"))
    move.take_note()
    with pytest.raises(ApiError) as caught:
        move.advance(NOW_MS)
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    moving.manager.end_move(TP)
    fill(moving.log, 5)
    assert numbers(moving.log) == list(range(10))


def test_names_that_leave_no_room_are_refused(moving: Moving) -> None:
    tp = TopicPartition("x" * 220, 0)
    moving.manager.create(tp, uuid.uuid4())
    with pytest.raises(ApiError) as caught:
        moving.manager.begin_move(tp, moving.new)
    assert caught.value.code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_preference_is_kept_for_a_partition_that_comes_later(moving: Moving) -> None:
    other = TopicPartition("later", 0)
    moving.manager.prefer(other, moving.manager.dirs[0])
    moving.manager.create(other, uuid.uuid4())
    assert moving.manager.directory_of(other) is moving.manager.dirs[0]
