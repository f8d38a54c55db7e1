"""Idempotence: what counts as a retry, a gap, a zombie; and what survives a restart."""

import struct

import pytest
from tests.unit.broker.storage.conftest import NOW_MS, LogKit, batch, read_records

from ottla.broker.storage.log import AppendResult, Log
from ottla.broker.storage.producer_state import (
    SEQUENCE_MAX,
    ProducerState,
    decode_snapshot,
    encode_snapshot,
    sequence_after,
)
from ottla.broker.storage.validation import AppendOrigin
from ottla.model.errors import ApiError, ErrorCode
from ottla.protocol.records import NewRecord, encode_batch

DAY_MS = 86_400_000


def send(log: Log, sequence: int, *values: bytes, epoch: int = 0, producer_id: int = 7) -> AppendResult:
    records = batch(*(values or (b"v",)), producer_id=producer_id, producer_epoch=epoch, sequence=sequence)
    return log.append_as_leader(records, 0, NOW_MS)


def refusal(log: Log, sequence: int, *, epoch: int = 0) -> ErrorCode:
    with pytest.raises(ApiError) as caught:
        send(log, sequence, epoch=epoch)
    return caught.value.code


def test_retries_get_their_first_offset(kit: LogKit) -> None:
    log = kit.create()
    for sequence in range(0, 14, 2):
        send(log, sequence, b"a", b"b")
    for sequence in range(4, 14, 2):
        result = send(log, sequence, b"a", b"b")
        assert (result.duplicate, result.base_offset, result.last_offset) == (True, sequence, sequence + 1)
    assert log.end_offset == 14
    assert refusal(log, 2) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, "only five batches are remembered"
    assert refusal(log, 5) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, "it is half of what was sent"
    assert log.end_offset == 14


def test_gaps_are_refused_and_change_nothing(kit: LogKit) -> None:
    log = kit.create()
    send(log, 0)
    assert refusal(log, 2) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.end_offset == 1
    assert not send(log, 1).duplicate


def test_an_unknown_producer_may_begin_anywhere(kit: LogKit) -> None:
    log = kit.create()
    assert send(log, 41).base_offset == 0
    assert refusal(log, 41 + 2) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(log, 42).base_offset == 1


def test_epochs(kit: LogKit) -> None:
    log = kit.create()
    send(log, 0, epoch=1)
    assert refusal(log, 1, epoch=0) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert refusal(log, 1, epoch=2) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, "a new epoch begins at 0"
    assert not send(log, 0, epoch=2).duplicate
    assert refusal(log, 1, epoch=1) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_producers_are_told_apart(kit: LogKit) -> None:
    log = kit.create()
    send(log, 0, producer_id=1)
    assert not send(log, 0, producer_id=2).duplicate
    assert send(log, 0, producer_id=1).base_offset == 0


def test_sequences_wrap(kit: LogKit) -> None:
    log = kit.create()
    send(log, SEQUENCE_MAX - 1, b"a", b"b", b"c")
    assert sequence_after(SEQUENCE_MAX, 1) == 0
    assert send(log, SEQUENCE_MAX - 1, b"a", b"b", b"c").duplicate
    assert refusal(log, 2) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(log, 1).base_offset == 3


def test_wrap_exactly_at_the_end(kit: LogKit) -> None:
    log = kit.create()
    send(log, SEQUENCE_MAX)
    assert not send(log, 0).duplicate
    assert send(log, SEQUENCE_MAX).duplicate


@pytest.mark.parametrize("clean", [True, False])
def test_state_survives_a_restart(kit: LogKit, clean: bool) -> None:
    log = kit.create(segment_bytes=500)
    for sequence in range(20):
        send(log, sequence)
    log = kit.reopen(log, clean=clean)
    assert send(log, 19).base_offset == 19
    sent_again = [send(log, sequence) for sequence in range(15, 20)]
    assert [(each.duplicate, each.base_offset) for each in sent_again] == [(True, offset) for offset in range(15, 20)]
    assert refusal(log, 14) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refusal(log, 21) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(log, 20).base_offset == 20
    assert len(read_records(log)) == 21


