"""Rows to records: what an encoder writes, `ottla.protocol.records` reads back, with either kernel."""

import hashlib
import itertools
import random
import warnings

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.spark.kernel.shapes import KERNELS, contents, headers

from ottla.protocol.compression import Codec
from ottla.protocol.records import Record, decode_batch, seal_batch
from ottla.spark.kernel.arrow import view_of_binary
from ottla.spark.kernel.interface import Kernel
from ottla.spark.reading.decode import HEADERS_TYPE
from ottla.spark.writing.encode import (
    STICKY_ROWS_MIN,
    Encoder,
    UnfinishedBatch,
    UnwritableRows,
    partition_rows,
    topics_of,
)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # kafka-python reads its schemas in a way that Python 3.11 calls old
    from kafka.partitioner.default import murmur2 as murmur2_of_kafka_python

Row = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]


@pytest.fixture(params=KERNELS, ids=lambda kernel: kernel.name)
def kernel(request: pytest.FixtureRequest) -> Kernel:
    found: Kernel = request.param
    return found


def table(rows: list[Row], **more: object) -> pa.RecordBatch:
    columns = {
        "key": pa.array([key for key, _, _ in rows], pa.binary()),
        "value": pa.array([value for _, value, _ in rows], pa.binary()),
        "headers": pa.array(
            [None if not found else [{"key": key, "value": value} for key, value in found] for _, _, found in rows],
            HEADERS_TYPE,
        ),
    }
    return pa.record_batch(columns | more)


def records_of(unsealed: UnfinishedBatch) -> list[Record]:
    batch = seal_batch(
        unsealed.payload, base_offset=0, leader_epoch=0, attributes=unsealed.codec,
        last_offset_delta=unsealed.record_count - 1, base_timestamp=unsealed.base_timestamp,
        max_timestamp=unsealed.max_timestamp, producer_id=-1, producer_epoch=-1, base_sequence=-1,
        record_count=unsealed.record_count,
    )  # fmt: skip
    records = decode_batch(batch)
    assert [record.offset for record in records] == list(range(unsealed.record_count))
    assert max(record.timestamp for record in records) == unsealed.max_timestamp
    return records


rows_of_any_shape = st.lists(st.tuples(contents, contents, headers), max_size=40)


@settings(deadline=None)
@given(
    rows=rows_of_any_shape, cuts=st.lists(st.integers(0, 40), max_size=3), codec=st.sampled_from(Codec),
    batch_bytes=st.integers(1, 2000),
)  # fmt: skip
def test_rows_come_back_whole_and_in_order(rows: list[Row], cuts: list[int], codec: Codec, batch_bytes: int) -> None:
    """Also from slices of a batch, whose columns start in the middle of their buffers."""
    times = iter(range(1000, 2000))
    for kernel in KERNELS:
        encoder = Encoder(
            {"t": 1}, codec=codec, batch_bytes=batch_bytes, default_topic="t", clock_ms=times.__next__, kernel=kernel
        )
        whole = table(rows)
        bounds = sorted({0, len(rows), *(min(cut, len(rows)) for cut in cuts)})
        written = []
        for start, end in itertools.pairwise(bounds):
            encoder.add(whole.slice(start, end - start))
            written += encoder.take(full_only=True)
        written += encoder.take(full_only=False)
        records = [record for unsealed in written for record in records_of(unsealed)]
        assert [(record.key, record.value, record.headers) for record in records] == rows
        assert encoder.take(full_only=False) == []
        assert [record.timestamp for record in records] == sorted(record.timestamp for record in records)


def test_batches_end_before_the_limit_and_a_large_record_stands_alone(kernel: Kernel) -> None:
    encoder = Encoder({"t": 1}, batch_bytes=1000, default_topic="t", kernel=kernel)
    sizes = [400, 400, 400, 5000, 10]
    encoder.add(table([(None, b"v" * size, []) for size in sizes]))
    assert encoder.full_count == 3
    written = encoder.take(full_only=True) + encoder.take(full_only=False)
    assert [[len(record.value or b"") for record in records_of(found)] for found in written] == [
        [400, 400], [400], [5000], [10],
    ]  # fmt: skip


def test_strings_and_large_types_are_taken_as_bytes() -> None:
    encoder = Encoder({"t": 1}, default_topic="t")
    encoder.add(pa.record_batch({"KEY": pa.array(["ä", None]), "Value": pa.array(["x", "y"], pa.large_string())}))
    (written,) = encoder.take(full_only=False)
    assert [(record.key, record.value) for record in records_of(written)] == [("ä".encode(), b"x"), (None, b"y")]


def test_a_column_of_another_type_is_refused() -> None:
    with pytest.raises(UnwritableRows, match="value must be binary or a string, not int64"):
        Encoder({"t": 1}, default_topic="t").add(pa.record_batch({"value": [1]}))


