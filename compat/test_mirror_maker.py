"""MirrorMaker 2 in its dedicated mode: records, settings and the places of groups come to a second broker once."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from compat.peer.ecosystem import ecosystem_command, write_properties
from compat.peer.program import Program, explained
from compat.peer.records import Seen, new_topic, produce, read_committed, wait_for_records
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from ottla.testing.load import RECONNECT, quiet
from ottla.testing.ports import free_ports
from ottla.testing.running import RunningBroker, broker, brokers_wanted
from ottla.testing.waiting import wait_until

PARTITIONS = 3
RECORDS = 12_000
EACH = RECORDS // PARTITIONS
LATER = 300
RETENTION_MS = "987654321"
TOPIC, MIRRORED = "orders", "A.orders"
ENDED, HALFWAY = "ended", "halfway"
STEP_SECONDS_MAX = 300.0

pytestmark = pytest.mark.usefixtures("ecosystem")


@pytest.fixture
def source() -> Iterator[RunningBroker]:
    with broker() as running:
        yield running


@pytest.fixture
def target() -> Iterator[RunningBroker]:
    with broker() as running:
        yield running


@pytest.fixture
def admin(target: RunningBroker) -> AdminClient:
    """The target's."""
    return AdminClient({"bootstrap.servers": target.bootstrap}, logger=quiet)


@pytest.fixture
def mirror(source: RunningBroker, target: RunningBroker, tmp_path: Path) -> Iterator[Program]:
    """Not started yet."""
    (port,) = free_ports(1)
    replicas = min(3, brokers_wanted())
    settings: dict[str, str | int] = {
        "clusters": "A,B",
        "A.bootstrap.servers": source.bootstrap,
        "B.bootstrap.servers": target.bootstrap,
        "A->B.enabled": "true",
        "B->A.enabled": "false",
        "A->B.topics": TOPIC,
        "A->B.groups": f"{ENDED},{HALFWAY}",
        "B.exactly.once.source.support": "enabled",
        "dedicated.mode.enable.internal.rest": "true",
        "listeners": f"http://127.0.0.1:{port}",
        "scheduled.rebalance.max.delay.ms": 1_000,
        "offset.lag.max": 0,
        "sync.group.offsets.enabled": "true",
        "A.consumer.max.poll.records": 50,  # each poll is a transaction
        "replication.factor": replicas,
    }
    settings |= {f"{each}.topic.replication.factor": replicas for each in ("checkpoints", "heartbeats", "offset-syncs")}
    settings |= {f"{each}.storage.replication.factor": replicas for each in ("config", "offset", "status")}
    often = ("sync.group.offsets", "emit.checkpoints", "refresh.groups", "refresh.topics", "sync.topic.configs")
    settings |= {f"{each}.interval.seconds": 2 for each in often}
    path = write_properties(tmp_path / "mm2.properties", settings)
    running = Program("MirrorMaker", ecosystem_command("org.apache.kafka.connect.mirror.MirrorMaker", str(path)))
    yield running
    running.kill()


