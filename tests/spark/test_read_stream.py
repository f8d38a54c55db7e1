"""Streaming reads on real Spark, option by option."""

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from tests.spark.feeding import MakeTopic, Records, create_topic

from ottla.cli.main import main
from ottla.client import admin
from ottla.client.cluster import Cluster
from ottla.client.groups import commit_offsets, group_offsets
from ottla.model.names import TopicPartition
from ottla.testing import RunningBroker
from ottla.testing import broker as started_broker
from ottla.testing.waiting import wait_until

T = TypeVar("T")


class CrashNow(Exception):
    """Ends a query in the middle of a batch, as a crash of the driver would."""


class Stream:
    """A streaming query that gathers its batches; started anew it goes on from its checkpoint."""

    def __init__(self, spark: SparkSession, bootstrap: str, checkpoint: Path, options: dict[str, str]) -> None:
        self.spark = spark
        self.checkpoint = checkpoint
        self.options = {"kafka.bootstrap.servers": bootstrap, **options}
        self.batches: dict[int, list[str]] = {}
        self.crash_in: int | None = None
        self._query: StreamingQuery | None = None

    def start(self, processing_time: str | None = None) -> StreamingQuery:
        def keep(frame: DataFrame, batch_id: int) -> None:
            rows = frame.select("value").collect()
            if batch_id == self.crash_in:
                raise CrashNow
            self.batches[batch_id] = sorted(row.value.decode() for row in rows)

        frame = self.spark.readStream.format("ottla").options(**self.options).load()
        writer = frame.writeStream.option("checkpointLocation", str(self.checkpoint)).foreachBatch(keep)
        if processing_time is None:
            self._query = writer.trigger(availableNow=True).start()
        else:
            self._query = writer.trigger(processingTime=processing_time).start()
        return self._query

    def run(self) -> list[list[str]]:
        """All that is there now, batch by batch."""
        self.batches = {}
        self.start().awaitTermination()
        return [self.batches[number] for number in sorted(self.batches)]

    def crash(self, batch_id: int) -> None:
        """Run until this batch has read its rows, and end there without being done with it."""
        self.crash_in = batch_id
        with pytest.raises(PySparkException, match="CrashNow"):
            self.run()
        self.crash_in = None

    def stop(self) -> None:
        if self._query is not None:
            self._query.stop()

    @property
    def values(self) -> list[str]:
        return sorted(value for batch in self.batches.values() for value in batch)

    def wait_for(self, expected: list[str]) -> None:
        """Until the batches hold exactly these values; a query that has failed says why instead."""

        def there() -> bool:
            assert self._query is not None
            failure = self._query.exception()
            if failure is not None:
                raise failure
            return self.values == expected

        wait_until(there, f"{expected} was read", seconds=240)

    def wait_until_idle(self) -> None:
        """Until the query knows where it starts and waits for records to come."""

        def waits() -> bool:
            assert self._query is not None
            return "Waiting" in str(self._query.status["message"])

        wait_until(waits, "the query waits for records", seconds=240)

    def checkpointed(self, batch_id: int) -> Any:
        """The offsets that the checkpoint has of a batch, without the ids of the topics that it keeps with them."""
        noted = json.loads((self.checkpoint / "offsets" / str(batch_id)).read_text().splitlines()[-1])
        assert noted.pop("#topics").keys() == {name for name in noted if not name.startswith("#")}
        return noted


OpenStream = Callable[..., Stream]


@pytest.fixture
def stream(spark: SparkSession, broker: RunningBroker, tmp_path: Path) -> Iterator[OpenStream]:
    opened: list[Stream] = []

    def open_stream(**options: str) -> Stream:
        opened.append(Stream(spark, broker.bootstrap, tmp_path / "checkpoint", options))
        return opened[-1]

    yield open_stream
    for each in opened:
        each.stop()


# From where, and how much.


def test_available_now_reads_all_and_goes_on_from_the_checkpoint(
    stream: OpenStream, records: Records, make_topic: MakeTopic
) -> None:
    topic = make_topic("stream", partitions=2)
    records.send(topic, ["a", "b"])
    records.send(topic, ["c"], partition=1)
    reading = stream(subscribe=topic, startingOffsets="earliest")
    assert reading.run() == [["a", "b", "c"]]
    assert reading.checkpointed(0)[topic] == {"0": 2, "1": 1}
    records.send(topic, ["d"])
    assert reading.run() == [["d"]]
    assert reading.checkpointed(1) == {topic: {"0": 3, "1": 1}}
    assert reading.run() == []


def test_latest_is_the_end_when_the_query_first_started(
    stream: OpenStream, records: Records, make_topic: MakeTopic
) -> None:
    topic = make_topic("latest", partitions=2)
    records.send(topic, ["old"])
    reading = stream(subscribe=topic)
    reading.start("100 milliseconds")
    reading.wait_until_idle()
    reading.stop()
    records.send(topic, ["new"])
    assert reading.run() == [["new"]]


