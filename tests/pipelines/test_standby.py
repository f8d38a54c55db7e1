"""Standbys with the same offsets, on real Spark between two real clusters: what arrives, and a failover drill."""

import contextlib
import json
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import yaml
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from tests.committed import read_committed
from tests.pipelines.test_mirror import send
from tests.pipelines.two_clusters import TwoClusters, asks, driver
from tests.spark.feeding import create_topic

from ottla.cli.pipeline import mirror as mirror_command
from ottla.client import admin
from ottla.client.cluster import Cluster
from ottla.client.fetch import FetchSettings, PartitionFetcher
from ottla.client.groups import commit_offsets, group_offsets
from ottla.client.mirrored import MirroredLog
from ottla.client.offsets import delete_records
from ottla.client.settings import client_settings
from ottla.model.names import TopicPartition as At
from ottla.pipelines.mirror.failing_back import NotFailedBack
from ottla.pipelines.mirror.flows import deploy_flow, keeper_of
from ottla.pipelines.mirror.spec import load_mirror
from ottla.pipelines.runner.supervisor import Event, Supervisor
from ottla.protocol.apis import ApiKey
from ottla.protocol.records import iterate_batches
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
        assert not said
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


@pytest.mark.timeout(1800)
@pytest.mark.skipif(os.environ.get("OTTLA_SOAK") != "1", reason="takes minutes; make soak runs it")
def test_brokers_on_either_side_die_again_and_again(
    spark: "SparkSession", tmp_path: Path, unique: Callable[[str], str]
) -> None:
    """Twenty kills of each, under load: what is in the target is what is in the source, batch for batch."""
    chance = random.Random(17)
    with started_broker() as east, started_broker() as west:
        standby = Standby(spark, tmp_path, unique("soak"), {"east": east.bootstrap, "west": west.bootstrap})
        topic = f"{standby.name}.orders"
        create_topic(east.bootstrap, topic, 2, None)
        path = standby.file(limits={"trigger": "100 ms"})
        with running(standby, path):
            with Load(east.bootstrap, topic, patience_ms=120_000) as load:
                for number in range(40):
                    victim = (east, west)[number % 2]
                    wanted = len(load.acked) + chance.randint(50, 400)
                    wait_until(lambda wanted=wanted: len(load.acked) >= wanted, "there is load", seconds=180)  # type: ignore[misc]
                    victim.kill()
                    victim.start()
            ends = loop.run(_ends(standby, topic, "east"))
            wait_until(lambda: loop.run(_ends(standby, topic, "west")) == ends, "all is copied", seconds=180)
        for at in ends:
            assert raw(standby.cluster("west"), at) == raw(standby.cluster("east"), at)
        assert set(load.acked) <= set(values(west.bootstrap, topic, 0))
        assert len(values(west.bootstrap, topic, 0)) == len(set(values(west.bootstrap, topic, 0)))


async def _ends(standby: Standby, topic: str, cluster: str) -> dict[At, int]:
    return await resolving.latest(standby.cluster(cluster), [At(topic, 0), At(topic, 1)], committed=True)


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
            seen = self.standby.folder / "state" / f"{self.standby.name}.east-west" / "seen.json"
            wait_until(seen.exists, f"the source's ends are noted; {self.standby.said}", seconds=30)
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
        first = _first_of_group(self.west.bootstrap, self.group, self.topic)
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
        first = _first_of_group(self.east.bootstrap, self.group, self.topic)
        assert first.offset() == 200


def _first_of_group(bootstrap: str, group: str, topic: str) -> Message:
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
