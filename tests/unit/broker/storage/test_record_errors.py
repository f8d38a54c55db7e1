"""Which records of a batch are named when it is refused, and with which code."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.broker.storage.conftest import NOW_MS

from ottla.broker.storage.append_rules import AppendRules
from ottla.broker.storage.record_errors import MESSAGES_MAX, InvalidRecords
from ottla.broker.storage.validation import AppendOrigin, check_batch, recompress
from ottla.config.topic import TopicSettings
from ottla.model.errors import ApiError, ErrorCode
from ottla.protocol.compression import Codec
from ottla.protocol.records import LOG_APPEND_TIME, NewRecord, encode_batch, seal_batch

BEFORE_MS, AFTER_MS = 5_000, 1_000
COMPACTED = {"cleanup_policy": ("compact", "delete")}
BOUNDED = {"message_timestamp_before_max_ms": BEFORE_MS, "message_timestamp_after_max_ms": AFTER_MS}


def rules(**settings: object) -> AppendRules:
    return AppendRules(dataclasses.replace(TopicSettings(), **settings))  # type: ignore[arg-type]


def batch(*records: tuple[bytes | None, int], codec: Codec = Codec.NONE, **options: int) -> bytearray:
    """(key, milliseconds from now) of each record."""
    return encode_batch([NewRecord(key, b"v", NOW_MS + at) for key, at in records], codec=codec, **options)  # type: ignore[arg-type]


def refusal(records: bytearray, topic: AppendRules) -> ApiError:
    with pytest.raises(ApiError) as caught:
        check_batch(records, topic, NOW_MS, AppendOrigin.CLIENT)
    return caught.value


def named(records: bytearray, topic: AppendRules) -> tuple[ErrorCode, list[int]]:
    error = refusal(records, topic)
    assert isinstance(error, InvalidRecords)
    return error.code, [index for index, _ in error.record_errors]


@pytest.mark.parametrize("codec", list(Codec))
def test_records_without_a_key_are_named(codec: Codec) -> None:
    records = batch((b"a", 0), (None, 0), (b"", 0), (None, 0), codec=codec)
    error = refusal(records, rules(**COMPACTED))
    assert isinstance(error, InvalidRecords)
    assert error.code is ErrorCode.INVALID_RECORD
    assert [index for index, _ in error.record_errors] == [1, 3]
    assert "cleanup.policy=compact,delete, so every record needs a key" in str(error.record_errors[0].message)
    assert str(error).startswith("2 of the batch's 4 records are invalid")
    assert "record 3: message without key" in str(error)


@pytest.mark.parametrize("codec", list(Codec))
def test_records_of_another_time_are_named(codec: Codec) -> None:
    times = (0, AFTER_MS, AFTER_MS + 1, -BEFORE_MS, -BEFORE_MS - 1)
    records = batch(*((None, at) for at in times), codec=codec)
    error = refusal(records, rules(**BOUNDED))
    assert isinstance(error, InvalidRecords)
    assert error.code is ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in error.record_errors] == [2, 4]
    late, early = (str(message) for _, message in error.record_errors)
    assert str(NOW_MS + AFTER_MS) in late
    assert f"message.timestamp.after.max.ms={AFTER_MS}" in late
    assert str(NOW_MS - BEFORE_MS) in early
    assert f"message.timestamp.before.max.ms={BEFORE_MS}" in early


def test_a_topic_that_looks_at_no_record_still_names_the_late_ones() -> None:
    topic = rules(message_timestamp_after_max_ms=AFTER_MS)
    assert not topic.looks_at_records
    assert named(batch((None, 0), (None, AFTER_MS + 1)), topic) == (ErrorCode.INVALID_TIMESTAMP, [1])


def test_one_wrong_time_decides_the_code_and_a_missing_key_comes_first() -> None:
    records = batch((None, -BEFORE_MS - 1), (b"k", 0), (b"k", AFTER_MS + 1))
    error = refusal(records, rules(**COMPACTED, **BOUNDED))
    assert isinstance(error, InvalidRecords)
    assert error.code is ErrorCode.INVALID_TIMESTAMP
    words = {index: str(message) for index, message in error.record_errors}
    assert list(words) == [0, 2]
    assert "key" in words[0]
    assert "timestamp" in words[2]


def test_no_timestamp_is_never_out_of_range() -> None:
    records = encode_batch([NewRecord(b"k", b"v", -1)])
    assert check_batch(records, rules(**BOUNDED), NOW_MS, AppendOrigin.CLIENT).record_count == 1


def claiming(max_timestamp: int, records: int = 2) -> bytearray:
    """A batch whose producer says that its time is that of the append."""
    payload = bytes(batch(*[(b"k", 0)] * records)[61:])
    return seal_batch(
        payload, base_offset=0, leader_epoch=0, attributes=LOG_APPEND_TIME, last_offset_delta=records - 1,
        base_timestamp=NOW_MS, max_timestamp=max_timestamp, producer_id=-1, producer_epoch=-1, base_sequence=-1,
        record_count=records,
    )  # fmt: skip


def test_who_claims_the_time_of_appending_does_so_for_every_record() -> None:
    every = (ErrorCode.INVALID_TIMESTAMP, [0, 1])
    assert named(claiming(NOW_MS), rules(message_timestamp_type="LogAppendTime")) == every
    assert named(claiming(NOW_MS + AFTER_MS + 1), rules(**BOUNDED)) == every
    assert named(claiming(-1), rules(**BOUNDED)) == every
    assert check_batch(claiming(NOW_MS), rules(**BOUNDED), NOW_MS, AppendOrigin.CLIENT).record_count == 2


def test_a_header_that_claims_a_late_time_for_records_that_have_none_is_refused_without_names() -> None:
    lying = claiming(NOW_MS + AFTER_MS + 1)
    lying[22] &= ~LOG_APPEND_TIME
    error = refusal(resealed(lying), rules(message_timestamp_after_max_ms=AFTER_MS))
    assert (error.code, isinstance(error, InvalidRecords)) == (ErrorCode.INVALID_TIMESTAMP, False)


def resealed(records: bytearray) -> bytearray:
    from crc32c import crc32c

    records[17:21] = crc32c(bytes(records[21:])).to_bytes(4)
    return records


def test_records_that_do_not_parse_are_nobodys_in_particular() -> None:
    cut = batch((None, 0), (b"k", 0))
    cut[-5] = 0x7E  # the length of a key that leads out of the record
    wrong_count = batch((None, 0), (b"k", 0))
    wrong_count[23:27], wrong_count[57:61] = (2).to_bytes(4), (3).to_bytes(4)
    for broken in (cut, wrong_count):
        error = refusal(resealed(broken), rules(**COMPACTED))
        assert (error.code, isinstance(error, InvalidRecords)) == (ErrorCode.INVALID_RECORD, False)


def test_what_an_answer_says_does_not_grow_without_end() -> None:
    error = refusal(batch(*[(None, 0)] * (MESSAGES_MAX + 5)), rules(**COMPACTED))
    assert isinstance(error, InvalidRecords)
    assert [index for index, _ in error.record_errors] == list(range(MESSAGES_MAX + 5))
    assert [message is None for _, message in error.record_errors] == [False] * MESSAGES_MAX + [True] * 5
    assert len(str(error)) < 1_000
    assert str(error).endswith(f"and {MESSAGES_MAX + 2} more")


def test_offsets_are_given_by_the_broker() -> None:
    records = encode_batch([NewRecord(b"k", b"v", NOW_MS)], base_offset=5)
    assert refusal(records, rules()).code is ErrorCode.INVALID_RECORD
    check_batch(records, rules(), NOW_MS, AppendOrigin.COORDINATOR)


def test_a_batch_that_is_too_large_as_it_came_is_refused_whole() -> None:
    topic = rules(max_message_bytes=500, compression_type="zstd")
    records = encode_batch([NewRecord(b"k", b"v" * 1000, NOW_MS)])
    with pytest.raises(ApiError) as caught:
        recompress(records, topic)
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE


KEYS = st.sampled_from([None, b"", b"k", b"k" * 100])
TIMES = st.integers(min_value=-3 * BEFORE_MS, max_value=3 * AFTER_MS)


@settings(deadline=None)
@given(
    st.lists(st.tuples(KEYS, TIMES), min_size=1, max_size=30),
    st.sampled_from(list(Codec)),
    st.booleans(),
    st.booleans(),
)
def test_exactly_those_at_fault_are_named(
    records: list[tuple[bytes | None, int]], codec: Codec, compacted: bool, append_time: bool
) -> None:
    topic = rules(
        **BOUNDED, cleanup_policy=("compact",) if compacted else ("delete",),
        message_timestamp_type="LogAppendTime" if append_time else "CreateTime",
    )  # fmt: skip
    keyless = {index for index, (key, _) in enumerate(records) if compacted and key is None}
    outside = {
        index
        for index, (_, at) in enumerate(records)
        if index not in keyless and not append_time and not -BEFORE_MS <= at <= AFTER_MS
    }
    sent = batch(*records, codec=codec)
    if not keyless | outside:
        assert check_batch(sent, topic, NOW_MS, AppendOrigin.CLIENT).record_count == len(records)
        return
    code = ErrorCode.INVALID_TIMESTAMP if outside else ErrorCode.INVALID_RECORD
    assert named(sent, topic) == (code, sorted(keyless | outside))
