"""Apache Kafka 2.8 as a peer: the oldest that the console is for. One broker, with ZooKeeper."""

import contextlib
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from compat.peer.kafka import PEER, Kafka, fetch_jars

from ottla.testing.zookeeper import zookeeper

POM = Path(__file__).with_name("kafka_2_8_pom.xml")
LIBS = PEER / "libs-2.8"
FLAGS = ("-Xmx512m", "-XX:+UseSerialGC", "-Djava.awt.headless=true")


def fetch() -> Path:
    """The folder with its jars."""
    return fetch_jars(POM, LIBS, "Apache Kafka 2.8")


class Kafka28(Kafka):
    def __init__(self, directory: Path, zookeeper_connect: str) -> None:
        super().__init__(directory)
        self._zookeeper = zookeeper_connect

    def launch(self) -> None:
        command = ["java", *FLAGS, "-cp", f"{fetch()}/*", "kafka.Kafka", str(self._property_file)]
        with open(self.directory / "server.log", "ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def format(self, *, extra: Sequence[str] = ()) -> None:
        """There is nothing to format: its identity is in ZooKeeper."""
        assert not extra
        self._write_properties()

    def _properties(self) -> dict[str, str]:
        return {
            "broker.id": "1",
            "zookeeper.connect": self._zookeeper,
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "log.dirs": str(self.log_dir),
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
        }


@contextlib.contextmanager
def running(directory: Path) -> Iterator[Kafka]:
    fetch()
    with zookeeper(data_dir=directory / "zookeeper") as ensemble:
        node = Kafka28(directory / "kafka", ensemble.connect)
        try:
            node.start(wait_s=120)
            yield node
        finally:
            node.stop()
