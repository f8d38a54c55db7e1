"""Transactions in one log: what is open, what was aborted, who is fenced off; and that all of it survives."""

import struct
from pathlib import Path

import pytest
from tests.unit.broker.storage.conftest import NOW_MS, LogKit, batch
from tests.unit.broker.storage.transactions import abort, commit, end, read_committed, refusal, send

from ottla.broker.storage.log import AbortedTransaction, Log
from ottla.broker.storage.markers import Marker, encode_marker, read_marker
from ottla.broker.storage.producer_state import EPOCH_MAX, Verification
from ottla.model.errors import ApiError, ErrorCode
from ottla.protocol.compression import Codec
from ottla.protocol.records import NewRecord, decode_batch, encode_batch, read_header

DAY_MS = 86_400_000


def test_the_last_stable_offset_stops_at_the_oldest_open_transaction(kit: LogKit) -> None:
    log = kit.create()
    send(log, 1, 0, b"a", b"b")
    send(log, 2, 0, b"c")
    log.append_as_leader(batch(b"plain"), 0, NOW_MS)
    assert log.first_unstable_offset == 0
    commit(log, 1)
    assert log.first_unstable_offset == 2
    send(log, 1, 2)
    abort(log, 2)
    assert log.first_unstable_offset == 5
    commit(log, 1)
    assert log.first_unstable_offset == log.end_offset == 8
    assert read_committed(log) == [b"a", b"b", b"plain", b"v"]


def test_markers_are_in_kafkas_format() -> None:
    data = encode_marker(7, 3, Marker(commit=False, coordinator_epoch=9), NOW_MS)
    header = read_header(data)
    assert (header.is_control, header.is_transactional, header.codec) == (True, True, 0)
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.record_count) == (7, 3, -1, 1)
    (record,) = decode_batch(data)
    assert (record.key, record.value, record.timestamp) == (b"\0\0\0\0", b"\0\0\0\0\0\x09", NOW_MS)
    assert read_marker(data) == Marker(commit=False, coordinator_epoch=9)
    assert read_marker(encode_marker(7, 3, Marker(commit=True, coordinator_epoch=0), NOW_MS)) == Marker(True, 0)
    assert read_marker(batch(b"no marker", control=True)) is None
    assert read_marker(data[:-1]) is None


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_markers_are_what_the_record_codec_writes(commit: bool, codec: Codec) -> None:
    marker = Marker(commit, 12345)
    record = NewRecord(struct.pack(">hh", 0, commit), struct.pack(">hi", 0, 12345), NOW_MS)
    general = encode_batch(
        [record], producer_id=2**40, producer_epoch=3, transactional=True, control=True, codec=codec
    )  # fmt: skip
    assert read_marker(general) == marker
    if codec is Codec.NONE:
        assert encode_marker(2**40, 3, marker, NOW_MS) == general


def test_a_marker_is_taken_however_small_the_topic_wants_its_batches(kit: LogKit) -> None:
    log = kit.create(max_message_bytes=75)
    send(log, 1, 0)
    commit(log, 1)
    assert log.first_unstable_offset == 2


def test_markers_are_never_compressed(kit: LogKit) -> None:
    log = kit.create(compression_type="gzip")
    send(log, 1, 0, b"x" * 200)
    abort(log, 1)
    header = read_header(log.read(1, 1000, 2, min_one_batch=True).read())
    assert (header.is_control, header.codec) == (True, 0)


def test_older_producers_and_coordinators_are_fenced(kit: LogKit) -> None:
    log = kit.create()
    send(log, 1, 0, epoch=5)
    assert refusal(log, 1, epoch=4) is ErrorCode.INVALID_PRODUCER_EPOCH
    end(log, 1, commit=True, epoch=5, coordinator_epoch=3)
    assert refusal(log, 1, epoch=5, coordinator_epoch=2) is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    end(log, 1, commit=True, epoch=5, coordinator_epoch=3)
    end(log, 1, commit=True, epoch=6, coordinator_epoch=4)
    with pytest.raises(ApiError) as caught:
        send(log, 1, 0, epoch=5)
    assert caught.value.code is ErrorCode.INVALID_PRODUCER_EPOCH


