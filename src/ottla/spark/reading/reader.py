"""The driver's side of a read: batch and streaming. Decisions are in `offsets`, questions to brokers in `resolving`."""

import asyncio
import logging
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from ottla.client.groups import commit_offsets
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import TopicPartition
from ottla.spark import loop
from ottla.spark.connections import shared_cluster
from ottla.spark.errors import DataLoss, InvalidOption
from ottla.spark.reading import resolving
from ottla.spark.reading.fetch import read_range
from ottla.spark.reading.flow_option import NO_FLOW, FlowOption
from ottla.spark.reading.offsets import (
    OffsetRange,
    Offsets,
    StreamOffset,
    TopicIds,
    divide,
    gather,
    limit_rows,
    waiting_rows,
)
from ottla.spark.reading.options import BoundKind, ReadOptions, parse_read_options
from ottla.spark.reading.pacing import share

logger = logging.getLogger(__name__)

GONE_S_MAX = 3.0
"""Partitions are gone when not seen for so long: a broker that has just started may not know them yet."""
GONE_PAUSE_S = 0.2

_HAS_MEMBERS = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS})


class RangePartition(InputPartition):
    """What one task reads, one range after the other, and how fast it may."""

    def __init__(self, ranges: tuple[OffsetRange, ...], bytes_per_second: float | None = None) -> None:
        super().__init__(ranges)
        self.bytes_per_second = bytes_per_second


