"""Mirrors between two real clusters: records, gaps, topics that come later, settings, groups, loops."""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from confluent_kafka import Producer
from tests.committed import Record, read_committed
from tests.pipelines.backups import EARLY
from tests.pipelines.two_clusters import TwoClusters, asks, driver

from ottla.client import admin
from ottla.client.admin import Resource, ResourceType
from ottla.client.groups import commit_offsets, group_offsets
from ottla.client.settings import client_settings
from ottla.model.names import TopicPartition as At
from ottla.pipelines.mirror.flows import deploy_flow, keeper_of
from ottla.pipelines.mirror.formats import Checkpoint, OffsetSync
from ottla.pipelines.mirror.keeping import FlowKeeper
from ottla.pipelines.mirror.sink import PROVENANCE
from ottla.pipelines.mirror.spec import Flow, Mirror, read_mirror
from ottla.pipelines.runner.supervisor import Event, Supervisor
from ottla.protocol.apis import ApiKey
from ottla.spark import loop
from ottla.spark.connections import shared_cluster
from ottla.testing.load import quiet
from ottla.testing.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass
class Mirrors:
    """One test's mirror of topics that begin with its own name."""

    spark: "SparkSession"
    clusters: TwoClusters
    folder: Path
    name: str
    said: list[str] = field(default_factory=list)

    def mirror(self, *flows: dict[str, Any]) -> Mirror:
        bases = {"east": {"bootstrap": self.clusters.east}, "west": {"bootstrap": self.clusters.west}}
        own = [{"topics": rf"(east\.|west\.)*{self.name}.*", "groups": f"{self.name}.*"} | flow for flow in flows]
        mirror, problems = read_mirror({"name": self.name, "clusters": bases, "flows": own})
        assert mirror is not None, problems
        assert not problems
        return mirror

    def run(self, mirror: Mirror, number: int = 0) -> FlowKeeper:
        """Copy what there is with one of its flows, and do once what is done beside that."""
        flow = mirror.flows[number]
        deployment = deploy_flow(mirror, flow, self.folder / "mirror.yaml", self.folder / "state")
        events: list[Any] = []
        assert Supervisor(self.spark, [deployment], once=True, tell=events.append).run(), events
        keeper = keeper_of(mirror, flow, deployment, lambda _, text: self.said.append(text))
        keeper.settle()
        return keeper


@pytest.fixture
def mirrors(spark: "SparkSession", clusters: TwoClusters, tmp_path: Path, unique: Callable[[str], str]) -> Mirrors:
    return Mirrors(spark, clusters, tmp_path, unique("mirror"))


def content(record: Record) -> tuple[object, ...]:
    """Without the header that says where a copy came from."""
    return record._replace(headers=tuple(each for each in record.headers if each[0] != PROVENANCE)).content()


def copies(bootstrap: str, topic: str, partition: int, count: int) -> list[Record]:
    """So many, or what there is after a while: a commit is answered before all its markers are written."""
    found: list[Record] = []

    def all_there() -> bool:
        found[:] = read_committed(bootstrap, topic, partition)
        return len(found) >= count

    with contextlib.suppress(AssertionError):  # whoever compares them says it better
        wait_until(all_there, "all copies can be read")
    return found


def send(bootstrap: str, topic: str, partition: int, numbers: Sequence[int], transaction: str | None = None) -> None:
    """With keys, headers and times of their own; `abort` and `commit` make gaps of one offset each."""
    settings: dict[str, Any] = {"bootstrap.servers": bootstrap}
    own = {"transactional.id": f"{topic}-{transaction}"} if transaction else {}
    producer = Producer(settings | own, logger=quiet)
    if transaction:
        producer.init_transactions()
        producer.begin_transaction()
    for number in numbers:
        key = None if number % 5 == 0 else b"k%d" % number
        value = None if number % 7 == 0 else b"v%d" % number
        headers: list[tuple[str, bytes | None]] = [("a", b"1"), ("a", None)] if number % 3 == 0 else []
        producer.produce(topic, value, key, partition, timestamp=EARLY + number, headers=headers)
    producer.flush(30)
    if transaction:
        producer.abort_transaction() if transaction == "abort" else producer.commit_transaction()


