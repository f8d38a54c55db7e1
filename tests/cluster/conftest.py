"""One cluster for the tests whose faults heal: three brokers, three ZooKeepers, links that can be cut."""

from collections.abc import Iterator

import pytest
from tests.cluster.traffic import unharmed

from ottla.testing.cluster import RunningCluster, cluster
from ottla.testing.zookeeper import ZooKeeperEnsemble, zookeeper

SETTINGS: dict[str, str | int | bool] = {
    "offsets.topic.num.partitions": 3,
    "transaction.state.log.num.partitions": 3,
    "unclean.leader.election.enable": False,
    "auto.leader.rebalance.enable": False,
}


@pytest.fixture(scope="session")
def ensemble() -> Iterator[ZooKeeperEnsemble]:
    with zookeeper(3) as running:
        yield running


@pytest.fixture(scope="session")
def shared_cluster(ensemble: ZooKeeperEnsemble) -> Iterator[RunningCluster]:
    with cluster(3, settings=SETTINGS, zookeeper=ensemble, cuttable=True) as running:
        yield running


@pytest.fixture
def three_brokers(shared_cluster: RunningCluster, request: pytest.FixtureRequest) -> Iterator[RunningCluster]:
    """The shared cluster, whole before and after each test."""
    with unharmed(shared_cluster):
        yield shared_cluster
    for number, broker in shared_cluster.brokers.items():
        # Shown by pytest only when the test has failed.
        lines = broker.log_text().splitlines()[-40:]
        request.node.add_report_section("teardown", f"log of broker {number}", "\n".join(lines))
