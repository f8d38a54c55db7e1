"""Two real clusters of one broker each, the second of them reached through a gate that can hold its requests."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.committed import Record, read_committed
from tests.spark.feeding import Records, create_topic
from tests.spark.gate import Gate, Hold, Matches, gate

from ottla.protocol.apis import ApiKey
from ottla.testing import RunningBroker
from ottla.testing import broker as started_broker
from ottla.testing.waiting import wait_until

ROOT = Path(__file__).parents[2]
MAIN = "import sys; from ottla.cli.main import main; sys.exit(main())"


@dataclass(frozen=True)
class TwoClusters:
    east: str
    west: str
    """Through the gate, by the address that its broker tells clients."""
    gate: Gate

    def topic(self, bootstrap: str, name: str, partitions: int = 1, configs: dict[str, str] | None = None) -> str:
        create_topic(bootstrap, name, partitions, configs)
        return name

    def records(self, bootstrap: str, topic: str) -> list[Record]:
        return read_committed(bootstrap, topic)

    def sender(self, bootstrap: str) -> Records:
        return Records(bootstrap)


@contextmanager
def two_clusters(east: RunningBroker) -> Iterator[TwoClusters]:
    running: list[RunningBroker] = []
    with gate(lambda: running[0].listeners["PLAINTEXT"][1]) as opened:
        settings = {"advertised.listeners": f"PLAINTEXT://127.0.0.1:{opened.port}"}
        with started_broker(settings) as west:
            running.append(west)
            yield TwoClusters(east.bootstrap, f"127.0.0.1:{opened.port}", opened)


def asks(api: ApiKey, *parts: str) -> Matches:
    """Requests of an API that mention all of these."""
    return lambda key, frame: key == api and all(part.encode() in frame for part in parts)


@contextmanager
def driver(folder: Path, *arguments: str) -> Iterator[Callable[[Hold], None]]:
    """An `ottla` command in a process of its own: yields what waits until it is held at a place, and kills it there."""
    log = folder / "driver.log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", MAIN, *arguments], cwd=ROOT,
            stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip

    def kill() -> None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def kill_at(hold: Hold) -> None:
        def has_come() -> bool:
            assert process.poll() is None, log.read_text()[-3000:]
            return hold.reached.is_set()

        wait_until(has_come, "the driver has come to the place", seconds=300)
        kill()

    try:
        yield kill_at
    finally:
        if process.poll() is None:
            kill()
