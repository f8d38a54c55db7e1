"""What enters a log and what is refused."""

import errno

import pytest
from tests.unit.broker.storage.conftest import NOW_MS, LogKit, batch, read_records, values

from ottla.broker.storage.validation import AppendOrigin
from ottla.model.errors import ApiError, ErrorCode
from ottla.protocol.compression import Codec
from ottla.protocol.records import decode_batch, iterate_batches, read_header


def refused(kit_log: object, records: bytearray, now_ms: int = NOW_MS, **options: object) -> ErrorCode:
    with pytest.raises(ApiError) as caught:
        kit_log.append_as_leader(records, 0, now_ms, **options)  # type: ignore[attr-defined]
    return caught.value.code


def test_offsets_and_epoch_are_set_in_place(kit: LogKit) -> None:
    log = kit.create()
    first, second = batch(b"a", b"b"), batch(b"c")
    assert log.append_as_leader(first, 3, NOW_MS).base_offset == 0
    result = log.append_as_leader(memoryview(second), 3, NOW_MS)
    assert (result.base_offset, result.last_offset, result.duplicate) == (2, 2, False)
    assert (result.record_count, result.byte_count, result.log_append_time_ms) == (1, len(second), -1)
    assert log.end_offset == 3
    stored = kit.files(".log")[0].read_bytes()
    assert stored == bytes(first) + bytes(second)
    assert [h.leader_epoch for _, h in iterate_batches(stored)] == [3, 3]
    assert [(r.offset, r.value) for r in read_records(log)] == [(0, b"a"), (1, b"b"), (2, b"c")]
    assert log.leader_epochs.entries() == [(3, 0)]


def test_a_flipped_bit_is_refused(kit: LogKit) -> None:
    log = kit.create()
    damaged = batch(b"abc")
    damaged[-2] ^= 1
    assert refused(log, damaged) is ErrorCode.CORRUPT_MESSAGE
    assert log.end_offset == 0
    assert log.size_bytes == 0


@pytest.mark.parametrize(
    "records",
    [
        bytearray(),
        bytearray(20),
        batch(b"a") + batch(b"b"),
        batch(b"a") + b"\x00",
        batch(b"abcdef")[:-1],
    ],
    ids=["nothing", "no header", "two batches", "a byte too many", "cut short"],
)
def test_exactly_one_whole_batch(kit: LogKit, records: bytearray) -> None:
    assert refused(kit.create(), records) is ErrorCode.INVALID_RECORD


def test_old_formats_are_refused(kit: LogKit) -> None:
    old = batch(b"a")
    old[16] = 1
    assert refused(kit.create(), old) is ErrorCode.INVALID_RECORD


def test_an_absurd_length_is_corrupt(kit: LogKit) -> None:
    absurd = batch(b"a")
    absurd[8:12] = (5).to_bytes(4)
    assert refused(kit.create(), absurd) is ErrorCode.CORRUPT_MESSAGE


def test_size_limits(kit: LogKit) -> None:
    log = kit.create(max_message_bytes=200)
    assert refused(log, batch(b"x" * 200)) is ErrorCode.MESSAGE_TOO_LARGE
    log.append_as_leader(batch(b"x" * 100), 0, NOW_MS)


def test_a_batch_larger_than_a_segment(kit: LogKit) -> None:
    log = kit.create(max_message_bytes=10_000, segment_bytes=300)
    assert refused(log, batch(b"x" * 400)) is ErrorCode.RECORD_LIST_TOO_LARGE


def seal(records: bytearray) -> bytearray:
    from crc32c import crc32c

    records[17:21] = crc32c(bytes(records[21:])).to_bytes(4)
    return records


def test_record_count_must_match_the_offsets(kit: LogKit) -> None:
    wrong = batch(b"a", b"b")
    wrong[57:61] = (5).to_bytes(4)
    assert refused(kit.create(), seal(wrong)) is ErrorCode.INVALID_RECORD


