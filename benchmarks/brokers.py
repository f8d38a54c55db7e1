"""The two brokers under test behind one interface, and what the kernel says they used."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import psutil
from compat.peer.kafka import Kafka, free_port


class Broker(Protocol):
    """A broker that can be started, stopped and killed; its files live in a directory of its own."""

    name: str
    port: int

    @property
    def pid(self) -> int: ...
    def prepare(self) -> None: ...
    def launch(self) -> None: ...
    def stop(self) -> None: ...
    def kill(self) -> None: ...


class OttlaBroker:
    """Ottla, started by the command a user would type."""

    name = "Ottla"

    def __init__(
        self,
        directory: Path,
        *,
        settings: Mapping[str, str] | None = None,
        more_listeners: Sequence[str] = (),
        source: Path | None = None,
    ) -> None:
        """`source` has the package, if it is another than the installed one."""
        self._directory = directory
        self._variables = {**os.environ, "PYTHONPATH": str(source)} if source else None
        self._settings = dict(settings or {})
        self._more_listeners = more_listeners
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        if self._process is None:
            raise RuntimeError("Ottla is not running")
        return self._process.pid

    def prepare(self) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)

    def launch(self) -> None:
        program = Path(sys.executable).with_name("ottla")
        listeners = ",".join((f"PLAINTEXT://127.0.0.1:{self.port}", *self._more_listeners))
        settings = {"listeners": listeners, "log.dirs": str(self._directory / "data"), **self._settings}
        words = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
        with open(self._directory / "server.log", "ab") as log:
            self._process = subprocess.Popen(
                [program, "broker", *words], stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=self._variables
            )

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGTERM)
            process.wait(120)

    def kill(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()


class KafkaBroker:
    """Apache Kafka 4.3 with the heap and collector flags of its own start script."""

    name = "Apache Kafka"

    def __init__(
        self, directory: Path, *, settings: Mapping[str, str] | None = None, more_listeners: Sequence[str] = ()
    ) -> None:
        self._node = Kafka(directory, settings=settings, more_listeners=more_listeners)
        self.port = self._node.port

    @property
    def pid(self) -> int:
        return self._node.pid

    def prepare(self) -> None:
        self._node.format()

    def launch(self) -> None:
        self._node.launch()

    def stop(self) -> None:
        self._node.stop()

    def kill(self) -> None:
        self._node.kill()


KINDS: dict[str, Callable[[Path], Broker]] = {"ottla": OttlaBroker, "kafka": KafkaBroker}


def new_broker(kind: str, directory: Path) -> Broker:
    return KINDS[kind](directory)


def _processes(pid: int) -> list[psutil.Process]:
    root = psutil.Process(pid)
    return [root, *root.children(recursive=True)]


def cpu_seconds(broker: Broker) -> float:
    """User and system time of the broker and its children so far."""
    times = [process.cpu_times() for process in _processes(broker.pid)]
    return float(sum(each.user + each.system for each in times))


def resident_mb(broker: Broker) -> float:
    """Resident memory of the broker and its children."""
    return float(sum(process.memory_info().rss for process in _processes(broker.pid))) / 1e6
