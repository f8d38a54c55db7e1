"""Batch writes with format("ottla") on real Spark: what rows become, where they go, and what is refused."""

from collections.abc import Callable

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from tests.committed import read_committed, values
from tests.spark.feeding import MakeTopic, Records

from ottla.client.settings import client_settings
from ottla.client.transactions import list_transactions
from ottla.spark import loop
from ottla.spark.connections import shared_cluster
from ottla.testing import RunningBroker
from ottla.testing.waiting import wait_until

Write = Callable[..., None]


@pytest.fixture
def write(broker: RunningBroker) -> Write:
    def save(frame: DataFrame, options: dict[str, str] | None = None, mode: str = "append") -> None:
        settings = {"kafka.bootstrap.servers": broker.bootstrap} | (options or {})
        frame.write.format("ottla").options(**settings).mode(mode).save()

    return save


ROWS = "key binary, value binary, headers array<struct<key:string,value:binary>>, topic string, partition int"


def test_everything_a_record_has(
    spark: SparkSession, broker: RunningBroker, make_topic: MakeTopic, write: Write
) -> None:
    topic, other = make_topic("all", partitions=3), make_topic("other")
    rows = [
        (b"k", b"v", [("h", b"1"), ("h", None), ("ü", b"")], topic, 2),
        (None, b"", [], topic, 0),
        (b"", None, None, topic, 1),
        (b"k", b"elsewhere", None, other, None),
    ]
    write(spark.createDataFrame(rows, ROWS))
    seen = {record.partition: record for record in read_committed(broker.bootstrap, topic)}
    assert [seen[number][2:5] for number in range(3)] == [
        (None, b"", ()),
        (b"", None, ()),
        (b"k", b"v", (("h", b"1"), ("h", None), ("ü", b""))),
    ]
    assert values(broker.bootstrap, other) == ["elsewhere"]


def test_strings_are_written_as_utf8_and_other_columns_left_out(
    spark: SparkSession, broker: RunningBroker, make_topic: MakeTopic, write: Write
) -> None:
    topic = make_topic("text")
    frame = spark.sql("SELECT 'ключ' AS Key, 'wert ü' AS VALUE, 5L AS offset, timestamp'2001-01-01' AS timestamp")
    write(frame, {"topic": topic})
    (record,) = read_committed(broker.bootstrap, topic)
    assert (record.key, record.value) == ("ключ".encode(), "wert ü".encode())
    assert record.timestamp_ms > 1_700_000_000_000, "the time of writing, as Spark's connector has it"


def test_the_option_wins_over_the_column(
    spark: SparkSession, broker: RunningBroker, make_topic: MakeTopic, write: Write
) -> None:
    topic, other = make_topic("option"), make_topic("column")
    write(spark.createDataFrame([("v", other)], "value string, topic string"), {"topic": topic})
    assert values(broker.bootstrap, topic) == ["v"]
    assert values(broker.bootstrap, other) == []


def test_keys_go_where_kafkas_partitioner_puts_them(
    spark: SparkSession, broker: RunningBroker, make_topic: MakeTopic, records: Records, write: Write
) -> None:
    ours, theirs = make_topic("ours", partitions=7), make_topic("theirs", partitions=7)
    keys = [f"key-{number}" * (number % 5) for number in range(300)]
    producer = records.producer({"partitioner": "murmur2_random"})  # what Java's default partitioner does
    for key in keys:
        producer.produce(theirs, key=key, value=key)
    assert producer.flush(30) == 0
    write(spark.createDataFrame([(key, key) for key in keys], "key string, value string"), {"topic": ours})
    placed = [
        {(record.key, record.partition) for record in read_committed(broker.bootstrap, topic)}
        for topic in (ours, theirs)
    ]
    assert placed[0] == placed[1]


def test_rows_without_a_key_are_spread(
    spark: SparkSession, broker: RunningBroker, make_topic: MakeTopic, write: Write
) -> None:
    topic = make_topic("spread", partitions=3)
    write(spark.range(3000).selectExpr("cast(id AS string) AS value"), {"topic": topic})
    seen = read_committed(broker.bootstrap, topic)
    assert sorted(int(record.value or b"") for record in seen) == list(range(3000))
    assert {record.partition for record in seen} == {0, 1, 2}


@pytest.mark.parametrize(
    ("codec", "level"), [("none", None), ("gzip", "9"), ("snappy", None), ("lz4", "3"), ("zstd", "19")]
)
def test_codecs(
    spark: SparkSession, broker: RunningBroker, make_topic: MakeTopic, write: Write, codec: str, level: str | None
) -> None:
    topic = make_topic(codec)
    options = {"topic": topic, "kafka.compression.type": codec}
    if level is not None:
        options[f"kafka.compression.{codec}.level"] = level
    write(spark.range(500).selectExpr("cast(id AS string) AS value"), options)
    assert values(broker.bootstrap, topic) == sorted(str(number) for number in range(500))


