"""Drivers killed with SIGKILL at named places, a task that is repeated, a broker killed in the middle of a batch.

A proxy holds the driver's request, or its answer, at the place; then the driver dies, and a new one goes on from the
checkpoint. What a consumer sees must equal the input exactly.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession
from tests.chance import SOAK
from tests.committed import values
from tests.spark.feeding import Records, create_topic
from tests.spark.gate import Gate, Hold, Matches, gate
from tests.spark.residing import be_alone, serving

from ottla.model.names import TopicPartition
from ottla.protocol.apis import ApiKey
from ottla.spark.writing.batch_writer import write_batch
from ottla.testing import RunningBroker
from ottla.testing import broker as started_broker
from ottla.testing.waiting import wait_until

DRIVER = Path(__file__).with_name("killed_driver.py")
ROOT = Path(__file__).parents[2]
PATH = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
SECONDS_MAX = 300
LOOK_SECONDS = 0.2


class World(NamedTuple):
    """A broker that is reached through the gate only."""

    broker: RunningBroker
    gate: Gate
    records: Records

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.gate.port}"


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    running: list[RunningBroker] = []
    with gate(lambda: running[0].listeners["PLAINTEXT"][1]) as opened:
        settings = {"advertised.listeners": f"PLAINTEXT://127.0.0.1:{opened.port}"}
        with started_broker(settings) as broker:
            running.append(broker)
            yield World(broker, opened, Records(f"127.0.0.1:{opened.port}"))


class Names(NamedTuple):
    source: str
    sink: str
    name: str
    checkpoint: str


@pytest.fixture
def names(world: World, unique: Callable[[str], str], tmp_path: Path) -> Iterator[Names]:
    source, sink = unique("from"), unique("to")
    for topic in (source, sink):
        create_topic(world.bootstrap, topic, 2)
    yield Names(source, sink, unique("name"), str(tmp_path / "checkpoint"))
    world.gate.open()


class Driver:
    def __init__(self, kind: str, arguments: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(DRIVER), kind, json.dumps({"master": "local[2]"} | arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": PATH},
            start_new_session=True,
        )

    def wait_until_at(self, place: Hold) -> None:
        """Until it has come to the place; it fails with what the driver said if that has ended before."""
        deadline = time.monotonic() + SECONDS_MAX
        while not place.reached.wait(LOOK_SECONDS):
            if self.process.poll() is not None:
                out, err = self.process.communicate()
                raise AssertionError(f"the driver ended with {self.process.returncode}\n{out[-1000:]}\n{err[-8000:]}")
            assert time.monotonic() < deadline, "no request came to the place where it was awaited"

    def kill(self) -> None:
        """The driver and its JVM, at once; Python workers end when their JVM is gone."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()

    def result(self) -> str:
        out, err = self.process.communicate(timeout=SECONDS_MAX)
        assert self.process.returncode == 0, err[-4000:]
        return out


@pytest.fixture
def start() -> Iterator[Callable[[str, dict[str, str]], Driver]]:
    started: list[Driver] = []

    def begin(kind: str, arguments: dict[str, str]) -> Driver:
        started.append(Driver(kind, arguments))
        return started[-1]

    yield begin
    for driver in started:
        if driver.process.poll() is None:
            driver.kill()
        else:
            driver.process.communicate()


Start = Callable[[str, dict[str, str]], Driver]


def asks(api: ApiKey, *parts: str) -> Matches:
    """Requests of an API that mention all of these."""
    return lambda key, frame: key == api and all(part.encode() in frame for part in parts)


def commits(api: int, frame: bytes) -> bool:
    """An EndTxn that commits, in a flexible version: a batch whose tasks were disturbed is aborted and tried again."""
    return api == ApiKey.END_TXN and frame[-2:] == b"\x01\x00"


def run_stream(spark: SparkSession, world: World, names: Names) -> None:
    options = {"kafka.bootstrap.servers": world.bootstrap}
    frame = spark.readStream.format("ottla").options(subscribe=names.source, startingOffsets="earliest", **options)
    query = (
        frame.load().select("value").repartition(3)  # another number of tasks than the driver that was killed
        .writeStream.format("ottla").options(topic=names.sink, **options)
        .option("checkpointLocation", names.checkpoint).trigger(availableNow=True).start()
    )  # fmt: skip
    assert query.awaitTermination(SECONDS_MAX)


IN_SOAKS = [
    pytest.mark.soak,
    pytest.mark.skipif(not SOAK, reason="a JVM more for a place beside another: make soak"),
]
SENT = [str(number) for number in range(400)]


