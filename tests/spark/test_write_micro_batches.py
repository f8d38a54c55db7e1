"""`write_batch`: a micro-batch in one transaction with its source's offsets, on real Spark."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as KafkaPartition
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from tests.committed import read_committed
from tests.spark.feeding import MakeTopic

from ottla.client.errors import ProducerFenced
from ottla.client.groups import group_offsets
from ottla.client.settings import client_settings
from ottla.model.names import TopicPartition
from ottla.spark import loop
from ottla.spark.connections import shared_cluster
from ottla.spark.errors import InvalidOption
from ottla.spark.writing import batch_transaction
from ottla.spark.writing.batch_tasks import COLLECTED_BYTES_MAX
from ottla.spark.writing.batch_writer import BatchWritten, write_batch
from ottla.spark.writing.progress_notes import BatchNote
from ottla.testing import RunningBroker
from ottla.testing.load import quiet

ROW = (
    "key binary, value binary, headers array<struct<key:string,value:binary>>, topic string, partition int, "
    "timestamp timestamp"
)

LARGE_BYTES = 900_000


class Pipeline:
    """One pipeline's writing end. A new object is a new driver, once it has forgotten what the old one held."""

    def __init__(self, spark: SparkSession, bootstrap: str, name: str, source: str, sink: str) -> None:
        self.spark, self.bootstrap, self.name, self.source, self.sink = spark, bootstrap, name, source, sink
        self.query = "q1"

    def rows(self, start: int, end: int, tasks: int = 2, partitions: int | None = None) -> DataFrame:
        frame = self.spark.range(start, end, 1, tasks)
        key = "cast(cast(id AS string) AS binary)"
        partition = "NULL" if partitions is None else f"cast(id % {partitions} AS int)"
        return frame.selectExpr(
            f"{key} AS key", f"{key} AS value", "CAST(NULL AS array<struct<key:string,value:binary>>) AS headers",
            f"'{self.sink}' AS topic", f"CAST({partition} AS int) AS partition", "CAST(NULL AS timestamp) AS timestamp",
        )  # fmt: skip

    def write(self, batch_id: int, frame: DataFrame, offset: int | None = 0, **changes: Any) -> BatchWritten:
        offsets = {} if offset is None else {TopicPartition(self.source, 0): offset}
        arguments: dict[str, Any] = {"query": self.query, "offsets": offsets} | changes
        return write_batch(
            frame, client={"bootstrap.servers": self.bootstrap}, transactional_id=self.name, group=self.name,
            batch_id=batch_id, **arguments,
        )  # fmt: skip

    @staticmethod
    def restart() -> None:
        """What a new driver process has of the old one: nothing."""
        batch_transaction._open.clear()

    @property
    def visible(self) -> list[int]:
        return sorted(int(record.value or b"") for record in read_committed(self.bootstrap, self.sink))

    @property
    def offset(self) -> tuple[int, str] | None:
        cluster = shared_cluster(client_settings({"bootstrap.servers": self.bootstrap}))
        found = loop.run(group_offsets(cluster, self.name)).get(TopicPartition(self.source, 0))
        return None if found is None else (found.offset, found.metadata)


@pytest.fixture
def pipeline(
    spark: SparkSession, broker: RunningBroker, make_topic: MakeTopic, unique: Callable[[str], str]
) -> Iterator[Pipeline]:
    source, sink = make_topic("from"), make_topic("to", partitions=4)
    yield Pipeline(spark, broker.bootstrap, unique("pipeline"), source, sink)
    Pipeline.restart()


@pytest.mark.parametrize("is_small", [True, False])
def test_rows_and_offsets_become_visible_together(pipeline: Pipeline, is_small: bool) -> None:
    written = pipeline.write(0, pipeline.rows(0, 500), 7, is_small=is_small)
    assert written == BatchWritten(500, by_topic={pipeline.sink: 500})
    assert pipeline.visible == list(range(500))
    assert pipeline.offset == (7, str(BatchNote("q1", 0)))
    assert pipeline.write(1, pipeline.rows(500, 520), 9, is_small=is_small).rows == 20
    assert pipeline.visible == list(range(520))
    assert pipeline.offset == (9, str(BatchNote("q1", 1)))


