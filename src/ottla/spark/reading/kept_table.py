"""A compacted topic as a table that stays: the last record of each key, brought up to date by what is new.

Read in a task, as `task_planned` is, in one of the processes that Spark keeps for its Python tasks. Such a process
remembers the table and where it ends; the next batch reads on from there. A process that was not asked for a while, or
whose topic was made anew or shortened, begins again, as a new one does: what is remembered is never the only truth.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSourceReader, InputPartition

from ottla.model.names import TopicPartition
from ottla.spark import loop
from ottla.spark.connections import shared_cluster
from ottla.spark.reading import resolving
from ottla.spark.reading.fetch import read_range
from ottla.spark.reading.offsets import OffsetRange, TopicIds
from ottla.spark.reading.options import ReadOptions, parse_read_options

BYTES_MAX = 64 * 1024 * 1024
"""A larger table is read whole each time, and not remembered."""
AGE_S_MAX = 600.0
"""Deletions are forgotten by compaction after `delete.retention.ms`; who comes back later than this begins again."""
TABLES_MAX = 8
"""So many a process remembers."""

_NUMBER = "__number"


@dataclass
class KeptTable:
    """Rows of the last record of each key in each partition, in the order in which they came."""

    begins: Mapping[TopicPartition, int]
    topics: TopicIds
    positions: dict[TopicPartition, int] = field(default_factory=dict)
    rows: pa.Table | None = None
    looked_at: float = field(default_factory=time.monotonic)

    def fits(self, begins: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], topics: TopicIds) -> bool:
        """Whether what is remembered is the beginning of what is there now."""
        if time.monotonic() - self.looked_at > AGE_S_MAX or topics != self.topics:
            return False
        known = all(begins.get(partition) == begin for partition, begin in self.begins.items())
        return known and all(ends.get(partition, -1) >= position for partition, position in self.positions.items())

    def add(self, batches: Sequence[pa.RecordBatch]) -> None:
        if batches:
            new = pa.Table.from_batches(batches)
            self.rows = last_of_each_key(new if self.rows is None else pa.concat_tables([self.rows, new]))


def last_of_each_key(rows: pa.Table) -> pa.Table:
    """The last row of each key in each partition; records without a key are no part of a table."""
    rows = rows.filter(pc.is_valid(rows["key"]))
    numbered = rows.append_column(_NUMBER, pa.array(range(rows.num_rows), pa.int64()))
    last = numbered.group_by(["key", "topic", "partition"]).aggregate([(_NUMBER, "max")])
    numbers = last[f"{_NUMBER}_max"].combine_chunks()
    return rows.take(numbers.take(pc.sort_indices(numbers)))


def without_moved_and_gone(rows: pa.Table) -> pa.Table:
    """One row for each key: where it is in several partitions, because some were added, the latest. Without those whose
    last record says that they are gone."""
    if pc.count_distinct(rows["key"]).as_py() < rows.num_rows:
        latest: dict[Any, int] = {}
        times: list[Any] = rows["timestamp"].to_pylist()
        for number, key in enumerate(rows["key"].to_pylist()):
            if key not in latest or times[latest[key]] <= times[number]:
                latest[key] = number
        rows = rows.take(pa.array(sorted(latest.values()), pa.int64()))
    return rows.filter(pc.is_valid(rows["value"]))


class KeptTableReader(DataSourceReader):
    """One task, which finds out itself what there is."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._key = tuple(sorted(options.items()))
        self._options = parse_read_options(options, streaming=False)

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition("all there is")]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        rows = self._up_to_date()
        if rows is not None:
            yield from without_moved_and_gone(rows).to_batches()

    def records(self) -> int:
        """How many offsets the topic spans now: an upper bound of its keys."""
        begins, ends, _ = loop.run(_bounds(self._options))
        return sum(max(0, end - begins.get(partition, end)) for partition, end in ends.items())

    def _up_to_date(self) -> pa.Table | None:
        begins, ends, topics = loop.run(_bounds(self._options))
        table = _kept.pop(self._key, None)
        if table is None or not table.fits(begins, ends, topics):
            table = KeptTable(begins, topics)
        new: list[pa.RecordBatch] = []
        for partition, end in sorted(ends.items()):
            start = table.positions.get(partition, begins.get(partition, end))
            new.extend(read_range(OffsetRange(partition, start, end), self._options))
            table.positions[partition] = end
        table.begins = begins
        table.add(new)
        table.looked_at = time.monotonic()
        if table.rows is None or table.rows.nbytes <= BYTES_MAX:
            _kept[self._key] = table
            while len(_kept) > TABLES_MAX:
                del _kept[next(iter(_kept))]
        return table.rows


async def _bounds(
    options: ReadOptions,
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int], TopicIds]:
    cluster = shared_cluster(options.consumer.client, patient=False)
    partitions = await resolving.find_partitions(cluster, options.subscription)
    resolving.check_all_there(options.subscription, partitions)
    begins = await resolving.resolve(cluster, options.starting, partitions, options)
    begins = await resolving.check_within_log(cluster, begins, options.starting, options)
    ends = await resolving.resolve(cluster, options.ending, partitions, options)
    return dict(begins), dict(ends), resolving.topic_ids(partitions)


_kept: dict[tuple[tuple[str, str], ...], KeptTable] = {}
"""Of this process, by the options that they are read with."""

loop.after_fork(_kept.clear)