def test_a_first_batch_that_crashed_reads_the_same_again(
    stream: OpenStream, broker: RunningBroker, records: Records, make_topic: MakeTopic, unique: Callable[[str], str]
) -> None:
    """Spark does not keep where a query started; what `startingOffsets` means may be something else by now."""
    topic, group = make_topic("first"), unique("group")
    records.send(topic, ["a", "b"])
    in_cluster(broker.bootstrap, lambda cluster: commit_offsets(cluster, group, {TopicPartition(topic, 0): 1}))
    reading = stream(subscribe=topic, startingOffsets="group", groupId=group)
    reading.crash(0)
    assert reading.checkpointed(0) == {topic: {"0": 2}, "#from": {topic: {"0": 1}}}
    in_cluster(broker.bootstrap, lambda cluster: commit_offsets(cluster, group, {TopicPartition(topic, 0): 2}))
    records.send(topic, ["c"])
    assert reading.run() == [["b"], ["c"]]


def test_offsets_and_times_to_start_from(stream: OpenStream, records: Records, make_topic: MakeTopic) -> None:
    topic = make_topic("starts")
    for second in (1, 2, 3):
        records.send(topic, [f"{second}"], timestamp_ms=second * 1000)
    by_offset = stream(subscribe=topic, startingOffsets=json.dumps({topic: {"0": 2}}))
    assert by_offset.run() == [["3"]]
    by_time = stream(subscribe=topic, startingTimestamp="2000")
    by_time.checkpoint = by_offset.checkpoint.with_name("by-time")
    assert by_time.run() == [["2", "3"]]


def test_micro_batches_are_limited(stream: OpenStream, records: Records, make_topic: MakeTopic) -> None:
    topic = make_topic("limited", partitions=2)
    records.send(topic, [f"{number}" for number in range(20)])
    records.send(topic, [f"{number}" for number in range(20, 30)], partition=1)
    reading = stream(subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger="12", minPartitions="3")
    batches = reading.run()
    assert [len(batch) for batch in batches] == [12, 12, 6]
    assert reading.checkpointed(0)[topic] == {"0": 8, "1": 4}
    assert sorted(value for batch in batches for value in batch) == sorted(f"{number}" for number in range(30))


def test_a_batch_waits_for_enough_records_but_not_for_ever(
    stream: OpenStream, records: Records, make_topic: MakeTopic
) -> None:
    topic = make_topic("enough")
    records.send(topic, ["0"])
    reading = stream(subscribe=topic, startingOffsets="earliest", minOffsetsPerTrigger="4", maxTriggerDelay="3s")
    reading.start("50 milliseconds")
    reading.wait_for(["0"])  # the first batch does not wait
    for number in range(1, 5):
        records.send(topic, [f"{number}"])
    reading.wait_for(["0", "1", "2", "3", "4"])
    assert len(reading.batches) == 2  # four at once
    records.send(topic, ["5"])
    reading.wait_for(["0", "1", "2", "3", "4", "5"])  # one alone, when the delay was over


def test_a_query_that_runs_once_takes_everything_in_one_batch(
    spark: SparkSession, broker: RunningBroker, records: Records, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic("once")
    records.send(topic, ["a", "b", "c"])
    options = {
        "kafka.bootstrap.servers": broker.bootstrap,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": "1",
    }
    frame = spark.readStream.format("ottla").options(**options).load()
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "once"))
    query = writer.trigger(once=True).start()
    query.awaitTermination()
    assert [progress.numInputRows for progress in query.recentProgress] == [3]


# What changes while the query runs.


def test_new_partitions_are_read_from_their_beginning(
    stream: OpenStream, broker: RunningBroker, records: Records, make_topic: MakeTopic
) -> None:
    topic = make_topic("grows")
    reading = stream(subscribe=topic, startingOffsets="latest")
    reading.start("100 milliseconds")
    reading.wait_until_idle()
    records.send(topic, ["a"])
    reading.wait_for(["a"])
    in_cluster(broker.bootstrap, lambda cluster: admin.create_partitions(cluster, topic, 2))
    Records(broker.bootstrap).send(topic, ["b"], partition=1)
    reading.wait_for(["a", "b"])


def test_new_topics_are_found_by_pattern(
    stream: OpenStream, broker: RunningBroker, records: Records, unique: Callable[[str], str]
) -> None:
    prefix = unique("pattern")
    reading = stream(subscribePattern=f"{prefix}.*", startingOffsets="earliest")
    reading.start("100 milliseconds")
    for number in range(2):
        create_topic(broker.bootstrap, f"{prefix}-{number}")
        records.send(f"{prefix}-{number}", [f"{number}"])
        reading.wait_for([f"{seen}" for seen in range(number + 1)])


