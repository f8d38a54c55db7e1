"""Records of the transaction log: bytes worked out by hand from the field lists, and round trips."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model.names import TopicPartition
from ottla.protocol.errors import MalformedMessage
from ottla.protocol.transaction_records import (
    TransactionState,
    TransactionValue,
    decode_transaction_key,
    decode_transaction_value,
    encode_transaction_key,
    encode_transaction_value,
)

INT16 = st.integers(-(2**15), 2**15 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)

VALUE = TransactionValue(
    producer_id=0x0102,
    producer_epoch=5,
    timeout_ms=60_000,
    state=TransactionState.PREPARE_COMMIT,
    partitions=frozenset({TopicPartition("t", 3), TopicPartition("t", 1), TopicPartition("a", 0)}),
    updated_ms=0x0A0B,
    started_ms=0x0C,
    previous_producer_id=0x0102,
    next_producer_id=0x0203,
    client_version=2,
)
HEAD = "0000000000000102 0005 0000ea60 02"
TIMES = "0000000000000a0b 000000000000000c"

VERSION_1 = (
    "0001" + HEAD + "03"  # two topics
    "02 61 02 00000000 00"  # "a", one partition, no tagged fields
    "02 74 03 00000001 00000003 00" + TIMES + "03"  # three tagged fields
    "00 08 0000000000000102"
    "01 08 0000000000000203"
    "02 02 0002"
)
VERSION_0 = (
    "0000" + HEAD + "00000002"
    "0001 61 00000001 00000000"
    "0001 74 00000002 00000001 00000003" + TIMES
)  # fmt: skip


def test_keys() -> None:
    assert encode_transaction_key("héllo") == bytes.fromhex("0000 0006 68 c3a9 6c6c6f")
    assert decode_transaction_key(bytes.fromhex("0000 0006 68 c3a9 6c6c6f")) == "héllo"
    assert decode_transaction_key(bytes.fromhex("0007 0001 61")) is None


def test_values_of_both_versions() -> None:
    assert encode_transaction_value(VALUE) == bytes.fromhex(VERSION_1)
    assert decode_transaction_value(bytes.fromhex(VERSION_1)) == VALUE
    old = TransactionValue(
        VALUE.producer_id, VALUE.producer_epoch, VALUE.timeout_ms, VALUE.state, VALUE.partitions, 0x0A0B, 0x0C
    )
    assert encode_transaction_value(VALUE, 0) == bytes.fromhex(VERSION_0)
    assert decode_transaction_value(bytes.fromhex(VERSION_0)) == old


def test_a_new_id_has_no_partitions_and_no_tagged_fields() -> None:
    value = TransactionValue(7, 0, 1000, TransactionState.EMPTY, updated_ms=1)
    expected = "0001 0000000000000007 0000 000003e8 00000000000000000001 ffffffffffffffff00"
    assert encode_transaction_value(value) == bytes.fromhex(expected)
    assert decode_transaction_value(bytes.fromhex(expected)) == value
    # Null and empty are different bytes, and both are read as nothing.
    ended = encode_transaction_value(TransactionValue(7, 0, 1000, TransactionState.COMPLETE_ABORT, updated_ms=1))
    assert ended[17:18] == b"\x01"
    assert decode_transaction_value(ended).partitions == frozenset()


FROM_KAFKA = {
    "0001000000000000003200010000ea6002022b746f7069632d34363338303937352d653232312d343062622d383066342d663038376335636163"
    "37613303000000000000000100000001a1e154056c000001a1e1540564020008000000000000003202020002": TransactionValue(
        50, 1, 60_000, TransactionState.PREPARE_COMMIT,
        frozenset({TopicPartition("topic-46380975-e221-40bb-80f4-f087c5cac7a3", number) for number in (0, 1)}),
        1_794_781_742_444, 1_794_781_742_436, 50, client_version=2,
    ),
    "0001000000000000003200010000ea6004"
    "01000001a1e154056d000001a1e1540564020008000000000000003202020002": TransactionValue(
        50, 1, 60_000, TransactionState.COMPLETE_COMMIT, frozenset(), 1_794_781_742_445, 1_794_781_742_436, 50,
        client_version=2,
    ),
    "0001000000000000001400000000ea600000000001a1e153fa35ffffffffffffffff0100080000000000000014": TransactionValue(
        20, 0, 60_000, TransactionState.EMPTY, updated_ms=1_794_781_739_573, previous_producer_id=20
    ),
}  # fmt: skip
"""Read from the transaction log of an Apache Kafka 4.3.1."""


@pytest.mark.parametrize("written", FROM_KAFKA)
def test_what_kafka_wrote_is_what_we_write(written: str) -> None:
    assert decode_transaction_value(bytes.fromhex(written)) == FROM_KAFKA[written]
    assert encode_transaction_value(FROM_KAFKA[written]).hex() == written


def test_unknown_tags_are_skipped() -> None:
    """Version 1 grows by tagged fields: a broker of a later version may have written more of them."""
    later = bytes.fromhex(VERSION_1.replace("0300 08", "0400 08") + "03 02 0009")
    assert decode_transaction_value(later) == VALUE


@given(
    st.builds(
        TransactionValue, INT64, INT16, INT32, st.sampled_from([state for state in TransactionState if state]),
        st.frozensets(st.builds(TopicPartition, st.text(min_size=1, max_size=5), INT32), max_size=6), INT64, INT64,
        INT64, INT64, INT16,
    )
)  # fmt: skip
def test_what_is_written_is_read(value: TransactionValue) -> None:
    assert decode_transaction_value(encode_transaction_value(value)) == value


@given(st.integers(0, len(bytes.fromhex(VERSION_1)) - 1))
def test_a_record_cut_short_is_malformed(size: int) -> None:
    with pytest.raises(MalformedMessage):
        decode_transaction_value(bytes.fromhex(VERSION_1)[:size])


@given(st.binary(max_size=60))
def test_garbage_is_malformed_or_read_but_never_fails_otherwise(garbage: bytes) -> None:
    for decode in (decode_transaction_key, decode_transaction_value):
        try:
            decode(garbage)
        except MalformedMessage:
            continue


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ("0002" + HEAD + "00" + TIMES + "00", "version 2"),
        ("0001 0000000000000102 0005 0000ea60 08 00" + TIMES + "00", "state 8"),
        ("0000" + HEAD + "7fffffff" + TIMES, "elements"),
    ],
)
def test_what_cannot_be_is_refused(wrong: str, reason: str) -> None:
    with pytest.raises(MalformedMessage, match=reason):
        decode_transaction_value(bytes.fromhex(wrong))


def test_an_id_must_fit_its_key() -> None:
    with pytest.raises(MalformedMessage):
        encode_transaction_key("é" * 20_000)


def test_the_words_are_kafkas() -> None:
    assert [state.word for state in TransactionState] == [
        "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead",
        "PrepareEpochFence",
    ]  # fmt: skip
