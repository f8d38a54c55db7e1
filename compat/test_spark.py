"""The same jobs twice: with Spark's own connector, unmodified, on Ottla, and with `format("ottla")` on Apache Kafka.

What holds for both pairs is tested once here: an existing job can change its broker, or its format, and stay as it is.
"""

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, Message, TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from tests.spark.feeding import Records, create_topic

from ottla.testing.load import quiet

Unique = Callable[[str], str]
BATCH_S_MAX = 120
RECORDS = 200


class Place(NamedTuple):
    """A format of Spark, and the broker it works with."""

    format: str
    bootstrap: str
    spark: SparkSession
    records: Records

    def read(self, **options: str) -> DataFrame:
        reader = self.spark.read.format(self.format).option("kafka.bootstrap.servers", self.bootstrap)
        return reader.options(**options).load()

    def read_stream(self, **options: str) -> DataFrame:
        reader = self.spark.readStream.format(self.format).option("kafka.bootstrap.servers", self.bootstrap)
        return reader.options(**options).load()

    def write(self, rows: DataFrame, **options: str) -> None:
        writer = rows.write.format(self.format).mode("append").option("kafka.bootstrap.servers", self.bootstrap)
        writer.options(**options).save()

    def write_stream(self, rows: DataFrame, checkpoint: Path, **options: str) -> StreamingQuery:
        """Write what there is now, and end."""
        writer = rows.writeStream.format(self.format).option("kafka.bootstrap.servers", self.bootstrap)
        options |= {"checkpointLocation": str(checkpoint)}
        return writer.options(**options).trigger(availableNow=True).start()

    def topic(self, name: str, partitions: int = 1) -> str:
        create_topic(self.bootstrap, name, partitions)
        return name


@pytest.fixture(params=["connector on Ottla", "format ottla on Apache Kafka"])
def place(request: pytest.FixtureRequest, spark: SparkSession) -> Place:
    if request.param == "connector on Ottla":
        bootstrap = request.getfixturevalue("ottla_broker").bootstrap
        return Place("kafka", bootstrap, spark, Records(bootstrap))
    bootstrap = request.getfixturevalue("apache_kafka").bootstrap
    return Place("ottla", bootstrap, spark, Records(bootstrap))