def test_an_older_consumer_of_the_group_goes_on_where_the_pipeline_is(pipeline: Pipeline) -> None:
    pipeline.write(0, pipeline.rows(0, 5), 3)
    consumer = Consumer({"bootstrap.servers": pipeline.bootstrap, "group.id": pipeline.name}, logger=quiet)
    try:
        (committed,) = consumer.committed([KafkaPartition(pipeline.source, 0)], 20)
        assert committed.offset == 3
    finally:
        consumer.close()


@pytest.mark.parametrize("restarted", [False, True])
def test_a_batch_that_is_there_is_left_alone(pipeline: Pipeline, restarted: bool) -> None:
    pipeline.write(0, pipeline.rows(0, 5), 1)
    pipeline.write(1, pipeline.rows(5, 10), 2)
    if restarted:
        pipeline.restart()
    for batch_id in (1, 0):
        assert pipeline.write(batch_id, pipeline.rows(0, 10), 2) == BatchWritten(0, already_there=True)
    assert pipeline.write(2, pipeline.rows(10, 12), 3).rows == 2
    assert pipeline.visible == list(range(12))


def test_a_new_checkpoint_is_another_query(pipeline: Pipeline) -> None:
    pipeline.write(5, pipeline.rows(0, 5), 1)
    pipeline.query = "q2"
    assert pipeline.write(0, pipeline.rows(5, 10), 1).rows == 5
    assert pipeline.visible == list(range(10))


def test_sources_without_offsets_are_noted_beside_what_was_written(pipeline: Pipeline) -> None:
    assert pipeline.write(0, pipeline.rows(0, 5), None).rows == 5
    pipeline.restart()
    assert pipeline.write(0, pipeline.rows(0, 5), None).already_there
    assert pipeline.write(1, pipeline.rows(0, 0), None) == BatchWritten(0)
    assert pipeline.write(2, pipeline.rows(5, 6), None).rows == 1
    assert pipeline.visible == list(range(6))


def test_a_batch_without_rows_moves_the_offsets(pipeline: Pipeline) -> None:
    assert pipeline.write(0, pipeline.rows(0, 0), 4) == BatchWritten(0)
    assert pipeline.offset == (4, str(BatchNote("q1", 0)))


def test_each_topic_has_its_compression_and_rows_their_time(
    pipeline: Pipeline, make_topic: MakeTopic, spark: SparkSession
) -> None:
    other = make_topic("other")
    frame = pipeline.rows(0, 50).unionByName(
        spark.sql(
            f"SELECT CAST(NULL AS binary) key, CAST('x' AS binary) value, array(named_struct('key', 'h', 'value', "
            f"CAST('1' AS binary))) headers, '{other}' topic, 0 partition, timestamp'2020-01-01 00:00:00.123' timestamp"
        )
    )
    written = pipeline.write(0, frame, compression={pipeline.sink: "zstd", other: "lz4"}, is_small=False)
    assert written.by_topic == {pipeline.sink: 50, other: 1}
    (record,) = read_committed(pipeline.bootstrap, other)
    assert record.headers == (("h", b"1"),)
    assert record.timestamp_ms == 1_577_836_800_123
    assert pipeline.visible == list(range(50))


def test_one_compression_for_all_topics(pipeline: Pipeline) -> None:
    pipeline.write(0, pipeline.rows(0, 50), compression="gzip")
    assert pipeline.visible == list(range(50))