def check_translations(keeper: FlowKeeper, source: list[Record], target: list[Record], at: At, end: int) -> None:
    """For every offset that a group can have: the first record it has not read is the one at the translated offset."""
    assert [content(each) for each in source] == [content(each) for each in target]
    for offset in range(end + 3):
        place = keeper.offset_map.translate(at, offset, whole=True)
        assert place is not None
        unread = [content(each) for each in source if each.offset >= offset]
        assert [content(each) for each in target if each.offset >= place] == unread
        if unread:
            assert place in {each.offset for each in target}


def settings_of(bootstrap: str, topic: str) -> dict[str, str | None]:
    cluster = shared_cluster(client_settings({"bootstrap.servers": bootstrap}))
    found = loop.run(admin.describe_configs(cluster, [Resource(ResourceType.TOPIC, topic)]))
    return {config.name: config.value for configs in found.values() for config in configs}


@pytest.mark.timeout(600)
def test_records_topics_settings_and_groups(mirrors: Mirrors) -> None:
    both, name = mirrors.clusters, mirrors.name
    east = shared_cluster(client_settings({"bootstrap.servers": both.east}))
    west = shared_cluster(client_settings({"bootstrap.servers": both.west}))
    first = both.topic(both.east, f"{name}.first", 2, {"retention.ms": "-1", "min.insync.replicas": "1"})
    send(both.east, first, 0, range(40))
    send(both.east, first, 0, range(40, 50), "abort")
    send(both.east, first, 0, range(50, 60), "commit")
    send(both.east, first, 0, range(60, 70))
    send(both.east, first, 1, range(100, 120))
    group = f"{name}.group"
    loop.run(commit_offsets(east, group, {At(first, 0): 45, At(first, 1): 20}))
    mirror = mirrors.mirror({"from": "east", "to": "west"})

    keeper = mirrors.run(mirror)
    for partition, end in ((0, 72), (1, 20)):
        source = read_committed(both.east, first, partition)
        target = copies(both.west, f"east.{first}", partition, len(source))
        check_translations(keeper, source, target, At(first, partition), end)
    # Between the aborted records: the next unread one is the first of the transaction that was committed.
    moved = {at.partition: found.offset for at, found in loop.run(group_offsets(west, group)).items()}
    by_value = {each.value: each.offset for each in read_committed(both.west, f"east.{first}", 0)}
    assert moved == {0: by_value[b"v50"], 1: 20}
    points = read_committed(both.west, "east.checkpoints.internal", 0)
    wanted = Checkpoint(group, f"east.{first}", 0, 45, moved[0])
    assert (wanted.key(), wanted.value()) in {(each.key, each.value) for each in points}
    synced = {each.key: each.value for each in read_committed(both.east, "mm2-offset-syncs.west.internal", 0)}
    assert synced[OffsetSync(first, 1, 0, 0).key()] == OffsetSync(first, 1, 0, 0).value()
    assert settings_of(both.west, f"east.{first}")["retention.ms"] == "-1"
    assert f"settings of {first} that stay behind: min.insync.replicas" in mirrors.said
    assert not [text for text in mirrors.said if "retention.ms" in text], "it had them from the first moment on"

    # Later: a topic and a partition that were not there, a setting that was taken back, a group that went on.
    second = both.topic(both.east, f"{name}.second")
    send(both.east, second, 0, range(10))
    loop.run(admin.create_partitions(east, first, 3))
    send(both.east, first, 2, range(200, 210))
    send(both.east, first, 0, range(70, 75))
    loop.run(admin.alter_configs(east, Resource(ResourceType.TOPIC, first), delete=["retention.ms"]))
    loop.run(commit_offsets(east, group, {At(first, 0): 77, At(first, 1): 5}))
    keeper = mirrors.run(mirror)
    for topic, partition, end in ((first, 0, 77), (first, 1, 20), (first, 2, 10), (second, 0, 10)):
        source = read_committed(both.east, topic, partition)
        target = copies(both.west, f"east.{topic}", partition, len(source))
        check_translations(keeper, source, target, At(topic, partition), end)
    again = {at.partition: found.offset for at, found in loop.run(group_offsets(west, group)).items()}
    assert again == {0: read_committed(both.west, f"east.{first}", 0)[-1].offset + 1, 1: 20}, "forward only"
    assert settings_of(both.west, f"east.{first}")["retention.ms"] != "-1"
    shown = loop.run(group_offsets(east, f"ottla.{name}.east-west.records"))
    assert {at.partition: found.offset for at, found in shown.items() if at.topic == first} == {0: 77, 1: 20, 2: 10}