@pytest.mark.parametrize(
    ("matches", "after"),
    [
        pytest.param(asks(ApiKey.TXN_OFFSET_COMMIT), False, id="before the decision", marks=IN_SOAKS),
        pytest.param(asks(ApiKey.END_TXN, ".driver"), False, id="inside the decision"),
        pytest.param(asks(ApiKey.END_TXN, ".driver"), True, id="decided, nothing committed", marks=IN_SOAKS),
        pytest.param(asks(ApiKey.END_TXN, ".task."), True, id="decided, some committed"),
    ],
)
def test_a_stream_whose_driver_is_killed(
    spark: SparkSession, world: World, names: Names, start: Start, matches: Matches, after: bool
) -> None:
    world.records.send(names.source, SENT[:200], partition=0)
    world.records.send(names.source, SENT[200:], partition=1)
    place = world.gate.hold(matches, after=after)
    driver = start("stream", {
        "bootstrap": world.bootstrap, "source": names.source, "sink": names.sink, "checkpoint": names.checkpoint,
    })  # fmt: skip
    driver.wait_until_at(place)
    driver.kill()
    world.gate.open()
    assert not (Path(names.checkpoint) / "commits" / "0").exists()
    run_stream(spark, world, names)
    assert values(world.bootstrap, names.sink) == sorted(SENT)


@pytest.mark.parametrize(
    ("matches", "after", "is_there"),
    [
        pytest.param(asks(ApiKey.TXN_OFFSET_COMMIT), True, False, id="before the end"),
        pytest.param(commits, True, True, id="after the end"),
    ],
)
def test_a_pipeline_whose_driver_is_killed(
    spark: SparkSession, world: World, names: Names, start: Start, matches: Matches, after: bool, is_there: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """The process that decides is killed; its executors live on, as on a cluster. Streams lose both."""
    place = world.gate.hold(matches, after=after)
    folder = be_alone(monkeypatch)
    monkeypatch.setenv("PYTHONPATH", PATH)  # as the driver has it
    with serving(spark, folder):
        driver = start("pipeline", pipeline_arguments(world, names))
        driver.wait_until_at(place)
        driver.kill()
        world.gate.open()
    if is_there:  # a commit is answered before its markers are written
        wait_until(lambda: values(world.bootstrap, names.sink) == sorted(SENT), "what was committed is seen")
    else:
        assert values(world.bootstrap, names.sink) == []
    frame = spark.createDataFrame(
        [(None, value.encode(), None, names.sink, None, None) for value in SENT],
        "key binary, value binary, headers array<struct<key:string,value:binary>>, topic string, partition int, "
        "timestamp timestamp",
    )
    written = write_batch(
        frame, client={"bootstrap.servers": world.bootstrap}, transactional_id=names.name, group=names.name,
        batch_id=0, query="q", offsets={TopicPartition(names.source, 0): 7},
    )  # fmt: skip
    assert written.already_there is is_there
    assert values(world.bootstrap, names.sink) == sorted(SENT)


def pipeline_arguments(world: World, names: Names) -> dict[str, str]:
    return {
        "bootstrap": world.bootstrap, "source": names.source, "sink": names.sink, "name": names.name,
        "rows": str(len(SENT)),
    }  # fmt: skip


def test_a_task_that_is_repeated_makes_the_batch_run_again(
    world: World, names: Names, start: Start, tmp_path: Path
) -> None:
    arguments = pipeline_arguments(world, names) | {
        "master": "local[2,4]", "marker": str(tmp_path / "broken"), "small": "true", "rows": "25000",
    }  # fmt: skip
    written = json.loads(start("pipeline", arguments).result())
    assert (tmp_path / "broken").exists()
    assert written["rows"] == 25_000
    assert values(world.bootstrap, names.sink) == sorted(str(number) for number in range(25_000))


def test_a_broker_killed_inside_a_batch(spark: SparkSession, world: World, names: Names) -> None:
    place = world.gate.hold(asks(ApiKey.PRODUCE, names.sink), after=True)

    def kill_and_restart() -> None:
        place.wait(SECONDS_MAX)
        world.broker.kill()
        world.gate.open()
        world.broker.start()

    killer = threading.Thread(target=kill_and_restart)
    killer.start()
    frame = spark.range(0, 5000, 1, 2).selectExpr("cast(id AS string) AS value")
    frame.write.format("ottla").option("kafka.bootstrap.servers", world.bootstrap).option("topic", names.sink).mode(
        "append"
    ).save()
    killer.join(SECONDS_MAX)
    assert not killer.is_alive()
    assert values(world.bootstrap, names.sink) == sorted(str(number) for number in range(5000))
