"""The process that keeps a JVM for others: lends it out, sees to what a command leaves behind, ends when idle.

A command talks to the JVM itself, over py4j as every PySpark program does, with the port and the secret that it gets
here. Its connection to the keeper is its lease: when that ends, however it ends, its jobs are cancelled.
"""

import contextlib
import fcntl
import itertools
import os
import selectors
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from ottla.spark.resident.place import command_socket_of, socket_of
from ottla.spark.resident.words import receive, send, user_of

IDLE_SECONDS = 600.0
LEASES_MAX = 200
"""Then the next one gets a new JVM: what Python programs have left in the old one is never freed there."""
LOOK_SECONDS = 0.5
HELLO_SECONDS_MAX = 5.0
TAG = "ottla-lease-{}"
WORKERS_OF = "RESIDENT_LEASE"
"""In the environment of Python workers that were started for one lease alone."""


_numbers = itertools.count(1)
"""Of this process's leases. Spark never forgets the workers of one: another must not have its number."""


class AlreadyKept(Exception):
    """Another process keeps such a JVM, or is about to."""


@dataclass
class Lending:
    """Who has a lease, and whether it is time to end. Decides; `Keeper` does."""

    idle_seconds: float
    leases_max: int = LEASES_MAX
    since: float = 0.0
    """The last time that somebody came or went."""
    granted: int = 0
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    current: set[int] = field(default_factory=set)
    ending: bool = False

    def grant(self, now: float) -> int | None:
        """The number of a new lease; None where none is given any more."""
        if self.ending or self.granted >= self.leases_max:
            return None
        self.granted += 1
        number = next(self.numbers)
        self.current.add(number)
        self.since = now
        return number

    def end(self, lease: int, now: float) -> None:
        self.current.discard(lease)
        self.since = now

    def is_over(self, now: float) -> bool:
        if self.current:
            return False
        return self.ending or self.granted >= self.leases_max or now - self.since >= self.idle_seconds


class Keeper:
    def __init__(
        self,
        folder: Path,
        key: str,
        start: Callable[[], contextlib.AbstractContextManager[SparkSession]],
        *,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self._folder = folder
        self._key = key
        self._start = start
        self._lending = Lending(idle_seconds, numbers=_numbers)
        self._selector = selectors.DefaultSelector()
        self._leases: dict[socket.socket, int] = {}

    def run(self, ready: Callable[[], None] = lambda: None) -> None:
        """Until nobody wants it any more. Raises AlreadyKept if it is not wanted at all."""
        clean_up(self._folder)
        with _locked(self._folder / f"{self._key}.lock"), self._start() as spark:
            try:
                with self._listening() as listener:
                    self._lending.since = time.monotonic()
                    ready()
                    self._serve(spark, listener)
            finally:
                self._selector.close()
                for connection in self._leases:
                    connection.close()

    def stop(self) -> None:
        """After those who have a lease. Safe in a signal handler."""
        self._lending.ending = True

    def _serve(self, spark: SparkSession, listener: socket.socket) -> None:
        self._selector.register(listener, selectors.EVENT_READ)
        while not self._lending.is_over(time.monotonic()):
            for chosen, _ in self._selector.select(LOOK_SECONDS):
                if chosen.fileobj is listener:
                    self._admit(spark, listener.accept()[0])
                else:
                    assert isinstance(chosen.fileobj, socket.socket)
                    self._let_go(spark, chosen.fileobj)
            if not _lives(spark):
                break

    @contextlib.contextmanager
    def _listening(self) -> Iterator[socket.socket]:
        path = socket_of(self._folder, self._key)
        path.unlink(missing_ok=True)  # of one that was killed: we have the lock
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(str(path))
            path.chmod(0o600)
            listener.listen(64)
            try:
                yield listener
            finally:
                path.unlink(missing_ok=True)

    def _admit(self, spark: SparkSession, connection: socket.socket) -> None:
        connection.settimeout(HELLO_SECONDS_MAX)
        try:
            asked = receive(connection) if user_of(connection) in (None, os.getuid()) else None
            answer = None if asked is None else self._answer(spark, asked)
            if answer is not None:
                send(connection, **answer)
        except OSError:
            answer = None
        if answer is None or "lease" not in answer:
            connection.close()
            return
        self._leases[connection] = int(answer["lease"])
        self._selector.register(connection, selectors.EVENT_READ)

    def _answer(self, spark: SparkSession, asked: Mapping[str, Any]) -> dict[str, Any] | None:
        if asked.get("want") == "end":
            self.stop()
            return {"leases": len(self._leases)}
        if asked.get("want") != "lease" or asked.get("key") != self._key:
            return None
        lease = self._lending.grant(time.monotonic())
        if lease is None:
            return None
        gateway: Any = spark.sparkContext._gateway
        parameters = gateway.gateway_parameters
        return {"lease": lease, "port": parameters.port, "secret": parameters.auth_token}

    def _let_go(self, spark: SparkSession, connection: socket.socket) -> None:
        """Whatever a command says after its first line, or that it has gone, is the end of its lease."""
        lease = self._leases.pop(connection)
        self._selector.unregister(connection)
        connection.close()
        self._lending.end(lease, time.monotonic())
        spark.sparkContext.cancelJobsWithTag(TAG.format(lease))
        _end_workers(spark, lease)
        if not self._leases:
            spark.catalog.clearCache()
            jvm: Any = spark.sparkContext._jvm
            # The default is the command's own session: let go of it.
            jvm.org.apache.spark.sql.classic.SparkSession.setDefaultSession(spark._jsparkSession)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """The system lets go of the lock when the process ends, however it does; its file goes with us."""
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            ours = path.stat().st_ino == os.fstat(file.fileno()).st_ino  # else another has just taken it away
        except OSError as error:
            raise AlreadyKept(str(path)) from error
        if not ours:
            raise AlreadyKept(str(path))
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def clean_up(folder: Path) -> None:
    """Take away what drivers that were killed have left."""
    for path in folder.glob("*.lock"):
        with contextlib.suppress(AlreadyKept), _locked(path):
            socket_of(folder, path.stem).unlink(missing_ok=True)
            command_socket_of(folder, path.stem).unlink(missing_ok=True)


def _jvm(spark: SparkSession) -> Any:
    gateway: Any = spark.sparkContext._gateway
    return gateway.proc


def _lives(spark: SparkSession) -> bool:
    return _jvm(spark).poll() is None


def _end_workers(spark: SparkSession, lease: int) -> None:
    """Python workers that were this lease's own are of no use to another, and Spark would keep them."""
    mark = f"{WORKERS_OF}={lease}".encode()
    try:
        children = Path(f"/proc/{_jvm(spark).pid}/task").glob("*/children")
        pids = [int(pid) for child in children for pid in child.read_text().split()]
    except OSError:
        return  # no Linux: they end with the JVM
    for pid in pids:
        with contextlib.suppress(OSError):
            if mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                os.kill(pid, signal.SIGTERM)
