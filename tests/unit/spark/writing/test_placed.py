"""Batches whose records are at given offsets, by both kernels."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.spark.kernel.shapes import KERNELS, new_records

from ottla.protocol.compression import Codec
from ottla.protocol.records import NewRecord, check_crc, decode_batch, iterate_batches
from ottla.spark.kernel.interface import Kernel
from ottla.spark.reading.decode import HEADERS_TYPE
from ottla.spark.writing.placed import PlacedEncoder

placed = st.lists(st.tuples(st.integers(1, 5), new_records), max_size=30)


def rows(records: Sequence[NewRecord]) -> pa.RecordBatch:
    headers = [[{"key": name, "value": value} for name, value in record.headers] for record in records]
    return pa.record_batch(
        {
            "key": pa.array([record.key for record in records], pa.binary()),
            "value": pa.array([record.value for record in records], pa.binary()),
            "timestamp": pa.array([record.timestamp * 1000 for record in records], pa.timestamp("us", "UTC")),
            "headers": pa.array(headers, HEADERS_TYPE),
        }
    )


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@given(steps=placed, cut=st.integers(0, 30), size=st.integers(70, 600), codec=st.sampled_from([Codec.NONE, Codec.LZ4]))
def test_every_record_is_where_it_is_told_to_be(
    kernel: Kernel, steps: list[tuple[int, NewRecord]], cut: int, size: int, codec: Codec
) -> None:
    records = [record for _, record in steps]
    offsets = np.cumsum([step for step, _ in steps], dtype=np.int64)
    encoder = PlacedEncoder(codec=codec, batch_bytes=size, kernel=kernel)
    batches = [
        *encoder.add(rows(records[:cut]), offsets[:cut]), *encoder.add(rows(records[cut:]), offsets[cut:]),
        *encoder.flush(),
    ]  # fmt: skip
    assert not [*encoder.flush()]
    found = []
    for batch in batches:
        ((position, header),) = iterate_batches(batch)
        check_crc(batch, position, header)
        decoded = [*decode_batch(batch)]
        assert header.record_count == len(decoded)
        assert header.last_offset == decoded[-1].offset
        assert header.max_timestamp == max(record.timestamp for record in decoded)
        assert (header.producer_id, header.is_transactional, header.codec) == (-1, False, codec)
        found += [(each.offset, each.key, each.value, each.timestamp, [*each.headers]) for each in decoded]
    assert found == [
        (offset, each.key, each.value, each.timestamp, [*each.headers])
        for offset, each in zip(offsets.tolist(), records, strict=True)
    ]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_records_too_far_apart_for_one_batch_get_their_own(kernel: Kernel) -> None:
    """A batch counts offsets in 32 bits; what compaction has left may lie further apart."""
    offsets = np.array([5, 2**31 + 4, 2**31 + 5, 2**40], np.int64)
    encoder = PlacedEncoder(codec=Codec.NONE, kernel=kernel)
    records = [NewRecord(b"k", b"v", 7) for _ in offsets]
    batches = [*encoder.add(rows(records), offsets), *encoder.flush()]
    assert [[each.offset for each in decode_batch(batch)] for batch in batches] == [
        [5, 2**31 + 4], [2**31 + 5], [2**40],
    ]  # fmt: skip
