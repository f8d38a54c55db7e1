"""What all tests share."""

import itertools
import os
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import hypothesis
import pytest
from tests.chance import SOAK

from ottla.testing.running import brokers_wanted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ottla.testing.registry import RunningRegistry
    from ottla.testing.running import RunningBroker

_counter = itertools.count(1)

# Every JVM of a test lives for seconds or minutes on few cores: its second compiler and its parallel collector would
# take more from the tests than they give. Without the second compiler Java has room for 48 MB of code, which the plans
# of a hundred tests outgrow: it would throw compiled code away and compile it again.
os.environ["OTTLA_RESIDENT"] = "off"  # a test that is about it says so
os.environ.setdefault("OTTLA_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m")

# Most machines do not show UTC, and some show half hours; brokers, commands and Spark's processes inherit it.
os.environ["TZ"] = "America/St_Johns"
time.tzset()

# How long one example takes, or making one, says something about the machine and nothing about the code. The examples
# are the same in every run of `make test`, as all that is left to chance (tests/chance.py).
hypothesis.settings.register_profile(
    "patient",
    deadline=None,
    derandomize=not SOAK,
    max_examples=1_000 if SOAK else 100,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("patient")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--hostile-inputs",
        type=int,
        default=4_000,
        help="how many mutated tokens are tried (200000 for a thorough run)",
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What a test says of one broker alone is not asked of a cluster (make test-cluster)."""
    if brokers_wanted() > 1:
        for item in items:
            for marker in item.iter_markers("one_broker"):
                item.add_marker(pytest.mark.skip(reason=f"of one broker alone: it {marker.args[0]}"))


@pytest.fixture
def unique() -> Callable[[str], str]:
    """Names that no other test of this run uses, so that tests can share a broker."""
    return lambda prefix: f"{prefix}-{os.getpid()}-{next(_counter)}"


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """The one Spark session of a whole run: starting another costs ten seconds."""
    from ottla.spark.session import build_session

    # Upper and lower case by Java's tables: the first use of ICU's costs a JVM two seconds of its processor.
    few_rows = {"spark.sql.shuffle.partitions": "2", "spark.sql.icu.caseMappings.enabled": "false"}
    session = build_session("tests", "local[2]", few_rows, short_lived=True)
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def registry_process(ottla_broker: "RunningBroker") -> "Iterator[RunningRegistry]":
    """One schema registry for the session; tests keep apart by the names of their subjects."""
    from ottla.testing.registry import registry

    with registry(ottla_broker.bootstrap) as running:
        yield running
