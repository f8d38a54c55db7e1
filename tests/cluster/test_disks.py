"""Disks that vanish under running brokers: others go on, and nothing acknowledged is lost."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cluster.traffic import Traffic

from ottla.testing.cluster import RunningCluster, cluster
from ottla.testing.waiting import wait_until
from ottla.testing.zookeeper import ZooKeeperEnsemble

SETTINGS: dict[str, str | int | bool] = {"log.segment.bytes": 1_048_576, "offsets.topic.num.partitions": 3}


@pytest.fixture
def brokers(ensemble: ZooKeeperEnsemble) -> Iterator[RunningCluster]:
    with cluster(3, settings=SETTINGS, zookeeper=ensemble) as running:
        yield running


@pytest.mark.timeout(240)
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
        assert "every log directory has failed" in broken.log_text()
        traffic.wait_for_each_partition()
        data.with_name("gone").rename(data)
        broken.start()
        brokers.wait_until_settled(topic)
        traffic.wait_for_each_partition()
        traffic.finish()
