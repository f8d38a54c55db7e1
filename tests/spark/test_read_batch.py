"""Batch reads on real Spark, option by option."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from tests.spark.feeding import MakeTopic, Records, create_topic
from tests.unit.client.tls import make_certificates, running_proxy

from ottla.client import offsets
from ottla.client.cluster import Cluster
from ottla.model.names import TopicPartition
from ottla.testing import RunningBroker
from ottla.testing import broker as started_broker
from ottla.testing.waiting import wait_until

Read = Callable[..., DataFrame]


@pytest.fixture
def read(spark: SparkSession, broker: RunningBroker) -> Read:
    def frame(**options: str) -> DataFrame:
        settings = {"kafka.bootstrap.servers": broker.bootstrap, **options}
        return spark.read.format("ottla").options(**settings).load()

    return frame


def values(frame: DataFrame) -> list[str]:
    return sorted(row.value.decode() for row in frame.select("value").collect())


def positions(frame: DataFrame) -> list[tuple[int, int]]:
    return sorted((row.partition, row.offset) for row in frame.select("partition", "offset").collect())


# Rows.


def test_rows_have_the_columns_of_sparks_kafka_connector(read: Read, records: Records, make_topic: MakeTopic) -> None:
    topic = make_topic("columns", partitions=2)
    headers: list[tuple[str, bytes | None]] = [("h", b"1"), ("h", None)]
    records.send(topic, ["a", None], keys=["k", None], timestamp_ms=1_700_000_000_123, headers=headers)
    frame = read(subscribe=topic, includeHeaders="true")
    rows = frame.orderBy("offset").collect()
    assert frame.columns == ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers"]
    assert rows[0].key == b"k"
    assert rows[0].value == b"a"
    assert (rows[0].topic, rows[0].partition, rows[0].offset, rows[0].timestampType) == (topic, 0, 0, 0)
    assert rows[0].timestamp.timestamp() == 1_700_000_000.123
    assert rows[0].headers == [Row(key="h", value=bytearray(b"1")), Row(key="h", value=None)]
    assert (rows[1].key, rows[1].value, rows[1].offset) == (None, None, 1)
    assert "headers" not in read(subscribe=topic).columns


def test_every_codec_and_big_records_in_small_fetches(read: Read, records: Records, make_topic: MakeTopic) -> None:
    topic = make_topic("codecs")
    sent = []
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        these = [f"{codec}-{number}-{'x' * 3000}" for number in range(40)]
        records.send(topic, these, producer=records.producer({"compression.type": codec}))
        sent += these
    frame = read(subscribe=topic, **{"kafka.max.partition.fetch.bytes": "1000", "kafka.check.crcs": "false"})
    assert values(frame) == sorted(sent)


def test_the_time_of_the_log_is_told_apart(read: Read, records: Records, make_topic: MakeTopic) -> None:
    topic = make_topic("times", configs={"message.timestamp.type": "LogAppendTime"})
    records.send(topic, ["a"], timestamp_ms=1_000)
    row = read(subscribe=topic).collect()[0]
    assert row.timestampType == 1
    assert row.timestamp.timestamp() > 1_700_000_000


# What is read.


def test_several_topics_a_pattern_and_an_assignment(read: Read, records: Records, make_topic: MakeTopic) -> None:
    one, two = make_topic("what.one", partitions=2), make_topic("what.two")
    records.send(one, ["a"])
    records.send(one, ["b"], partition=1)
    records.send(two, ["c"])
    assert values(read(subscribe=f"{one}, {two}")) == ["a", "b", "c"]
    assert values(read(subscribePattern=r"what\.(one|two)-\d+-\d+")) == ["a", "b", "c"]
    assert values(read(assign=json.dumps({one: [1], two: [0]}))) == ["b", "c"]


def test_an_empty_topic_has_no_rows(read: Read, make_topic: MakeTopic) -> None:
    assert read(subscribe=make_topic("empty")).count() == 0


def test_a_range_of_offsets(read: Read, records: Records, make_topic: MakeTopic) -> None:
    topic = make_topic("range", partitions=2)
    records.send(topic, ["0", "1", "2", "3"])
    records.send(topic, ["4", "5"], partition=1)
    starting = json.dumps({topic: {"0": 1, "1": -2}})
    assert values(read(subscribe=topic, startingOffsets=starting)) == ["1", "2", "3", "4", "5"]
    ending = json.dumps({topic: {"0": 3, "1": -1}})
    assert values(read(subscribe=topic, endingOffsets=ending)) == ["0", "1", "2", "4", "5"]
    assert values(read(subscribe=topic, startingOffsets=starting, endingOffsets=ending)) == ["1", "2", "4", "5"]


def test_ranges_of_time(read: Read, records: Records, make_topic: MakeTopic) -> None:
    topic = make_topic("time", partitions=2)
    for second in (1, 2, 3):
        records.send(topic, [f"{second}"], timestamp_ms=second * 1000)
    records.send(topic, ["4"], partition=1, timestamp_ms=4000)
    assert values(read(subscribe=topic, startingTimestamp="2000")) == ["2", "3", "4"]
    assert values(read(subscribe=topic, endingTimestamp="2500")) == ["1", "2"]
    by_partition = json.dumps({topic: {"0": 3000, "1": 1}})
    assert values(read(subscribe=topic, startingOffsetsByTimestamp=by_partition)) == ["3", "4"]
    assert values(read(subscribe=topic, endingOffsetsByTimestamp=by_partition)) == ["1", "2"]
    late = {"startingTimestamp": "3500"}
    with pytest.raises(PySparkException, match="has no record at or after 3500"):
        read(subscribe=topic, **late).count()
    assert values(read(subscribe=topic, startingOffsetsByTimestampStrategy="latest", **late)) == ["4"]


# Tasks.


def test_one_big_partition_is_split_over_tasks(read: Read, records: Records, make_topic: MakeTopic) -> None:
    topic = make_topic("split")
    records.send(topic, [f"{number:03}" for number in range(100)])
    frame = read(subscribe=topic, minPartitions="4")
    assert frame.rdd.getNumPartitions() == 4
    assert positions(frame) == [(0, offset) for offset in range(100)]
    small = read(subscribe=topic, maxRecordsPerPartition="30")
    assert small.rdd.getNumPartitions() == 4
    assert small.count() == 100


# Transactions.


def test_only_committed_records_are_read(read: Read, records: Records, make_topic: MakeTopic) -> None:
    topic = make_topic("committed")
    producer = transactional(records, topic)
    records.send(topic, ["before"])
    in_transaction(records, producer, topic, ["aborted-1", "aborted-2"], commit=False)
    in_transaction(records, producer, topic, ["committed"], commit=True)
    records.send(topic, ["after"])
    assert values(read(subscribe=topic)) == ["after", "before", "committed"]
    everything = ["aborted-1", "aborted-2", "after", "before", "committed"]
    assert values(read(subscribe=topic, **{"kafka.isolation.level": "read_uncommitted"})) == everything


def test_an_open_transaction_hides_what_comes_after_it(read: Read, records: Records, make_topic: MakeTopic) -> None:
    topic = make_topic("open")
    producer = transactional(records, topic)
    records.send(topic, ["before"])
    producer.begin_transaction()
    records.send(topic, ["open"], producer=producer)
    records.send(topic, ["after"])
    assert values(read(subscribe=topic)) == ["before"]
    assert values(read(subscribe=topic, **{"kafka.isolation.level": "read_uncommitted"})) == ["after", "before", "open"]
    with pytest.raises(PySparkException, match=r"endingOffsets is 3 .* can be read from 0 up to 1"):
        read(subscribe=topic, endingOffsets=json.dumps({topic: {"0": 3}})).count()
    producer.commit_transaction(30)
    assert values(read(subscribe=topic)) == ["after", "before", "open"]


def test_a_range_of_nothing_but_gaps_ends(read: Read, records: Records, make_topic: MakeTopic) -> None:
    topic = make_topic("aborted")
    in_transaction(records, transactional(records, topic), topic, ["x", "y"], commit=False)
    assert read(subscribe=topic, minPartitions="3").count() == 0


def test_compacted_offsets_are_passed_over(spark: SparkSession) -> None:
    with started_broker({"log.cleaner.backoff.ms": 100}) as running:
        compacted = {
            "cleanup.policy": "compact",
            "segment.ms": "100",
            "min.cleanable.dirty.ratio": "0.01",
            "max.compaction.lag.ms": "100",
        }
        create_topic(running.bootstrap, "compacted", configs=compacted)
        records = Records(running.bootstrap)
        for number in range(20):
            records.send("compacted", [f"{number}"], keys=["same"])

        def read(**options: str) -> list[tuple[int, int]]:
            settings = {"kafka.bootstrap.servers": running.bootstrap, "subscribe": "compacted", **options}
            return positions(spark.read.format("ottla").options(**settings).load())

        def few_are_left() -> bool:
            records.send("compacted", ["roll"], keys=["other"])
            return len(read(startingOffsets="earliest", endingOffsets='{"compacted":{"0":20}}')) == 1

        wait_until(few_are_left, "the cleaner has been there", seconds=60)
        # All offsets of this range are gone, and it ends all the same.
        gone = {"startingOffsets": '{"compacted":{"0":2}}', "endingOffsets": '{"compacted":{"0":15}}'}
        assert read(**gone, minPartitions="3") == []


def transactional(records: Records, name: str) -> Producer:
    producer = records.producer({"transactional.id": name})
    producer.init_transactions(30)
    return producer


def in_transaction(records: Records, producer: Producer, topic: str, sent: list[str], *, commit: bool) -> None:
    producer.begin_transaction()
    records.send(topic, list(sent), producer=producer)
    (producer.commit_transaction if commit else producer.abort_transaction)(30)


# What goes wrong.


def test_deleted_records_are_data_loss_unless_allowed(
    read: Read, broker: RunningBroker, records: Records, make_topic: MakeTopic
) -> None:
    topic = make_topic("deleted")
    records.send(topic, ["0", "1", "2"])
    delete_before(broker.bootstrap, topic, 2)
    asked = {"subscribe": topic, "startingOffsets": json.dumps({topic: {"0": 0}})}
    with pytest.raises(PySparkException, match=r"startingOffsets is 0 .* which can be read from 2 up to 3"):
        read(**asked).count()
    assert values(read(**asked, failOnDataLoss="false")) == ["2"]
    assert values(read(subscribe=topic)) == ["2"]


def test_records_deleted_after_planning_are_noticed_by_the_task(
    read: Read, broker: RunningBroker, records: Records, make_topic: MakeTopic
) -> None:
    topic = make_topic("deleted-late")
    records.send(topic, ["0", "1", "2"])
    strict, lenient = read(subscribe=topic), read(subscribe=topic, failOnDataLoss="false")
    # The plan of a frame is made once: its offsets stay as they were.
    assert len(strict.collect()) == len(lenient.collect()) == 3
    delete_before(broker.bootstrap, topic, 2)
    with pytest.raises(PySparkException, match=r"offsets 0 to 2 of .* cannot be read.*failOnDataLoss=false"):
        strict.collect()
    assert [row.value for row in lenient.collect()] == [b"2"]


def delete_before(bootstrap: str, topic: str, offset: int) -> None:
    async def delete() -> None:
        async with Cluster(bootstrap) as cluster:
            await offsets.delete_records(cluster, {TopicPartition(topic, 0): offset})

    asyncio.run(delete())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"subscribe": "nobody-made-this"}, "there is no topic `nobody-made-this`"),
        ({"subscribe": "a", "startingoffset": "earliest"}, "did you mean startingOffsets"),
        ({"subscribe": "a", "kafka.group.id": "g"}, "kafka.group.id is for streaming queries"),
        ({"assign": '{"nobody-made-this":[3]}'}, "assign names partitions that do not exist: nobody-made-this-3"),
    ],
)
def test_wrong_options_are_told_in_words(read: Read, options: dict[str, str], words: str) -> None:
    with pytest.raises(PySparkException) as caught:
        read(**options).count()
    assert words in str(caught.value)


def test_offsets_by_hand_name_every_partition(read: Read, make_topic: MakeTopic) -> None:
    topic = make_topic("by-hand", partitions=2)
    with pytest.raises(PySparkException, match="must name every partition that is read; it lacks"):
        read(subscribe=topic, startingOffsets=json.dumps({topic: {"0": 0}})).count()


# Security.


def test_settings_of_tls_reach_the_executors(spark: SparkSession, tmp_path: Path) -> None:
    certificates = make_certificates(tmp_path)
    with (
        running_proxy(certificates) as proxy,
        started_broker({"advertised.listeners": f"PLAINTEXT://127.0.0.1:{proxy.port}"}) as running,
    ):
        proxy.target = (running.host, running.port)
        settings = {"security.protocol": "SSL", "ssl.ca.location": str(certificates.authority)}
        bootstrap = f"127.0.0.1:{proxy.port}"
        Records(bootstrap, settings).send("secret", ["a", "b"])
        accepted = proxy.accepted
        options = {"kafka.bootstrap.servers": bootstrap, **{f"kafka.{name}": text for name, text in settings.items()}}
        frame = spark.read.format("ottla").options(**options).option("subscribe", "secret").load()
        assert values(frame) == ["a", "b"]
        assert proxy.accepted >= accepted + 2  # the planner's connection, and an executor's
        with pytest.raises(PySparkException, match=r"ssl\.ca\.location"):
            frame.sparkSession.read.format("ottla").options(
                **{**options, "kafka.ssl.ca.location": "", "subscribe": "secret"}
            ).load().count()


def test_a_schema_of_ones_own_is_refused(spark: SparkSession, broker: RunningBroker) -> None:
    options = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": "a"}
    frame = spark.read.format("ottla").schema("id INT").options(**options).load()
    with pytest.raises(PySparkException, match=r"always have the columns key, value, .* take \.schema"):
        frame.count()
