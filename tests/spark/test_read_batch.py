"""Batch reads on real Spark, option by option."""

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from tests.spark.feeding import MakeTopic, Records

from ottla.testing import RunningBroker

pytestmark = pytest.mark.timeout(120)


def read(spark: SparkSession, broker: RunningBroker, **options: str) -> DataFrame:
    reader = spark.read.format("ottla").option("kafka.bootstrap.servers", broker.bootstrap)
    return reader.options(**options).load()


def values(frame: DataFrame) -> list[str]:
    return [row.value.decode() for row in frame.select("value").orderBy("value").collect()]


def test_rows_have_the_columns_of_sparks_kafka_connector(
    spark: SparkSession, broker: RunningBroker, records: Records, make_topic: MakeTopic
) -> None:
    topic = make_topic("columns", partitions=2)
    records.send(
        topic, ["a", None], keys=["k", None], timestamp_ms=1_700_000_000_123, headers=[("h", b"1"), ("h", None)]
    )
    frame = read(spark, broker, subscribe=topic, includeHeaders="true")
    rows = frame.orderBy("offset").collect()
    assert frame.columns == ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers"]
    assert rows[0].key == b"k"
    assert rows[0].value == b"a"
    assert (rows[0].topic, rows[0].partition, rows[0].offset, rows[0].timestampType) == (topic, 0, 0, 0)
    assert rows[0].timestamp.timestamp() == 1_700_000_000.123
    assert rows[0].headers == [Row(key="h", value=bytearray(b"1")), Row(key="h", value=None)]
    assert (rows[1].key, rows[1].value, rows[1].offset) == (None, None, 1)
