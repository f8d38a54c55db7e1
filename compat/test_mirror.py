"""`ottla mirror` between Ottla and Apache Kafka, both ways: the tests of two Ottla clusters, one of them Kafka."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from compat.peer.kafka import Kafka
from pyspark.sql import SparkSession
from tests.pipelines import test_mirror
from tests.pipelines.test_mirror import Mirrors
from tests.pipelines.two_clusters import TwoClusters
from tests.spark.gate import gate

from ottla.testing.running import RunningBroker, broker


@pytest.fixture
def ours() -> Iterator[RunningBroker]:
    with broker() as running:
        yield running


@pytest.fixture(params=["from Apache Kafka", "to Apache Kafka"])
def mirrors(
    request: pytest.FixtureRequest,
    apache_kafka: Kafka,
    ours: RunningBroker,
    spark: SparkSession,
    tmp_path: Path,
    unique: Callable[[str], str],
) -> Iterator[Mirrors]:
    ends = [apache_kafka.bootstrap, ours.bootstrap]
    east, west = ends if request.param == "from Apache Kafka" else reversed(ends)
    with gate(lambda: 0) as nobody_asks:
        yield Mirrors(spark, TwoClusters(east, west, nobody_asks), tmp_path, unique("mirror"))


@pytest.mark.timeout(900)
def test_records_topics_settings_and_groups(mirrors: Mirrors) -> None:
    """With transactions, topics and partitions that come later, and every offset that a group can have."""
    test_mirror.test_records_topics_settings_and_groups(mirrors)


@pytest.mark.timeout(900)
def test_active_active_goes_round_nowhere(mirrors: Mirrors) -> None:
    test_mirror.test_nothing_goes_round(mirrors)


@pytest.mark.timeout(900)
def test_a_source_that_was_made_anew_is_noticed(mirrors: Mirrors) -> None:
    test_mirror.test_a_source_that_was_made_anew_stops_the_flow_until_somebody_decides(mirrors)
