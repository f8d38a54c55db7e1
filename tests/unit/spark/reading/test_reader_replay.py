"""Every offset is read exactly once, whenever the driver dies: the reader under a small model of Spark's engine.

The engine keeps what Spark keeps: the end offset of each batch, written before the batch runs, and which batches are
done. It does not keep where the first batch began.
"""

import asyncio
import itertools
import json
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows
from tests.spark.feeding import Records, create_topic

from ottla.client import admin
from ottla.client.cluster import Cluster
from ottla.spark.reading.offsets import OffsetRange
from ottla.spark.reading.reader import StreamReader
from ottla.testing import RunningBroker
from ottla.testing import broker as started_broker

_number = itertools.count()


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with started_broker() as running:
        yield running


class Engine:
    """Runs micro-batches as Spark does, and may die at any step of one."""

    def __init__(self, options: dict[str, str], when_started: Callable[[], None]) -> None:
        self._options = options
        self._when_started = when_started
        """What happens between the two questions of a new query: where to start, and where its first batch ends."""
        self._log: list[str] = []
        self._done = 0
        self.read: dict[int, list[OffsetRange]] = {}
        """What each batch read, the last time that it ran."""
        self.restart()

    def restart(self) -> None:
        self._reader = StreamReader(self._options)

    def run_batch(self, limit: ReadLimit, dies_after: str | None) -> bool:
        """One batch, or the replay of one that is not done. False if there was nothing to do."""
        if len(self._log) == self._done and not self._construct(limit):
            return False
        if dies_after == "offsets":
            self.restart()
            return True
        self._execute(len(self._log) - 1)
        if dies_after == "execution":
            self.restart()
            return True
        self._done = len(self._log)
        return True

    def _start_of(self, batch: int) -> dict[str, object]:
        # Spark asks for the initial offset more than once.
        self._reader.initialOffset()
        start: dict[str, object] = json.loads(self._log[batch - 1]) if batch else self._reader.initialOffset()
        return start

    def _construct(self, limit: ReadLimit) -> bool:
        start = self._start_of(len(self._log))
        if not self._log:
            self._when_started()
        end = json.dumps(self._reader.latestOffset(start, limit))
        if self._log and end == self._log[-1]:
            return False
        self._log.append(end)
        return True

    def _execute(self, batch: int) -> None:
        ranges = [
            part
            for task in self._reader.partitions(self._start_of(batch), json.loads(self._log[batch]))
            for part in task.value
        ]
        assert self.read.get(batch, ranges) == ranges, "a replay reads what the first attempt read"
        self.read[batch] = ranges


class Topic:
    """A topic that grows, in records and in partitions."""

    def __init__(self, bootstrap: str) -> None:
        self.name = f"replay-{next(_number)}"
        self.ends = [0]
        self._bootstrap = bootstrap
        create_topic(bootstrap, self.name)

    def produce(self, partition: int, count: int) -> None:
        number = partition % len(self.ends)
        Records(self._bootstrap).send(self.name, ["v"] * count, partition=number)
        self.ends[number] += count

    def add_partition(self) -> None:
        async def add() -> None:
            async with Cluster(self._bootstrap) as cluster:
                await admin.create_partitions(cluster, self.name, len(self.ends) + 1)

        asyncio.run(add())
        self.ends.append(0)


steps = st.one_of(
    st.tuples(st.just("produce"), st.integers(0, 3), st.integers(1, 9)),
    st.tuples(st.just("add_partition")),
    st.tuples(st.just("restart")),
    st.tuples(st.just("batch"), st.sampled_from([None, None, "offsets", "execution"]), st.sampled_from([None, 1, 4])),
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    before=st.integers(0, 5),
    starting=st.sampled_from(["earliest", "latest"]),
    plan=st.lists(steps, max_size=14),
    parts=st.sampled_from([None, "3"]),
    arriving=st.integers(0, 3),
    first_dies_after=st.sampled_from([None, "offsets", "execution"]),
)
def test_every_offset_is_read_exactly_once(
    broker: RunningBroker,
    before: int,
    starting: str,
    plan: list[tuple[object, ...]],
    parts: str | None,
    arriving: int,
    first_dies_after: str | None,
) -> None:
    topic = Topic(broker.bootstrap)
    if before:
        topic.produce(0, before)
    options = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic.name, "startingOffsets": starting}
    if parts is not None:
        options["minPartitions"] = parts
    engine = Engine(options, lambda: topic.produce(0, arriving) if arriving else None)
    engine.run_batch(ReadAllAvailable(), first_dies_after)
    for kind, *arguments in plan:
        match kind, arguments:
            case "produce", [int(partition), int(count)]:
                topic.produce(partition, count)
            case "add_partition", []:
                topic.add_partition()
            case "restart", []:
                engine.restart()
            case "batch", [str() | None as dies_after, int() | None as rows_max]:
                limit = ReadAllAvailable() if rows_max is None else ReadMaxRows(rows_max)
                engine.run_batch(limit, dies_after)
    while engine.run_batch(ReadAllAvailable(), None):
        pass
    offsets = sorted(
        (part.partition.partition, offset)
        for parts_read in engine.read.values()
        for part in parts_read
        for offset in range(part.start, part.end)
    )
    skipped = before if starting == "latest" else 0
    firsts = [skipped if number == 0 else 0 for number in range(len(topic.ends))]
    assert offsets == [
        (number, offset) for number, end in enumerate(topic.ends) for offset in range(firsts[number], end)
    ]
