"""Streaming writes with format("ottla") on real Spark: batch after batch, restarts, failures and replays."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from tests.committed import values
from tests.spark.feeding import MakeTopic, Records

from ottla.client.groups import group_offsets
from ottla.client.settings import client_settings
from ottla.client.transactions import list_transactions
from ottla.spark import loop
from ottla.spark.connections import shared_cluster
from ottla.spark.writing.transactions import default_prefix, read_head
from ottla.testing import RunningBroker

SECONDS_MAX = 300


class Stream:
    """A query from one topic to another, run until it has caught up."""

    def __init__(self, spark: SparkSession, bootstrap: str, source: str, sink: str, checkpoint: Path) -> None:
        self._spark, self._bootstrap = spark, bootstrap
        self.source, self.sink, self.checkpoint = source, sink, checkpoint

    def run(
        self,
        change: Callable[[DataFrame], DataFrame] = lambda frame: frame,
        read: dict[str, str] | None = None,
        write: dict[str, str] | None = None,
    ) -> None:
        frame = (
            self._spark.readStream.format("ottla")
            .options(**{"kafka.bootstrap.servers": self._bootstrap, "subscribe": self.source})
            .options(**{"startingOffsets": "earliest"} | (read or {}))
            .load()
            .select("key", "value")
        )
        query = (
            change(frame)
            .writeStream.format("ottla")
            .options(**{"kafka.bootstrap.servers": self._bootstrap, "topic": self.sink} | (write or {}))
            .option("checkpointLocation", str(self.checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        try:
            assert query.awaitTermination(SECONDS_MAX), "the query did not end"
        finally:
            query.stop()

    @property
    def visible(self) -> list[str]:
        return values(self._bootstrap, self.sink)

    def forget_last_commit(self) -> int:
        """What a crash right after a batch leaves behind: Spark does not know that the batch is done."""
        commits = self.checkpoint / "commits"
        last = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
        (commits / str(last)).unlink()
        (commits / f".{last}.crc").unlink(missing_ok=True)
        return last


@pytest.fixture
def stream(spark: SparkSession, broker: RunningBroker, make_topic: MakeTopic, tmp_path: Path) -> Stream:
    source, sink = make_topic("from", partitions=2), make_topic("to", partitions=3)
    return Stream(spark, broker.bootstrap, source, sink, tmp_path / "checkpoint")


def numbers(start: int, end: int) -> list[str]:
    return [str(number) for number in range(start, end)]


def send(records: Records, topic: str, start: int, end: int) -> None:
    half = (start + end) // 2
    records.send(topic, numbers(start, half), partition=0)
    records.send(topic, numbers(half, end), partition=1)


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once"])
def test_batch_after_batch_and_over_a_restart(stream: Stream, records: Records, delivery: str) -> None:
    send(records, stream.source, 0, 60)
    stream.run(read={"maxOffsetsPerTrigger": "30"}, write={"delivery": delivery})
    assert stream.visible == sorted(numbers(0, 60))
    send(records, stream.source, 60, 80)
    stream.run(write={"delivery": delivery})
    assert stream.visible == sorted(numbers(0, 80))


def test_a_replayed_batch_is_written_once_whatever_the_number_of_tasks(stream: Stream, records: Records) -> None:
    send(records, stream.source, 0, 40)
    stream.run()
    stream.forget_last_commit()
    stream.run(change=lambda frame: frame.repartition(5))
    assert stream.visible == sorted(numbers(0, 40))
    send(records, stream.source, 40, 50)
    stream.run(change=lambda frame: frame.coalesce(1))
    assert stream.visible == sorted(numbers(0, 50))


def test_a_replayed_batch_at_least_once_comes_twice(stream: Stream, records: Records) -> None:
    send(records, stream.source, 0, 10)
    stream.run(write={"delivery": "at_least_once"})
    stream.forget_last_commit()
    stream.run(write={"delivery": "at_least_once"})
    assert stream.visible == sorted(numbers(0, 10) * 2)


def test_a_batch_that_fails_is_written_once_when_it_is_mended(
    stream: Stream, broker: RunningBroker, records: Records
) -> None:
    send(records, stream.source, 0, 60_000)

    def bomb(frame: DataFrame) -> DataFrame:
        text = sf.col("value").cast("string")
        return frame.select(
            sf.when(text == "59999", sf.raise_error(sf.lit("a bad row"))).otherwise(text).alias("value")
        )

    with pytest.raises(StreamingQueryException, match="a bad row"):
        stream.run(change=bomb, write={"kafka.batch.size": "5000"})
    assert stream.visible == []
    stream.run()
    assert stream.visible == sorted(numbers(0, 60_000))
    cluster = shared_cluster(client_settings({"bootstrap.servers": broker.bootstrap}))
    prefix = default_prefix(str(stream.checkpoint))
    assert [
        one
        for one in loop.run(list_transactions(cluster))
        if one.transactional_id.startswith(prefix) and one.state == "Ongoing"
    ] == []


def test_the_decision_is_noted_with_the_query_and_its_batch(
    stream: Stream, broker: RunningBroker, records: Records
) -> None:
    send(records, stream.source, 0, 10)
    stream.run(write={"transactionalIdPrefix": stream.sink})
    cluster = shared_cluster(client_settings({"bootstrap.servers": broker.bootstrap}))
    (note,) = loop.run(group_offsets(cluster, stream.sink)).values()
    head = read_head(note.metadata)
    assert head is not None
    query = json.loads((stream.checkpoint / "metadata").read_text())["id"]
    assert (head.query, head.batch_id) == (query, 0)


def test_a_new_checkpoint_starts_over_also_under_the_same_name(
    stream: Stream, records: Records, tmp_path: Path
) -> None:
    send(records, stream.source, 0, 10)
    stream.run(write={"transactionalIdPrefix": stream.sink})
    stream.checkpoint = tmp_path / "new"
    stream.run(write={"transactionalIdPrefix": stream.sink})
    assert stream.visible == sorted(numbers(0, 10) * 2)


def test_complete_mode_writes_every_result_anew(
    spark: SparkSession, broker: RunningBroker, stream: Stream, records: Records
) -> None:
    send(records, stream.source, 0, 10)
    options = {"kafka.bootstrap.servers": broker.bootstrap}
    frame = (
        spark.readStream.format("ottla").options(subscribe=stream.source, startingOffsets="earliest", **options).load()
    )
    query = (
        frame.groupBy().count().selectExpr("cast(count AS string) AS value")
        .writeStream.format("ottla").outputMode("complete").options(topic=stream.sink, **options)
        .option("checkpointLocation", str(stream.checkpoint)).trigger(availableNow=True).queryName("counted").start()
    )  # fmt: skip
    assert query.awaitTermination(SECONDS_MAX)
    assert stream.visible == ["10"]


def test_what_cannot_work_stops_the_query_in_words(stream: Stream, records: Records) -> None:
    send(records, stream.source, 0, 4)
    with pytest.raises(StreamingQueryException, match=r"kafka\.acks=1 cannot deliver exactly once"):
        stream.run(write={"kafka.acks": "1"})
    with pytest.raises(StreamingQueryException, match=r"lower transaction\.timeout\.ms"):
        stream.run(write={"kafka.transaction.timeout.ms": "99999999"})
