"""Fetched bytes to Arrow batches: ranges, gaps, transactions, limits, and bytes that are not what they claim."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)
from tests.unit.spark.kernel.shapes import KERNELS, new_records

from ottla.protocol.compression import Codec
from ottla.protocol.errors import CorruptBatch
from ottla.protocol.records import (
    CRC_START,
    LOG_APPEND_TIME,
    NewRecord,
    decode_batch,
    encode_batch,
    iterate_batches,
    read_header,
    seal_batch,
)
from ottla.spark.kernel.interface import Kernel
from ottla.spark.reading import decode
from ottla.spark.reading.decode import SCHEMA, SCHEMA_WITH_HEADERS, Decoder

COMMIT, ABORT = b"\0\0\0\1", b"\0\0\0\0"


def values(count: int, base_offset: int, **options: int | bool) -> bytes:
    records = [NewRecord(b"k", b"%d" % (base_offset + at), 1_000 + at) for at in range(count)]
    return bytes(encode_batch(records, base_offset=base_offset, **options))  # type: ignore[arg-type]


def marker(producer: int, base_offset: int, kind: bytes) -> bytes:
    record = NewRecord(kind, b"\0\0\0\0\0\0", 1)
    return bytes(
        encode_batch([record], base_offset=base_offset, producer_id=producer, transactional=True, control=True)
    )


def offsets_of(decoder: Decoder, records: bytes, aborted: list[tuple[int, int]] | None = None) -> list[int]:
    batches = [*decoder.feed(records, aborted or []), decoder.flush()]
    return [offset for batch in batches if batch is not None for offset in batch.column("offset").to_numpy().tolist()]


def test_the_schema_is_what_spark_expects() -> None:
    """Spark compares the schema of the first batch and refuses any other."""
    fields: dict[str, DataType] = {
        "key": BinaryType(), "value": BinaryType(), "topic": StringType(), "partition": IntegerType(),
        "offset": LongType(), "timestamp": TimestampType(), "timestampType": IntegerType(),
    }  # fmt: skip
    plain = StructType([StructField(name, kind) for name, kind in fields.items()])
    header = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
    with_headers = StructType([*plain.fields, StructField("headers", ArrayType(header))])
    assert to_arrow_schema(plain, timezone="UTC").equals(SCHEMA)
    assert to_arrow_schema(with_headers, timezone="UTC").equals(SCHEMA_WITH_HEADERS)


@settings(deadline=None)
@given(
    batches=st.lists(st.tuples(st.lists(new_records, min_size=1, max_size=12), st.integers(0, 5)), max_size=5),
    bounds=st.tuples(st.integers(0, 60), st.integers(0, 60)),
    codec=st.sampled_from(Codec),
    rows_max=st.integers(1, 30),
    include_headers=st.booleans(),
    append_time=st.booleans(),
)
def test_arrow_holds_what_the_oracle_decodes(
    batches: list[tuple[list[NewRecord], int]],
    bounds: tuple[int, int],
    codec: Codec,
    rows_max: int,
    include_headers: bool,
    append_time: bool,
) -> None:
    fetched, offset = b"", 0
    for records, gap in batches:
        encoded = bytes(encode_batch(records, base_offset=offset + gap, codec=codec))
        fetched += with_append_time(encoded) if append_time else encoded
        offset += gap + len(records)
    start, end = bounds
    expected = [
        (record.key, record.value, "tøpic", 3, record.offset, record.timestamp * 1000, int(append_time))
        + ((record.headers or None,) if include_headers else ())
        for position, header in iterate_batches(fetched)
        for record in decode_batch(fetched, position)
        if start <= record.offset < end
    ]
    for kernel in KERNELS:
        decoder = Decoder(
            "tøpic", 3, start, end, include_headers=include_headers, batch_rows_max=rows_max, kernel=kernel
        )
        found = [batch for batch in [*decoder.feed(fetched), decoder.flush()] if batch is not None]
        assert all(0 < batch.num_rows <= rows_max for batch in found)
        assert [row for batch in found for row in rows_of(batch)] == expected
        assert decoder.done == (offset >= end or start >= end)
        assert decoder.flush() is None


def rows_of(batch: pa.RecordBatch) -> list[tuple[object, ...]]:
    batch.validate(full=True)
    columns = [
        column.cast(pa.int64()) if name == "timestamp" else column
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    ]
    rows = zip(*(column.to_pylist() for column in columns), strict=True)
    return [
        (*row[:7], *(entries and [(entry["key"], entry["value"]) for entry in entries] for entries in row[7:]))
        for row in rows
    ]


def with_append_time(batch: bytes) -> bytes:
    header = read_header(batch)
    payload = memoryview(batch)[61:]
    return bytes(
        seal_batch(
            payload, base_offset=header.base_offset, leader_epoch=0, attributes=header.attributes | LOG_APPEND_TIME,
            last_offset_delta=header.last_offset_delta, base_timestamp=header.base_timestamp,
            max_timestamp=header.max_timestamp + 5, producer_id=-1, producer_epoch=-1, base_sequence=-1,
            record_count=header.record_count,
        )
    )  # fmt: skip


def test_a_topic_that_changes_its_kind_of_time_in_the_middle() -> None:
    decoder = Decoder("t", 0, 0, 20)
    assert list(decoder.feed(values(10, 0) + with_append_time(values(10, 10)))) == []
    batch = decoder.flush()
    assert batch is not None
    assert batch.column("timestampType").to_pylist() == [0] * 10 + [1] * 10


def test_the_next_offset_moves_over_gaps_and_control_batches() -> None:
    fetched = values(5, 10) + values(5, 30) + marker(7, 35, COMMIT)
    decoder = Decoder("t", 0, 12, 100)
    assert offsets_of(decoder, fetched) == [12, 13, 14, 30, 31, 32, 33, 34]
    assert decoder.next_offset == 36
    assert not decoder.done


def test_batches_that_were_seen_or_lie_behind_the_end_are_left_out() -> None:
    decoder = Decoder("t", 0, 0, 12)
    assert offsets_of(decoder, values(5, 0)) == [0, 1, 2, 3, 4]
    assert offsets_of(decoder, values(5, 0) + values(10, 5) + values(10, 15)) == [5, 6, 7, 8, 9, 10, 11]
    assert decoder.done
    assert decoder.next_offset == 15
    assert offsets_of(decoder, values(10, 15)) == []


def test_a_batch_cut_short_at_the_end_is_fetched_again() -> None:
    decoder = Decoder("t", 0, 0, 10)
    assert offsets_of(decoder, values(5, 0) + values(5, 5)[:-1]) == [0, 1, 2, 3, 4]
    assert decoder.next_offset == 5


@pytest.mark.parametrize(("committed", "expected"), [(True, [4, 5, 9, 10]), (False, [0, 1, 2, 4, 5, 7, 9, 10])])
def test_aborted_records_are_left_out(committed: bool, expected: list[int]) -> None:
    """Producer 1 aborts, producer 2 commits in between, then producer 1 commits a later transaction."""
    fetched = (
        values(2, 0, producer_id=1, transactional=True)
        + values(1, 2, producer_id=1, transactional=True)
        + marker(2, 3, COMMIT)
        + values(2, 4, producer_id=2, transactional=True)
        + marker(2, 6, COMMIT)
        + values(1, 7, producer_id=1, transactional=True)
        + marker(1, 8, ABORT)
        + values(2, 9, producer_id=1, transactional=True)
        + marker(1, 11, COMMIT)
    )
    decoder = Decoder("t", 0, 0, 12, committed=committed)
    assert offsets_of(decoder, fetched, [(1, 0)] if committed else []) == expected
    assert decoder.done


def test_a_transaction_that_aborts_twice_in_one_answer() -> None:
    fetched = b"".join(
        values(1, base, producer_id=1, transactional=True) + marker(1, base + 1, kind)
        for base, kind in [(0, ABORT), (2, COMMIT), (4, ABORT)]
    )
    assert offsets_of(Decoder("t", 0, 0, 6), fetched, [(1, 4), (1, 0)]) == [2]


def test_a_large_value_gets_a_chunk_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode, "CHUNK_BYTES", 1000)
    sizes = [600, 600, 5000, 3]
    fetched = bytes(encode_batch([NewRecord(None, b"v" * size, 0) for size in sizes]))
    decoder = Decoder("t", 0, 0, 4)
    found = [batch for batch in [*decoder.feed(fetched), decoder.flush()] if batch is not None]
    assert [[len(row[1]) for row in rows_of(batch) if isinstance(row[1], bytes)] for batch in found] == [
        [600],
        [600],
        [5000],
        [3],
    ]


def test_a_failed_crc_is_refused_unless_crcs_are_not_checked() -> None:
    broken = bytearray(values(3, 0))
    broken[CRC_START + 6] ^= 1  # in the last offset delta's neighbour: the base timestamp
    with pytest.raises(CorruptBatch, match="fails its CRC"):
        offsets_of(Decoder("t", 0, 0, 3), bytes(broken))
    assert offsets_of(Decoder("t", 0, 0, 3, check_crcs=False), bytes(broken)) == [0, 1, 2]


def sealed(payload: bytes, record_count: int, attributes: int = 0) -> bytes:
    return bytes(
        seal_batch(
            payload, base_offset=0, leader_epoch=0, attributes=attributes, last_offset_delta=2, base_timestamp=0,
            max_timestamp=0, producer_id=-1, producer_epoch=-1, base_sequence=-1, record_count=record_count,
        )
    )  # fmt: skip


@pytest.mark.parametrize(
    ("fetched", "message"),
    [
        (sealed(b"\0" * 10, 11), "10 bytes cannot hold 11 records"),
        (sealed(b"\0" * 10, -1), "10 bytes cannot hold -1 records"),
        (sealed(b"\0" * 10, 3), "t-0 at offset 0: a record is cut short"),
        (sealed(b"\0" * 10, 3, attributes=7), "codec 7 is unknown"),
        (sealed(b"nonsense", 3, attributes=Codec.ZSTD), "does not decompress"),
        (sealed(b"x", 1)[:16] + b"\1" + sealed(b"x", 1)[17:], "format 1 is not supported"),
    ],
    ids=["too many", "negative", "zeros", "codec", "zstd", "magic"],
)
def test_corrupt_batches_say_what_is_wrong(fetched: bytes, message: str) -> None:
    with pytest.raises(CorruptBatch, match=message):
        offsets_of(Decoder("t", 0, 0, 10), fetched)


@settings(deadline=None)
@given(
    records=st.lists(new_records, min_size=1, max_size=6),
    edits=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=5),
    codec=st.sampled_from(Codec),
)
def test_both_kernels_refuse_the_same_batches(
    records: list[NewRecord], edits: list[tuple[int, int]], codec: Codec
) -> None:
    batch = encode_batch(records, codec=codec)
    for at, byte in edits:
        batch[17 + at % (len(batch) - 17)] = byte  # behind length and format
    outcomes = [outcome(kernel, bytes(batch)) for kernel in KERNELS]
    assert all(found == outcomes[0] for found in outcomes)


def outcome(kernel: Kernel, fetched: bytes) -> object:
    decoder = Decoder("t", 0, 0, 1 << 40, include_headers=True, check_crcs=False, kernel=kernel)
    try:
        return [rows_of(batch) for batch in [*decoder.feed(fetched), decoder.flush()] if batch is not None]
    except CorruptBatch as error:
        return str(error)