def test_a_topic_made_again_is_data_loss_unless_allowed(
    stream: OpenStream, broker: RunningBroker, records: Records, make_topic: MakeTopic
) -> None:
    topic = make_topic("again")
    records.send(topic, ["a", "b", "c"])
    assert stream(subscribe=topic, startingOffsets="earliest").run() == [["a", "b", "c"]]
    in_cluster(broker.bootstrap, lambda cluster: admin.delete_topic(cluster, topic))
    create_topic(broker.bootstrap, topic)
    new = ["v", "w", "x", "y"]  # longer than what was read of the old one: only its id tells
    Records(broker.bootstrap).send(topic, new)
    with pytest.raises(PySparkException, match=r"was deleted and made again.*failOnDataLoss=false"):
        stream(subscribe=topic).run()
    lenient = stream(subscribe=topic, failOnDataLoss="false")
    assert lenient.run() == [new]
    Records(broker.bootstrap).send(topic, ["z"])
    assert lenient.run() == [["z"]]


def test_a_killed_broker_is_waited_for(spark: SparkSession, tmp_path: Path) -> None:
    with started_broker() as running:
        create_topic(running.bootstrap, "kill", partitions=2)
        records = Records(running.bootstrap)
        reading = Stream(
            spark, running.bootstrap, tmp_path, {"subscribe": "kill", "startingOffsets": "earliest", "groupId": "kill"}
        )
        reading.start("100 milliseconds")
        reading.wait_until_idle()
        expected: list[str] = []
        for round_ in range(3):
            for partition in range(2):
                records.send("kill", [f"{round_}-{partition}-{n}" for n in range(100)], partition=partition)
                expected += [f"{round_}-{partition}-{n}" for n in range(100)]
            running.kill()
            running.restart()
        reading.wait_for(sorted(expected))
        reading.stop()


# Progress as a consumer group.


def test_progress_shows_as_a_consumer_group(
    stream: OpenStream,
    broker: RunningBroker,
    records: Records,
    make_topic: MakeTopic,
    unique: Callable[[str], str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    topic, group = make_topic("lag"), unique("lag-group")
    records.send(topic, ["a", "b", "c"])
    reading = stream(subscribe=topic, startingOffsets="earliest", groupId=group)
    assert reading.run() == [["a", "b", "c"]]
    records.send(topic, ["d", "e"])
    describe = ["consumer-groups", "--bootstrap-server", broker.bootstrap, "--describe", "--group", group]
    assert main(describe) == 0
    row = next(line.split() for line in capsys.readouterr().out.splitlines() if topic in line)
    assert row[1:6] == [topic, "0", "3", "5", "2"]  # topic, partition, current offset, end of the log, lag
    assert reading.run() == [["d", "e"]]
    assert offset_of(broker, group, topic) == 5


def test_a_query_starts_from_the_offsets_of_a_group(
    stream: OpenStream, broker: RunningBroker, records: Records, make_topic: MakeTopic, unique: Callable[[str], str]
) -> None:
    topic, group = make_topic("from-group", partitions=2), unique("group")
    records.send(topic, ["a", "b", "c"])
    records.send(topic, ["d"], partition=1)  # the group knows nothing of this one, so it is read as a whole
    in_cluster(broker.bootstrap, lambda cluster: commit_offsets(cluster, group, {TopicPartition(topic, 0): 2}))
    reading = stream(subscribe=topic, startingOffsets="group", **{"kafka.group.id": group})
    assert reading.run() == [["c", "d"]]
    assert offset_of(broker, group, topic) == 3


def test_a_batch_that_crashed_is_not_shown_as_done(
    stream: OpenStream, broker: RunningBroker, records: Records, make_topic: MakeTopic, unique: Callable[[str], str]
) -> None:
    topic, group = make_topic("not-done"), unique("group")
    records.send(topic, ["a", "b"])
    reading = stream(subscribe=topic, startingOffsets="earliest", groupId=group, maxOffsetsPerTrigger="1")
    reading.crash(1)
    assert offset_of(broker, group, topic) == 1
    assert reading.run() == [["b"]]
    assert offset_of(broker, group, topic) == 2


def test_the_end_of_the_log_is_reported(stream: OpenStream, records: Records, make_topic: MakeTopic) -> None:
    topic = make_topic("reported")
    records.send(topic, ["a", "b", "c"])
    reading = stream(subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger="2")
    query = reading.start()
    query.awaitTermination()
    ends = [json.loads(progress.sources[0].endOffset)[topic]["0"] for progress in query.recentProgress]
    latest = [json.loads(progress.sources[0].latestOffset)[topic]["0"] for progress in query.recentProgress]
    assert ends[:2] == [2, 3]
    assert set(latest) == {3}


def offset_of(broker: RunningBroker, group: str, topic: str) -> int:
    async def ask(cluster: Cluster) -> int:
        return (await group_offsets(cluster, group))[TopicPartition(topic, 0)].offset

    return in_cluster(broker.bootstrap, ask)


def in_cluster(bootstrap: str, work: Callable[[Cluster], Coroutine[Any, Any, T]]) -> T:
    async def scenario() -> T:
        async with Cluster(bootstrap) as cluster:
            return await work(cluster)

    return asyncio.run(scenario())
