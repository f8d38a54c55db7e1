"""Transactions of version 2 without a pause: python -m tests.cluster.back_to_back [--transactions N] [--kills N] ...

Each producer begins its next transaction as soon as EndTxn is answered, with several batches on their way to partitions
of every broker, which join the transaction by being written to. None of them may ever be refused for good, although
brokers are killed meanwhile, and readers of committed records must find every committed one once and in order, and
nothing of what was aborted. Progress goes to stderr, the result to stdout. The exit code is 0 when nothing was found.
"""

import argparse
import asyncio
import dataclasses
import random
import sys
import threading
import time
from collections.abc import Iterable
from functools import partial

import confluent_kafka
from confluent_kafka import Consumer
from confluent_kafka.admin import NewTopic

from ottla.client.cluster import Cluster
from ottla.client.producer import Producer, ProducerLimits, TransactionPart
from ottla.client.transacting import ProducerId, end_transaction, init_producer, transaction_version
from ottla.protocol.records import BATCH_OVERHEAD, Codec, NewRecord, encode_batch
from ottla.testing.cluster import RunningCluster, cluster
from ottla.testing.load import RECONNECT, quiet
from ottla.testing.waiting import wait_until

TOPIC = "back-to-back"
PARTITIONS = 6
PRODUCERS = 3
BATCHES_MAX = 4
"""Of one partition in one transaction, one behind the other without waiting."""
TIMEOUT_MS = 600_000
"""Longer than any outage here: whoever is fenced has found a bug."""
DELIVERY_SECONDS_MAX = 300.0
STALL_SECONDS_MAX = 240.0
PROGRESS_SECONDS = 10.0

NOW_MS = int(time.time() * 1000)
"""Not older: markers are of now, so records of 1970 would be in a segment of their own, and retention takes that."""


@dataclasses.dataclass(frozen=True)
class OneRecord:
    """A batch of one record, as the producer wants it."""

    topic: str
    partition: int
    payload: bytes
    record_count: int = 1
    base_timestamp: int = NOW_MS
    max_timestamp: int = NOW_MS
    codec: Codec = Codec.NONE


Stamp = tuple[int, int, int]
"""Producer, transaction, record: they rise in the order in which a producer sends."""


class BackToBack:
    """One transactional id, one transaction right behind the other."""

    def __init__(self, bootstrap: str, number: int, wanted: int, topic: str, seed: int) -> None:
        self.committed: dict[int, list[tuple[int, Stamp]]] = {}
        """What each committed transaction has written, with the partitions."""
        self.ended = 0
        self._bootstrap, self._number, self._wanted, self._topic = bootstrap, number, wanted, topic
        self._chance = random.Random(f"{seed}/{number}")
        self._sent = 0

    async def run(self) -> None:
        name = f"{self._topic}-{self._number}"
        async with Cluster(self._bootstrap) as brokers:
            version = await transaction_version(brokers, name)
            producer = await init_producer(brokers, name, TIMEOUT_MS)
            for transaction in range(self._wanted):
                commit = self._chance.random() < 0.8
                written = await self._write(brokers, TransactionPart(name, producer, version), transaction)
                producer = await self._end(brokers, name, producer, version, commit=commit)
                if commit:
                    self.committed[transaction] = written
                self.ended += 1

    async def _write(self, brokers: Cluster, part: TransactionPart, transaction: int) -> list[tuple[int, Stamp]]:
        written: list[tuple[int, Stamp]] = []
        chosen = self._chance.sample(range(PARTITIONS), self._chance.randint(1, PARTITIONS))
        limits = ProducerLimits(delivery_timeout_s=DELIVERY_SECONDS_MAX)
        async with Producer(brokers, limits, transaction=part) as producer:
            for partition in chosen * self._chance.randint(1, BATCHES_MAX):
                self._sent += 1
                stamp = (self._number, transaction, self._sent)
                batch = encode_batch([NewRecord(None, b"%d %d %d" % stamp, 1)])
                await producer.send(OneRecord(self._topic, partition, bytes(batch[BATCH_OVERHEAD:])))
                written.append((partition, stamp))
            await producer.flush()
        return written

    @staticmethod
    async def _end(brokers: Cluster, name: str, producer: ProducerId, version: int, *, commit: bool) -> ProducerId:
        following = await end_transaction(brokers, name, producer, commit=commit, version=version)
        assert following != producer, "the cluster does not speak transaction version 2"
        return following


