"""Arrow rows to record batches: each row finds its topic and partition, and joins the batch that fills there."""

import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import numpy as np
import pyarrow as pa

from ottla.model.errors import OttlaError
from ottla.protocol.compression import Buffer, Codec, compress
from ottla.protocol.records import BATCH_OVERHEAD
from ottla.spark.kernel.arrow import Column, int32_column, view_of_binary, view_of_lists
from ottla.spark.kernel.choice import chosen_kernel
from ottla.spark.kernel.interface import NO_BINARY, Binary, Int32s, Int64s, Kernel, Payload, Rows

BATCH_BYTES = 256 * 1024
STICKY_ROWS_MIN = 256
"""Rows without a key stay on one partition for so long: more batches would be smaller batches."""

_NO_PARTITION = -1

if TYPE_CHECKING:
    TopicCodes: TypeAlias = pa.DictionaryArray[Any, Any]
else:
    TopicCodes = pa.DictionaryArray  # generic in the stubs only


class UnwritableRows(OttlaError):
    """Rows that cannot become records: no topic, a partition that is not there, a header without a name."""


class UnfinishedBatch(NamedTuple):
    """The records of one batch, compressed; producer id, epoch, sequence and CRC are still to come."""

    topic: str
    partition: int
    record_count: int
    base_timestamp: int
    max_timestamp: int
    payload: Buffer
    codec: Codec


class Encoder:
    """Gathers rows into one batch per partition. `partition_counts` may grow while it is used.

    Records bear the time of their row in the column timestamp, else the time at which they are added.
    """

    def __init__(
        self,
        partition_counts: Mapping[str, int],
        *,
        codec: Codec = Codec.NONE,
        level: int | None = None,
        batch_bytes: int = BATCH_BYTES,
        default_topic: str | None = None,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        kernel: Kernel | None = None,
    ) -> None:
        self._partition_counts = partition_counts
        self._codec, self._level = codec, level
        self._payload_bytes = max(1, batch_bytes - BATCH_OVERHEAD)
        self._default_topic = default_topic
        self._clock_ms = clock_ms
        self._kernel = kernel or chosen_kernel()
        self._open: dict[tuple[str, int], _OpenBatch] = {}
        self._full: list[_OpenBatch] = []
        self._spread = secrets.randbelow(1 << 30)

    @property
    def full_count(self) -> int:
        return len(self._full)

    def add(self, batch: pa.RecordBatch) -> None:
        if not batch.num_rows:
            return
        topics, partitions = partition_rows(
            batch, self._partition_counts, self._default_topic, spread=self._spread, kernel=self._kernel
        )
        self._spread += 1
        now = self._clock_ms()
        rows = kernel_rows(batch, now)
        for topic, partition, selected in rows_by_partition(topics, partitions):
            self._append(topic, partition, rows, selected, now)

    def take(self, full_only: bool) -> list[UnfinishedBatch]:
        """Batches that are full, or everything; they are no longer the encoder's."""
        taken, self._full = self._full, []
        if not full_only:
            taken += self._open.values()
            self._open = {}
        return [self._compressed(filling) for filling in taken]

    def _append(self, topic: str, partition: int, rows: Rows, selected: Int64s, now: int) -> None:
        at = 0
        while at < len(selected):
            filling = self._open.get((topic, partition))
            if filling is None:
                first = now if rows.timestamps is None else int(rows.timestamps[selected[at]])
                filling = self._open[topic, partition] = _OpenBatch(topic, partition, first, self._payload_bytes)
            payload = filling.payload
            payload.timestamp_delta = now - filling.base_timestamp
            payload.base_timestamp = filling.base_timestamp
            fitted = self._kernel.encode(rows, selected[at:], payload)
            if fitted:
                last = now if rows.timestamps is None else int(rows.timestamps[selected[at : at + fitted]].max())
                filling.max_timestamp = max(filling.max_timestamp, last)
            at += fitted
            if at == len(selected):
                return
            if payload.records:
                self._full.append(self._open.pop((topic, partition)))
            else:  # one record larger than a batch should be: it gets a batch of its own
                filling.payload = Payload(payload.need)

    def _compressed(self, filling: "_OpenBatch") -> UnfinishedBatch:
        payload: Buffer = filling.payload.buffer[: filling.payload.used].data
        if self._codec:
            payload = compress(self._codec, payload, self._level)
        return UnfinishedBatch(
            filling.topic, filling.partition, filling.payload.records, filling.base_timestamp, filling.max_timestamp,
            payload, self._codec,
        )  # fmt: skip


class _OpenBatch:
    __slots__ = ("base_timestamp", "max_timestamp", "partition", "payload", "topic")

    def __init__(self, topic: str, partition: int, base_timestamp: int, capacity: int) -> None:
        self.topic, self.partition = topic, partition
        self.base_timestamp = self.max_timestamp = base_timestamp
        self.payload = Payload(capacity)


def topics_of(batch: pa.RecordBatch, default_topic: str | None) -> list[str]:
    """The topics that these rows go to, so that their partitions can be looked up."""
    return _names(_topic_codes(batch, default_topic))


