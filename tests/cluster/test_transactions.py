"""Transactions and groups while their coordinators, and the brokers of their partitions, come and go."""

import asyncio
import contextlib
import random
import threading
from collections.abc import Callable, Iterator

import confluent_kafka
from confluent_kafka import Consumer
from confluent_kafka.admin import NewTopic
from tests.cluster import back_to_back
from tests.cluster.back_to_back import OneRecord
from tests.transactions.soak import Plan, Run, Workers, judge

from ottla.client.cluster import Cluster
from ottla.client.producer import Producer, TransactionPart
from ottla.client.transacting import (
    ProducerId,
    TransactionalOffset,
    commit_offsets_in_transaction,
    end_transaction,
    init_producer,
    transaction_version,
)
from ottla.model.errors import OttlaError
from ottla.model.names import TopicPartition
from ottla.protocol.records import BATCH_OVERHEAD, NewRecord, encode_batch
from ottla.testing.cluster import RunningCluster
from ottla.testing.load import RECONNECT, quiet
from ottla.testing.waiting import wait_until

TIMEOUT_MS = 20_000
PARTITIONS = 3
BETWEEN_FAULTS = 6


class Writer:
    """Writes each number to every partition, with an offset of a group, in one transaction of version 2.

    Whatever it was told, of each number either all is there or nothing.
    """

    def __init__(self, bootstrap: str, topic: str, group: str, name: str, seed: int) -> None:
        self.committed: list[int] = []
        self.aborted: list[int] = []
        self.unknown: list[int] = []
        self._bootstrap, self._topic, self._group, self._name = bootstrap, topic, group, name
        self._chance = random.Random(seed)
        self._stopping = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def count(self) -> int:
        if self._failure is not None:
            raise self._failure
        return len(self.committed)

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(120)
        assert not self._thread.is_alive(), "the writer does not come to an end"
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            asyncio.run(self._write_all())
        except BaseException as error:  # noqa: BLE001 - raised again in the thread of the test
            self._failure = error

    async def _write_all(self) -> None:
        number = 0
        producer: ProducerId | None = None
        # A broker that is paused answers nothing: who asked it goes on after this, while the others write all the time.
        cluster = Cluster(self._bootstrap, request_timeout_s=10.0, total_timeout_s=20.0)
        try:
            assert await transaction_version(cluster, self._name) == 2
            while not self._stopping.is_set():
                number += 1
                try:
                    producer = producer or await init_producer(cluster, self._name, TIMEOUT_MS)
                    producer = await self._transact(cluster, producer, number)
                except OttlaError:
                    self.unknown.append(number)
                    producer = None  # whatever was left open is aborted, what was decided is finished
        finally:
            await cluster.close()

    async def _transact(self, cluster: Cluster, producer: ProducerId, number: int) -> ProducerId:
        part = TransactionPart(self._name, producer, 2)
        value = b"%s %d" % (self._name.encode(), number)
        payload = bytes(encode_batch([NewRecord(None, value, 1)])[BATCH_OVERHEAD:])
        async with Producer(cluster, producer=producer, transaction=part) as writing:
            for partition in range(PARTITIONS):
                await writing.send(OneRecord(self._topic, partition, payload))
            await writing.flush()
        place = TopicPartition(self._topic, 0)
        await commit_offsets_in_transaction(
            cluster, self._name, producer, self._group, {place: TransactionalOffset(number)}, version=2
        )
        commit = self._chance.random() < 0.7
        producer = await end_transaction(cluster, self._name, producer, commit=commit, version=2)
        (self.committed if commit else self.aborted).append(number)
        return producer


@contextlib.contextmanager
def written(cluster: RunningCluster, name: str, seed: int) -> Iterator[tuple[str, list[Writer]]]:
    cluster.create_topic(NewTopic(name, PARTITIONS))
    writers = [Writer(cluster.bootstrap, name, f"{name}-{number}", f"w{number}", seed) for number in range(3)]
    try:
        yield name, writers
    finally:
        for writer in writers:
            writer.stop()


def after(writers: list[Writer], more: int) -> None:
    """Wait until each writer has committed some transactions more."""
    wanted = [writer.count + more for writer in writers]
    wait_until(
        lambda: all(writer.count >= count for writer, count in zip(writers, wanted, strict=True)),
        "every writer commits",
        seconds=90,
    )


