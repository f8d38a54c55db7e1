"""Real ZooKeeper servers for a test: one, or an ensemble whose members can be killed, paused and started again."""

import atexit
import contextlib
import functools
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self

from ottla.cluster.zookeeper_server import Member, command, write_config
from ottla.model.errors import OttlaError
from ottla.testing.child import guard
from ottla.testing.ports import free_ports
from ottla.testing.waiting import wait_until

HEAP_MB = 128
"""Enough for some 20,000 partitions."""
START_SECONDS_MAX = 60.0
ANSWER_SECONDS_MAX = 1.0

# A session may be as short as two ticks. Data is not synced: a killed process does not lose what it gave the kernel.
TEST_SETTINGS: Mapping[str, str | int] = {
    "tickTime": 250,
    "initLimit": 40,
    "syncLimit": 12,
    "forceSync": "no",
    "preAllocSize": 1_024,
    "autopurge.purgeInterval": 0,
}


class ZooKeeperDidNotStart(OttlaError):
    """A server ended or did not answer. The message carries its log."""


class ZooKeeperMember:
    """One server. Its process may come and go; its data and its address stay."""

    def __init__(self, data_dir: Path, *, program: Sequence[str], number: int, port: int) -> None:
        self.number = number
        self.port = port
        self._program = program
        self._data_dir = data_dir
        self._log_path = data_dir / "zookeeper.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        return self._running().pid

    def log_text(self) -> str:
        return self._log_path.read_text(errors="replace") if self._log_path.exists() else ""

    def start(self) -> Self:
        """Start the process, without waiting for it to serve: in an ensemble it needs the others for that."""
        assert not self.running, "this server runs already"
        self._ended()
        with self._log_path.open("ab") as log_file:
            self._process = subprocess.Popen(
                self._program,
                stdin=subprocess.DEVNULL,
                stdout=log_file,
                stderr=log_file,
                start_new_session=True,
            )
        self._guard = guard(self._process.pid)
        return self

    def kill(self) -> None:
        """SIGKILL."""
        self._running().kill()
        self._ended()

    def stop(self) -> None:
        """SIGTERM."""
        self._running().terminate()
        self._ended()

    def pause(self) -> None:
        """SIGSTOP: it holds its connections and says nothing, from the moment this returns."""
        os.kill(self.pid, signal.SIGSTOP)
        # A signal takes its time to stop every thread, and until then requests are answered.
        os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._ended()

    def mode(self) -> str | None:
        """`leader`, `follower`, `standalone`, or None of a server that does not serve."""
        if not self.running:
            return None
        words = ask(self.port, "srvr").splitlines()
        return next((line.removeprefix("Mode: ") for line in words if line.startswith("Mode: ")), None)

    def wait_until_serving(self, seconds: float = START_SECONDS_MAX) -> None:
        deadline = time.monotonic() + seconds
        # Its own configuration, as ZooKeeper tells it: another server may have taken the port before it did.
        while self.mode() is None or f"dataDir={self._data_dir}" not in ask(self.port, "conf"):
            if not self.running or time.monotonic() > deadline:
                lines = self.log_text().splitlines()[-40:]
                raise ZooKeeperDidNotStart("\n  ".join([f"ZooKeeper {self.address} does not serve; its log:", *lines]))
            time.sleep(0.02)

    def _running(self) -> "subprocess.Popen[bytes]":
        if self._process is None or self._process.poll() is not None:
            raise OttlaError("this ZooKeeper server is not running")
        return self._process

    def _ended(self) -> None:
        if self._guard is not None:
            self._guard.kill()  # before the process is reaped: its number may be given to another then
            self._guard.communicate()
            self._guard = None
        if self._process is not None:
            self._process.wait(START_SECONDS_MAX)


class ZooKeeperEnsemble:
    """One server or several, all on 127.0.0.1."""

    def __init__(
        self,
        data_dir: Path,
        *,
        members: int = 1,
        settings: Mapping[str, str | int] | None = None,
        heap_mb: int = HEAP_MB,
    ) -> None:
        ports = free_ports(3 * members)
        servers = [
            Member(number, "127.0.0.1", ports[members + number - 1], ports[2 * members + number - 1])
            for number in range(1, members + 1)
        ]
        program = command(heap_mb=heap_mb)
        self.members: list[ZooKeeperMember] = []
        for number in range(1, members + 1):
            folder = data_dir / f"zookeeper-{number}"
            config = write_config(
                folder,
                port=ports[number - 1],
                my_id=number,
                members=servers if members > 1 else (),
                settings={**TEST_SETTINGS, **(settings or {})},
            )
            self.members.append(
                ZooKeeperMember(folder, program=[*program, str(config)], number=number, port=ports[number - 1])
            )

    @property
    def connect(self) -> str:
        """What a broker wants as `zookeeper.connect`."""
        return ",".join(member.address for member in self.members)

    def start(self) -> Self:
        """Start those that do not run; returns when every one serves."""
        for member in self.members:
            if not member.running:
                member.start()
        for member in self.members:
            member.wait_until_serving()
        return self

    def leader(self) -> ZooKeeperMember | None:
        """Who leads now: the standalone server of one, None while a leader is being elected."""
        return next((member for member in self.members if member.mode() in ("leader", "standalone")), None)

    def wait_for_leader(self, seconds: float = 30.0) -> ZooKeeperMember:
        leader = wait_until(self.leader, "a ZooKeeper server leads", seconds=seconds)
        assert leader is not None
        return leader

    def kill(self) -> None:
        """Every member at once."""
        for member in self.members:
            if member.running:
                member.kill()

    def pause(self) -> None:
        for member in self.members:
            member.pause()

    def resume(self) -> None:
        for member in self.members:
            member.resume()

    def close(self) -> None:
        for member in self.members:
            member.close()


@contextlib.contextmanager
def zookeeper(
    members: int = 1,
    *,
    data_dir: str | os.PathLike[str] | None = None,
    settings: Mapping[str, str | int] | None = None,
) -> Iterator[ZooKeeperEnsemble]:
    """ZooKeeper for as long as the `with` block lasts; `settings` are those of zoo.cfg."""
    directory = Path(data_dir) if data_dir is not None else Path(tempfile.mkdtemp(prefix="ottla-zookeeper-"))
    ensemble = ZooKeeperEnsemble(directory, members=members, settings=settings)
    try:
        yield ensemble.start()
    finally:
        ensemble.close()
        if data_dir is None:
            shutil.rmtree(directory, ignore_errors=True)


@functools.cache
def shared_zookeeper() -> ZooKeeperEnsemble:
    """One server for all clusters of this process, each with a root of its own in it; started when first wanted."""
    directory = Path(tempfile.mkdtemp(prefix="ottla-zookeeper-"))
    ensemble = ZooKeeperEnsemble(directory)
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    atexit.register(ensemble.close)
    return ensemble.start()


def ask(port: int, word: str) -> str:
    """A four-letter word, answered; empty where nobody answers in time."""
    answer = b""
    try:
        with socket.create_connection(("127.0.0.1", port), ANSWER_SECONDS_MAX) as connection:
            connection.settimeout(ANSWER_SECONDS_MAX)
            connection.sendall(word.encode())
            while part := connection.recv(65_536):
                answer += part
    except OSError:
        return ""
    return answer.decode(errors="replace")
