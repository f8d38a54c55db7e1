"""What tests of running pipelines share."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.pipelines.two_clusters import TwoClusters, two_clusters
from tests.pipelines.world import World

from ottla.testing import RunningBroker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def world(spark: "SparkSession", ottla_broker: RunningBroker, tmp_path: Path, unique: Callable[[str], str]) -> World:
    return World(spark, ottla_broker.bootstrap, tmp_path, unique("w"))


@pytest.fixture(scope="session")
def clusters(ottla_broker: RunningBroker) -> Iterator[TwoClusters]:
    """The session's broker as `east`, and one more as `west`."""
    with two_clusters(ottla_broker) as both:
        yield both
