"""Rows that bring their own time keep it, in milliseconds; the others get the time at which they are added."""

import pyarrow as pa
import pytest

from ottla.protocol.records import decode_batch, seal_batch
from ottla.spark.kernel.arrow import Column
from ottla.spark.kernel.choice import choose
from ottla.spark.kernel.interface import Kernel
from ottla.spark.writing.encode import Encoder, UnfinishedBatch, UnwritableRows

NOW = 1_700_000_000_000


@pytest.fixture(params=["c", "python"])
def kernel(request: pytest.FixtureRequest) -> Kernel:
    return choose(request.param)


def timestamps_of(batch: UnfinishedBatch) -> list[int]:
    sealed = seal_batch(
        batch.payload, base_offset=0, leader_epoch=-1, attributes=int(batch.codec),
        last_offset_delta=batch.record_count - 1, base_timestamp=batch.base_timestamp,
        max_timestamp=batch.max_timestamp, producer_id=-1, producer_epoch=-1, base_sequence=-1,
        record_count=batch.record_count,
    )  # fmt: skip
    return [record.timestamp for record in decode_batch(sealed)]


def encode(kernel: Kernel, *columns: Column | None, batch_bytes: int = 1 << 16) -> list[UnfinishedBatch]:
    encoder = Encoder({"t": 1}, batch_bytes=batch_bytes, default_topic="t", clock_ms=lambda: NOW, kernel=kernel)
    for column in columns:
        count = 2 if column is None else len(column)
        values = pa.array([b"v"] * count, pa.binary())
        arrays = {"value": values} if column is None else {"value": values, "timestamp": column}
        encoder.add(pa.record_batch(arrays))
    return encoder.take(full_only=False)


def microseconds(*values: int | None) -> Column:
    return pa.array(values, pa.timestamp("us", "UTC"))


def test_rows_keep_their_time_and_gaps_are_filled_with_now(kernel: Kernel) -> None:
    (batch,) = encode(kernel, microseconds(5_000_999, None, 2_000_000, -1))
    assert timestamps_of(batch) == [5_000, NOW, 2_000, -1]
    assert (batch.base_timestamp, batch.max_timestamp) == (5_000, NOW)


def test_rows_with_and_without_times_share_a_batch(kernel: Kernel) -> None:
    (batch,) = encode(kernel, microseconds(7_000), None, microseconds(None, 9_000))
    assert timestamps_of(batch) == [7, NOW, NOW, NOW, 9]
    assert batch.max_timestamp == NOW


def test_each_batch_counts_from_its_own_first_row(kernel: Kernel) -> None:
    batches = encode(kernel, microseconds(*(index * 1000 for index in range(40))), batch_bytes=160)
    assert len(batches) > 2
    assert [time for batch in batches for time in timestamps_of(batch)] == list(range(40))
    assert [batch.base_timestamp for batch in batches] == [timestamps_of(batch)[0] for batch in batches]
    assert [batch.max_timestamp for batch in batches] == [timestamps_of(batch)[-1] for batch in batches]


def test_seconds_and_milliseconds_are_timestamps_too(kernel: Kernel) -> None:
    (batch,) = encode(kernel, pa.array([3], pa.timestamp("s", "UTC")), pa.array([4], pa.timestamp("ms", "UTC")))
    assert timestamps_of(batch) == [3_000, 4]


def test_other_types_are_refused(kernel: Kernel) -> None:
    with pytest.raises(UnwritableRows, match="must be a timestamp, not int64"):
        encode(kernel, pa.array([3], pa.int64()))
