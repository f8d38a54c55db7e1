"""What tests on real Spark share: one broker for the whole run, and records in its topics."""

from collections.abc import Callable

import pytest
from tests.spark.feeding import MakeTopic, Records, create_topic

from ottla.testing import RunningBroker


@pytest.fixture(scope="session")
def broker(ottla_broker: RunningBroker) -> RunningBroker:
    """The session's. A test that kills or reconfigures its broker starts one of its own."""
    return ottla_broker


@pytest.fixture(scope="session")
def records(broker: RunningBroker) -> Records:
    return Records(broker.bootstrap)


@pytest.fixture
def make_topic(broker: RunningBroker, unique: Callable[[str], str]) -> MakeTopic:
    """Make a topic with a name of its own: `make_topic("orders", partitions=3, configs={...})`."""

    def make(prefix: str, partitions: int = 1, configs: dict[str, str] | None = None) -> str:
        name = unique(prefix)
        create_topic(broker.bootstrap, name, partitions, configs)
        return name

    return make