def test_version_two_markers_raise_the_epoch(kit: LogKit) -> None:
    log = kit.create()
    send(log, 1, 0, epoch=5)
    assert refusal(log, 1, epoch=5, version=2) is ErrorCode.INVALID_PRODUCER_EPOCH
    end(log, 1, commit=False, epoch=6, version=2)
    assert log.first_unstable_offset == log.end_offset
    with pytest.raises(ApiError) as caught:
        send(log, 1, 1, epoch=5)
    assert caught.value.code is ErrorCode.INVALID_PRODUCER_EPOCH, "what is sent late does not begin a transaction"
    end(log, 1, commit=False, epoch=6, version=2)  # comes again after the coordinator was restarted
    with pytest.raises(ApiError) as caught:
        send(log, 1, 1, epoch=6)
    assert caught.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    send(log, 1, 0, epoch=6)
    assert refusal(log, 1, epoch=6, version=2) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert log.aborted_transactions(0, log.end_offset) == [AbortedTransaction(1, 0, 1, 2)]


def test_the_last_epoch_ends_with_itself(kit: LogKit) -> None:
    log = kit.create()
    send(log, 1, 0, epoch=EPOCH_MAX)
    end(log, 1, commit=True, epoch=EPOCH_MAX, version=2)
    assert log.first_unstable_offset == 2


def test_markers_without_records_end_nothing(kit: LogKit) -> None:
    log = kit.create()
    abort(log, 1)
    assert log.aborted_transactions(0, 10) == []
    assert kit.files(".txnindex") == []
    assert log.producers.entries[1].epoch == 0


def test_a_batch_outside_of_the_transaction_is_refused(kit: LogKit) -> None:
    log = kit.create()
    send(log, 1, 0)
    with pytest.raises(ApiError) as caught:
        send(log, 1, 1, transactional=False)
    assert caught.value.code is ErrorCode.INVALID_TXN_STATE
    commit(log, 1)
    send(log, 1, 1, transactional=False)
    assert log.first_unstable_offset == log.end_offset


def test_index_format(kit: LogKit) -> None:
    log = kit.create()
    send(log, 7, 0)
    send(log, 8, 0)
    abort(log, 8)
    abort(log, 7)
    (file,) = kit.files(".txnindex")
    rows = list(struct.iter_unpack(">hqqqq", file.read_bytes()))
    assert rows == [(0, 8, 1, 2, 0), (0, 7, 0, 3, 4)]
    assert log.aborted_transactions(0, 4) == [AbortedTransaction(7, 0, 3, 4), AbortedTransaction(8, 1, 2, 0)]


def test_only_transactions_in_range_are_told(kit: LogKit) -> None:
    log = kit.create(segment_bytes=300)
    for number in range(20):
        send(log, 1, number)
        abort(log, 1)
    assert len(kit.files(".txnindex")) > 3
    assert [t.first_offset for t in log.aborted_transactions(10, 20)] == [10, 12, 14, 16, 18]
    assert [t.first_offset for t in log.aborted_transactions(11, 13)] == [10, 12]
    assert log.aborted_transactions(40, 41) == []
    assert [t.first_offset for t in log.aborted_transactions(39, 40)] == [38]


def test_a_transaction_aborted_in_a_later_segment_is_told(kit: LogKit) -> None:
    log = kit.create(segment_bytes=300)
    send(log, 1, 0)
    for number in range(20):
        log.append_as_leader(batch(b"%d" % number), 0, NOW_MS)
    abort(log, 1)
    assert len(log.segments) > 3
    assert [t.producer_id for t in log.aborted_transactions(0, 5)] == [1]
    assert read_committed(log) == [b"%d" % number for number in range(20)]


def test_records_and_aborts_come_from_the_same_segments(kit: LogKit, monkeypatch: pytest.MonkeyPatch) -> None:
    log = kit.create()
    send(log, 1, 0)
    abort(log, 1)
    asked = []

    def swapped_meanwhile(start: int, end: int) -> list[AbortedTransaction]:
        asked.append((start, end))
        if len(asked) == 1:  # as the cleaner does from its thread
            log.segments.replace(list(log.segments.all))
            return []
        return [AbortedTransaction(1, 0, 1, 2)]

    monkeypatch.setattr(log, "aborted_transactions", swapped_meanwhile)
    _, aborted = log.read_committed(0, 1000, 2, min_one_batch=True)
    assert aborted == [AbortedTransaction(1, 0, 1, 2)]
    assert asked == [(0, 2), (0, 2)]


