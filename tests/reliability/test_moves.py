"""Replicas move between log directories under load while the broker is killed: nothing acknowledged is lost."""

import asyncio
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.chance import SEED, SOAK

from ottla.client import admin, replicas
from ottla.client.cluster import Cluster
from ottla.client.settings import client_settings
from ottla.model.errors import ApiError
from ottla.model.names import TopicPartition
from ottla.testing import RunningBroker, broker
from ottla.testing.ledger import Ledger, audit
from ottla.testing.load import LoadProducer, quiet, read_log
from ottla.testing.waiting import wait_until

ROUNDS = 40 if SOAK else 4
TOPIC = "moved"
PARTITIONS = 4
PRODUCERS = 2
RECORDS_PER_ROUND = 4_000
NODE = 1


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningBroker]:
    directories = ",".join(str(tmp_path / name) for name in ("one", "two", "three"))
    settings: dict[str, str | int | bool] = {
        "log.dirs": directories,
        "log.segment.bytes": 1_048_576,
        "log.flush.offset.checkpoint.interval.ms": 250,
    }
    with broker(settings) as started:
        clients = AdminClient({"bootstrap.servers": started.bootstrap}, logger=quiet)
        clients.create_topics([NewTopic(TOPIC, PARTITIONS)])[TOPIC].result(30)
        yield started


def client(running: RunningBroker) -> Cluster:
    return client_settings({"bootstrap.servers": running.bootstrap}).cluster()


def move(running: RunningBroker, wanted: dict[TopicPartition, str]) -> dict[TopicPartition, ApiError]:
    async def ask() -> dict[TopicPartition, ApiError]:
        async with client(running) as cluster:
            return await replicas.alter_replica_log_dirs(cluster, NODE, wanted)

    return asyncio.run(ask())


def places(running: RunningBroker) -> tuple[dict[TopicPartition, str], set[TopicPartition]]:
    """Where the topic's partitions are, and which of them are on their way."""

    async def ask() -> tuple[dict[TopicPartition, str], set[TopicPartition]]:
        async with client(running) as cluster:
            found: dict[TopicPartition, str] = {}
            moving = set()
            for directory in await admin.describe_log_dirs(cluster, NODE):
                for topic in directory.topics:
                    for partition in topic.partitions:
                        tp = TopicPartition(topic.name, partition.partition_index)
                        if topic.name == TOPIC and partition.is_future_key:
                            moving.add(tp)
                        elif topic.name == TOPIC:
                            assert tp not in found, f"{tp} is in two directories"
                            found[tp] = directory.log_dir
            return found, moving

    return asyncio.run(ask())


def limit(running: RunningBroker, bytes_per_second: int) -> None:
    async def alter() -> None:
        async with client(running) as cluster:
            await admin.alter_configs(
                cluster,
                admin.Resource(admin.ResourceType.BROKER, ""),
                add={"replica.alter.log.dirs.io.max.bytes.per.second": str(bytes_per_second)},
            )

    asyncio.run(alter())


@pytest.mark.timeout(3600 if SOAK else 600)
def test_moves_under_load_survive_kills(running: RunningBroker) -> None:
    chance = random.Random(SEED)
    ledger = Ledger()
    producers = [
        LoadProducer(
            running.bootstrap, TOPIC, PARTITIONS, number=number, ledger=ledger, records_per_second=3_000, allowed=0,
            client_settings={},
        ).start()
        for number in range(PRODUCERS)
    ]  # fmt: skip
    everything = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
    directories = [str(directory.resolve()) for directory in running.log_dirs]
    for number in range(ROUNDS):
        for producer in producers:
            producer.allow(RECORDS_PER_ROUND)
        goal = ledger.total + chance.randrange(1, RECORDS_PER_ROUND * PRODUCERS // 2)
        wait_until(lambda goal=goal: ledger.total >= goal, f"load before move {number}", seconds=60)  # type: ignore[misc]
        wanted = {tp: chance.choice(directories) for tp in everything}
        assert move(running, wanted) == {}
        if chance.random() < 0.5:
            # Somewhere in the middle: files are copied, renamed, flushed, removed right now.
            deadline = time.monotonic() + chance.random() * 0.4
            wait_until(lambda until=deadline: time.monotonic() > until, "the chosen moment", seconds=5)  # type: ignore[misc]
        running.kill()
        promised = ledger.promised()
        running.restart()
        result = audit(promised, read_log(running.bootstrap, TOPIC, PARTITIONS))
        assert result.clean, f"after kill {number} of seed {SEED}: {result}\n{running.log_text()[-4000:]}"
        wait_until(lambda: not places(running)[1], "every move is done", seconds=60)
        assert places(running)[0] == wanted, f"seed {SEED}"
    total = ROUNDS * RECORDS_PER_ROUND * PRODUCERS
    wait_until(lambda: ledger.total == total, "everything is acknowledged", seconds=120)
    for producer in producers:
        producer.stop()
    assert not ledger.refusals, f"seed {SEED}: {ledger.refusals[:5]}"
    result = audit(ledger.promised(), read_log(running.bootstrap, TOPIC, PARTITIONS))
    assert result.clean, f"seed {SEED}: {result}"
    assert result.records_read == result.acknowledged


def test_a_kill_in_the_middle_of_a_slow_copy(running: RunningBroker) -> None:
    tp = TopicPartition(TOPIC, 0)
    sender = Producer({"bootstrap.servers": running.bootstrap, "linger.ms": 5}, logger=quiet)
    for number in range(3000):
        sender.produce(TOPIC, b"%d" % number + b"." * 500, partition=0)
    assert sender.flush(60) == 0
    before = places(running)[0][tp]
    target = next(str(path.resolve()) for path in running.log_dirs if str(path.resolve()) != before)
    limit(running, 100_000)
    assert move(running, {tp: target}) == {}
    copied = f"{TOPIC}-0.*-future/*.log"
    wait_until(
        lambda: sum(path.stat().st_size for path in Path(target).glob(copied)) > 50_000, "some is copied", seconds=30
    )
    running.kill()
    assert list(Path(target).glob(f"{TOPIC}-0.*-future"))
    running.restart()
    values = [value for number, _, value in read_log(running.bootstrap, TOPIC, PARTITIONS) if number == 0]
    assert values == [b"%d" % number + b"." * 500 for number in range(3000)]
    limit(running, 2**40)
    wait_until(lambda: places(running)[0][tp] == target, "the move begun again is done", seconds=60)
    values = [value for number, _, value in read_log(running.bootstrap, TOPIC, PARTITIONS) if number == 0]
    assert values == [b"%d" % number + b"." * 500 for number in range(3000)]
    assert not list(Path(target).glob("*-future"))
