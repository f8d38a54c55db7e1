"""A driver in a process of its own: killed, restarted, looked at over HTTP, stopped; and what it never prints."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.committed import read_committed
from tests.metrics_moved import DRIVER, moved, wait_until_moved
from tests.pipelines.world import SCHEMA
from tests.spark.feeding import Records, create_topic

from ottla.pipelines.runner.state_folder import StateFolder
from ottla.testing import RunningBroker
from ottla.testing.waiting import wait_until

SECRET = "pw-that-nobody-may-see"
SECONDS = 240.0
OTTLA = str(Path(sys.executable).with_name("ottla"))


def pipeline_file(folder: Path, name: str) -> Path:
    path = folder / f"{name}.yaml"
    path.write_text(
        f"""
name: {name}
sources: {{orders: {{topic: {name}.in, format: json, schema: "{SCHEMA}"}}}}
sinks: [{{topic: {name}.out, key: id}}, {{files: ./lake, format: parquet}}]
errors: {{dead_letter: {name}.dead}}
limits: {{trigger: 100 milliseconds, max_records: 40}}
"""
    )
    return path


def secret_file(folder: Path, name: str) -> Path:
    """One that fails at once, with a secret in what it fails with."""
    path = folder / f"{name}.yaml"
    path.write_text(
        f"""
name: {name}
sources: {{orders: {{topic: {name}.in}}}}
sinks: [{{postgres: "postgresql://me:${{env:OTTLA_TEST_SECRET}}@127.0.0.1:1/db?connect_timeout=1", table: t}}]
errors: {{retries: 2, backoff: 100 ms}}
"""
    )
    return path


class Drivers:
    """Processes of `ottla pipeline run` with one log."""

    def __init__(self, folder: Path, bootstrap: str) -> None:
        self.log = folder / "driver.log"
        self._folder = folder
        self._bootstrap = bootstrap
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *paths: Path) -> None:
        command = [
            OTTLA, "pipeline", "run", *map(str, paths),
            "--bootstrap-server", self._bootstrap, "--state-dir", str(self._folder / "state"), "--json",
            "--master", "local[2]", "--conf", "spark.driver.memory=768m",
        ]  # fmt: skip
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                env={**os.environ, "OTTLA_TEST_SECRET": SECRET}, start_new_session=True,
            )  # fmt: skip

    def kill(self) -> None:
        """Python, its JVM and their workers are one process group."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def has_ended(self) -> bool:
        """Never true: waiting for a driver that has ended fails with what it said."""
        assert self.process is not None
        assert self.process.poll() is None, self.log.read_text()[-3000:]
        return False


@pytest.fixture
def drivers(tmp_path: Path, ottla_broker: RunningBroker) -> Iterator[Drivers]:
    found = Drivers(tmp_path, ottla_broker.bootstrap)
    yield found
    found.kill()


def ask(address: str, method: str = "GET", headers: dict[str, str] | None = None) -> tuple[int, Any]:
    request = urllib.request.Request(address, method=method, headers=headers or {})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def scrape(address: str) -> str:
    with urllib.request.urlopen(f"{address}/metrics", timeout=30) as answer:
        return str(answer.read().decode())


@pytest.mark.timeout(900)  # two drivers, each with a JVM of its own, wait for each other's turns on a busy machine
def test_killed_restarted_looked_at_and_stopped(
    drivers: Drivers, ottla_broker: RunningBroker, tmp_path: Path, unique: Any
) -> None:
    name, other = unique("killed"), unique("failing")
    bootstrap = ottla_broker.bootstrap
    for topic in (f"{name}.in", f"{other}.in"):
        create_topic(bootstrap, topic, 2)
    records = Records(bootstrap)

    def feed(numbers: range) -> None:
        for partition in (0, 1):
            values = [json.dumps({"id": str(n), "item": "tea", "amount": n}) for n in numbers if n % 2 == partition]
            records.send(f"{name}.in", values, partition=partition)

    feed(range(400))
    records.send(f"{other}.in", ["x"])
    path = pipeline_file(tmp_path, name)
    folder = StateFolder(tmp_path / "state", name)

    drivers.start(path)
    wait_until(lambda: _written(folder) or drivers.has_ended(), "a batch is written", seconds=SECONDS)
    drivers.kill()
    assert StateFolder(tmp_path / "state", name).read("status.json")["state"] == "running"

    # The next driver has a second pipeline, which cannot work.
    drivers.start(path, secret_file(tmp_path, other))
    wait_until(lambda: _lag(folder) == 0 or drivers.has_ended(), "all is read", seconds=SECONDS)
    address = folder.read("run.json")["http"]
    status = wait_until(lambda: _with_states(address, "running", "failed"), "the other has failed", seconds=SECONDS)
    failed = status["pipelines"][1]["queries"][0]["error"]
    assert "127.0.0.1" in failed
    assert SECRET not in json.dumps(status)
    told = scrape(address)
    assert f'ottla_pipeline_state{{pipeline="{other}",' in told
    assert f'ottla_pipeline_batch_part_seconds{{pipeline="{name}",' in told, "what Spark tells of a batch"
    assert ask(f"{address}/healthz")[0] == 503
    assert ask(f"{address}/nope")[0] == 404
    assert ask(f"{address}/stop", "POST")[0] == 403
    assert ask(f"{address}/stop?pipeline=nope", "POST", {"X-Ottla": "1"})[0] == 404

    total = 420
    feed(range(400, total))

    def more() -> set[str]:
        """Tasks are seen only while they run: there is something to do at every look."""
        nonlocal total
        feed(range(total, total + 2))
        total += 2
        return moved(told, scrape(address)) | moved("", told)

    wait_until_moved(DRIVER, more)
    wait_until(
        lambda: len(read_committed(bootstrap, f"{name}.out")) == total or drivers.has_ended(), "all", seconds=SECONDS
    )
    stopped = subprocess.run(
        [OTTLA, "pipeline", "stop", str(path), "--state-dir", str(tmp_path / "state")],
        capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    assert (stopped.returncode, stopped.stdout) == (0, f"{name} has stopped\n"), stopped.stderr
    assert drivers.process is not None
    assert drivers.process.wait(SECONDS) == 1  # because the other one had failed
    assert folder.read("status.json")["state"] == "stopped"
    assert not folder.locked_by_another

    # Everything once, in every sink, over both drivers.
    ids = [json.loads(record.value or b"")["id"] for record in read_committed(bootstrap, f"{name}.out")]
    assert sorted(map(int, ids)) == list(range(total))
    import pyarrow.dataset

    lake = pyarrow.dataset.dataset(str(tmp_path / "lake"), format="parquet").to_table()
    assert sorted(int(str(each)) for each in lake["id"].to_pylist()) == list(range(total))
    said = drivers.log.read_text()
    assert SECRET not in said
    lines = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    assert {line["event"] for line in lines} >= {"started", "progress", "failed", "stopped"}


def _written(folder: StateFolder) -> bool:
    status = folder.read("status.json")
    return bool(status and status["queries"][0]["batches"] >= 2)


def _lag(folder: StateFolder) -> int | None:
    status = folder.read("status.json")
    return status["queries"][0]["lag"] if status and status["queries"][0]["batches"] else None


def _with_states(address: str, *states: str) -> Any:
    status = ask(f"{address}/status")[1]
    return status if tuple(each["state"] for each in status["pipelines"]) == states else None