@pytest.mark.parametrize("clean", [True, False])
def test_everything_survives_a_restart(kit: LogKit, clean: bool) -> None:
    log = kit.create(segment_bytes=400)
    send(log, 9, 0, b"open")
    for number in range(12):
        send(log, 1, number, b"%d" % number)
        (abort if number % 3 else commit)(log, 1)
    send(log, 2, 0)
    before = (log.first_unstable_offset, log.aborted_transactions(0, log.end_offset), index_content(kit))
    log = kit.reopen(log, clean=clean)
    assert (log.first_unstable_offset, log.aborted_transactions(0, log.end_offset), index_content(kit)) == before
    assert log.producers.open_transaction(9) == 0
    assert log.producers.open_transaction(2, 0) == log.end_offset - 1
    assert log.producers.open_transaction(2, 1) is None
    assert log.producers.open_transaction(1) is None
    commit(log, 9)
    commit(log, 2)
    assert read_committed(log) == [b"open", b"0", b"3", b"6", b"9", b"v"]


def index_content(kit: LogKit) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in kit.files(".txnindex")}


@pytest.mark.parametrize("damage", ["cut", "version", "order", "stable"])
@pytest.mark.parametrize("which", [0, -1])
def test_a_damaged_index_is_made_anew(kit: LogKit, damage: str, which: int) -> None:
    log = kit.create(segment_bytes=500)
    send(log, 9, 0)
    for number in range(12):
        send(log, 1, number)
        abort(log, 1)
    expected = log.aborted_transactions(0, log.end_offset)
    log.close()
    content = index_content(kit)
    file = kit.files(".txnindex")[which]
    data = bytearray(file.read_bytes())
    if damage == "cut":
        del data[-5:]
    elif damage == "version":
        data[1] = 1
    elif damage == "order":
        data[18:26] = struct.pack(">q", -3)
    else:
        data[26:34] = struct.pack(">q", 2**40)
    file.write_bytes(data)
    log = kit.open(clean=True)
    assert log.aborted_transactions(0, log.end_offset) == expected
    assert index_content(kit) == content


def test_after_a_crash_a_lost_index_is_made_anew(kit: LogKit) -> None:
    log = kit.create(segment_bytes=500)
    for number in range(12):
        send(log, 1, number)
        abort(log, 1)
    expected, content = log.aborted_transactions(0, log.end_offset), index_content(kit)
    log.release()
    for file in [*kit.files(".txnindex"), *kit.files(".snapshot")]:
        file.unlink()
    log = kit.open(clean=False)
    assert log.aborted_transactions(0, log.end_offset) == expected
    assert index_content(kit) == content


def test_entries_from_before_a_crash_do_not_outlive_their_marker(kit: LogKit) -> None:
    log = kit.create()
    send(log, 1, 0)
    abort(log, 1)
    size = log.segments.active.size
    send(log, 1, 1)
    abort(log, 1)
    log.release()
    (file,) = kit.files(".log")
    file.write_bytes(file.read_bytes()[:size])
    log = kit.open(clean=False)
    assert log.aborted_transactions(0, 10) == [AbortedTransaction(1, 0, 1, 2)]
    assert len(kit.files(".txnindex")[0].read_bytes()) == 34


def test_truncation_takes_the_end_back(kit: LogKit) -> None:
    log = kit.create()
    send(log, 1, 0)
    abort(log, 1)
    send(log, 1, 1)
    abort(log, 1)
    log.truncate_to(3)
    assert log.first_unstable_offset == 2
    assert log.aborted_transactions(0, 10) == [AbortedTransaction(1, 0, 1, 2)]
    log.truncate_to(1)
    assert log.first_unstable_offset == 0
    assert log.aborted_transactions(0, 10) == []
    assert kit.files(".txnindex") == []
    abort(log, 1)
    assert log.aborted_transactions(0, 10) == [AbortedTransaction(1, 0, 1, 2)]