def test_headers_of_another_shape_or_without_a_name_are_refused() -> None:
    encoder = Encoder({"t": 1}, default_topic="t")
    with pytest.raises(UnwritableRows, match="headers must be array<struct"):
        encoder.add(pa.record_batch({"value": [b"v"], "headers": pa.array([["h"]])}))
    for wrong in ([{"key": None, "value": b"x"}], [None]):
        with pytest.raises(UnwritableRows, match="a header has no name"):
            encoder.add(pa.record_batch({"value": [b"v"], "headers": pa.array([wrong], HEADERS_TYPE)}))


def test_topics_come_from_the_option_or_the_column() -> None:
    rows: list[Row] = [(None, b"1", []), (None, b"2", []), (None, b"3", [])]
    batch = table(rows, topic=pa.array(["a", "b", "a"]))
    assert topics_of(batch, None) == ["a", "b"]
    assert topics_of(batch, "c") == ["c"]  # the option wins, as with Spark's connector
    encoder = Encoder({"a": 1, "b": 1})
    encoder.add(batch)
    written = {found.topic: [record.value for record in records_of(found)] for found in encoder.take(full_only=False)}
    assert written == {"a": [b"1", b"3"], "b": [b"2"]}
    with pytest.raises(UnwritableRows, match="no partitions are known for topic 'b'"):
        Encoder({"a": 1}).add(batch)
    for without in (table(rows), table(rows, topic=pa.array(["a", None, "b"]))):
        with pytest.raises(UnwritableRows, match="a row has no topic"):
            Encoder({"a": 1}).add(without)


@settings(deadline=None)
@given(keys=st.lists(st.none() | st.binary(max_size=30), min_size=1), cut=st.integers(0, 5))
def test_hashes_are_those_of_kafka_python(keys: list[bytes | None], cut: int) -> None:
    expected = [-1 if key is None else murmur2_of_kafka_python(key) & 0x7FFFFFFF for key in keys[cut:]]
    for kernel in KERNELS:
        column = pa.array(keys, pa.binary()).slice(cut)
        assert kernel.murmur2(view_of_binary(column)).tolist() == expected, kernel.name


def test_hashes_that_apache_kafka_gives(kernel: Kernel) -> None:
    """The values that the tests of Kafka's own clients expect."""
    known = {
        b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536,
        b"a-little-bit-longer-string": -1486304829, b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
        b"abc": 479470107,
    }  # fmt: skip
    hashes = kernel.murmur2(view_of_binary(pa.array(list(known), pa.binary())))
    assert hashes.tolist() == [number & 0x7FFFFFFF for number in known.values()]


def test_a_partition_column_wins_then_the_key() -> None:
    batch = table(
        [(b"21", None, []), (b"21", None, []), (None, None, [])], partition=pa.array([2, None, None], pa.int32())
    )
    _, partitions = partition_rows(batch, {"t": 5}, "t", spread=3)
    assert partitions.tolist() == [2, (-973932308 & 0x7FFFFFFF) % 5, 3]


@pytest.mark.parametrize("partition", [-1, 5])
def test_a_partition_that_is_not_there_is_refused(partition: int) -> None:
    batch = table([(None, None, [])], partition=pa.array([partition]))
    with pytest.raises(UnwritableRows, match=rf"asks for partition {partition}, but its topic has 5"):
        partition_rows(batch, {"t": 5}, "t")


def test_rows_without_a_key_stay_together_and_spread_over_all_partitions() -> None:
    few = table([(None, b"v", [])] * STICKY_ROWS_MIN)
    assert set(partition_rows(few, {"t": 4}, "t", spread=6)[1].tolist()) == {2}
    many = table([(None, b"v", [])] * (STICKY_ROWS_MIN * 16))
    partitions = partition_rows(many, {"t": 4}, "t")[1]
    assert np.bincount(partitions).tolist() == [STICKY_ROWS_MIN * 4] * 4
    assert np.count_nonzero(np.diff(partitions)) == 3


def test_topics_of_several_sizes_in_one_batch() -> None:
    chooser = random.Random(5)
    keys = [hashlib.sha256(str(at).encode()).digest()[: chooser.randrange(32)] for at in range(200)]
    topics = [chooser.choice(["a", "b", "c"]) for _ in keys]
    batch = table([(key, None, []) for key in keys], topic=pa.array(topics))
    counts = {"a": 1, "b": 7, "c": 100}
    codes, partitions = partition_rows(batch, counts, None)
    assert codes.cast(pa.string()).to_pylist() == topics
    expected = [
        (murmur2_of_kafka_python(key) & 0x7FFFFFFF) % counts[topic] for key, topic in zip(keys, topics, strict=True)
    ]
    assert partitions.tolist() == expected