def partition_rows(
    batch: pa.RecordBatch,
    partition_counts: Mapping[str, int],
    default_topic: str | None,
    *,
    spread: int = 0,
    kernel: Kernel | None = None,
) -> tuple[TopicCodes, Int32s]:
    """The topic and partition of each row, as Kafka's default partitioner chooses.

    A partition column wins, then murmur2 of the key; rows without both stay together in runs, and `spread` says where
    the first run goes. The same rows with the same `spread` always get the same partitions.
    """
    topics = _topic_codes(batch, default_topic)
    codes = topics.indices.to_numpy()
    try:
        counts = np.array([partition_counts[topic] for topic in _names(topics)], np.int32)[codes]
    except KeyError as missing:
        raise UnwritableRows(f"no partitions are known for topic {missing}") from None
    partitions = _explicit_partitions(batch, counts)
    open_rows = partitions == _NO_PARTITION
    if open_rows.any():
        key = _column(batch, "key")
        if key is not None:
            hashes = (kernel or chosen_kernel()).murmur2(_binary(key, "key"))
            keyed = open_rows & (hashes >= 0)
            partitions = np.where(keyed, hashes % counts, partitions)
            open_rows &= ~keyed
        _spread_rows(partitions, np.flatnonzero(open_rows), counts, spread)
    return topics, partitions.astype(np.int32, copy=False)


def _spread_rows(partitions: Int32s, rows: Int64s, counts: Int32s, spread: int) -> None:
    if len(rows):
        run = max(STICKY_ROWS_MIN, -(-len(rows) // int(counts.max())))
        partitions[rows] = (np.arange(len(rows)) // run + spread) % counts[rows]


def _explicit_partitions(batch: pa.RecordBatch, counts: Int32s) -> Int32s:
    column = _column(batch, "partition")
    if column is None:
        return np.full(batch.num_rows, _NO_PARTITION, np.int32)
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    partitions = column.cast(pa.int64()).fill_null(_NO_PARTITION).to_numpy()
    wrong = valid & ((partitions < 0) | (partitions >= counts))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise UnwritableRows(f"a row asks for partition {partitions[row]}, but its topic has {counts[row]}")
    return cast("Int32s", partitions.astype(np.int32))


def _topic_codes(batch: pa.RecordBatch, default_topic: str | None) -> TopicCodes:
    if default_topic is not None:  # the option wins over the column, as in Spark's connector
        zeros = int32_column(np.zeros(batch.num_rows, np.int32))
        return pa.DictionaryArray.from_arrays(zeros, pa.array([default_topic], pa.string()))
    column = _column(batch, "topic")
    if column is None or column.null_count:
        raise UnwritableRows("a row has no topic: give it a topic column, or set the option topic for all rows")
    return column.dictionary_encode()


def _names(topics: TopicCodes) -> list[str]:
    return cast("list[str]", topics.dictionary.to_pylist())


def rows_by_partition(topics: TopicCodes, partitions: Int32s) -> Iterator[tuple[str, int, Int64s]]:
    """The rows of each (topic, partition), in their order."""
    names = _names(topics)
    groups = topics.indices.to_numpy().astype(np.int64) << 32 | partitions
    if len(names) == 1 and (partitions == partitions[0]).all():
        yield names[0], int(partitions[0]), np.arange(len(partitions), dtype=np.int64)
        return
    order = np.argsort(groups, kind="stable").astype(np.int64, copy=False)
    bounds = np.flatnonzero(np.diff(groups[order])) + 1
    for selected in np.split(order, bounds):
        group = int(groups[selected[0]])
        yield names[group >> 32], group & 0xFFFFFFFF, selected


def kernel_rows(batch: pa.RecordBatch, now: int, offsets: Int64s | None = None) -> Rows:
    """The columns of records as a kernel reads them; `now` is the time of rows without one."""
    key, value = _column(batch, "key"), _column(batch, "value")
    keys = NO_BINARY if key is None else _binary(key, "key")
    values = NO_BINARY if value is None else _binary(value, "value")
    headers = _column(batch, "headers")
    of_headers = (NO_BINARY, NO_BINARY, NO_BINARY) if headers is None else _headers(headers)
    return Rows(keys, values, *of_headers, _timestamps(batch, now), offsets)


def _timestamps(batch: pa.RecordBatch, now: int) -> Int64s | None:
    """The rows' own times in milliseconds, `now` for those without; None if no row has one."""
    column = _column(batch, "timestamp")
    if column is None or column.null_count == len(column):
        return None
    if not pa.types.is_timestamp(column.type):
        raise UnwritableRows(f"the column timestamp must be a timestamp, not {column.type}")
    microseconds = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64()).fill_null(now * 1000)
    return np.ascontiguousarray(microseconds.to_numpy() // 1000)


def _headers(column: Column) -> tuple[Binary, Binary, Binary]:
    if not (pa.types.is_list(column.type) and pa.types.is_struct(column.type.value_type)):
        raise UnwritableRows(f"headers must be array<struct<key: string, value: binary>>, not {column.type}")
    lists = cast("pa.ListArray[Any]", column)
    wanted = cast("pa.StructArray", lists.flatten())
    if wanted.null_count or wanted.field("key").null_count:
        raise UnwritableRows("a header has no name: the key of a header must not be null")
    entries = cast("pa.StructArray", lists.values)
    names, values = _binary(entries.field("key"), "the key of a header"), _binary(entries.field("value"), "its value")
    return view_of_lists(column), names, values


def _binary(column: Column, what: str) -> Binary:
    if pa.types.is_large_binary(column.type) or pa.types.is_large_string(column.type):
        column = column.cast(pa.binary())
    if not (pa.types.is_binary(column.type) or pa.types.is_string(column.type)):
        raise UnwritableRows(f"{what} must be binary or a string, not {column.type}")
    return view_of_binary(column)


def _column(batch: pa.RecordBatch, name: str) -> Column | None:
    """Spark's names of columns know no case."""
    for index, field in enumerate(batch.schema.names):
        if field.lower() == name:
            column = batch.column(index)
            return None if pa.types.is_null(column.type) else column
    return None
