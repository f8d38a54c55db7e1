"""Disks that vanish under running brokers: others go on, and nothing acknowledged is lost."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cluster.traffic import Traffic

from ottla.client import admin, replicas
from ottla.client.settings import client_settings
from ottla.model.errors import ApiError
from ottla.model.names import TopicPartition
from ottla.testing.cluster import RunningCluster, cluster
from ottla.testing.waiting import wait_until
from ottla.testing.zookeeper import ZooKeeperEnsemble

SETTINGS: dict[str, str | int | bool] = {"log.segment.bytes": 1_048_576, "offsets.topic.num.partitions": 3}


@pytest.fixture
def brokers(ensemble: ZooKeeperEnsemble) -> Iterator[RunningCluster]:
    with cluster(3, settings=SETTINGS, zookeeper=ensemble) as running:
        yield running


def test_a_broker_without_its_disk_ends_and_the_others_go_on(
    brokers: RunningCluster, unique: Callable[[str], str]
) -> None:
    topic = unique("disks")
    with Traffic(brokers, topic, assignment=[[1, 2, 3], [2, 3, 1], [3, 1, 2]]) as traffic:
        traffic.wait_for_each_partition()
        broken = brokers.brokers[1]
        data: Path = broken.log_dirs[0]
        data.rename(data.with_name("gone"))

        def left() -> bool:
            found = brokers.partitions(topic).values()
            return all(each.leader != 1 and 1 not in each.isrs for each in found)

        wait_until(left, "the others lead, and nobody counts on the broken one", seconds=120)
        wait_until(lambda: not broken.running, "the broken one has ended", seconds=60)
        assert "all log directories have failed" in broken.log_text()
        traffic.wait_for_each_partition()
        data.with_name("gone").rename(data)
        broken.start()
        brokers.wait_until_settled(topic)
        traffic.wait_for_each_partition()
        traffic.finish()


def test_replicas_move_between_disks_while_brokers_are_killed(
    brokers: RunningCluster, unique: Callable[[str], str]
) -> None:
    spare: dict[int, str] = {}
    for number, broker in brokers.brokers.items():
        data = broker.log_dirs[0].resolve()
        spare[number] = f"{data}-spare"
        broker.restart({"log.dirs": f"{data},{spare[number]}"})
    brokers.wait_until_settled()
    topic = unique("moving")
    everything = [TopicPartition(topic, number) for number in range(3)]
    with Traffic(brokers, topic, assignment=[[1, 2, 3], [2, 3, 1], [3, 1, 2]]) as traffic:
        traffic.wait_for_each_partition()
        for number, path in spare.items():
            assert asyncio.run(_move(brokers, number, dict.fromkeys(everything, path))) == {}
            if number == 2:
                brokers.brokers[2].kill()
                brokers.brokers[2].start()
        for number, path in spare.items():
            wait_until(
                lambda number=number, path=path: asyncio.run(_places(brokers, number, topic)) == {path},  # type: ignore[misc]
                f"the replicas of broker {number} have moved",
                seconds=120,
            )
        brokers.wait_until_settled(topic)
        brokers.brokers[1].kill()
        traffic.wait_for_each_partition()
        brokers.brokers[1].start()
        brokers.wait_until_settled(topic)
        traffic.finish()


async def _move(
    brokers: RunningCluster, node: int, wanted: dict[TopicPartition, str]
) -> dict[TopicPartition, ApiError]:
    async with client_settings({"bootstrap.servers": brokers.bootstrap}).cluster() as cluster_:
        return await replicas.alter_replica_log_dirs(cluster_, node, wanted)


async def _places(brokers: RunningCluster, node: int, topic: str) -> set[str]:
    """Where a broker has replicas of the topic, copies on their way not counted."""
    async with client_settings({"bootstrap.servers": brokers.bootstrap}).cluster() as cluster_:
        return {
            directory.log_dir
            for directory in await admin.describe_log_dirs(cluster_, node)
            for found in directory.topics
            if found.name == topic and any(not partition.is_future_key for partition in found.partitions)
        }