def test_each_partition_is_written_by_one_task_and_in_order(pipeline: Pipeline) -> None:
    pipeline.write(0, pipeline.rows(0, 4000, tasks=1, partitions=4), is_small=False)
    seen = read_committed(pipeline.bootstrap, pipeline.sink)
    for number in range(4):
        of_partition = [int(record.value or b"") for record in seen if record.partition == number]
        assert of_partition == list(range(number, 4000, 4))


def test_at_least_once(pipeline: Pipeline) -> None:
    assert pipeline.write(0, pipeline.rows(0, 10), 5, delivery="at_least_once").rows == 10
    assert pipeline.write(0, pipeline.rows(0, 10), 5, delivery="at_least_once").rows == 10
    assert pipeline.visible == sorted([*range(10)] * 2)
    assert pipeline.offset == (5, "")


def failing(frame: DataFrame, marker: Path, times: int) -> DataFrame:
    """The same rows, but reading them fails at the end of its first task so many times."""

    def explode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        context = TaskContext.get()
        assert context is not None
        if context.partitionId() == 0:
            count = len(list(marker.iterdir()))
            if count < times:
                (marker / str(count)).touch()
                raise RuntimeError("the task broke after its rows were written")

    return frame.mapInArrow(explode, ROW)


@pytest.mark.parametrize("is_small", [True, False])
def test_a_task_that_fails_leaves_nothing(pipeline: Pipeline, tmp_path: Path, is_small: bool) -> None:
    frame = failing(pipeline.rows(0, 30_000, tasks=1), tmp_path, times=1)
    with pytest.raises(PySparkException, match="the task broke"):
        pipeline.write(0, frame, 3, is_small=is_small)
    assert pipeline.visible == []
    assert pipeline.offset is None
    # The same driver goes on, in the next epoch.
    assert pipeline.write(0, frame, 3, is_small=is_small).rows == 30_000
    assert pipeline.visible == list(range(30_000))


def test_few_records_that_are_large_are_written_by_tasks(pipeline: Pipeline) -> None:
    """A driver has only so much memory, and the number of records says little about it."""
    value = f"encode(concat(id, repeat('x', {LARGE_BYTES})), 'utf-8')"
    count = COLLECTED_BYTES_MAX // LARGE_BYTES + 2
    rows = pipeline.rows(0, count).selectExpr("*", "cast(cast(key AS string) AS int) AS id")
    rows = rows.withColumn("value", sf.expr(value)).drop("id")
    assert pipeline.write(0, rows, 3, is_small=True).rows == count
    seen = [record.value or b"" for record in read_committed(pipeline.bootstrap, pipeline.sink)]
    assert sorted(int(value.rstrip(b"x")) for value in seen) == list(range(count))
    assert {len(value.lstrip(b"0123456789")) for value in seen} == {LARGE_BYTES}


@pytest.mark.parametrize("rows", [5, 0])
def test_a_driver_that_was_replaced_must_stop(pipeline: Pipeline, rows: int) -> None:
    pipeline.write(0, pipeline.rows(0, 5), 1)
    held = dict(batch_transaction._open)
    pipeline.restart()
    pipeline.write(1, pipeline.rows(5, 10), 2)
    successor = dict(batch_transaction._open)
    batch_transaction._open.update(held)
    with pytest.raises(ProducerFenced):
        pipeline.write(1, pipeline.rows(5, 5 + rows), 2)
    batch_transaction._open.update(successor)
    assert pipeline.write(2, pipeline.rows(10, 12), 3).rows == 2
    assert pipeline.visible == list(range(12))


def test_speculation_is_refused(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    configuration = pipeline.spark.sparkContext.getConf().set("spark.speculation", "true")
    monkeypatch.setattr(pipeline.spark.sparkContext, "_conf", configuration)
    with pytest.raises(InvalidOption, match="switch it off"):
        pipeline.write(0, pipeline.rows(0, 1))
    assert pipeline.write(0, pipeline.rows(0, 1), delivery="at_least_once").rows == 1