def test_unknown_codec(kit: LogKit) -> None:
    odd = batch(b"a")
    odd[22] = 6
    assert refused(kit.create(), seal(odd)) is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_clients_write_no_control_batches_and_need_sequences(kit: LogKit) -> None:
    log = kit.create()
    assert refused(log, batch(b"a", control=True)) is ErrorCode.INVALID_RECORD
    assert refused(log, batch(b"a", producer_id=5, sequence=-1)) is ErrorCode.INVALID_RECORD
    log.append_as_leader(batch(b"a", control=True), 0, NOW_MS, origin=AppendOrigin.COORDINATOR)
    assert log.end_offset == 1


def test_timestamps_too_far_ahead_or_behind(kit: LogKit) -> None:
    log = kit.create(message_timestamp_after_max_ms=1000, message_timestamp_before_max_ms=5000)
    assert refused(log, batch(b"a", timestamp=NOW_MS + 1001)) is ErrorCode.INVALID_TIMESTAMP
    assert refused(log, batch(b"a", timestamp=NOW_MS - 5001)) is ErrorCode.INVALID_TIMESTAMP
    log.append_as_leader(batch(b"a", timestamp=NOW_MS + 1000), 0, NOW_MS)
    log.append_as_leader(batch(b"a", timestamp=NOW_MS - 5000), 0, NOW_MS)


@pytest.mark.parametrize("codec", list(Codec))
def test_one_old_record_in_the_middle_is_found(kit: LogKit, codec: Codec) -> None:
    from ottla.protocol.records import NewRecord, encode_batch

    log = kit.create(message_timestamp_before_max_ms=5000)
    times = [NOW_MS, NOW_MS - 6000, NOW_MS]
    records = encode_batch([NewRecord(b"k", b"v", at) for at in times], codec=codec)
    assert refused(log, records) is ErrorCode.INVALID_TIMESTAMP


@pytest.mark.parametrize("codec", list(Codec))
def test_compacted_topics_need_keys(kit: LogKit, codec: Codec) -> None:
    log = kit.create(cleanup_policy=("compact",))
    assert refused(log, batch(b"a", b"b", key=None, codec=codec)) is ErrorCode.INVALID_RECORD
    log.append_as_leader(batch(b"a", b"b", codec=codec), 0, NOW_MS)
    assert values(log) == [b"a", b"b"]


def test_garbage_inside_a_batch_of_a_compacted_topic(kit: LogKit) -> None:
    log = kit.create(cleanup_policy=("compact",))
    for position in range(61, len(batch(b"abc"))):
        garbled = batch(b"abc")
        garbled[position] = 0xFF
        try:
            log.append_as_leader(seal(garbled), 0, NOW_MS)
        except ApiError as error:
            assert error.code is ErrorCode.INVALID_RECORD  # noqa: PT017


def test_log_append_time(kit: LogKit) -> None:
    log = kit.create(message_timestamp_type="LogAppendTime")
    result = log.append_as_leader(batch(b"a", b"b", timestamp=5), 0, NOW_MS + 7)
    assert result.log_append_time_ms == NOW_MS + 7
    assert [record.timestamp for record in read_records(log)] == [NOW_MS + 7] * 2
    claimed = batch(b"a")
    claimed[22] |= 8
    assert refused(log, seal(claimed)) is ErrorCode.INVALID_TIMESTAMP


def test_a_claim_to_append_time_is_taken_back(kit: LogKit) -> None:
    log = kit.create()
    claimed = batch(b"a")
    claimed[22] |= 8
    log.append_as_leader(seal(claimed), 0, NOW_MS)
    stored = kit.files(".log")[0].read_bytes()
    assert not read_header(stored).uses_log_append_time
    assert decode_batch(stored)[0].value == b"a"
    assert kit.reopen(log, clean=False).end_offset == 1


