"""Three brokers of each kind behind one interface: Ottla with its ZooKeeper, Apache Kafka with its own quorum."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

import psutil
from compat.peer.kafka import Kafka, free_port
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.testing.cluster import RunningCluster
from ottla.testing.load import quiet
from ottla.testing.running import ANY_FREE_PORT, SettingValue
from ottla.testing.waiting import wait_until
from ottla.testing.zookeeper import ZooKeeperEnsemble

NODES = 3
ZOOKEEPERS = 3
# Kafka's default of broker.session.timeout.ms: both notice a broker that is gone after the same time.
SESSION_MS = 9_000
COMMON: Mapping[str, SettingValue] = {
    "default.replication.factor": 3,
    "min.insync.replicas": 2,
    "group.initial.rebalance.delay.ms": 0,
    "log.retention.check.interval.ms": 300_000,
}


class ClusterUnderTest(Protocol):
    """Brokers with the ids 1, 2, 3."""

    name: str

    @property
    def bootstrap(self) -> str: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...
    def kill(self, number: int) -> None: ...
    def restart(self, number: int) -> None: ...
    def broker_pids(self) -> list[int]: ...
    def other_pids(self) -> list[int]: ...


class OttlaCluster:
    """With the settings of a server, not of a test."""

    name = "Ottla"

    def __init__(self, directory: Path, settings: Mapping[str, SettingValue] | None = None) -> None:
        self.zookeeper = ZooKeeperEnsemble(
            directory,
            members=ZOOKEEPERS,
            settings={"tickTime": 1_000, "initLimit": 10, "syncLimit": 5, "forceSync": "yes"},
        )
        self.cluster = RunningCluster(
            directory,
            brokers=NODES,
            zookeeper=self.zookeeper,
            settings={
                **COMMON,
                "listeners": ANY_FREE_PORT,
                "zookeeper.session.timeout.ms": SESSION_MS,
                **(settings or {}),
            },
            for_tests=False,
        )

    @property
    def bootstrap(self) -> str:
        return self.cluster.bootstrap

    def start(self) -> None:
        self.zookeeper.start()
        self.cluster.start()

    def stop(self) -> None:
        self.cluster.close()
        self.zookeeper.close()

    def kill(self, number: int) -> None:
        self.cluster.brokers[number].kill()

    def restart(self, number: int) -> None:
        self.cluster.brokers[number].start()

    def broker_pids(self) -> list[int]:
        return [broker.pid for broker in self.cluster.running]

    def other_pids(self) -> list[int]:
        return [member.pid for member in self.zookeeper.members]


class _Node(Kafka):
    """One of three, each broker and controller, the voters given."""

    format_options = ()

    def __init__(self, directory: Path, number: int, voters: str, controller_port: int) -> None:
        super().__init__(directory, settings={})
        self._controller_port = controller_port
        self._settings = {
            "node.id": str(number),
            "controller.quorum.voters": voters,
            "broker.session.timeout.ms": str(SESSION_MS),
            "offsets.topic.replication.factor": "3",
            "transaction.state.log.replication.factor": "3",
            "transaction.state.log.min.isr": "2",
            "share.coordinator.state.topic.replication.factor": "3",
            "share.coordinator.state.topic.min.isr": "2",
            **{name: str(value) for name, value in COMMON.items()},
        }

    def _properties(self) -> dict[str, str]:
        properties = super()._properties()
        del properties["controller.quorum.bootstrap.servers"]  # the voters are listed instead
        return properties


class KafkaCluster:
    """Apache Kafka 4.3 with the heap and collector flags of its own start script."""

    name = "Apache Kafka"

    def __init__(self, directory: Path) -> None:
        ports = {number: free_port() for number in range(1, NODES + 1)}
        voters = ",".join(f"{number}@127.0.0.1:{port}" for number, port in ports.items())
        self._nodes = {
            number: _Node(directory / f"node-{number}", number, voters, port) for number, port in ports.items()
        }
        self._up: set[int] = set()

    @property
    def bootstrap(self) -> str:
        return ",".join(node.bootstrap for node in self._nodes.values())

    def start(self) -> None:
        for number, node in self._nodes.items():
            node.format()
            node.launch()
            self._up.add(number)
        for number, node in self._nodes.items():
            _wait_until_listening(node, number)

    def stop(self) -> None:
        for node in self._nodes.values():
            node.stop()
        self._up.clear()

    def kill(self, number: int) -> None:
        self._nodes[number].kill()
        self._up.discard(number)

    def restart(self, number: int) -> None:
        self._nodes[number].launch()
        self._up.add(number)
        _wait_until_listening(self._nodes[number], number)

    def broker_pids(self) -> list[int]:
        return [self._nodes[number].pid for number in sorted(self._up)]

    def other_pids(self) -> list[int]:
        return []


def _wait_until_listening(node: Kafka, number: int) -> None:
    admin = AdminClient({"bootstrap.servers": node.bootstrap, "socket.timeout.ms": 2_000}, logger=quiet)

    def known() -> bool:
        try:
            return number in admin.list_topics(timeout=2.0).brokers
        except KafkaException:
            return False

    wait_until(known, f"Kafka's node {number} serves", seconds=120)


KINDS: dict[str, Callable[[Path], ClusterUnderTest]] = {"ottla": OttlaCluster, "kafka": KafkaCluster}


def new_cluster(kind: str, directory: Path) -> ClusterUnderTest:
    return KINDS[kind](directory)


def admin_of(cluster: ClusterUnderTest) -> AdminClient:
    return AdminClient({"bootstrap.servers": cluster.bootstrap, "socket.timeout.ms": 20_000}, logger=quiet)


def fresh_topic(cluster: ClusterUnderTest, partitions: int, assignment: list[list[int]] | None = None) -> str:
    """A new topic with three replicas, all of them in sync."""
    topic = f"bench-{time.monotonic_ns()}"
    admin = admin_of(cluster)
    new = (
        NewTopic(topic, len(assignment), replica_assignment=assignment)
        if assignment
        else NewTopic(topic, partitions, replication_factor=3)
    )
    admin.create_topics([new], operation_timeout=60.0)[topic].result(60)
    wait_until_settled(admin, topic)
    return topic


def wait_until_settled(admin: AdminClient, topic: str, seconds: float = 300.0) -> None:
    """Every partition of a topic has a leader and all its replicas in sync."""

    def settled() -> bool:
        try:
            found = admin.list_topics(topic, timeout=20.0).topics[topic].partitions
        except KafkaException:
            return False
        return bool(found) and all(
            each.leader > 0 and sorted(each.isrs) == sorted(each.replicas) for each in found.values()
        )

    wait_until(settled, f"all replicas of {topic} are in sync", seconds=seconds)


def cpu_seconds(pids: list[int]) -> float:
    """User and system time so far."""
    times = [psutil.Process(pid).cpu_times() for pid in pids]
    return float(sum(each.user + each.system for each in times))


def resident_mb(pids: list[int]) -> float:
    return float(sum(psutil.Process(pid).memory_info().rss for pid in pids)) / 1e6
