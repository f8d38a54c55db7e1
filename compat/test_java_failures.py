"""The Java client of Apache Kafka on three brokers that are killed one after the other."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from compat.peer.program import Program, own_java_command
from confluent_kafka.admin import NewTopic

from ottla.testing.cluster import RunningCluster, cluster

PARTITIONS = 3
END_SECONDS_MAX = 120
SETTINGS: dict[str, str | int | bool] = {"min.insync.replicas": 2, "transaction.state.log.num.partitions": 3}


@pytest.fixture
def three_brokers() -> Iterator[RunningCluster]:
    with cluster(3, settings=SETTINGS) as running:
        yield running


class Clients(Program):
    """The Java program, which tells how many records are acknowledged."""

    def wait_for_progress(self) -> None:
        """Until more records are acknowledged than now, twice told."""
        told = self.count("acknowledged ")
        self.wait_for("Java goes on", "acknowledged ", times=told + 2, seconds=60)

    def end(self) -> int:
        self.end_input()
        return self.wait(END_SECONDS_MAX)


@pytest.fixture
def clients(three_brokers: RunningCluster, java_classes: Path, unique: Callable[[str], str]) -> Iterator[Clients]:
    topics = [unique("failures"), unique("transactions")]
    three_brokers.admin.create_topics([NewTopic(topics[0], PARTITIONS), NewTopic(topics[1], 1)])
    three_brokers.wait_until_settled()
    command = own_java_command("Check", three_brokers.bootstrap, "failures", *topics, classes=java_classes)
    running = Clients("Java", command)
    yield running.start()
    running.kill()


def test_java_clients_through_failures(three_brokers: RunningCluster, clients: Clients) -> None:
    """Each broker is killed, the controller among them, and each is stopped in order."""
    clients.wait_for_progress()
    for broker in three_brokers.brokers.values():
        broker.kill()
        clients.wait_for_progress()
        broker.start()
        three_brokers.wait_until_settled()
    for broker in three_brokers.brokers.values():
        assert broker.stop() == 0
        clients.wait_for_progress()
        broker.start()
        three_brokers.wait_until_settled()
    clients.wait_for_progress()
    assert clients.end() == 0, clients.text
    assert clients.lines[-1] == "passed"