def _commit(bootstrap: str, group: str, offset: int) -> None:
    """Place a group in every partition, without a member that stays."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group}, logger=quiet)
    try:
        places = [TopicPartition(TOPIC, number, offset) for number in range(PARTITIONS)]
        for told in consumer.commit(offsets=places, asynchronous=False) or ():
            assert told.error is None, told.error
    finally:
        consumer.close()


def _committed(admin: AdminClient, group: str) -> dict[int, int]:
    """Where MirrorMaker has put a group in the mirrored topic."""
    asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    told = asked[group].result(30).topic_partitions
    return {place.partition: place.offset for place in told if place.topic == MIRRORED}


def _content(records: dict[int, list[Seen]]) -> dict[int, list[Seen]]:
    """Without the offsets, which differ: transactions have control records."""
    return {number: [each._replace(offset=-1) for each in partition] for number, partition in records.items()}


def _wait_for_topic(admin: AdminClient, topic: str) -> None:
    wait_until(lambda: topic in admin.list_topics(timeout=30.0).topics, f"{topic} is there", seconds=STEP_SECONDS_MAX)


@pytest.mark.timeout(1800)
def test_mirror_through_a_kill(
    source: RunningBroker, target: RunningBroker, admin: AdminClient, mirror: Program
) -> None:
    """Every record arrives once though MirrorMaker is killed; groups go on at the target where they were."""
    new_topic(source.bootstrap, TOPIC, PARTITIONS, {"retention.ms": RETENTION_MS})
    produce(source.bootstrap, TOPIC, (b"order %d" % number for number in range(RECORDS)), partitions=PARTITIONS)
    _commit(source.bootstrap, ENDED, EACH)
    _commit(source.bootstrap, HALFWAY, EACH // 2)
    with explained([mirror]):
        _mirror_through_a_kill(source, target, admin, mirror)
        _expect_groups(target, admin)
        _expect_settings(admin)
        _expect_told(target, admin)
        _expect_to_go_on(source, target)
        assert mirror.stop() == 143, "it ends in order, by the signal"


def _mirror_through_a_kill(source: RunningBroker, target: RunningBroker, admin: AdminClient, mirror: Program) -> None:
    mirror.start()
    _wait_for_topic(admin, MIRRORED)
    wait_for_records(target.bootstrap, MIRRORED, RECORDS // 20, seconds=STEP_SECONDS_MAX)
    mirror.kill()
    arrived = sum(map(len, read_committed(target.bootstrap, MIRRORED).values()))
    assert arrived < RECORDS, "it was killed while it copied"
    mirror.start()
    wait_for_records(target.bootstrap, MIRRORED, RECORDS, seconds=STEP_SECONDS_MAX)

    def all_arrived() -> bool:
        return sum(map(len, read_committed(target.bootstrap, MIRRORED).values())) >= RECORDS

    wait_until(all_arrived, "all records are mirrored", seconds=STEP_SECONDS_MAX)
    original, mirrored = (
        _content(read_committed(running.bootstrap, topic)) for running, topic in ((source, TOPIC), (target, MIRRORED))
    )
    assert mirrored == original


def _expect_groups(target: RunningBroker, admin: AdminClient) -> None:
    """One that had read all has nothing to read again; no group is placed behind a record that it has not read."""
    records = read_committed(target.bootstrap, MIRRORED)
    ends = {number: partition[-1].offset + 1 for number, partition in records.items()}
    wait_until(lambda: _committed(admin, ENDED) == ends, f"group {ENDED} is placed at {ends}", seconds=STEP_SECONDS_MAX)
    wait_until(
        lambda: len(_committed(admin, HALFWAY)) == PARTITIONS, f"group {HALFWAY} is placed", seconds=STEP_SECONDS_MAX
    )
    for number, offset in _committed(admin, HALFWAY).items():
        assert 0 < offset <= records[number][EACH // 2].offset


def _expect_settings(admin: AdminClient) -> None:
    resource = ConfigResource(ResourceType.TOPIC, MIRRORED)

    def retention() -> bool:
        settings = admin.describe_configs([resource])[resource].result(30)
        return bool(settings["retention.ms"].value == RETENTION_MS)

    wait_until(retention, "the topic's settings are mirrored", seconds=STEP_SECONDS_MAX)


def _expect_told(target: RunningBroker, admin: AdminClient) -> None:
    """MirrorMaker's own library finds the source by its heartbeats, and the group's places in its checkpoints."""
    _wait_for_topic(admin, "A.heartbeats")
    command = ecosystem_command("MirrorCheck", target.bootstrap, "A", ENDED)
    done = subprocess.run(command, capture_output=True, text=True, timeout=STEP_SECONDS_MAX, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    told = done.stdout.splitlines()
    assert "hops 1" in told
    assert "upstream [A]" in told
    assert "checkpoints [A.checkpoints.internal]" in told
    placed = {f"translated {MIRRORED}-{number} {offset}" for number, offset in _committed(admin, ENDED).items()}
    assert {line for line in told if line.startswith("translated ")} == placed


def _expect_to_go_on(source: RunningBroker, target: RunningBroker) -> None:
    """A consumer that moves to the target reads what came after, and nothing before."""
    later = [b"later %d" % number for number in range(LATER)]
    produce(source.bootstrap, TOPIC, later, partitions=PARTITIONS)
    settings: dict[str, str | int | float | bool] = {
        "bootstrap.servers": target.bootstrap,
        "group.id": ENDED,
        "auto.offset.reset": "error",
        "isolation.level": "read_committed",
        **RECONNECT,
    }
    consumer = Consumer(settings, logger=quiet)
    found: list[bytes] = []

    def read() -> bool:
        message = consumer.poll(1.0)
        if message is not None:
            assert message.error() is None, message.error()
            value = message.value()
            assert isinstance(value, bytes)
            found.append(value)
        return len(found) >= LATER

    try:
        consumer.subscribe([MIRRORED])
        wait_until(read, "the group has read the later records", seconds=STEP_SECONDS_MAX)
    finally:
        consumer.close()
    assert sorted(found) == sorted(later)
