"""Streaming reads on real Spark, option by option."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from tests.spark.feeding import MakeTopic, Records

from ottla.testing import RunningBroker

pytestmark = pytest.mark.timeout(180)


class Stream:
    """A streaming query that gathers its batches; started anew it goes on from its checkpoint."""

    def __init__(self, spark: SparkSession, bootstrap: str, checkpoint: Path, options: dict[str, str]) -> None:
        self.spark = spark
        self.checkpoint = checkpoint
        self.options = {"kafka.bootstrap.servers": bootstrap, **options}
        self.batches: dict[int, list[str]] = {}

    def start(self, processing_time: str | None = None) -> StreamingQuery:
        def keep(frame: DataFrame, batch_id: int) -> None:
            self.batches[batch_id] = sorted(row.value.decode() for row in frame.select("value").collect())

        frame = self.spark.readStream.format("ottla").options(**self.options).load()
        writer = frame.writeStream.option("checkpointLocation", str(self.checkpoint)).foreachBatch(keep)
        if processing_time is None:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=processing_time).start()

    def run(self) -> list[list[str]]:
        """All that is there now, batch by batch."""
        self.batches = {}
        query = self.start()
        query.awaitTermination()
        return [self.batches[number] for number in sorted(self.batches)]

    def checkpointed(self, batch_id: int) -> dict[str, dict[str, int]]:
        lines = (self.checkpoint / "offsets" / str(batch_id)).read_text().splitlines()
        offsets: dict[str, dict[str, int]] = json.loads(lines[-1])
        return offsets


@pytest.fixture
def stream(spark: SparkSession, broker: RunningBroker, tmp_path: Path) -> Callable[..., Stream]:
    return lambda **options: Stream(spark, broker.bootstrap, tmp_path / "checkpoint", options)


def test_available_now_reads_all_and_goes_on_from_the_checkpoint(
    stream: Callable[..., Stream], records: Records, make_topic: MakeTopic
) -> None:
    topic = make_topic("stream", partitions=2)
    records.send(topic, ["a", "b"])
    records.send(topic, ["c"], partition=1)
    reading = stream(subscribe=topic, startingOffsets="earliest")
    assert reading.run() == [["a", "b", "c"]]
    assert reading.checkpointed(0)[topic] == {"0": 2, "1": 1}
    records.send(topic, ["d"])
    assert reading.run() == [["d"]]
    assert reading.run() == []
