"""Workloads about a broker's life: starting, memory, thousands of partitions, recovery after a crash."""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import generator, wire
from benchmarks.brokers import Broker, resident_mb
from benchmarks.workloads import NO_TARGET, Metric, Target

IDLE_S = 5.0
TOPICS, PARTITIONS_EACH = 20, 100

NewBroker = Callable[[Path], Broker]
LifeRun = Callable[[NewBroker, Path, float], Mapping[str, float]]


@dataclass(frozen=True)
class Life:
    """What needs a broker of its own. `run` gets a factory, an empty folder and the share of the full size."""

    name: str
    label: str
    group: str
    metrics: tuple[Metric, ...]
    run: LifeRun
    rounds_max: int


@contextmanager
def _started(broker: Broker) -> Iterator[float]:
    """A running broker; gives the seconds from launching it to its first acknowledged record."""
    broker.prepare()
    seconds = _launch(broker, "first", [0])
    try:
        yield seconds
    finally:
        broker.stop()


def _launch(broker: Broker, topic: str, partitions: list[int]) -> float:
    started = time.perf_counter()
    broker.launch()
    wire.wait_for_first_record(broker.port, topic, partitions=partitions, wait_s=300)
    return time.perf_counter() - started


def _start(new_broker: NewBroker, folder: Path, _share: float) -> Mapping[str, float]:
    with _started(new_broker(folder)) as seconds:
        return {"start_s": seconds}


def _memory(new_broker: NewBroker, folder: Path, share: float) -> Mapping[str, float]:
    broker = new_broker(folder)
    with _started(broker):
        # Resting is what is measured here, so this is the one place that only waits.
        time.sleep(IDLE_S)
        idle = resident_mb(broker)
        wire.create_topics(broker.port, ["load"], 8)
        wire.wait_for_first_record(broker.port, "load", partitions=range(8))
        records = int(2_000_000 * share)
        arguments = {"brokers": f"127.0.0.1:{broker.port}", "topic": "load", "partitions": 8, "records": records}
        generator.run("produce", size=1000, P__acks="all", **arguments)
        generator.run("consume", **arguments)
        return {"idle_mb": idle, "loaded_mb": resident_mb(broker)}


def _partitions(new_broker: NewBroker, folder: Path, share: float) -> Mapping[str, float]:
    broker = new_broker(folder)
    names = [f"many-{number}" for number in range(max(2, int(TOPICS * share)))]
    everything = range(PARTITIONS_EACH)
    with _started(broker):
        started = time.perf_counter()
        wire.create_topics(broker.port, names, PARTITIONS_EACH)
        wire.wait_for_first_record(broker.port, names[-1], partitions=everything)
        created = time.perf_counter() - started
        memory = resident_mb(broker)
        started = time.perf_counter()
        broker.stop()
        stopped = time.perf_counter() - started
        restarted = _launch(broker, names[-1], list(everything))
    return {"create_s": created, "stop_s": stopped, "restart_s": restarted, "memory_mb": memory}


def _recovery(new_broker: NewBroker, folder: Path, share: float) -> Mapping[str, float]:
    broker = new_broker(folder)
    partitions = 4
    with _started(broker), tempfile.TemporaryDirectory() as scratch:
        wire.create_topics(broker.port, ["big"], partitions)
        wire.wait_for_first_record(broker.port, "big", partitions=range(partitions))
        prepared = wire.prepare_produce(
            Path(scratch, "fill"), "big", partitions=partitions, records=160, size=100, acks=-1
        )
        requests = int(4e9 * share / prepared.request_bytes)
        generator.run(
            "replay", port=broker.port, frames=prepared.path, error_at=prepared.error_at, requests=requests, depth=5
        )
        broker.kill()
        return {"recovery_s": _launch(broker, "big", list(range(partitions)))}


def run_life(life: Life, new_broker: NewBroker, share: float) -> Mapping[str, float]:
    """One run in a folder of its own that is removed afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="ottla-bench-"))
    try:
        return life.run(new_broker, folder, share)
    finally:
        shutil.rmtree(folder)


MEMORY = Target(at_most=0.15)
START = Target(at_most=0.1)
LIVES = (
    Life(
        "start", "launch to first acknowledged record", "start", (Metric("start_s", "seconds", "s", START),), _start, 7
    ),
    Life(
        "memory", "resident memory", "memory",
        (Metric("idle_mb", "idle", "MB", MEMORY), Metric("loaded_mb", "after 2 GB in and out", "MB", MEMORY)),
        _memory, 2,
    ),
    Life(
        "partitions", "2,000 partitions", "partitions",
        (
            Metric("create_s", "create", "s", NO_TARGET), Metric("stop_s", "stop", "s", NO_TARGET),
            Metric("restart_s", "restart to first record", "s", NO_TARGET),
            Metric("memory_mb", "memory", "MB", NO_TARGET),
        ),
        _partitions, 2,
    ),
    Life(
        "recovery", "kill -9 with 4 GB of log", "recovery",
        (Metric("recovery_s", "restart to first record", "s", NO_TARGET),), _recovery, 2,
    ),
)  # fmt: skip