class Load:
    """All producers, in a thread with a loop of its own."""

    def __init__(self, bootstrap: str, transactions: int, topic: str = TOPIC, seed: int = 0) -> None:
        each = -(-transactions // PRODUCERS)
        self.producers = [BackToBack(bootstrap, number, each, topic, seed) for number in range(PRODUCERS)]
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def ended(self) -> int:
        """How many transactions are over. Raises what went wrong."""
        if self._failure is not None:
            raise self._failure
        return sum(producer.ended for producer in self.producers)

    @property
    def done(self) -> bool:
        assert self.ended >= 0
        return not self._thread.is_alive()

    def wait(self, seconds: float) -> None:
        self._thread.join(seconds)

    def _run(self) -> None:
        async def all_of_them() -> None:
            await asyncio.gather(*(producer.run() for producer in self.producers))

        try:
            asyncio.run(all_of_them())
        except BaseException as error:  # noqa: BLE001 - raised again in the thread of the test
            self._failure = error


def read_committed(bootstrap: str, topic: str) -> dict[int, list[Stamp]]:
    """Every record that a reader of committed ones sees, by partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "nobody",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            **RECONNECT,
        },
        logger=quiet,
    )
    found: dict[int, list[Stamp]] = {number: [] for number in range(PARTITIONS)}
    left = set(found)
    consumer.assign([confluent_kafka.TopicPartition(topic, number, 0) for number in found])
    deadline = time.monotonic() + STALL_SECONDS_MAX
    while left:
        assert time.monotonic() < deadline, f"partitions {sorted(left)} cannot be read to their ends"
        for message in consumer.consume(5_000, timeout=1.0):
            error, partition = message.error(), message.partition()
            assert partition is not None
            if error is not None:
                if error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
                    left.discard(partition)
                continue
            producer, transaction, number = (message.value() or b"").split()
            found[partition].append((int(producer), int(transaction), int(number)))
            deadline = time.monotonic() + STALL_SECONDS_MAX
    consumer.close()
    return found


def differences(producers: Iterable[BackToBack], found: dict[int, list[Stamp]]) -> list[str]:
    """What is lost, twice, aborted or out of order, in words."""
    wanted: dict[int, dict[int, list[Stamp]]] = {number: {} for number in found}
    for producer in producers:
        for written in producer.committed.values():
            for partition, stamp in written:
                wanted[partition].setdefault(stamp[0], []).append(stamp)
    wrong = []
    for partition, by_producer in wanted.items():
        for number, stamps in by_producer.items():
            seen = [stamp for stamp in found[partition] if stamp[0] == number]
            if seen == stamps:
                continue
            lost, strange = sorted(set(stamps) - set(seen)), sorted(set(seen) - set(stamps))
            wrong.append(
                f"partition {partition}, producer {number}: lost {lost[:5]}, aborted or unknown {strange[:5]}, "
                f"{len(seen) - len(set(seen))} twice, {'in' if seen == sorted(seen) else 'out of'} order"
            )
        strangers = {stamp[0] for stamp in found[partition]} - by_producer.keys()
        if strangers:
            wrong.append(f"partition {partition}: records of {strangers}, who committed nothing there")
    return wrong


def torment(running: RunningCluster, load: Load, kills: int, wanted: int, chance: random.Random) -> None:
    """Kill one broker after the other, spread over the whole load; each comes back before the next one goes."""
    for number in range(kills):
        threshold = (number + 1) * wanted // (kills + 1)
        wait_until(partial(_reached, load, threshold), f"{threshold} transactions", seconds=3600)
        victim = chance.choice(running.running)
        victim.kill()
        victim.start()
        running.wait_until_settled(seconds=STALL_SECONDS_MAX)
        print(f"killed a broker after {threshold} transactions, {load.ended} are over", file=sys.stderr, flush=True)


def _reached(load: Load, transactions: int) -> bool:
    return load.ended >= transactions or load.done


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.back_to_back", description=__doc__)
    parser.add_argument("--transactions", type=int, default=2_000)
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    settings = {"transaction.state.log.num.partitions": 3, "offsets.topic.num.partitions": 3}
    began = time.monotonic()
    with cluster(3, settings=settings) as running:
        running.create_topic(NewTopic(TOPIC, PARTITIONS, 3))
        load = Load(running.bootstrap, options.transactions, seed=options.seed)
        torment(running, load, options.kills, options.transactions, random.Random(options.seed))
        while not load.done:
            print(f"{load.ended} transactions", file=sys.stderr, flush=True)
            load.wait(PROGRESS_SECONDS)
        found = read_committed(running.bootstrap, TOPIC)
        wrong = differences(load.producers, found)
    records = sum(map(len, found.values()))
    print(
        f"{load.ended} transactions, {sum(len(each.committed) for each in load.producers)} committed, "
        f"{records} records read, {options.kills} brokers killed, {len(wrong)} differences, "
        f"{time.monotonic() - began:.0f} s"
    )
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
