"""Producers and consumers of two kinds that run through whatever happens to a cluster, and the audit at the end."""

import asyncio
import contextlib
import re
import threading
import time
from collections.abc import Iterator
from functools import partial
from types import TracebackType
from typing import Self

import aiokafka
import aiokafka.errors
from confluent_kafka import Consumer, KafkaException
from confluent_kafka.admin import NewTopic
from tests.cluster.gaps import TimedLedger

from ottla.testing.cluster import RunningCluster
from ottla.testing.ledger import Audit, Ledger, Stamp, audit
from ottla.testing.load import RECONNECT, LoadProducer, quiet, read_log
from ottla.testing.running import RunningBroker
from ottla.testing.waiting import wait_until

AIO_NUMBER = 99
VALUE_BYTES = 60
CAUGHT_UP_SECONDS_MAX = 60.0

Seen = dict[tuple[int, int], Stamp]
"""What a reader found, by partition and offset."""


class GroupReader:
    """Members of one group, of confluent-kafka. Rebalances may make them read a record again, never another one."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        group: str,
        *,
        members: int = 2,
        client_settings: dict[str, str | int | float | bool] | None = None,
    ) -> None:
        self.seen: Seen = {}
        self.conflicts: list[str] = []
        self.positions: dict[str, str] = {}
        """Of each member's partitions, as of the last second."""
        self.again = 0
        """How many records came once more."""
        self._login: tuple[str, str] | None = None
        self.failure: Exception | None = None
        self._stopping = threading.Event()
        self._settings: dict[str, str | int | float | bool] = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 300,
            "session.timeout.ms": 6_000,
            "heartbeat.interval.ms": 500,
            "fetch.wait.max.ms": 100,
            **RECONNECT,
            **(client_settings or {}),
        }
        self._threads = [threading.Thread(target=self._run, args=(topic,), daemon=True) for _ in range(members)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join(30)
        if self.failure is not None:
            raise self.failure

    def log_in_as(self, username: str, password: str) -> None:
        """Members do it themselves: calls of one consumer wait for each other."""
        self._login = (username, password)

    def _run(self, topic: str) -> None:
        consumer = Consumer(self._settings, logger=quiet)
        login = None
        told_at = 0.0
        try:
            consumer.subscribe([topic])
            while not self._stopping.is_set():
                if self._login is not None and self._login != login:
                    login = self._login
                    consumer.set_sasl_credentials(*login)
                if time.monotonic() - told_at > 1:
                    told_at = time.monotonic()
                    places = consumer.position(consumer.assignment())
                    self.positions[consumer.memberid()] = str([(place.partition, place.offset) for place in places])
                for message in consumer.consume(500, timeout=0.1):
                    if message.error() is not None:
                        if message.error().fatal():
                            raise KafkaException(message.error())
                        continue
                    partition, offset, value = message.partition(), message.offset(), message.value()
                    assert partition is not None
                    assert offset is not None
                    assert value is not None
                    self.again += (partition, offset) in self.seen
                    note(self.seen, self.conflicts, partition, offset, value)
        except Exception as failure:  # noqa: BLE001 - raised again in the thread of the test
            self.failure = failure
        finally:
            consumer.close()


class AioClients:
    """An idempotent producer and a consumer of aiokafka, on an event loop of their own."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, ledger: Ledger) -> None:
        self.seen: Seen = {}
        self.conflicts: list[str] = []
        self.positions: dict[str, str] = {}
        self.failure: Exception | None = None
        self._bootstrap, self._topic, self._partitions, self._ledger = bootstrap, topic, partitions, ledger
        self._producing = True
        self._consuming = True
        self._thread = threading.Thread(target=self._run, name="aiokafka", daemon=True)
        self._thread.start()

    def stop_producing(self) -> None:
        self._producing = False

    def stop(self) -> None:
        self._producing = self._consuming = False
        self._thread.join(60)
        assert not self._thread.is_alive(), "aiokafka does not come to an end"
        if self.failure is not None:
            raise self.failure

    def _run(self) -> None:
        async def both() -> None:
            await asyncio.gather(self._produce(), self._consume())

        try:
            asyncio.run(both())
        except Exception as failure:  # noqa: BLE001 - raised again in the thread of the test
            self.failure = failure

    async def _produce(self) -> None:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=self._bootstrap, enable_idempotence=True, acks="all", request_timeout_ms=60_000
        )
        await producer.start()
        try:
            number = 0
            while self._producing:
                stamps = [Stamp(AIO_NUMBER, partition, number) for partition in range(self._partitions)]
                await asyncio.gather(*(self._send(producer, stamp) for stamp in stamps))
                number += 1
                await asyncio.sleep(0.05)
        finally:
            await producer.stop()

    async def _send(self, producer: aiokafka.AIOKafkaProducer, stamp: Stamp) -> None:
        try:
            sent = await producer.send_and_wait(
                self._topic, stamp.to_value(VALUE_BYTES), partition=stamp.partition
            )  # fmt: skip
        except aiokafka.errors.KafkaError as error:
            self._ledger.refused(stamp, f"{type(error).__name__}: {error}")
        else:
            self._ledger.acknowledged(stamp, sent.offset)

    async def _consume(self) -> None:
        consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=self._bootstrap, fetch_max_wait_ms=100)
        await consumer.start()
        try:
            places = [aiokafka.TopicPartition(self._topic, number) for number in range(self._partitions)]
            consumer.assign(places)
            await consumer.seek_to_beginning(*places)
            while self._consuming:
                for place, records in (await consumer.getmany(timeout_ms=100)).items():
                    for record in records:
                        note(self.seen, self.conflicts, place.partition, record.offset, record.value)
        finally:
            await consumer.stop()


def note(seen: Seen, conflicts: list[str], partition: int, offset: int, value: bytes) -> None:
    stamp = Stamp.of_value(value)
    before = seen.setdefault((partition, offset), stamp)
    if before != stamp:
        conflicts.append(f"at {partition}:{offset} there was {before}, and now {stamp}")


def _wait_for_all(reader: "GroupReader | AioClients", expected: Seen) -> None:
    try:
        wait_until(
            lambda: reader.failure or len(reader.seen) >= len(expected),
            f"{type(reader).__name__} has read {len(expected)} records",
            seconds=CAUGHT_UP_SECONDS_MAX,
        )
    except AssertionError as late:
        raise AssertionError(f"{late}; missing: {_missing(reader.seen, expected)}; {reader.positions}") from None


def _missing(seen: Seen, expected: Seen) -> dict[int, str]:
    """By partition: stands it still, or did it skip some?"""
    told: dict[int, str] = {}
    for partition in sorted({partition for partition, _ in expected}):
        offsets = sorted(offset for at, offset in expected if at == partition and (at, offset) not in seen)
        last = max((offset for at, offset in seen if at == partition), default=None)
        if offsets:
            told[partition] = f"{len(offsets)} from {offsets[0]} to {offsets[-1]}, last seen {last}"
    return told


class Traffic:
    """All clients, on one topic of a cluster; a context manager that stops them whatever happens."""

    def __init__(
        self,
        cluster: RunningCluster,
        topic: str,
        *,
        partitions: int = 6,
        records_per_second: int = 150,
        config: dict[str, str] | None = None,
        assignment: list[list[int]] | None = None,
        aio: bool = True,
    ) -> None:
        self.cluster, self.topic, self.partitions = cluster, topic, len(assignment) if assignment else partitions
        self.ledger = TimedLedger()
        self._records_per_second = records_per_second
        self._config = config or {"min.insync.replicas": "2"}
        self._assignment = assignment
        self._with_aio = aio

    def __enter__(self) -> Self:
        new = (
            NewTopic(self.topic, len(self._assignment), replica_assignment=self._assignment, config=self._config)
            if self._assignment
            else NewTopic(self.topic, self.partitions, config=self._config)
        )
        self.cluster.create_topic(new)
        self.cluster.wait_until_settled(self.topic)
        bootstrap = self.cluster.bootstrap
        self._stack = contextlib.ExitStack()
        self.producers = [
            LoadProducer(
                bootstrap, self.topic, self.partitions, number=number, ledger=self.ledger,
                records_per_second=self._records_per_second, value_bytes=VALUE_BYTES,
            ).start()
            for number in range(2)
        ]  # fmt: skip
        self.group = GroupReader(bootstrap, self.topic, f"readers of {self.topic}")
        self.aio = AioClients(bootstrap, self.topic, self.partitions, self.ledger) if self._with_aio else None
        self.wait_for_more(200)
        self.ledger.begin_anew()
        return self

    def wait_for_more(self, count: int = 300, *, seconds: float = 60.0) -> None:
        """Until so many more records are acknowledged."""
        aim = self.ledger.total + count
        wait_until(lambda: self.ledger.total >= aim, f"{count} records more are acknowledged", seconds=seconds)

    def wait_for_each_partition(self, *, seconds: float = 60.0) -> None:
        """Until every partition has acknowledged something from now on."""
        begun = time.monotonic()

        def all_of_them() -> bool:
            gaps = list(self.ledger.by_partition.values())
            return len(gaps) == self.partitions and all(gap.last > begun for gap in gaps)

        wait_until(all_of_them, "every partition takes records", seconds=seconds)

    def finish(self) -> Audit:
        """Stop producing, let the readers catch up, and compare what everybody saw with what was promised."""
        if self.aio is not None:
            self.aio.stop_producing()
        for producer in self.producers:
            producer.stop()
        promised = self.ledger.promised()
        records = list(read_log(self.cluster.bootstrap, self.topic, self.partitions))
        result = audit(promised, iter(records))
        assert result.clean, f"{result}"
        assert not self.ledger.refusals, self.ledger.refusals[:5]
        expected: Seen = {(partition, offset): Stamp.of_value(value) for partition, offset, value in records}
        readers: list[GroupReader | AioClients] = [self.group, *([self.aio] if self.aio is not None else [])]
        for reader in readers:
            _wait_for_all(reader, expected)
            reader.stop()
            assert not reader.conflicts, reader.conflicts[:5]
            assert {key: reader.seen.get(key) for key in expected} == expected
        return result

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.aio is not None:
            self.aio.stop_producing()
        for producer in self.producers:
            with contextlib.suppress(Exception):
                producer.stop(5)
        for reader in (self.group, self.aio):
            if reader is not None:
                with contextlib.suppress(Exception):
                    reader.stop()


@contextlib.contextmanager
def unharmed(cluster: RunningCluster) -> Iterator[None]:
    """Whatever a test did to a shared cluster, the next one finds it whole."""
    try:
        yield
    finally:
        for member in cluster.zookeeper.members:
            if member.running:
                member.resume()
        cluster.zookeeper.start()
        if cluster.links is not None:
            cluster.links.heal()
        for broker in cluster.running:
            broker.resume()
        cluster.start()
        cluster.wait_until_settled()
        for number, broker in cluster.brokers.items():
            wait_until(partial(_hears_zookeeper, broker), f"broker {number} has its ZooKeeper again", seconds=60)


def _hears_zookeeper(broker: RunningBroker) -> bool:
    """A broker that has none goes on for a while, and so does a cluster."""
    return re.findall(r"ZooKeeper: (connected|suspended|lost)", broker.log_text())[-1:] in ([], ["connected"])
