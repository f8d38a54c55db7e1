"""Topics and records for tests on real Spark."""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from confluent_kafka import Producer

from ottla.client import admin
from ottla.client.cluster import Cluster
from ottla.testing.load import quiet


class MakeTopic(Protocol):
    def __call__(self, prefix: str, partitions: int = 1, configs: dict[str, str] | None = None) -> str: ...


class Records:
    """Writes records to a broker's topics, in the order given, and waits until they are acknowledged."""

    def __init__(self, bootstrap: str, settings: dict[str, str] | None = None) -> None:
        self.bootstrap = bootstrap
        self._settings = settings or {}
        self._producer = self.producer()

    def producer(self, settings: dict[str, str | int | float | bool] | None = None) -> Producer:
        merged = {"bootstrap.servers": self.bootstrap, "linger.ms": 1, **self._settings, **(settings or {})}
        return Producer(merged, logger=quiet)

    def send(
        self,
        topic: str,
        values: Sequence[bytes | str | None],
        *,
        partition: int = 0,
        keys: Sequence[bytes | str | None] | None = None,
        headers: list[tuple[str, bytes | None]] | None = None,
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
                headers=headers or [],
                on_delivery=lambda error, _: failures.append(error) if error else None,
            )
        assert sender.flush(30) == 0
        assert not failures, failures


def create_topic(bootstrap: str, name: str, partitions: int = 1, configs: dict[str, str] | None = None) -> None:
    async def create() -> None:
        async with Cluster(bootstrap) as cluster:
            await admin.create_topic(cluster, name, partitions=partitions, configs=configs)

    asyncio.run(create())
