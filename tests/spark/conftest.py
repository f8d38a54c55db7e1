"""What tests on real Spark share: one broker for the whole run, and records in its topics."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import pytest
from confluent_kafka import Producer

from ottla.client import admin
from ottla.client.cluster import Cluster
from ottla.testing import RunningBroker
from ottla.testing import broker as started_broker
from ottla.testing.load import quiet

Headers: TypeAlias = "list[tuple[str, bytes | None]]"
MakeTopic: TypeAlias = Callable[..., str]


class Records:
    """Writes records to the broker's topics, in the order given, and waits until they are acknowledged."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self._producer = self.producer({})

    def producer(self, settings: dict[str, str | int | float | bool]) -> Producer:
        return Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 1, **settings}, logger=quiet)

    def send(
        self,
        topic: str,
        values: Sequence[bytes | str | None],
        *,
        partition: int = 0,
        keys: Sequence[bytes | str | None] | None = None,
        headers: Headers | None = None,
        timestamp_ms: int = 0,
        producer: Producer | None = None,
    ) -> None:
        sender = producer or self._producer
        failures: list[object] = []
        for index, value in enumerate(values):
            sender.produce(
                topic,
                value=value,
                key=keys[index] if keys is not None else None,
                partition=partition,
                timestamp=timestamp_ms,
                headers=headers,
                on_delivery=lambda error, _: failures.append(error) if error else None,
            )
        assert sender.flush(30) == 0
        assert not failures, failures


@pytest.fixture(scope="session")
def broker() -> Iterator[RunningBroker]:
    """One broker for all Spark tests. A test that kills or reconfigures its broker starts one of its own."""
    with started_broker() as running:
        yield running


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


def create_topic(bootstrap: str, name: str, partitions: int = 1, configs: dict[str, str] | None = None) -> None:
    async def create() -> None:
        async with Cluster(bootstrap) as cluster:
            await admin.create_topic(cluster, name, partitions=partitions, configs=configs)

    asyncio.run(create())
