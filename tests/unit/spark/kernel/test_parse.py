"""Both kernels read records as `ottla.protocol.records` does, and refuse the same bytes for the same reason."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.spark.kernel.shapes import INT64_MAX, KERNELS, new_records, parse_all

from ottla.protocol import varint
from ottla.protocol.errors import CorruptBatch
from ottla.protocol.records import BATCH_OVERHEAD, NewRecord, Record, decode_batch, encode_batch, read_header
from ottla.spark.kernel.interface import ChunkCapacity, Kernel, Status

ROOMY = ChunkCapacity(1000, 1 << 20, 1 << 20, 4000, 1 << 20, 1 << 20)

rooms = st.builds(
    ChunkCapacity, rows=st.integers(1, 40), key_bytes=st.integers(0, 400), value_bytes=st.integers(0, 400),
    headers=st.integers(0, 10), header_key_bytes=st.integers(0, 60), header_value_bytes=st.integers(0, 400),
)  # fmt: skip


@pytest.fixture(params=KERNELS, ids=lambda kernel: kernel.name)
def kernel(request: pytest.FixtureRequest) -> Kernel:
    found: Kernel = request.param
    return found


def expected_rows(records: Sequence[Record], with_headers: bool) -> list[tuple[object, ...]]:
    return [
        (
            record.offset, min(max(record.timestamp * 1000, -(2**63)), INT64_MAX), record.key, record.value,
            [(name.encode(), value) for name, value in record.headers] or None if with_headers else None,
        )
        for record in records
    ]  # fmt: skip


@settings(deadline=None)
@given(
    records=st.lists(new_records, min_size=1, max_size=25),
    base_offset=st.integers(0, 2**62),
    bounds=st.tuples(st.integers(-3, 28), st.integers(-3, 28)),
    room=rooms,
    with_headers=st.booleans(),
    append_time=st.none() | st.integers(0, 2**42),
)
def test_rows_are_those_of_the_oracle(
    records: list[NewRecord],
    base_offset: int,
    bounds: tuple[int, int],
    room: ChunkCapacity,
    with_headers: bool,
    append_time: int | None,
) -> None:
    batch = bytes(encode_batch(records, base_offset=base_offset))
    decoded = decode_batch(batch)
    if append_time is not None:
        for record in decoded:
            record.timestamp = append_time
    start, end = base_offset + bounds[0], base_offset + bounds[1]
    expected = expected_rows([record for record in decoded if start <= record.offset < end], with_headers)
    for kernel in KERNELS:
        status, rows, _ = parse_all(
            kernel, batch[BATCH_OVERHEAD:], records=len(records), room=room, with_headers=with_headers,
            base_offset=base_offset, base_timestamp=records[0].timestamp, log_append_time=append_time, start=start,
            end=end,
        )  # fmt: skip
        assert status == Status.DONE
        assert rows == expected, kernel.name


@settings(deadline=None)
@given(records=st.lists(new_records, min_size=1, max_size=10), data=st.data())
def test_gaps_of_compaction_and_odd_order_of_offsets(records: list[NewRecord], data: st.DataObject) -> None:
    """Offsets come from the records: a compacted batch has gaps, and nothing else is assumed."""
    deltas = data.draw(st.lists(st.integers(0, 2**31 - 1), min_size=len(records), max_size=len(records)))
    payload = b"".join(record_bytes(record, delta) for record, delta in zip(records, deltas, strict=True))
    for kernel in KERNELS:
        status, rows, _ = parse_all(kernel, payload, records=len(records), room=ROOMY, base_offset=7)
        assert status == Status.DONE
        assert [row[0] for row in rows] == [7 + delta for delta in deltas]


def record_bytes(record: NewRecord, offset_delta: int, timestamp_delta: int = 0) -> bytes:
    body = b"\0" + varint.signed(timestamp_delta) + varint.signed(offset_delta)
    for content in (record.key, record.value):
        body += varint.signed(-1) if content is None else varint.signed(len(content)) + content
    body += varint.signed(0)
    return varint.signed(len(body)) + body


def test_times_that_spark_cannot_hold_become_the_nearest(kernel: Kernel) -> None:
    record = NewRecord(b"k", b"v", 0)
    deltas = [INT64_MAX, -(2**63), 2**60, -(2**60), -5]
    payload = b"".join(record_bytes(record, 0, delta) for delta in deltas)
    _, rows, _ = parse_all(kernel, payload, records=5, room=ROOMY, base_timestamp=2)
    assert [row[1] for row in rows] == [INT64_MAX, -(2**63), INT64_MAX, -(2**63), -3000]


def test_an_offset_beyond_64_bits_is_corrupt(kernel: Kernel) -> None:
    payload = record_bytes(NewRecord(b"k", b"v", 0), 10)
    status, rows, _ = parse_all(kernel, payload, records=1, room=ROOMY, base_offset=INT64_MAX - 3)
    assert (status, rows) == (Status.OFFSET, [])


def test_a_chunk_ends_where_the_next_record_does_not_fit(kernel: Kernel) -> None:
    payload = b"".join(record_bytes(NewRecord(None, b"v" * size, 0), at) for at, size in enumerate([10, 10, 50, 1]))
    room = ChunkCapacity(100, 0, 25, 0, 0, 0)
    status, rows, chunks = parse_all(kernel, payload, records=4, room=room)
    assert status == Status.DONE
    assert [len(row[3]) for row in rows if isinstance(row[3], bytes)] == [10, 10, 50, 1]
    assert chunks == 3  # two of ten bytes; fifty bytes in a chunk made for them; the last


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", Status.CUT_SHORT),
        (varint.signed(-1), Status.CUT_SHORT),
        (varint.signed(0), Status.CUT_SHORT),
        (varint.signed(100) + b"\0" * 20, Status.CUT_SHORT),
        (b"\xff" * 10 + b"\x01", Status.VARINT),
        (b"\x80" * 9 + b"\x02", Status.VARINT),
        (varint.signed(2**31), Status.VARINT),
        (varint.signed(12) + b"\0" + b"\x80" * 11, Status.VARINT),
        (varint.signed(5) + b"\0\0\0\x01\x01", Status.CUT_SHORT),  # no count of headers
        (varint.signed(7) + b"\0\0\0\x01\x01\0\0", Status.RECORD_LENGTH),
        (varint.signed(6) + b"\0\0\0\x01\x01\x01", Status.HEADER_COUNT),
        (varint.signed(6) + b"\0\0\0\x01\x01\x08", Status.HEADER_COUNT),
        (varint.signed(8) + b"\0\0\0\x01\x01\x02\x01\x01", Status.HEADER_NAME),  # null
        (varint.signed(9) + b"\0\0\0\x01\x01\x02\x02\xff\x01", Status.HEADER_NAME),  # not UTF-8
        (varint.signed(6) + b"\0\0\0\x10ab", Status.CUT_SHORT),
    ],
)
def test_what_is_wrong_with_records(kernel: Kernel, body: bytes, reason: Status) -> None:
    assert parse_all(kernel, body, records=1, room=ROOMY)[0] == reason


@settings(deadline=None)
@given(name=st.binary(max_size=6) | st.text(max_size=6).map(str.encode))
def test_names_of_headers_are_utf8_as_python_has_it(name: bytes) -> None:
    body = b"\0\0\0\x01\x01\x02" + varint.signed(len(name)) + name + b"\x01"
    payload = varint.signed(len(body)) + body
    try:
        name.decode()
        expected = Status.DONE
    except UnicodeDecodeError:
        expected = Status.HEADER_NAME
    for kernel in KERNELS:
        assert parse_all(kernel, payload, records=1, room=ROOMY)[0] == expected, kernel.name


@settings(deadline=None)
@given(
    records=st.lists(new_records, min_size=1, max_size=8),
    edits=st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 255)), max_size=6),
    cut=st.none() | st.integers(0, 400),
    count=st.integers(0, 12),
    room=rooms,
)
def test_both_kernels_take_hostile_bytes_alike(
    records: list[NewRecord], edits: list[tuple[int, int]], cut: int | None, count: int, room: ChunkCapacity
) -> None:
    batch = encode_batch(records)
    for at, byte in edits:
        batch[BATCH_OVERHEAD + at % (len(batch) - BATCH_OVERHEAD)] = byte
    payload = bytes(batch[BATCH_OVERHEAD:][:cut])
    outcomes = [parse_all(kernel, payload, records=count, room=room) for kernel in KERNELS]
    assert all(outcome == outcomes[0] for outcome in outcomes)
    agree_with_oracle(outcomes[0][0], outcomes[0][1], bytes(batch[:BATCH_OVERHEAD]), payload, count)


@settings(deadline=None)
@given(payload=st.binary(max_size=200), count=st.integers(0, 10), room=rooms)
def test_both_kernels_take_noise_alike(payload: bytes, count: int, room: ChunkCapacity) -> None:
    outcomes = [parse_all(kernel, payload, records=count, room=room) for kernel in KERNELS]
    assert all(outcome == outcomes[0] for outcome in outcomes)


def agree_with_oracle(
    status: Status, rows: list[tuple[object, ...]], header: bytes, payload: bytes, count: int
) -> None:
    """What the kernels take, the oracle takes too; it is less strict only with numbers that no client writes."""
    length = len(header) - 12 + len(payload)
    batch = header[:8] + length.to_bytes(4, "big") + header[12:57] + count.to_bytes(4, "big") + payload
    base = read_header(batch).base_timestamp
    try:
        decoded = decode_batch(batch)
    except CorruptBatch:
        assert status != Status.DONE or count > len(payload)
        return
    if status == Status.DONE:
        visible = [record for record in decoded if record.offset >= 0]
        for record in visible:
            record.timestamp -= base
        assert rows == expected_rows(visible, with_headers=True)
    else:
        assert status in {Status.VARINT, Status.OFFSET}
