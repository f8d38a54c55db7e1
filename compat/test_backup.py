"""Backups between Apache Kafka and Ottla: what was taken of one comes back in the other, groups at their place."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from compat.peer.kafka import Kafka
from tests.committed import read_committed
from tests.pipelines.backups import At, Backups, cluster_at, contents, first_unread, send
from tests.pipelines.standbys import raw

from ottla.client import admin
from ottla.client.groups import commit_offsets, group_offsets
from ottla.client.offsets import delete_records
from ottla.pipelines.backup.manifest import Kind
from ottla.pipelines.backup.restore_plan import RestoreRequest
from ottla.pipelines.backup.store import place_of
from ottla.spark import loop
from ottla.testing.running import RunningBroker, broker


def fill(bootstrap: str, name: str) -> list[str]:
    cluster = cluster_at(bootstrap)
    topics = [f"{name}.plain", f"{name}.transactional", f"{name}.late"]
    for topic in topics:
        loop.run(admin.create_topic(cluster, topic, partitions=1, replication_factor=1, configs={"retention.ms": "-1"}))
    send(bootstrap, topics[0], range(200), settings={"compression.type": "lz4"})
    send(bootstrap, topics[1], range(30), end="commit")
    send(bootstrap, topics[1], range(30, 40), end="abort")
    send(bootstrap, topics[1], range(40, 50), end="commit")
    send(bootstrap, topics[2], range(60))
    loop.run(delete_records(cluster, {At(topics[2], 0): 20}))
    loop.run(commit_offsets(cluster, f"{name}.g", {At(topics[0], 0): 77, At(topics[1], 0): 25, At(topics[2], 0): 41}))
    return topics


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", ["parquet", "raw"])
@pytest.mark.parametrize("way", ["from Kafka", "to Kafka"])
def test_a_backup_of_one_is_restored_in_the_other(
    apache_kafka: Kafka, kind: Kind, way: str, unique: Callable[[str], str], tmp_path: Path
) -> None:
    name = unique("backup")
    with broker() as ottla:
        source, target = _ends(apache_kafka, ottla, way)
        topics = fill(source, name)
        backups = Backups(place_of(str(tmp_path / "place")), source)
        manifest = backups.take(f"{re.escape(name)}.*", kind)
        assert backups.verify().problems == []
        done = backups.restore(manifest, target, RestoreRequest(groups=f"{re.escape(name)}.*"))
        assert done.problems == []
        offsets = {at: loop.run(group_offsets(cluster_at(where), f"{name}.g")) for at, where in _named(source, target)}
        for topic in topics:
            ours, theirs = read_committed(source, topic), read_committed(target, topic)
            assert contents(target, topic) == contents(source, topic)
            same = way == "from Kafka" or topic == topics[0]
            assert (ours == theirs) == same, "offsets stay in Ottla, and in Kafka where none is missing"
            if kind == "raw" and way == "from Kafka":
                assert raw(cluster_at(target), At(topic, 0)) == raw(cluster_at(source), At(topic, 0))
            unread = first_unread(ours, offsets["source"][At(topic, 0)].offset)
            assert first_unread(theirs, offsets["target"][At(topic, 0)].offset) == unread


def _ends(kafka: Kafka, ottla: RunningBroker, way: str) -> tuple[str, str]:
    here, there = ottla.bootstrap, kafka.bootstrap
    return (there, here) if way == "from Kafka" else (here, there)


def _named(source: str, target: str) -> list[tuple[str, str]]:
    return [("source", source), ("target", target)]
