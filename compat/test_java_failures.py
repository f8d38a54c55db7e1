"""The Java client of Apache Kafka on three brokers that are killed one after the other."""

import contextlib
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from compat.peer.kafka import LIBS, java_command
from confluent_kafka.admin import NewTopic

from ottla.testing.cluster import RunningCluster, cluster
from ottla.testing.waiting import wait_until

PARTITIONS = 3
END_SECONDS_MAX = 120
SETTINGS: dict[str, str | int | bool] = {"min.insync.replicas": 2, "transaction.state.log.num.partitions": 3}


@pytest.fixture
def three_brokers() -> Iterator[RunningCluster]:
    with cluster(3, settings=SETTINGS) as running:
        yield running


class Clients:
    """The Java program, and what it says."""

    def __init__(self, command: list[str]) -> None:
        self.lines: list[str] = []
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append(line.rstrip())

    @property
    def text(self) -> str:
        return "\n".join(self.lines[-40:])

    def wait_for_progress(self) -> None:
        """Until more records are acknowledged than now, twice told."""
        aim = self._told() + 2
        wait_until(lambda: self._told() >= aim or self._process.poll() is not None, "Java goes on", seconds=60)
        assert self._process.poll() is None, self.text

    def _told(self) -> int:
        return sum(line.startswith("acknowledged ") for line in self.lines)

    def end(self) -> int:
        assert self._process.stdin is not None
        self._process.stdin.close()
        code = self._process.wait(END_SECONDS_MAX)
        self._reader.join(10)
        return code

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join(10)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()


@pytest.fixture
def clients(three_brokers: RunningCluster, java_classes: Path, unique: Callable[[str], str]) -> Iterator[Clients]:
    topics = [unique("failures"), unique("transactions")]
    three_brokers.admin.create_topics([NewTopic(topics[0], PARTITIONS), NewTopic(topics[1], 1)])
    three_brokers.wait_until_settled()
    command = java_command("Check", three_brokers.bootstrap, "failures", *topics, flags=("-Xmx256m",))
    command[command.index("-cp") + 1] = f"{java_classes}:{LIBS}/*"
    running = Clients(command)
    yield running
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