def read_committed(bootstrap: str, topic: str) -> dict[str, list[set[int]]]:
    """The numbers of each writer that are in each partition; each must be there once."""
    found: dict[str, list[set[int]]] = {}
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": f"audit-{topic}", "isolation.level": "read_committed",
         "enable.partition.eof": True, "enable.auto.commit": False, **RECONNECT},
        logger=quiet,
    )  # fmt: skip
    with contextlib.closing(consumer):
        consumer.assign([confluent_kafka.TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
        at_end: set[int] = set()
        while len(at_end) < PARTITIONS:
            message = consumer.poll(30.0)
            assert message is not None, "the partitions cannot be read to their ends"
            partition = message.partition()
            assert partition is not None
            if message.error() is not None:
                at_end.add(partition)
                continue
            name, number = (message.value() or b"").decode().split()
            seen = found.setdefault(name, [set() for _ in range(PARTITIONS)])[partition]
            assert int(number) not in seen, f"{name} {number} is twice in partition {partition}"
            seen.add(int(number))
    return found


def nothing_is_open(bootstrap: str, topic: str) -> bool:
    ends = []
    for isolation in ("read_committed", "read_uncommitted"):
        settings = {"bootstrap.servers": bootstrap, "group.id": "x", "isolation.level": isolation, **RECONNECT}
        with contextlib.closing(Consumer(settings, logger=quiet)) as consumer:
            places = [confluent_kafka.TopicPartition(topic, number) for number in range(PARTITIONS)]
            ends.append([consumer.get_watermark_offsets(place, timeout=30.0)[1] for place in places])
    return ends[0] == ends[1]


def audit(cluster: RunningCluster, topic: str, writers: list[Writer]) -> None:
    wait_until(lambda: nothing_is_open(cluster.bootstrap, topic), "no transaction is open", seconds=60)
    found = read_committed(cluster.bootstrap, topic)
    for number, writer in enumerate(writers):
        partitions = found.get(f"w{number}", [set() for _ in range(PARTITIONS)])
        assert all(partition == partitions[0] for partition in partitions), "a transaction is there in part"
        assert set(writer.committed) <= partitions[0], "a committed transaction is lost"
        assert not partitions[0] & set(writer.aborted), "an aborted transaction is visible"
        assert partitions[0] <= {*writer.committed, *writer.unknown}
        assert committed_offset(cluster.bootstrap, f"{topic}-{number}", topic) == max(partitions[0])


def committed_offset(bootstrap: str, group: str, topic: str) -> int:
    settings = {"bootstrap.servers": bootstrap, "group.id": group, **RECONNECT}
    with contextlib.closing(Consumer(settings, logger=quiet)) as consumer:
        (place,) = consumer.committed([confluent_kafka.TopicPartition(topic, 0)], timeout=30.0)
        return int(place.offset)


def test_transactions_of_version_2_through_failures(
    three_brokers: RunningCluster, unique: Callable[[str], str]
) -> None:
    """The brokers that hold coordinators and partitions are killed, stopped and paused, one after the other."""
    with written(three_brokers, unique("atomic"), seed=1) as (topic, writers):
        after(writers, BETWEEN_FAULTS)
        for place in ("__transaction_state", topic, "__consumer_offsets"):
            victim = three_brokers.brokers[three_brokers.leader_of(place)]
            victim.kill()
            after(writers, BETWEEN_FAULTS)
            victim.start()
            after(writers, BETWEEN_FAULTS)
            three_brokers.wait_until_settled()
        stopped = three_brokers.brokers[three_brokers.leader_of("__transaction_state", 1)]
        stopped.stop()
        after(writers, BETWEEN_FAULTS)
        stopped.start()
        three_brokers.wait_until_settled()
        sleeper = three_brokers.leader_of("__transaction_state", 2)
        three_brokers.brokers[sleeper].pause()
        wait_until(
            lambda: three_brokers.leader_of("__transaction_state", 2) != sleeper, "another coordinator", seconds=60
        )
        after(writers, BETWEEN_FAULTS)
        three_brokers.brokers[sleeper].resume()
        after(writers, BETWEEN_FAULTS)
    audit(three_brokers, topic, writers)


def test_transactions_back_to_back_through_a_failure(
    three_brokers: RunningCluster, unique: Callable[[str], str]
) -> None:
    """Producers that never wait between transactions, with partitions on every broker, are never refused for good."""
    topic = unique("back-to-back")
    three_brokers.create_topic(NewTopic(topic, back_to_back.PARTITIONS, 3))
    load = back_to_back.Load(three_brokers.bootstrap, 240, topic)
    back_to_back.torment(three_brokers, load, 1, 240, random.Random(1))
    wait_until(lambda: load.done, "all transactions", seconds=240)
    assert load.ended == 240
    assert not back_to_back.differences(load.producers, back_to_back.read_committed(three_brokers.bootstrap, topic))


def test_copies_by_librdkafka_through_failures(three_brokers: RunningCluster) -> None:
    """Groups read, transactions write and carry the offsets; the checker of histories finds nothing wrong."""
    run = Run(Plan(0, 0, seed=5, producers=2, copiers=2, rest_seconds=0.05))
    workers = Workers(three_brokers.bootstrap, run)

    def more(operations: int) -> None:
        wanted = run.recorder.operations + operations
        wait_until(lambda: run.recorder.operations >= wanted, "the clients get on", seconds=90)

    more(150)
    for place in ("__consumer_offsets", "__transaction_state", "input"):
        victim = three_brokers.brokers[three_brokers.leader_of(place)]
        victim.kill()
        more(150)
        victim.start()
        three_brokers.wait_until_settled()
    more(150)
    workers.finish()
    anomalies = judge(run)
    assert not anomalies, anomalies[:5]