def test_the_index_goes_with_its_segment(kit: LogKit) -> None:
    log = kit.create(segment_bytes=300)
    for number in range(10):
        send(log, 1, number)
        abort(log, 1)
    log.delete_records_before(10)
    assert any(Path(path).name.endswith(".txnindex.deleted") for path in kit.doomed)
    assert min(int(file.stem) for file in kit.files(".txnindex")) == log.segments.first_base_offset
    assert [t.first_offset for t in log.aborted_transactions(10, 20)] == [10, 12, 14, 16, 18]


def test_deleting_records_of_an_open_transaction_moves_the_stable_offset(kit: LogKit) -> None:
    log = kit.create()
    send(log, 1, 0)
    send(log, 1, 1)
    log.delete_records_before(1)
    assert log.first_unstable_offset == 1
    log = kit.reopen(log, clean=True)
    assert log.first_unstable_offset == 1


def test_a_full_disk_does_not_lose_an_abort(kit: LogKit) -> None:
    log = kit.create()
    send(log, 1, 0)
    kit.disk.room = len(encode_marker(1, 0, Marker(False, 0), NOW_MS))
    abort(log, 1)
    assert log.aborted_transactions(0, 2) == [AbortedTransaction(1, 0, 1, 2)]
    assert not any(file.stat().st_size for file in kit.files(".txnindex"))
    kit.disk.room = None
    log.close()
    assert kit.files(".txnindex")[0].stat().st_size == 34


def test_replicated_markers_end_transactions_too(kit: LogKit, tmp_path: Path) -> None:
    leader = kit.create()
    send(leader, 1, 0)
    send(leader, 2, 0)
    abort(leader, 1)
    follower_kit = LogKit(tmp_path / "follower")
    follower = follower_kit.create()
    follower.append_as_follower(leader.read(0, 10**6, 3, min_one_batch=True).read(), NOW_MS)
    assert follower.first_unstable_offset == 1
    assert follower.aborted_transactions(0, 3) == [AbortedTransaction(1, 0, 2, 1)]
    assert index_content(follower_kit) == index_content(kit)


def test_expiry_keeps_open_transactions_however_old(kit: LogKit) -> None:
    log = kit.create()
    send(log, 1, 0)
    send(log, 2, 0)
    commit(log, 2)
    assert log.producers.expire(NOW_MS + 100 * DAY_MS, DAY_MS) == 1
    assert log.first_unstable_offset == 0
    commit(log, 1)
    assert log.producers.expire(NOW_MS + 100 * DAY_MS, DAY_MS) == 1


def begin(log: Log, sequence: int, *, begins_at_zero: bool, epoch: int = 0) -> Verification:
    header = read_header(batch(producer_id=1, producer_epoch=epoch, sequence=sequence, transactional=True))
    return log.producers.begin_verification(header, NOW_MS, begins_at_zero=begins_at_zero)


def test_a_batch_does_not_overtake_one_that_could_not_be_verified(kit: LogKit) -> None:
    log = kit.create()
    begin(log, 3, begins_at_zero=False)
    begin(log, 4, begins_at_zero=False)
    with pytest.raises(ApiError) as caught:
        send(log, 1, 4)
    assert caught.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    send(log, 1, 3)
    send(log, 1, 4)


def test_a_first_batch_with_an_epoch_of_its_own_has_sequence_zero(kit: LogKit) -> None:
    log = kit.create()
    begin(log, 1, begins_at_zero=True)
    with pytest.raises(ApiError) as caught:
        send(log, 1, 1)
    assert caught.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    send(log, 1, 0)
    send(log, 1, 1)


def test_a_marker_takes_the_verification_away(kit: LogKit) -> None:
    log = kit.create()
    asked = begin(log, 0, begins_at_zero=True)
    assert log.producers.is_verified(1, asked)
    assert begin(log, 0, begins_at_zero=True, epoch=1) is asked
    abort(log, 1)
    assert not log.producers.is_verified(1, asked)
    asked = begin(log, 0, begins_at_zero=True)
    log.producers.expire(NOW_MS + DAY_MS, DAY_MS)
    assert not log.producers.is_verified(1, asked)
