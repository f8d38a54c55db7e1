"""Standbys with the same offsets, on real Spark between two real clusters: what arrives, and a failover drill."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest
from confluent_kafka import KafkaError, Producer
from tests.committed import read_committed
from tests.pipelines.standbys import Load, Standby, first_of_group, raw, refused, running, values
from tests.pipelines.test_mirror import send
from tests.pipelines.two_clusters import TwoClusters, asks, driver
from tests.spark.feeding import create_topic

from ottla.client import admin
from ottla.client.groups import commit_offsets, group_offsets
from ottla.client.mirrored import MirroredLog
from ottla.client.offsets import delete_records
from ottla.client.settings import client_settings
from ottla.model.names import TopicPartition as At
from ottla.pipelines.mirror.failing_back import NotFailedBack
from ottla.protocol.apis import ApiKey
from ottla.spark import loop
from ottla.spark.connections import shared_cluster
from ottla.spark.copying.preparing import Preparing
from ottla.spark.copying.words import source_of
from ottla.spark.errors import DataLoss, InvalidOption
from ottla.spark.reading import resolving
from ottla.spark.reading.flow_option import CopyTo
from ottla.spark.reading.options import Subscription
from ottla.testing import RunningBroker
from ottla.testing import broker as started_broker
from ottla.testing.load import quiet
from ottla.testing.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def standby(spark: "SparkSession", clusters: TwoClusters, tmp_path: Path, unique: Callable[[str], str]) -> Standby:
    return Standby(spark, tmp_path, unique("standby"), {"east": clusters.east, "west": clusters.west})


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
        assert read_committed(standby.bootstraps["west"], topic, partition) == read_committed(
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

    # More records, a new partition, a group that was moved back, a trimmed log: all of it follows. The checkpoint is
    # lost meanwhile, and nothing is copied twice for that.
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


@pytest.mark.timeout(600)
def test_a_driver_that_is_killed_while_batches_are_on_their_way(standby: Standby, clusters: TwoClusters) -> None:
    topic = f"{standby.name}.in"
    create_topic(standby.bootstraps["east"], topic, 2, None)
    for partition in (0, 1):
        send(standby.bootstraps["east"], topic, partition, range(300))
        send(standby.bootstraps["east"], topic, partition, range(300, 320), "commit")
    path = standby.file()
    # The first asks where the log ends; the second has records, and it is not known whether they were appended.
    held = clusters.gate.hold(asks(ApiKey.APPEND_MIRRORED, topic, "v1"))
    with driver(standby.folder, "mirror", str(path), "--once", "--state-dir", str(standby.folder / "state"),
                "--master", "local[2]", "--conf", "spark.driver.memory=768m") as kill_at:  # fmt: skip
        kill_at(held)
    clusters.gate.open()
    assert not standby.run(path)
    for partition in (0, 1):
        at = At(topic, partition)
        assert raw(standby.cluster("west"), at) == raw(standby.cluster("east"), at)


@pytest.mark.timeout(600)
def test_a_source_that_was_made_anew_is_copied_anew_only_if_that_was_asked_for(standby: Standby) -> None:
    east, west = standby.cluster("east"), standby.cluster("west")
    topic = f"{standby.name}.anew"
    create_topic(standby.bootstraps["east"], topic, 1, None)
    send(standby.bootstraps["east"], topic, 0, range(10))
    path = standby.file()
    assert standby.command("pause", str(path)) == [{"pipeline": f"{standby.name}.east-west", "paused": True}]
    assert not standby.run(path)
    assert topic not in {found.name for found in loop.run(admin.list_topics(west))}, "it rests"
    assert standby.command("resume", str(path))[0]["paused"] is False
    assert not standby.run(path)
    loop.run(admin.delete_topic(east, topic))
    wait_until(lambda: topic not in {found.name for found in loop.run(admin.list_topics(east))}, "it is gone")
    create_topic(standby.bootstraps["east"], topic, 1, None)
    send(standby.bootstraps["east"], topic, 0, range(100, 104))
    events = standby.run(path)
    assert f"the topic `{topic}` was deleted and made again" in events[-1].message
    assert len(read_committed(standby.bootstraps["west"], topic, 0)) == 10
    assert not standby.run(standby.file(on_loss="continue"))
    assert raw(west, At(topic, 0)) == raw(east, At(topic, 0))


def test_a_copy_is_made_with_the_settings_of_its_source(clusters: TwoClusters, unique: Callable[[str], str]) -> None:
    """Before the keeper looks for the first time: the target's own retention could have taken records by then."""
    name, other = unique("kept"), unique("kept")
    east, west = (
        shared_cluster(client_settings({"bootstrap.servers": each})) for each in (clusters.east, clusters.west)
    )
    for topic in (name, other):
        create_topic(clusters.east, topic, 1, {"retention.ms": "-1", "min.insync.replicas": "1"})
    found = loop.run(resolving.find_partitions(east, Subscription(topics=(name, other))))
    copies = CopyTo(
        target={"bootstrap.servers": clusters.west},
        source_id="east",
        positions=name,
        own_settings=("min.insync.replicas",),
    )
    first, second = At(name, 0), At(other, 0)
    loop.run(Preparing(copies, east, west).prepare({first: found[first]}))
    none = msgspec.structs.replace(copies, own_settings=None)
    loop.run(Preparing(none, east, west).prepare({second: found[second]}))
    assert loop.run(admin.topic_settings(west, [name, other])) == {
        name: {"mirror.source": source_of("east", found[first]), "retention.ms": "-1"},
        other: {"mirror.source": source_of("east", found[second])},
    }


