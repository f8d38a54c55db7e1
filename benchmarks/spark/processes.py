"""The Spark processes of a run: one for each format and broker, all up side by side, one working at a time."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import psutil
from benchmarks.brokers import Broker, cpu_seconds
from benchmarks.spark.jobs import FIGURES, READY
from compat.peer import spark_connector

ROOT = Path(__file__).resolve().parents[2]
STOP_S_MAX = 60


class Format(NamedTuple):
    """A way of reading and writing topics from Spark."""

    name: str
    title: str
    needs_jars: bool
    sink: Mapping[str, str]
    """How it writes: each as safely as it can."""


FORMATS = {
    "ottla": Format("ottla", "format ottla, exactly once", False, {"delivery": "exactly_once"}),
    "kafka": Format("kafka", "Spark's connector, at least once", True, {}),
}


class JobFailed(Exception):
    """A Spark process ended, or did not do its job; its log says why."""


class SparkProcess:
    """A format with a broker. `run` gives it a job and waits for the figures."""

    def __init__(self, format_: Format, broker: Broker, *, master: str, memory: str, log: Path) -> None:
        self._log = log
        self._broker = broker
        conf = {"spark.driver.memory": memory}
        if format_.needs_jars:
            conf["spark.jars"] = spark_connector.jars()
        asked = {
            "format": format_.name, "bootstrap": f"127.0.0.1:{broker.port}", "master": master, "conf": conf,
            "sink": format_.sink,
        }  # fmt: skip
        with log.open("ab") as file:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.spark.jobs", json.dumps(asked)],
                cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file, text=True,
            )  # fmt: skip
        self._answer(READY)

    def run(self, job: str, **arguments: object) -> dict[str, Any]:
        """The figures of the job, with the CPU time that Spark and the broker spent on it."""
        assert self._process.stdin is not None
        spark_before, broker_before = _cpu_seconds(self._process.pid), cpu_seconds(self._broker)
        self._process.stdin.write(json.dumps({"job": job, **arguments}) + "\n")
        self._process.stdin.flush()
        figures: dict[str, Any] = json.loads(self._answer(FIGURES))
        figures["spark_cpu_seconds"] = _cpu_seconds(self._process.pid) - spark_before
        figures["broker_cpu_seconds"] = cpu_seconds(self._broker) - broker_before
        return figures

    def stop(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _answer(self, beginning: str) -> str:
        """The next line that is an answer: Spark and its Java print to the same stream."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(beginning):
                return line.removeprefix(beginning).rstrip("\n")
        tail = self._log.read_text(errors="replace")[-4000:]
        raise JobFailed(f"the Spark process ended with {self._process.wait()}; its log ends:\n{tail}")


def _cpu_seconds(pid: int) -> float:
    """Of the driver, its Java and the Python workers below it."""
    total = 0.0
    root = psutil.Process(pid)
    for process in [root, *root.children(recursive=True)]:
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


@contextlib.contextmanager
def spark_processes(
    formats: list[str], brokers: Mapping[str, Broker], *, master: str, memory: str, folder: Path
) -> Iterator[dict[tuple[str, str], SparkProcess]]:
    """By (format, broker)."""
    started: dict[tuple[str, str], SparkProcess] = {}
    try:
        for kind, broker in brokers.items():
            for name in formats:
                log = folder / f"spark-{name}-{kind}.log"
                started[name, kind] = SparkProcess(FORMATS[name], broker, master=master, memory=memory, log=log)
        yield started
    finally:
        for process in started.values():
            process.stop()