@pytest.mark.parametrize("target", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("codec", list(Codec))
def test_recompression_only_when_the_topic_asks(kit: LogKit, target: str, codec: Codec) -> None:
    log = kit.create(compression_type=target)
    wanted = Codec.NONE if target == "uncompressed" else Codec[target.upper()]
    records = batch(b"a" * 50, b"b" * 50, codec=codec, producer_id=9, sequence=0)
    assert log.needs_recompression(records) == (codec != wanted)
    ready = log.recompress(records)
    assert not log.needs_recompression(ready)
    log.append_as_leader(ready, 0, NOW_MS)
    header = read_header(kit.files(".log")[0].read_bytes())
    assert (header.codec, header.producer_id, header.base_sequence) == (wanted, 9, 0)
    assert values(log) == [b"a" * 50, b"b" * 50]


def test_append_recompresses_by_itself(kit: LogKit) -> None:
    log = kit.create(compression_type="zstd")
    log.append_as_leader(batch(b"a" * 500), 0, NOW_MS)
    assert read_header(kit.files(".log")[0].read_bytes()).codec == Codec.ZSTD
    assert log.size_bytes < 300


def test_reconfigure_takes_effect_at_once(kit: LogKit) -> None:
    import dataclasses

    log = kit.create()
    log.append_as_leader(batch(b"x" * 300), 0, NOW_MS)
    log.reconfigure(dataclasses.replace(log.config, max_message_bytes=100))
    assert refused(log, batch(b"x" * 300)) is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EDQUOT])
def test_a_full_disk_refuses_and_recovers(kit: LogKit, code: int) -> None:
    log = kit.create()
    log.append_as_leader(batch(b"kept"), 0, NOW_MS)
    size = log.size_bytes
    kit.disk.write_error = code
    assert refused(log, batch(b"lost")) is ErrorCode.KAFKA_STORAGE_ERROR
    assert (log.end_offset, log.size_bytes) == (1, size)
    assert values(log) == [b"kept"]
    kit.disk.write_error = None
    assert log.append_as_leader(batch(b"after"), 0, NOW_MS).base_offset == 1
    assert values(log) == [b"kept", b"after"]
    assert not kit.failures
    assert values(kit.reopen(log, clean=False)) == [b"kept", b"after"]


def test_a_disk_that_fills_within_a_batch(kit: LogKit) -> None:
    log = kit.create()
    log.append_as_leader(batch(b"kept"), 0, NOW_MS)
    for room in range(0, len(batch(b"x" * 100)), 13):
        kit.disk.room = room
        assert refused(log, batch(b"x" * 100)) is ErrorCode.KAFKA_STORAGE_ERROR
        assert kit.files(".log")[0].stat().st_size == log.size_bytes
    kit.disk.room = None
    log.append_as_leader(batch(b"after"), 0, NOW_MS)
    assert values(kit.reopen(log, clean=False)) == [b"kept", b"after"]


def test_sequences_are_not_used_up_by_a_failed_write(kit: LogKit) -> None:
    log = kit.create()
    kit.disk.write_error = errno.ENOSPC
    assert refused(log, batch(b"a", producer_id=1, sequence=0)) is ErrorCode.KAFKA_STORAGE_ERROR
    kit.disk.write_error = None
    result = log.append_as_leader(batch(b"a", producer_id=1, sequence=0), 0, NOW_MS)
    assert (result.base_offset, result.duplicate) == (0, False)


def test_short_writes_are_completed(kit: LogKit) -> None:
    log = kit.create()
    kit.disk.longest_write = 7
    log.append_as_leader(batch(b"x" * 100), 0, NOW_MS)
    log.append_as_leader(batch(b"y" * 100), 0, NOW_MS)
    assert values(log) == [b"x" * 100, b"y" * 100]


def test_a_broken_disk_is_reported(kit: LogKit) -> None:
    log = kit.create()
    kit.disk.write_error = errno.EIO
    assert refused(log, batch(b"a")) is ErrorCode.KAFKA_STORAGE_ERROR
    assert [error.errno for error in kit.failures] == [errno.EIO]


def test_follower_keeps_offsets_and_leaves_out_a_cut_batch(kit: LogKit) -> None:
    log = kit.create()
    data = batch(b"a", base_offset=0, leader_epoch=1) + batch(b"b", b"c", base_offset=1, leader_epoch=2)
    result = log.append_as_follower(data + batch(b"d", base_offset=3)[:40], NOW_MS)
    assert (result.base_offset, result.last_offset, result.batch_count) == (0, 2, 2)
    assert log.leader_epochs.entries() == [(1, 0), (2, 1)]
    assert values(log) == [b"a", b"b", b"c"]
    log.append_as_follower(batch(b"d", base_offset=10, leader_epoch=2), NOW_MS)
    assert log.end_offset == 11
    with pytest.raises(ApiError) as caught:
        log.append_as_follower(batch(b"e", base_offset=4), NOW_MS)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