@pytest.mark.timeout(600)
def test_nothing_goes_round(mirrors: Mirrors) -> None:
    """Under kept names by the header, under prefixes by the name, which is told."""
    both, name = mirrors.clusters, mirrors.name
    topic = both.topic(both.east, f"{name}.kept")
    both.topic(both.west, topic)
    send(both.east, topic, 0, range(10))
    send(both.west, topic, 0, range(10, 15))
    there = {"names": "keep", "heartbeats": False}
    mirror = mirrors.mirror({"from": "east", "to": "west"} | there, {"from": "west", "to": "east"} | there)
    for number in (0, 1, 0):
        mirrors.run(mirror, number)
    for bootstrap in (both.west, both.east):
        assert sorted(each.timestamp_ms - EARLY for each in copies(bootstrap, topic, 0, 15)) == list(range(15))

    prefixed = both.topic(both.east, f"west.{name}.local")
    mirror = msgspec.structs.replace(mirror, name=f"{name}-2", flows=[prefix_flow(mirror.flows[0])])
    mirrors.run(mirror)
    assert f"{prefixed} would be a loop: by its name it comes from west" in mirrors.said
    west = shared_cluster(client_settings({"bootstrap.servers": both.west}))
    there_now = {found.name for found in loop.run(admin.list_topics(west))}
    assert f"east.{topic}" in there_now
    assert f"east.{prefixed}" not in there_now


def prefix_flow(flow: Flow) -> Flow:
    return msgspec.structs.replace(flow, names="prefix")


@pytest.mark.timeout(600)
def test_a_driver_killed_before_the_end_of_its_transaction(mirrors: Mirrors) -> None:
    both, name = mirrors.clusters, mirrors.name
    topic = both.topic(both.east, f"{name}.in", 2)
    for partition in (0, 1):
        send(both.east, topic, partition, range(500))
    path = mirrors.folder / "mirror.yaml"
    path.write_text(
        f'name: {name}\nclusters: {{east: {{bootstrap: "{both.east}"}}, west: {{bootstrap: "{both.west}"}}}}\n'
        f'flows: [{{from: east, to: west, topics: "{name}.*", groups: "{name}.*"}}]\n'
    )
    held = both.gate.hold(asks(ApiKey.END_TXN, f"ottla.{name}.east-west"))
    with driver(mirrors.folder, "mirror", str(path), "--once", "--state-dir", str(mirrors.folder / "state"),
                "--master", "local[2]", "--conf", "spark.driver.memory=768m") as kill_at:  # fmt: skip
        kill_at(held)
    both.gate.open()

    keeper = mirrors.run(mirrors.mirror({"from": "east", "to": "west"}))
    for partition in (0, 1):
        source = read_committed(both.east, topic, partition)
        target = copies(both.west, f"east.{topic}", partition, len(source))
        assert len(source) == 500
        check_translations(keeper, source, target, At(topic, partition), 500)


@pytest.mark.timeout(600)
def test_a_source_that_was_made_anew_stops_the_flow_until_somebody_decides(mirrors: Mirrors) -> None:
    both, name = mirrors.clusters, mirrors.name
    east = shared_cluster(client_settings({"bootstrap.servers": both.east}))
    topic = both.topic(both.east, f"{name}.anew")
    send(both.east, topic, 0, range(10))
    plain = {"from": "east", "to": "west", "heartbeats": False}
    mirrors.run(mirrors.mirror(plain))
    loop.run(admin.delete_topic(east, topic))
    wait_until(lambda: topic not in {found.name for found in loop.run(admin.list_topics(east))}, "it is gone")
    both.topic(both.east, topic)
    send(both.east, topic, 0, range(100, 104))

    mirror = mirrors.mirror(plain)
    deployment = deploy_flow(mirror, mirror.flows[0], mirrors.folder / "mirror.yaml", mirrors.folder / "state")
    events: list[Event] = []
    assert not Supervisor(mirrors.spark, [deployment], once=True, tell=events.append).run()
    assert f"the topic `{topic}` was deleted and made again" in events[-1].message

    keeper = mirrors.run(mirrors.mirror(plain | {"on_loss": "continue"}))
    target = read_committed(both.west, f"east.{topic}", 0)
    assert [each.timestamp_ms - EARLY for each in target] == [*range(10), *range(100, 104)]
    places = [keeper.offset_map.translate(At(topic, 0), offset, whole=True) for offset in range(4)]
    assert places == [each.offset for each in target[10:]]
