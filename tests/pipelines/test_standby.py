"""Standbys with the same offsets, on real Spark between two real clusters: what arrives, and a failover drill."""

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from tests.pipelines.test_mirror import messages, send
from tests.pipelines.two_clusters import TwoClusters, asks, driver
from tests.spark.feeding import create_topic

from ottla.cli.pipeline import mirror as mirror_command
from ottla.client import admin
from ottla.client.cluster import Cluster
from ottla.client.fetch import FetchSettings, PartitionFetcher
from ottla.client.groups import commit_offsets, group_offsets
from ottla.client.offsets import delete_records
from ottla.client.settings import client_settings
from ottla.model.names import TopicPartition as At
from ottla.pipelines.mirror.flows import deploy_flow, keeper_of
from ottla.pipelines.mirror.spec import Mirror, load_mirror
from ottla.pipelines.runner.supervisor import Event, Supervisor
from ottla.protocol.apis import ApiKey
from ottla.protocol.records import iterate_batches
from ottla.spark import loop
from ottla.spark.connections import shared_cluster
from ottla.spark.reading import resolving
from ottla.testing import RunningBroker
from ottla.testing import broker as started_broker
from ottla.testing.load import quiet
from ottla.testing.waiting import wait_until

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
        clusters = {cluster: {"bootstrap": bootstrap} for cluster, bootstrap in self.bootstraps.items()}
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
        keeper_of(mirror, flow, deployment, lambda _, text: self.said.append(text)).settle()
        assert not self.said, self.said
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


@pytest.fixture
def standby(spark: "SparkSession", clusters: TwoClusters, tmp_path: Path, unique: Callable[[str], str]) -> Standby:
    return Standby(spark, tmp_path, unique("standby"), {"east": clusters.east, "west": clusters.west})


def refused(bootstrap: str, topic: str) -> KafkaError | None:
    """What a producer is told."""
    told: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": bootstrap, "message.timeout.ms": 20_000}, logger=quiet)
    producer.produce(topic, b"x", partition=0, on_delivery=lambda error, _: told.append(error))
    producer.flush(30)
    return told[0]


@pytest.mark.timeout(600)
def test_batches_groups_and_log_starts_are_the_same_at_both_ends(standby: Standby) -> None:
    east, west = standby.cluster("east"), standby.cluster("west")
    topic = f"{standby.name}.orders"
    create_topic(standby.bootstraps["east"], topic, 2, None)
    for partition in (0, 1):
        send(standby.bootstraps["east"], topic, partition, range(50))
        send(standby.bootstraps["east"], topic, partition, range(50, 60), "commit")
        send(standby.bootstraps["east"], topic, partition, range(60, 70), "abort")
        send(standby.bootstraps["east"], topic, partition, range(70, 80))
    loop.run(delete_records(east, {At(topic, 1): 7}))
    group = f"{standby.name}.shop"
    loop.run(commit_offsets(east, group, {At(topic, 0): 55, At(topic, 1): 63}))

    path = standby.file(throttle="50 MB", limits={"trigger": "200 ms", "max_records": 60})
    assert not standby.run(path)
    for partition in (0, 1):
        at = At(topic, partition)
        assert raw(west, at) == raw(east, at)
        assert messages(standby.bootstraps["west"], topic, partition) == messages(
            standby.bootstraps["east"], topic, partition
        )
    starts = loop.run(resolving.earliest(west, [At(topic, 0), At(topic, 1)]))
    assert [*starts.values()] == [0, 7]
    places = loop.run(group_offsets(west, group))
    assert {at: (place.offset, place.leader_epoch) for at, place in places.items()} == {
        At(topic, 0): (55, -1), At(topic, 1): (63, -1),
    }  # fmt: skip
    error = refused(standby.bootstraps["west"], topic)
    assert error is not None
    assert error.code() == KafkaError.POLICY_VIOLATION

    # More records, a new partition, a group that was moved back, a trimmed log: all of it follows. The checkpoint is lost
    # meanwhile, and nothing is copied twice for that.
    send(standby.bootstraps["east"], topic, 0, range(80, 90), "commit")
    loop.run(admin.create_partitions(east, topic, 3))
    send(standby.bootstraps["east"], topic, 2, range(5))
    loop.run(commit_offsets(east, group, {At(topic, 0): 3, At(topic, 2): 5}))
    loop.run(delete_records(east, {At(topic, 0): 51}))
    assert not standby.run(path, "another-state")
    for partition in (0, 1, 2):
        assert raw(west, At(topic, partition)) == raw(east, At(topic, partition))
    assert loop.run(resolving.earliest(west, [At(topic, 0)])) == {At(topic, 0): 51}
    assert {at.partition: place.offset for at, place in loop.run(group_offsets(west, group)).items()} == {
        0: 3, 1: 63, 2: 5,
    }  # fmt: skip
