"""What tests of standbys share: a mirror that keeps offsets, load that notes what it was promised, bytes of a log."""

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from tests.committed import read_committed

from ottla.cli.pipeline import mirror as mirror_command
from ottla.client.cluster import Cluster
from ottla.client.fetch import FetchSettings, PartitionFetcher
from ottla.client.settings import client_settings
from ottla.model.names import TopicPartition as At
from ottla.pipelines.mirror.flows import deploy_flow, keeper_of
from ottla.pipelines.mirror.spec import load_mirror
from ottla.pipelines.runner.supervisor import Event, Supervisor
from ottla.protocol.records import iterate_batches
from ottla.spark import loop
from ottla.spark.connections import shared_cluster
from ottla.spark.reading import resolving
from ottla.testing.load import quiet

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass
class Standby:
    """One test's mirror of topics that begin with its own name."""

    spark: "SparkSession"
    folder: Path
    name: str
    bootstraps: dict[str, str]
    said: list[str] = field(default_factory=list)

    def file(self, name: str = "mirror.yaml", **changes: Any) -> Path:
        flow = {"from": "east", "to": "west", "offsets": "keep", "names": "keep"}
        own = {"topics": f"{self.name}.*", "groups": f"{self.name}.*"}
        path = self.folder / name
        client = {"default.api.timeout.ms": "10000"}  # a cluster that is killed is not waited for so long
        clusters = {cluster: {"bootstrap": each, "client": client} for cluster, each in self.bootstraps.items()}
        values = {"name": self.name, "clusters": clusters, "flows": [flow | own | changes]}
        path.write_text(yaml.safe_dump(values))
        return path

    def run(self, path: Path, state: str = "state") -> list[Event]:
        """Copy what there is, and do once what is done beside that; what was said if it failed."""
        mirror = load_mirror(path)
        (flow,) = mirror.flows
        deployment = deploy_flow(mirror, flow, path, self.folder / state)
        events: list[Event] = []
        if not Supervisor(self.spark, [deployment], once=True, tell=events.append).run():
            return events
        said: list[str] = []
        keeper_of(mirror, flow, deployment, lambda _, text: said.append(text)).settle()
        assert said == []
        return []

    def command(self, *words: str) -> Any:
        """What a command says in JSON."""
        with contextlib.redirect_stdout(_Text()) as out:
            code = mirror_command.main([*words, "--state-dir", str(self.folder / "state"), "--json"])
        assert code == 0, out.text
        return json.loads(out.text)

    def cluster(self, name: str) -> Cluster:
        return shared_cluster(client_settings({"bootstrap.servers": self.bootstraps[name]}))


class _Text:
    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None:
        """Nothing is held back."""


def raw(cluster: Cluster, at: At) -> list[bytes]:
    """The batches as they lie in the log, without the leader's epoch, which is each cluster's own."""

    async def read() -> list[bytes]:
        (start,) = (await resolving.earliest(cluster, [at])).values()
        (end,) = (await resolving.latest(cluster, [at], committed=True)).values()
        found = []
        async for fetched in PartitionFetcher(cluster, at, FetchSettings(committed=True)).read(start, end):
            for position, header in iterate_batches(fetched.records):
                batch = bytes(fetched.records[position : position + header.size])
                found.append(batch[:12] + batch[16:])
        return found

    return loop.run(read())


def refused(bootstrap: str, topic: str) -> KafkaError | None:
    """What a producer is told."""
    told: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": bootstrap, "message.timeout.ms": 20_000}, logger=quiet)
    producer.produce(topic, b"x", partition=0, on_delivery=lambda error, _: told.append(error))
    producer.flush(30)
    return told[0]


class Load:
    """An idempotent producer and a transactional one, until the cluster is gone; and what they were promised."""

    def __init__(self, bootstrap: str, topic: str, patience_ms: int = 5_000) -> None:
        self._settings = {"bootstrap.servers": bootstrap, "linger.ms": 1, "message.timeout.ms": patience_ms}
        self._topic = topic
        self.acked: list[bytes] = []
        self.committed: list[bytes] = []
        self._ending = threading.Event()
        self._threads = [threading.Thread(target=self._plain), threading.Thread(target=self._transactional)]

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        for thread in self._threads:
            thread.join()

    def _plain(self) -> None:
        producer = Producer(self._settings | {"enable.idempotence": True}, logger=quiet)
        number = 0
        while not self._ending.wait(0.002):
            value = b"p%06d" % number
            producer.produce(self._topic, value, partition=0, on_delivery=partial(self._note, value))
            producer.poll(0)
            number += 1
        producer.flush(10)
        producer.purge()
        producer.flush(10)

    def _note(self, value: bytes, error: KafkaError | None, _: object) -> None:
        if error is None:
            self.acked.append(value)

    def _transactional(self) -> None:
        producer = Producer(self._settings | {"transactional.id": f"{self._topic}-t"}, logger=quiet)
        number = 0
        try:
            producer.init_transactions(30)
            while not self._ending.wait(0.01):
                values = [b"t%06d" % (number + each) for each in range(3)]
                producer.begin_transaction()
                for value in values:
                    producer.produce(self._topic, value, partition=1)
                producer.commit_transaction(2)
                self.committed += values
                number += 3
        except KafkaException:
            return  # the cluster is gone


@contextlib.contextmanager
def running(standby: Standby, path: Path) -> Iterator[None]:
    """The mirror as `ottla mirror` runs it."""
    mirror = load_mirror(path)
    (flow,) = mirror.flows
    deployment = deploy_flow(mirror, flow, path, standby.folder / "state")
    supervisor = Supervisor(standby.spark, [deployment], once=False, tell=lambda _: None)
    keeper = keeper_of(mirror, flow, deployment, lambda _, text: standby.said.append(text))
    ending = threading.Event()

    def keep() -> None:
        while not ending.wait(0.2):
            keeper.look(time.monotonic())

    threads = [threading.Thread(target=supervisor.run), threading.Thread(target=keep)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ending.set()
        supervisor.stop()
        for thread in threads:
            thread.join()


def values(bootstrap: str, topic: str, partition: int) -> list[bytes]:
    return [each.value or b"" for each in read_committed(bootstrap, topic, partition)]


def first_of_group(bootstrap: str, group: str, topic: str) -> Message:
    settings = {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "error"}
    consumer = Consumer(settings | {"isolation.level": "read_committed", "enable.auto.commit": False}, logger=quiet)
    consumer.subscribe([topic])
    try:
        for _ in range(120):
            message = consumer.poll(0.5)
            if message is not None and message.error() is None and message.partition() == 0:
                return message
    finally:
        consumer.close()
    raise AssertionError("nothing came")
