"""Record batches: our encoder against our decoder and against aiokafka's compiled one, and damage of every kind."""

import pytest
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.protocol.errors import CorruptBatch
from ottla.protocol.records import (
    BATCH_OVERHEAD,
    Codec,
    NewRecord,
    check_crc,
    decode_batch,
    encode_batch,
    iterate_batches,
    read_header,
)

TEXT = st.text(max_size=10)
BYTES = st.none() | st.binary(max_size=300)
RECORDS = st.lists(
    st.builds(
        NewRecord,
        key=BYTES,
        value=BYTES,
        timestamp=st.integers(0, 2**45),
        headers=st.lists(st.tuples(TEXT, BYTES), max_size=3),
    ),
    min_size=1,
    max_size=20,
)


@settings(deadline=None)
@given(RECORDS, st.sampled_from(Codec), st.integers(0, 2**40))
def test_what_goes_in_comes_out(records: list[NewRecord], codec: Codec, base_offset: int) -> None:
    batch = encode_batch(records, base_offset=base_offset, codec=codec)
    header = read_header(batch)
    check_crc(batch, 0, header)
    assert (header.size, header.record_count, header.base_offset) == (len(batch), len(records), base_offset)
    assert header.max_timestamp == max(record.timestamp for record in records)
    decoded = decode_batch(batch)
    assert [(r.key, r.value, r.timestamp, r.headers) for r in decoded] == [
        (r.key, r.value, r.timestamp, list(r.headers)) for r in records
    ]
    assert [r.offset for r in decoded] == list(range(base_offset, base_offset + len(records)))


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_another_library_reads_our_batches_and_we_read_its(codec: Codec) -> None:
    values = [b"value-%d" % number * 50 for number in range(40)]
    ours = encode_batch([NewRecord(b"k", value, 1000 + n) for n, value in enumerate(values)], codec=codec)
    theirs_decoded = list(DefaultRecordBatch(bytes(ours)))
    assert [record.value for record in theirs_decoded] == values
    builder = DefaultRecordBatchBuilder(
        magic=2, compression_type=codec, is_transactional=0, producer_id=-1, producer_epoch=-1, base_sequence=-1,
        batch_size=1 << 20,
    )  # fmt: skip
    for number, value in enumerate(values):
        builder.append(number, 1000 + number, b"k", value, [])
    theirs = bytes(builder.build())
    check_crc(theirs, 0, read_header(theirs))
    assert [record.value for record in decode_batch(theirs)] == values


def test_every_flipped_bit_behind_the_crc_is_noticed() -> None:
    batch = encode_batch([NewRecord(b"k", b"v" * 20, 5)])
    for position in range(21, len(batch)):
        damaged = bytearray(batch)
        damaged[position] ^= 0x10
        with pytest.raises(CorruptBatch):
            check_crc(damaged, 0, read_header(damaged))


def test_a_cut_batch_is_left_out_or_refused() -> None:
    batch = bytes(encode_batch([NewRecord(b"k", b"v" * 20, 5)]))
    for size in range(len(batch)):
        assert list(iterate_batches(batch[:size])) == []
        with pytest.raises(CorruptBatch):
            decode_batch(batch[:size])
    assert len(list(iterate_batches(batch * 3 + batch[:BATCH_OVERHEAD]))) == 3


@given(st.binary(min_size=1, max_size=200), st.sampled_from(Codec))
def test_hostile_payloads_are_corrupt_and_nothing_else(payload: bytes, codec: Codec) -> None:
    batch = encode_batch([NewRecord(None, None, 0)], codec=Codec.NONE)
    hostile = bytearray(batch[:BATCH_OVERHEAD]) + payload
    hostile[8:12] = (len(hostile) - 12).to_bytes(4, "big")
    hostile[21:23] = int(codec).to_bytes(2, "big")
    hostile[57:61] = (3).to_bytes(4, "big")
    try:
        decode_batch(hostile)
    except CorruptBatch:
        return