def test_a_truncated_source_is_known_by_its_leader_epochs(clusters: TwoClusters, unique: Callable[[str], str]) -> None:
    """As after an unclean election: the epoch of the last record that was copied ended before it."""
    name, group = unique("truncated"), unique("positions")
    east, west = (
        shared_cluster(client_settings({"bootstrap.servers": each})) for each in (clusters.east, clusters.west)
    )
    create_topic(clusters.east, name, 1, None)
    send(clusters.east, name, 0, range(10))
    at = At(name, 0)
    partitions = loop.run(resolving.find_partitions(east, Subscription(topics=(name,))))
    stops = CopyTo(target={"bootstrap.servers": clusters.west}, source_id="east", positions=group)
    assert loop.run(Preparing(stops, east, west).prepare(partitions)) == {name}
    loop.run(commit_offsets(west, group, {at: 10}, epochs={at: 0}))
    assert loop.run(Preparing(stops, east, west).prepare(partitions)) == {name}
    loop.run(MirroredLog(west, at, source_of("east", partitions[at])).append(0))
    loop.run(commit_offsets(west, group, {at: 17}, epochs={at: 0}))
    with pytest.raises(DataLoss, match=f"the source was truncated .{name}-0 to 10."):
        loop.run(Preparing(stops, east, west).prepare(partitions))
    before = loop.run(resolving.find_partitions(west, Subscription(topics=(name,))))
    clears = msgspec.structs.replace(stops, clear_on_loss=True)
    assert loop.run(Preparing(clears, east, west).prepare(partitions)) == {name}
    assert loop.run(resolving.find_partitions(west, Subscription(topics=(name,)))) != before, "it was made anew"
    assert loop.run(Preparing(stops, east, west).prepare(partitions)) == {name}, "and its note is gone with it"
    elsewhere = msgspec.structs.replace(stops, source_id="north")
    with pytest.raises(InvalidOption, match="is the copy of another one"):
        loop.run(Preparing(elsewhere, east, west).prepare(partitions))


@pytest.mark.timeout(900)
def test_failover_drill(spark: "SparkSession", tmp_path: Path, unique: Callable[[str], str]) -> None:
    """The active cluster dies under load; promote; clients switch and go on; fail back, and they go on there."""
    with started_broker() as east, started_broker() as west:
        standby = Standby(spark, tmp_path, unique("drill"), {"east": east.bootstrap, "west": west.bootstrap})
        drill = Drill(standby, east, west)
        drill.fail_over()
        drill.clients_go_on()
        drill.fail_back()