def consume(bootstrap: str, topic: str, count: int) -> list[Message]:
    """The first records of a topic by librdkafka, which knows neither format; fails when there are fewer."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": f"check-{topic}", "auto.offset.reset": "earliest"}, logger=quiet
    )
    consumer.subscribe([topic])
    found: list[Message] = []
    deadline = time.monotonic() + 30
    with contextlib.closing(consumer):
        while len(found) < count:
            assert time.monotonic() < deadline, f"only {len(found)} of {count} records"
            found += [message for message in consumer.consume(count - len(found), 1.0) if message.error() is None]
        return found


def numbers(count: int) -> list[str]:
    return [str(number) for number in range(count)]


def values(frame: DataFrame) -> list[str]:
    return sorted((bytes(row["value"]).decode() for row in frame.select("value").collect()), key=int)


def finished(query: StreamingQuery) -> list[dict[str, Any]]:
    """Wait for its end; what it says of its batches."""
    assert query.awaitTermination(BATCH_S_MAX)
    return [json.loads(progress.json) for progress in query.recentProgress]


def test_batch_write_then_read_with_every_column(place: Place, unique: Unique) -> None:
    topic = place.topic(unique("columns"), 3)
    rows = place.spark.range(RECORDS).selectExpr(
        "cast(id as string) as key",
        "cast(if(id % 7 = 0, null, id) as string) as value",
        f"'{topic}' as topic",
        "cast(if(id % 2 = 0, 1, null) as int) as partition",
        "array(named_struct('key', 'h', 'value', cast(cast(id as string) as binary))) as headers",
    )
    place.write(rows)
    records = {int(message.key() or b"-1"): message for message in consume(place.bootstrap, topic, RECORDS)}
    assert sorted(records) == list(range(RECORDS))
    read = place.read(subscribe=topic, includeHeaders="true").collect()
    assert len(read) == RECORDS
    for row in read:
        number = int(row["key"].decode())
        message = records[number]
        assert row["value"] == message.value() == (None if number % 7 == 0 else str(number).encode())
        assert (row["topic"], row["partition"], row["offset"]) == (topic, message.partition(), message.offset())
        assert number % 2 or row["partition"] == 1
        assert row["timestampType"] == 0
        assert round(row["timestamp"].timestamp() * 1000) == message.timestamp()[1]
        assert [(header["key"], bytes(header["value"])) for header in row["headers"]] == message.headers()


def test_keys_go_where_other_producers_send_them(place: Place, unique: Unique) -> None:
    ours, theirs = place.topic(unique("keys"), 7), place.topic(unique("keys"), 7)
    place.write(place.spark.range(RECORDS).selectExpr("cast(id as string) as key", "'x' as value"), topic=ours)
    producer = place.records.producer({"partitioner": "murmur2_random"})
    for key in numbers(RECORDS):
        producer.produce(theirs, key=key, value="x")
    assert producer.flush(30) == 0
    partitions = [
        {message.key(): message.partition() for message in consume(place.bootstrap, topic, RECORDS)}
        for topic in (ours, theirs)
    ]
    assert partitions[0] == partitions[1]


def test_a_range_of_offsets(place: Place, unique: Unique) -> None:
    topic = place.topic(unique("range"), 2)
    place.records.send(topic, numbers(100), partition=0)
    place.records.send(topic, numbers(100), partition=1)
    frame = place.read(
        subscribe=topic,
        startingOffsets=json.dumps({topic: {"0": 90, "1": -2}}),
        endingOffsets=json.dumps({topic: {"0": -1, "1": 5}}),
    )
    assert values(frame) == sorted([*numbers(5), *numbers(100)[90:]], key=int)


def test_from_a_time_on(place: Place, unique: Unique) -> None:
    topic = place.topic(unique("time"))
    for second in range(10):
        place.records.send(topic, [str(second)], timestamp_ms=1_000_000_000_000 + second * 1000)
    frame = place.read(subscribe=topic, startingTimestamp=str(1_000_000_000_000 + 6_500))
    assert values(frame) == ["7", "8", "9"]


def test_one_partition_over_several_tasks(place: Place, unique: Unique) -> None:
    topic = place.topic(unique("split"))
    place.records.send(topic, numbers(RECORDS))
    frame = place.read(subscribe=topic, minPartitions="5")
    assert frame.rdd.getNumPartitions() == 5
    assert values(frame) == numbers(RECORDS)


def test_only_committed_records(place: Place, unique: Unique) -> None:
    """Also with the gaps that markers leave: the last offset of each transaction belongs to none of its records."""
    topic = place.topic(unique("committed"))
    producer = place.records.producer({"transactional.id": unique("tx")})
    producer.init_transactions(30)
    for round_number in range(6):
        producer.begin_transaction()
        place.records.send(topic, numbers(60)[round_number * 10 : round_number * 10 + 10], producer=producer)
        producer.abort_transaction() if round_number % 3 == 1 else producer.commit_transaction()
    committed = [number for number in numbers(60) if int(number) // 10 % 3 != 1]
    options = {"subscribe": topic, "kafka.isolation.level": "read_committed"}
    assert values(place.read(**options)) == committed
    assert values(place.read(subscribe=topic, **{"kafka.isolation.level": "read_uncommitted"})) == numbers(60)
    with memory_sink(place, place.read_stream(startingOffsets="earliest", **options), unique("seen")) as seen:
        assert values(seen) == committed


@contextlib.contextmanager
def memory_sink(place: Place, frame: DataFrame, name: str) -> Iterator[DataFrame]:
    table = name.replace("-", "_")
    finished(frame.writeStream.format("memory").queryName(table).trigger(availableNow=True).start())
    yield place.spark.table(table)
    place.spark.sql(f"DROP VIEW {table}")


def test_a_stream_goes_on_from_its_checkpoint(place: Place, unique: Unique, tmp_path: Path) -> None:
    source, target = place.topic(unique("in"), 2), place.topic(unique("out"), 2)
    done = 0
    for round_number in range(3):
        place.records.send(source, numbers(90)[done : done + 30], partition=round_number % 2)
        done += 30
        stream = place.read_stream(subscribe=source, startingOffsets="earliest", maxOffsetsPerTrigger="20")
        progress = finished(place.write_stream(stream.select("key", "value"), tmp_path, topic=target))
        assert sum(batch["numInputRows"] for batch in progress) == 30
        assert len([batch for batch in progress if batch["numInputRows"]]) == 2  # at most 20 in each
        assert values(place.read(subscribe=target)) == numbers(done)


def test_a_pattern_finds_topics_that_come_later(place: Place, unique: Unique, tmp_path: Path) -> None:
    prefix, target = unique("many"), place.topic(unique("all"))
    options = {"subscribePattern": f"{prefix}-.*", "startingOffsets": "earliest"}
    for round_number in range(2):
        topic = place.topic(f"{prefix}-{round_number}")
        place.records.send(topic, numbers(20)[round_number * 10 : round_number * 10 + 10])
        finished(place.write_stream(place.read_stream(**options).select("value"), tmp_path, topic=target))
    assert values(place.read(subscribe=target)) == numbers(20)


def test_lost_records_stop_a_stream_unless_told_otherwise(place: Place, unique: Unique, tmp_path: Path) -> None:
    topic, target = place.topic(unique("lost")), place.topic(unique("rest"))
    place.records.send(topic, numbers(10))
    options = {"subscribe": topic, "startingOffsets": "earliest"}
    finished(place.write_stream(place.read_stream(**options).select("value"), tmp_path, topic=target))
    place.records.send(topic, numbers(30)[10:])
    delete_records_before(place.bootstrap, topic, 20)
    with pytest.raises(StreamingQueryException):
        finished(place.write_stream(place.read_stream(**options).select("value"), tmp_path, topic=target))
    lenient = place.read_stream(failOnDataLoss="false", **options).select("value")
    finished(place.write_stream(lenient, tmp_path, topic=target))
    assert values(place.read(subscribe=target)) == [*numbers(10), *numbers(30)[20:]]


def delete_records_before(bootstrap: str, topic: str, offset: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap}, logger=quiet)
    for future in admin.delete_records([TopicPartition(topic, 0, offset)]).values():
        future.result(30)
