"""Kafka Connect, two workers with exactly-once sources: a file becomes a topic becomes a file, through a kill."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from compat.peer.connect import STEP_SECONDS_MAX, Worker
from compat.peer.program import explained
from compat.peer.records import new_topic, read_committed, wait_for_records

from ottla.testing.running import RunningBroker
from ottla.testing.waiting import wait_until

LINES = 20_000
FILE = "org.apache.kafka.connect.file.FileStream"

pytestmark = pytest.mark.usefixtures("ecosystem")


class Files:
    """A file that grows, the topic it goes to, and the file that the sink makes of it."""

    def __init__(self, bootstrap: str, topic: str, directory: Path) -> None:
        self.bootstrap = bootstrap
        self.topic = topic
        self.source = directory / "source.txt"
        self.sink = directory / "sink.txt"
        self.lines: list[str] = []

    def grow(self, count: int) -> None:
        more = [f"line {len(self.lines) + number}" for number in range(count)]
        with self.source.open("a") as file:
            file.writelines(f"{line}\n" for line in more)
        self.lines += more

    def in_topic(self) -> list[str]:
        (records,) = read_committed(self.bootstrap, self.topic).values()
        return [record.value.decode() for record in records if record.value is not None]

    def in_sink(self) -> list[str]:
        return self.sink.read_text().splitlines() if self.sink.exists() else []


@pytest.fixture
def files(ottla_broker: RunningBroker, unique: Callable[[str], str], tmp_path: Path) -> Files:
    made = Files(ottla_broker.bootstrap, unique("connect"), tmp_path)
    new_topic(made.bootstrap, made.topic, 1)
    return made


@pytest.fixture
def workers(files: Files, unique: Callable[[str], str], tmp_path: Path) -> Iterator[list[Worker]]:
    group = unique("workers")
    strings = "org.apache.kafka.connect.storage.StringConverter"
    settings: dict[str, str | int] = {
        "bootstrap.servers": files.bootstrap,
        "group.id": group,
        "exactly.once.source.support": "enabled",
        "key.converter": strings,
        "value.converter": strings,
        "offset.flush.interval.ms": 1_000,
        "session.timeout.ms": 10_000,
        "heartbeat.interval.ms": 1_000,
        "scheduled.rebalance.max.delay.ms": 1_000,
        "plugin.discovery": "service_load",
        "offset.storage.partitions": 3,
        "status.storage.partitions": 1,
    }
    for kind in ("config", "offset", "status"):
        settings |= {f"{kind}.storage.topic": f"{group}-{kind}", f"{kind}.storage.replication.factor": -1}
    made = [Worker(number, tmp_path, settings) for number in (1, 2)]
    for each in made:
        each.start()
    yield made
    for each in made:
        each.kill()


def _create(worker: Worker, files: Files) -> None:
    source = {"connector.class": f"{FILE}SourceConnector", "file": str(files.source), "topic": files.topic}
    sink = {
        "connector.class": f"{FILE}SinkConnector",
        "file": str(files.sink),
        "topics": files.topic,
        "consumer.override.isolation.level": "read_committed",
        "consumer.override.auto.offset.reset": "earliest",
    }
    # Small polls, each of which is a transaction.
    worker.asked_until_told("PUT", "/connectors/source/config", {**source, "batch.size": "50", "tasks.max": "1"})
    worker.asked_until_told("PUT", "/connectors/sink/config", {**sink, "tasks.max": "1"})


def _wait_for_lines(worker: Worker, files: Files, count: int) -> None:
    def enough() -> bool:
        worker.task_worker("source")  # a task that failed will not go on by itself
        return len(files.in_topic()) >= count

    wait_until(enough, f"{count} lines in the topic", seconds=STEP_SECONDS_MAX)


@pytest.mark.timeout(1800)
def test_file_to_topic_to_file_through_a_kill(files: Files, workers: list[Worker]) -> None:
    """The worker with the source's task is killed while it copies, and comes back."""
    files.grow(LINES)
    _create(workers[0], files)
    with explained(workers):
        _copy_through_a_kill(files, workers)
        # The sink may write lines again after a kill, as it says of itself: it does not know what it has written.
        wait_until(lambda: len(set(files.in_sink())) == len(files.lines), "the sink has all", seconds=STEP_SECONDS_MAX)
        assert files.in_topic() == files.lines
        assert list(dict.fromkeys(files.in_sink())) == files.lines
        _expect_offsets(workers[0], files)
        for name in ("source", "sink"):
            workers[0].asked_until_told("DELETE", f"/connectors/{name}")
        wait_until(
            lambda: workers[1].asked_until_told("GET", "/connectors") == [], "no connectors", seconds=STEP_SECONDS_MAX
        )
    assert files.in_topic() == files.lines


def _copy_through_a_kill(files: Files, workers: list[Worker]) -> None:
    by_id = {worker.address: worker for worker in workers}
    victim = by_id[workers[0].wait_for_task("source")]
    (other,) = (worker for worker in workers if worker is not victim)
    other.wait_for_task("sink")
    wait_for_records(files.bootstrap, files.topic, LINES // 20, seconds=STEP_SECONDS_MAX)
    victim.kill()
    assert len(files.in_topic()) < LINES, "it was killed while it copied"

    assert other.wait_for_task("source", elsewhere_than=victim.address) == other.address
    files.grow(LINES // 10)
    _wait_for_lines(other, files, LINES)
    victim.start()
    for name in ("source", "sink"):
        victim.wait_for_task(name)
    files.grow(LINES // 10)
    _wait_for_lines(other, files, len(files.lines))


def _expect_offsets(worker: Worker, files: Files) -> None:
    """What Connect knows of how far it is: the source's place in the file, the sink's in the topic."""

    def source_is_at_the_end() -> bool:
        (place,) = worker.asked_until_told("GET", "/connectors/source/offsets")["offsets"]
        assert place["partition"] == {"filename": str(files.source)}
        return bool(place["offset"]["position"] == files.source.stat().st_size)

    def sink_is_at_the_end() -> bool:
        told = worker.asked_until_told("GET", "/connectors/sink/offsets")["offsets"]
        (records,) = read_committed(files.bootstrap, files.topic).values()
        return bool(told) and told[0]["offset"]["kafka_offset"] > records[-1].offset

    wait_until(source_is_at_the_end, "the source's offset is the end of the file", seconds=STEP_SECONDS_MAX)
    wait_until(sink_is_at_the_end, "the sink's offset is the end of the topic", seconds=STEP_SECONDS_MAX)