@dataclass
class Drill:
    standby: Standby
    east: RunningBroker
    west: RunningBroker

    def __post_init__(self) -> None:
        self.topic = f"{self.standby.name}.orders"
        self.group = f"{self.standby.name}.shop"
        self.path = self.standby.file(group_interval="500 ms", limits={"trigger": "200 ms"})

    def fail_over(self) -> None:
        create_topic(self.east.bootstrap, self.topic, 2, None)
        with Load(self.east.bootstrap, self.topic) as load, running(self.standby, self.path):
            self._commit_in_east(200)
            wait_until(lambda: self._group_in_west() == 200, "the group's place has arrived", seconds=120)
            wait_until(lambda: len(load.committed) > 300 and len(load.acked) > 500, "there is load", seconds=120)
            self.east.kill()
            (said,) = self.standby.command("promote", str(self.path))  # while the mirror still tries
        acked, committed = load.acked, load.committed
        assert not said["source_answers"]
        assert said["missing_records"] is not None, self.standby.said
        assert said["whole_seconds_ago"] is not None
        # What is there is a beginning of what was written, without a gap and without a double.
        plain, whole = (values(self.west.bootstrap, self.topic, number) for number in (0, 1))
        assert plain == [b"p%06d" % number for number in range(len(plain))]
        assert whole == [b"t%06d" % number for number in range(len(whole))]
        assert len(whole) % 3 == 0, "transactions are whole in their partition"
        print(
            f"\nnot replicated: {max(0, len(acked) - len(plain))} of {len(acked)} acknowledged records, "
            f"{max(0, len(committed) - len(whole))} of {len(committed)} committed; promote says {said}"
        )
        assert len(plain) > 200

    def _commit_in_east(self, offset: int) -> None:
        at = At(self.topic, 0)
        ends: dict[At, int] = {}

        def has_come() -> bool:
            ends.update(loop.run(resolving.latest(self.standby.cluster("east"), [at], committed=True)))
            return ends.get(at, 0) > offset

        wait_until(has_come, "there are so many records", seconds=60)
        loop.run(commit_offsets(self.standby.cluster("east"), self.group, {at: offset}))

    def _group_in_west(self) -> int:
        found = loop.run(group_offsets(self.standby.cluster("west"), self.group)).get(At(self.topic, 0))
        return -1 if found is None else found.offset

    def clients_go_on(self) -> None:
        """With their committed offsets; and producers get ids that no record bears, so nothing looks like a retry."""
        first = first_of_group(self.west.bootstrap, self.group, self.topic)
        assert (first.offset(), first.value()) == (200, b"p000200")
        before = [len(values(self.west.bootstrap, self.topic, number)) for number in (0, 1)]
        for attempt in range(4):  # each gets the next id: the first of them were the source's, too
            producer = Producer({"bootstrap.servers": self.west.bootstrap, "enable.idempotence": True}, logger=quiet)
            for number in range(5):
                producer.produce(self.topic, b"w%d.%d" % (attempt, number), partition=0)
            assert producer.flush(30) == 0
        producer = Producer(
            {"bootstrap.servers": self.west.bootstrap, "transactional.id": f"{self.topic}-t"}, logger=quiet
        )
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce(self.topic, b"again", partition=1)
        producer.commit_transaction(30)
        after = [len(values(self.west.bootstrap, self.topic, number)) for number in (0, 1)]
        assert after == [before[0] + 20, before[1] + 1]

    def fail_back(self) -> None:
        self.east.start()
        with pytest.raises(NotFailedBack, match="never got"):
            self.standby.command("failback", str(self.path))
        done = self.standby.command("failback", str(self.path), "--discard")
        back = Path(done["file"])
        assert not self.standby.run(back)
        east, west = self.standby.cluster("east"), self.standby.cluster("west")
        for number in (0, 1):
            assert raw(east, At(self.topic, number)) == raw(west, At(self.topic, number))
        assert refused(self.east.bootstrap, self.topic) is not None
        (said,) = self.standby.command("promote", str(back))
        assert (said["source_answers"], said["missing_records"]) == (True, 0)
        assert refused(self.east.bootstrap, self.topic) is None
        first = first_of_group(self.east.bootstrap, self.group, self.topic)
        assert first.offset() == 200
