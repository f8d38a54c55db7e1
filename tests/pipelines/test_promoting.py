"""Promotion without Spark: one that was killed half-way, with the source gone."""

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from tests.committed import read_committed
from tests.pipelines.test_mirror import send
from tests.pipelines.two_clusters import TwoClusters

from ottla.client import admin
from ottla.client.admin import Resource, ResourceType
from ottla.client.groups import commit_offsets
from ottla.client.mirrored import MirroredLog
from ottla.client.settings import client_settings
from ottla.model.names import TopicPartition
from ottla.pipelines.mirror.flows import deploy_flow, group_of, keeper_of
from ottla.pipelines.mirror.promoting import NotPromoted, Promoted, promote
from ottla.pipelines.mirror.spec import load_mirror
from ottla.pipelines.mirror.standby import promoted_group
from ottla.protocol.records import NewRecord, encode_batch
from ottla.spark import loop
from ottla.spark.connections import shared_cluster
from ottla.spark.copying.preparing import Preparing
from ottla.spark.reading import resolving
from ottla.spark.reading.flow_option import CopyTo
from ottla.spark.reading.options import Subscription

NOBODY = "127.0.0.1:1"


def test_a_promotion_that_was_killed_is_finished_by_the_next(
    clusters: TwoClusters, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    name = unique("promoting")
    path = tmp_path / "mirror.yaml"
    flow = {"from": "east", "to": "west", "topics": name, "names": "keep", "offsets": "keep"}
    bases = {"east": {"bootstrap": NOBODY}, "west": {"bootstrap": clusters.west}}
    path.write_text(yaml.safe_dump({"name": name, "clusters": bases, "flows": [flow]}))
    mirror = load_mirror(path)

    west = shared_cluster(client_settings({"bootstrap.servers": clusters.west}))
    source, at = "elsewhere/1", TopicPartition(name, 0)
    loop.run(admin.create_topic(west, name, partitions=1, replication_factor=1, configs={"mirror.source": source}))
    record = [NewRecord(None, b"v", 1)]
    batches = [
        encode_batch(record, producer_id=3, producer_epoch=0, base_sequence=0, transactional=True),
        encode_batch(record, base_offset=1),
    ]
    assert loop.run(MirroredLog(west, at, source).append(0, b"".join(batches))).end == 2
    # As far as the first came: it has shut out the mirror and noted where the clusters part, one offset before the end.
    setting = Resource(ResourceType.TOPIC, name)
    loop.run(admin.alter_configs(west, setting, add={"mirror.source": f"promoting:{source}"}))
    loop.run(commit_offsets(west, promoted_group(group_of(mirror, mirror.flows[0])), {at: 1}))

    done = promote(mirror, mirror.flows[0], path, tmp_path / "state")
    assert done == Promoted(
        flow="east-west", topics=[name], ends={f"{name}-0": 1}, source_answers=False, missing_records=None,
        missing_topics=[], seen_seconds_ago=None, whole_seconds_ago=None, aborted_transactions=1,
    )  # fmt: skip
    assert [found.offset for found in read_committed(clusters.west, name, 0)] == [1]
    configs = loop.run(admin.describe_configs(west, [setting]))[setting]
    assert [config.value for config in configs if config.name == "mirror.source"] == [""]


def test_what_the_source_had_is_known_before_the_first_batch_is_copied(
    clusters: TwoClusters, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    """The source dies right behind the first batch, and one topic has not come at all."""
    name, path = unique("seen"), tmp_path / "mirror.yaml"
    flow = {"from": "east", "to": "west", "topics": f"{name}.*", "groups": name, "names": "keep", "offsets": "keep"}

    def write(east: str) -> None:
        bases = {"east": {"bootstrap": east}, "west": {"bootstrap": clusters.west}}
        path.write_text(yaml.safe_dump({"name": name, "clusters": bases, "flows": [flow]}))

    write(clusters.east)
    mirror = load_mirror(path)
    topics = [clusters.topic(clusters.east, f"{name}.{each}") for each in ("copied", "never")]
    for topic in topics:
        send(clusters.east, topic, 0, range(5))
    said: list[str] = []
    deployment = deploy_flow(mirror, mirror.flows[0], path, tmp_path / "state")
    keeper_of(mirror, mirror.flows[0], deployment, lambda _, text: said.append(text)).look(1.0)
    assert not said

    east, west = (
        shared_cluster(client_settings({"bootstrap.servers": each})) for each in (clusters.east, clusters.west)
    )
    partitions = loop.run(resolving.find_partitions(east, Subscription(topics=(topics[0],))))
    copy_to = CopyTo(target={"bootstrap.servers": clusters.west}, source_id=east.cluster_id or "", positions=name)
    preparing = Preparing(copy_to, east, west)
    assert loop.run(preparing.prepare(partitions)) == {topics[0]}
    at = TopicPartition(topics[0], 0)
    first = encode_batch([NewRecord(None, b"v", 1), NewRecord(None, b"v", 1)])
    loop.run(MirroredLog(west, at, preparing.source_of(partitions[at])).append(0, first))
    write(NOBODY)
    done = promote(load_mirror(path), mirror.flows[0], path, tmp_path / "state")
    assert (done.topics, done.source_answers, done.missing_records) == ([topics[0]], False, 3 + 5)
    assert done.missing_topics == [topics[1]]
    assert done.seen_seconds_ago is not None
    with pytest.raises(NotPromoted, match="all of them are promoted already"):
        promote(load_mirror(path), mirror.flows[0], path, tmp_path / "state")


def test_a_copy_does_not_go_back_to_where_it_came_from(clusters: TwoClusters, unique: Callable[[str], str]) -> None:
    name, positions = unique("loop"), unique("positions")
    settings = {where: {"bootstrap.servers": each} for where, each in (("e", clusters.east), ("w", clusters.west))}
    east, west = (shared_cluster(client_settings(each)) for each in settings.values())
    loop.run(admin.create_topic(east, name, partitions=2, replication_factor=1))
    for cluster in (east, west):
        loop.run(cluster.metadata([]))
    subscription = Subscription(topics=(name,))
    there = CopyTo(target=settings["w"], source_id=east.cluster_id or "", positions=positions)
    partitions = loop.run(resolving.find_partitions(east, subscription))
    assert loop.run(Preparing(there, east, west).prepare(partitions)) == {name}
    back = CopyTo(target=settings["e"], source_id=west.cluster_id or "", positions=positions)
    copies = loop.run(resolving.find_partitions(west, subscription))
    assert len(copies) == 2
    assert loop.run(Preparing(back, west, east).prepare(copies)) == set()
