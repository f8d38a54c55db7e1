"""What tests of running pipelines share: files, records in topics, runs in the session's own Spark."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, TopicPartition
from tests.committed import Record, read_committed
from tests.spark.feeding import Records, create_topic

from ottla.pipelines.runner.deploy import deploy
from ottla.pipelines.runner.supervisor import Event, Supervisor
from ottla.testing.load import quiet

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "id STRING, item STRING, amount DOUBLE"


def order(number: int, amount: float | None = None) -> str:
    return json.dumps({"id": f"o{number}", "item": "tea", "amount": float(number) if amount is None else amount})


@dataclass
class World:
    """One test's place: its folder, the shared broker, names of its own."""

    spark: "SparkSession"
    bootstrap: str
    folder: Path
    name: str
    events: list[Event] = field(default_factory=list)

    def topic(self, name: str, partitions: int = 1) -> str:
        """Make a topic of this test's own."""
        create_topic(self.bootstrap, self.named(name), partitions)
        return self.named(name)

    def named(self, name: str) -> str:
        return f"{self.name}.{name}"

    def send(self, topic: str, *values: str | bytes | None, **more: Any) -> None:
        Records(self.bootstrap).send(topic, values, **more)

    def file(self, text: str, name: str = "pipeline.yaml") -> Path:
        """A pipeline file; `@x` in it is this test's own name for `x`."""
        path = self.folder / name
        path.write_text(text.replace("@", f"{self.name}."))
        return path

    def supervisor(self, *paths: Path, once: bool = True, version: str | None = None) -> Supervisor:
        deployments = [
            deploy(path, bootstrap=self.bootstrap, state_dir=self.folder / "state", version=version) for path in paths
        ]
        return Supervisor(self.spark, deployments, once=once, tell=self.events.append)

    def run_once(self, *paths: Path, version: str | None = None) -> Supervisor:
        """Process what is there, and expect that nothing fails."""
        supervisor = self.supervisor(*paths, version=version)
        assert supervisor.run(), self.events
        return supervisor

    def records(self, topic: str) -> list[Record]:
        """Every record of a topic that a reader of committed records gets, in the order of partitions and offsets."""
        return read_committed(self.bootstrap, topic)

    def values(self, topic: str) -> list[Any]:
        return [json.loads(record.value or b"null") for record in self.records(topic)]

    def committed(self, group: str, topic: str) -> dict[int, int]:
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": group}, logger=quiet)
        partitions = consumer.list_topics(topic, 30).topics[topic].partitions
        found = consumer.committed([TopicPartition(topic, number) for number in partitions], timeout=30)
        consumer.close()
        return {each.partition: each.offset for each in found if each.offset >= 0}