@pytest.mark.parametrize(
    "options",
    [
        {"delivery": "at_least_once"},
        {"delivery": "at_least_once", "kafka.acks": "1"},
        {"delivery": "at_least_once", "kafka.acks": "all", "kafka.enable.idempotence": "false"},
        {"kafka.batch.size": "300", "kafka.max.request.size": "1000", "kafka.buffer.memory": "2000"},
        {"kafka.max.in.flight.requests.per.connection": "1", "kafka.batch.size": "500"},
        {"kafka.transaction.timeout.ms": "20000", "kafka.delivery.timeout.ms": "15000", "kafka.client.id": "me"},
    ],
)
def test_producer_settings_lose_and_double_nothing(
    spark: SparkSession, broker: RunningBroker, make_topic: MakeTopic, write: Write, options: dict[str, str]
) -> None:
    topic = make_topic("settings", partitions=2)
    write(
        spark.range(0, 1000, 1, 2).selectExpr("cast(id AS string) AS key", "repeat('x', id % 90) AS value"),
        {"topic": topic} | options,
    )
    assert sorted(int(record.key or b"") for record in read_committed(broker.bootstrap, topic)) == list(range(1000))


def test_without_acknowledgements_records_arrive_as_well(
    spark: SparkSession, broker: RunningBroker, make_topic: MakeTopic, write: Write
) -> None:
    topic = make_topic("acks0")
    write(
        spark.range(50).selectExpr("cast(id AS string) AS value"),
        {"topic": topic, "delivery": "at_least_once", "kafka.acks": "0"},
    )
    assert len(values(broker.bootstrap, topic)) <= 50  # nobody promises more


def test_no_rows(spark: SparkSession, broker: RunningBroker, make_topic: MakeTopic, write: Write) -> None:
    topic = make_topic("none")
    write(spark.range(0).selectExpr("cast(id AS string) AS value"), {"topic": topic})
    assert values(broker.bootstrap, topic) == []


def test_a_large_record_gets_a_batch_of_its_own(
    spark: SparkSession, broker: RunningBroker, make_topic: MakeTopic, write: Write
) -> None:
    topic = make_topic("large")
    frame = spark.createDataFrame([("small",), ("x" * 900_000,)], "value string")
    write(frame, {"topic": topic})
    assert sorted(len(value) for value in values(broker.bootstrap, topic)) == [5, 900_000]


def test_a_record_that_the_topic_does_not_take_says_what_to_do(
    spark: SparkSession, make_topic: MakeTopic, write: Write
) -> None:
    topic = make_topic("tight", configs={"max.message.bytes": "1000"})
    with pytest.raises(PySparkException, match=r"lower batch\.size, or raise max\.message\.bytes"):
        write(spark.sql("SELECT repeat('x', 5000) AS value"), {"topic": topic})


def test_a_job_that_fails_leaves_nothing_visible_and_nothing_open(
    spark: SparkSession, broker: RunningBroker, make_topic: MakeTopic, write: Write
) -> None:
    topic = make_topic("failed", partitions=2)
    rows = spark.range(0, 60_000, 1, 2)
    # The second task fails after it has written most of its rows.
    bomb = sf.when(sf.col("id") == 59_999, sf.raise_error(sf.lit("a bad row"))).otherwise(sf.col("id").cast("string"))
    with pytest.raises(PySparkException, match="a bad row"):
        write(
            rows.select(bomb.alias("value")),
            {"topic": topic, "transactionalIdPrefix": topic, "kafka.batch.size": "2000"},
        )
    assert values(broker.bootstrap, topic) == []
    cluster = shared_cluster(client_settings({"bootstrap.servers": broker.bootstrap}))

    def states() -> set[str]:
        return {one.state for one in loop.run(list_transactions(cluster)) if one.transactional_id.startswith(topic)}

    assert states()
    # A task that Spark did not wait for ends its own.
    wait_until(lambda: "Ongoing" not in states(), "all of its transactions have ended")


def test_a_topic_is_made_where_brokers_do_that(
    spark: SparkSession, broker: RunningBroker, unique: Callable[[str], str], write: Write
) -> None:
    topic = unique("made")
    write(spark.sql("SELECT 'v' AS value"), {"topic": topic})
    assert values(broker.bootstrap, topic) == ["v"]


@pytest.mark.parametrize(
    ("query", "options", "mode", "words"),
    [
        ("SELECT 1 AS value", {"topic": "t"}, "append", "must be a string or binary, not int"),
        ("SELECT 'v' AS value", {}, "append", "nothing says where the rows go"),
        ("SELECT 'v' AS value", {"topic": "t", "kafka.linger.ms": "5"}, "append", "nothing to linger for"),
        ("SELECT 'v' AS value", {"topic": "t", "acks": "1"}, "append", "the option acks is not known for writing"),
        ("SELECT 'v' AS value", {"topic": "t"}, "overwrite", "a topic only grows"),
        ("SELECT 'v' AS value, CAST(NULL AS string) AS topic", {}, "append", "a row has no topic"),
        ("SELECT 'v' AS value, 99 AS partition", {"topic": "t"}, "append", "asks for partition 99"),
    ],
)
def test_what_cannot_be_written_is_refused_in_words(
    spark: SparkSession, write: Write, query: str, options: dict[str, str], mode: str, words: str
) -> None:
    with pytest.raises(PySparkException, match=words):
        write(spark.sql(query), options, mode)