def test_snapshots_are_taken_at_roll_and_close_and_two_are_kept(kit: LogKit) -> None:
    log = kit.create(segment_bytes=500)
    for sequence in range(30):
        send(log, sequence)
    rolled_at = [segment.base_offset for segment in log.segments.all][-2:]
    assert [int(file.stem) for file in kit.files(".snapshot")] == rolled_at
    log.close()
    assert [int(file.stem) for file in kit.files(".snapshot")] == [rolled_at[-1], 30]


def test_a_damaged_snapshot_is_deleted_and_the_log_asked(kit: LogKit) -> None:
    log = kit.create(segment_bytes=500)
    for sequence in range(30):
        send(log, sequence)
    log.close()
    for file in kit.files(".snapshot"):
        data = bytearray(file.read_bytes())
        data[10] ^= 1
        file.write_bytes(data)
    log = kit.open(clean=True)
    assert not kit.files(".snapshot")
    assert [send(log, sequence).base_offset for sequence in range(25, 30)] == list(range(25, 30))
    assert send(log, 30).base_offset == 30


def test_expiry(kit: LogKit) -> None:
    log = kit.create()
    send(log, 0, producer_id=1)
    log.append_as_leader(batch(timestamp=NOW_MS + DAY_MS - 1, producer_id=2, sequence=0), 0, NOW_MS + DAY_MS)
    assert log.producers.expire(NOW_MS + DAY_MS - 1, DAY_MS) == 0
    assert log.producers.expire(NOW_MS + DAY_MS, DAY_MS) == 1
    assert list(log.producers.entries) == [2]
    assert send(log, 17, producer_id=1).base_offset == 2, "after expiry the producer is unknown again"


def test_snapshot_format(kit: LogKit) -> None:
    log = kit.create()
    send(log, 4, b"a", b"b")
    log.close()
    data = kit.files(".snapshot")[0].read_bytes()
    version, _, count = struct.unpack_from(">hIi", data)
    assert (version, count) == (1, 1)
    assert struct.unpack_from(">qhiqiqiq", data, 10) == (7, 0, 5, 1, 1, NOW_MS + 1, -1, -1)
    again = decode_snapshot(data)
    assert again is not None
    assert encode_snapshot(again.entries.values()) == data
    for length in range(len(data)):
        assert decode_snapshot(data[:length]) is None
    assert decode_snapshot(encode_snapshot(ProducerState().entries.values())) is not None


def marker(producer_id: int, coordinator_epoch: int) -> bytearray:
    record = NewRecord(struct.pack(">hh", 0, 1), struct.pack(">hi", 0, coordinator_epoch), NOW_MS)
    return encode_batch([record], producer_id=producer_id, producer_epoch=0, transactional=True, control=True)


@pytest.mark.parametrize("clean", [True, False])
def test_open_transactions_are_known_across_restarts(kit: LogKit, clean: bool) -> None:
    log = kit.create()
    send(log, 0)
    log.append_as_leader(batch(producer_id=9, sequence=0, transactional=True), 0, NOW_MS)
    log.append_as_leader(batch(producer_id=9, sequence=1, transactional=True), 0, NOW_MS)
    assert log.producers.first_unstable_offset() == 1
    with pytest.raises(ApiError) as caught:
        log.append_as_leader(batch(producer_id=9, sequence=2), 0, NOW_MS)
    assert caught.value.code is ErrorCode.INVALID_TXN_STATE
    log = kit.reopen(log, clean=clean)
    assert log.producers.first_unstable_offset() == 1
    assert log.producers.expire(NOW_MS + 10 * DAY_MS, DAY_MS) == 1, "a producer with an open transaction stays"
    log.append_as_leader(marker(9, 3), 0, NOW_MS, origin=AppendOrigin.COORDINATOR)
    assert log.producers.first_unstable_offset() is None
    log = kit.reopen(log, clean=clean)
    assert log.producers.first_unstable_offset() is None
    assert log.producers.entries[9].coordinator_epoch == 3


def test_coordinators_write_without_sequences(kit: LogKit) -> None:
    log = kit.create()
    for _ in range(3):
        records = batch(producer_id=5, producer_epoch=2, sequence=-1)
        assert not log.append_as_leader(records, 0, NOW_MS, origin=AppendOrigin.COORDINATOR).duplicate
    with pytest.raises(ApiError) as caught:
        log.append_as_leader(
            batch(producer_id=5, producer_epoch=1, sequence=-1), 0, NOW_MS, origin=AppendOrigin.COORDINATOR
        )
    assert caught.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