def _read(partition: InputPartition, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    # Where nothing is to be read Spark still starts one task, with a partition that is None.
    for found in partition.value or ():
        yield from read_range(found, options, getattr(partition, "bytes_per_second", None))


class BatchReader(DataSourceReader):
    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = parse_read_options(options, streaming=False)

    def partitions(self) -> list[InputPartition]:
        return [RangePartition((part,)) for part in loop.run(self._plan())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(partition, self._options)

    async def _plan(self) -> list[OffsetRange]:
        options = self._options
        cluster = shared_cluster(options.consumer.client, patient=False)
        partitions = await resolving.find_partitions(cluster, options.subscription)
        resolving.check_all_there(options.subscription, partitions)
        begins = await resolving.resolve(cluster, options.starting, partitions, options)
        begins = await resolving.check_within_log(cluster, begins, options.starting, options)
        ends = await resolving.resolve(cluster, options.ending, partitions, options)
        ends = await resolving.check_within_log(cluster, ends, options.ending, options)
        ranges = [OffsetRange(partition, begins.get(partition, end), end) for partition, end in sorted(ends.items())]
        _check_order(ranges, options)
        return divide(ranges, parts_min=options.parts_min, rows_per_part_max=options.rows_per_part_max)


def _check_order(ranges: Sequence[OffsetRange], options: ReadOptions) -> None:
    if not options.starting.kind is options.ending.kind is BoundKind.OFFSETS:
        return
    for found in ranges:
        if found.start > found.end:
            raise InvalidOption(f"{found.partition} starts at {found.start}, behind its end at {found.end}")


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Spark asks it, in a process of its own on the driver, what a micro-batch reads.

    What Spark promises, and this relies on: `latestOffset(start, ...)` comes when the batch that ended at `start` is
    complete, so `start` is what the query's group may commit. `commit(end)` comes later, and never for the last batch.
    """

    def __init__(self, options: Mapping[str, str], flow: FlowOption = NO_FLOW) -> None:
        self._options = parse_read_options(options, streaming=True)
        self._flow = flow
        self._initial: StreamOffset | None = None
        self._target: dict[TopicPartition, int] | None = None
        self._latest: dict[TopicPartition, int] | None = None
        self._topic_ids: TopicIds = {}
        self._group = self._options.group
        self._shown_in_group: Offsets | None = None
        self._last_batch_at: float | None = None

    # Offsets.

    def initialOffset(self) -> dict[str, object]:  # noqa: N802
        if self._initial is None:
            self._initial = loop.run(self._resolve_initial())
        return self._initial.to_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        if self._options.rows_max is not None:
            return ReadMaxRows(self._options.rows_max)
        if self._options.rows_min is not None:
            return ReadMinRows(self._options.rows_min)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._target = loop.run(self._find_latest({}))

    def latestOffset(self, start: dict[str, object], limit: ReadLimit) -> dict[str, object]:  # noqa: N802
        return loop.run(self._next_offset(start, limit))

    def reportLatestOffset(self) -> dict[str, object] | None:  # noqa: N802
        return None if self._latest is None else StreamOffset(self._latest).to_json()

    def commit(self, end: dict[str, object]) -> None:
        """Nothing to do: the next `latestOffset` shows the same offsets in the group, and sooner."""

    # Planning and reading.

    def partitions(self, start: dict[str, object], end: dict[str, object]) -> Sequence[InputPartition]:
        ranges = loop.run(self._plan(start, end))
        tasks = gather(ranges) if self._options.parts_min is None else [(found,) for found in ranges]
        rate = share(self._flow.bytes_per_second, len(tasks))
        return [RangePartition(task, rate) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(partition, self._options)

    async def _resolve_initial(self) -> StreamOffset:
        options = self._options
        cluster = shared_cluster(options.consumer.client, patient=False)
        partitions = await resolving.find_partitions(cluster, options.subscription)
        resolving.check_all_there(options.subscription, partitions)
        offsets = await resolving.resolve(cluster, options.starting, partitions, options)
        return StreamOffset(await resolving.check_within_log(cluster, offsets, options.starting, options))

    async def _find_latest(self, known: Offsets) -> dict[TopicPartition, int]:
        cluster = shared_cluster(self._options.consumer.client)
        gone_at = time.monotonic() + GONE_S_MAX
        while True:
            partitions = await resolving.find_partitions(cluster, self._options.subscription)
            if set(known) <= set(partitions) or time.monotonic() > gone_at:
                break
            await asyncio.sleep(GONE_PAUSE_S)
        self._topic_ids = resolving.topic_ids(partitions)
        return await resolving.latest(cluster, partitions, committed=self._options.consumer.fetch.committed)

    async def _bounded_target(
        self, target: dict[TopicPartition, int], start: StreamOffset
    ) -> dict[TopicPartition, int]:
        """The end of a run that reads what is there now.

        Spark may ask for it before it asks where the query starts. What came in between is not part of the run, and is
        no loss either: the target follows the start, unless the log has really become shorter.
        """
        early = [tp for tp, offset in start.offsets.items() if target.get(tp, -1) < offset]
        if early:
            cluster = shared_cluster(self._options.consumer.client)
            now = await resolving.latest(cluster, early, committed=self._options.consumer.fetch.committed)
            target.update({tp: start.offsets[tp] for tp, end in now.items() if end >= start.offsets[tp]})
        return target

    def _made_again(self, start: StreamOffset, before: TopicIds) -> set[str]:
        """Topics that are others than those the query has read: by the checkpoint, or else by what was seen before."""
        known = {**before, **start.topics}
        changed = {topic for topic, now in self._topic_ids.items() if known.get(topic, now) != now}
        for topic in sorted(changed):
            self._lost(f"the topic `{topic}` was deleted and made again")
        return changed

    async def _next_offset(self, start_json: dict[str, object], limit: ReadLimit) -> dict[str, object]:
        start = StreamOffset.from_json(start_json)
        await self._show_in_group(start)
        if self._flow.is_paused:
            return start_json
        seen_before = self._topic_ids
        latest = (
            await self._find_latest(start.offsets)
            if self._target is None
            else await self._bounded_target(self._target, start)
        )
        self._latest = latest
        made_again = self._made_again(start, seen_before)
        begins = await self._begins(start, latest, made_again)
        ends = self._limited(begins, latest, limit)
        first = start == self._initial  # Spark runs a first batch whether or not there is anything in it
        if ends is None and made_again:
            ends = dict(begins)  # a batch of nothing, so that the checkpoint knows the new topic
        if ends is None or (ends == start.offsets and not first and not made_again):
            return start_json
        self._last_batch_at = time.monotonic()
        noted = begins if first else {tp: at for tp, at in begins.items() if start.offsets.get(tp) != at}
        return StreamOffset(ends, noted, self._generated_group, self._topic_ids).to_json()

    async def _begins(self, start: StreamOffset, latest: Offsets, made_again: set[str]) -> dict[TopicPartition, int]:
        """Where the next batch begins in each partition: where the last one ended, or at the beginning of new ones."""
        gone = sorted(set(start.offsets) - set(latest))
        if gone:
            self._lost(f"{', '.join(str(partition) for partition in gone)} is gone")
        new = [partition for partition in latest if partition not in start.offsets]
        shorter = [tp for tp, end in latest.items() if end < start.offsets.get(tp, 0)]
        for partition in shorter:
            if partition.topic not in made_again:
                self._lost(f"{partition} ends at {latest[partition]}, and was read up to {start.offsets[partition]}")
        other = [tp for tp in latest if tp.topic in made_again]
        firsts = await resolving.earliest(shared_cluster(self._options.consumer.client), {*new, *shorter, *other})
        for partition in new:
            if firsts.get(partition, 0) > 0:
                self._lost(f"the new partition {partition} begins at {firsts[partition]} instead of 0")
        return {tp: firsts.get(tp, start.offsets.get(tp, end)) for tp, end in latest.items()}

    def _limited(self, begins: Offsets, latest: Offsets, limit: ReadLimit) -> dict[TopicPartition, int] | None:
        """Where the next batch ends; None if it is to wait for more."""
        if isinstance(limit, ReadAllAvailable):
            return dict(latest)
        rows_min = self._options.rows_min
        if rows_min is not None and self._target is None and self._last_batch_at is not None:
            waited_ms = (time.monotonic() - self._last_batch_at) * 1000
            if waited_ms < self._options.trigger_delay_ms_max and waiting_rows(begins, latest) < rows_min:
                return None
        return limit_rows(begins, latest, limit.max_rows) if isinstance(limit, ReadMaxRows) else dict(latest)

    def _lost(self, what: str) -> None:
        if self._options.fail_on_data_loss:
            raise DataLoss(
                f"{what}, so records may have been missed. Topics were deleted, or shortened by retention, while the "
                "query was behind or did not run. To go on with what is there, set failOnDataLoss=false"
            )
        logger.warning("Data loss: %s; going on, as failOnDataLoss=false says", what)

    async def _plan(self, start_json: Mapping[str, object], end_json: Mapping[str, object]) -> list[OffsetRange]:
        start, end = StreamOffset.from_json(start_json), StreamOffset.from_json(end_json)
        if not self._topic_ids:
            await self._check_replay(end)
        begins = {**start.offsets, **end.begins}
        unknown = [partition for partition in end.offsets if partition not in begins]
        begins.update(await resolving.earliest(shared_cluster(self._options.consumer.client), unknown))
        ranges = [OffsetRange(tp, begins.get(tp, stop), stop) for tp, stop in sorted(end.offsets.items())]
        return divide(ranges, parts_min=self._options.parts_min, rows_per_part_max=self._options.rows_per_part_max)

    async def _check_replay(self, end: StreamOffset) -> None:
        """A batch from before a restart has offsets of the topics as they were then."""
        cluster = shared_cluster(self._options.consumer.client)
        self._topic_ids = resolving.topic_ids(await resolving.find_partitions(cluster, self._options.subscription))
        self._made_again(end, {})

    # The group.

    @property
    def _generated_group(self) -> str | None:
        return self._group if self._options.group_prefix is not None else None

    async def _show_in_group(self, start: StreamOffset) -> None:
        """Commit what is done to the query's group, so that every Kafka tool shows its lag."""
        if self._group is None and self._options.group_prefix is not None:
            self._group = start.group or f"{self._options.group_prefix}-{uuid.uuid4()}"
        if self._group is None or not start.offsets or self._shown_in_group == start.offsets:
            return
        cluster = shared_cluster(self._options.consumer.client)
        try:
            refused = set((await commit_offsets(cluster, self._group, start.offsets)).values())
        except ApiError as error:
            refused = {error.code}
        # A topic that is gone is told as what it is, a moment later.
        for code in refused - {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}:
            hint = ": it has members, and a query shares its group with nobody" if code in _HAS_MEMBERS else ""
            raise ApiError(code, f"the query's progress cannot be committed to the group `{self._group}`{hint}")
        self._shown_in_group = start.offsets
