"""A command's session in a resident driver's JVM."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from ottla.model.errors import OttlaError
from ottla.spark.loggers import quiet_loggers
from ottla.spark.resident.keeper import TAG, WORKERS_OF
from ottla.spark.resident.place import SWITCH, folder_of, socket_of, this_key
from ottla.spark.resident.words import receive, send
from ottla.spark.workers.starting import PYTHON_VARIABLE

ANSWER_SECONDS_MAX = 10.0
START_SECONDS_MAX = 300.0
LOOK_SECONDS = 0.05
_SECRET = "PYSPARK_GATEWAY_SECRET"  # noqa: S105 - its name
_PORT = "PYSPARK_GATEWAY_PORT"


class ResidentDriverGone(OttlaError):
    """It ended, or was killed, while a command used it."""


class Lease(NamedTuple):
    connection: socket.socket
    number: int
    port: int
    secret: str


def lease(program: Sequence[str] | None = None) -> Lease | None:
    """A place in the resident driver that fits this process; None if there is none. `program` starts one that is
    wanted and not there."""
    mode = os.environ.get(SWITCH, "")
    folder = None if mode == "off" else folder_of(os.environ)
    if folder is None:
        return None
    key = this_key()
    found = _ask(folder, key)
    if found is not None or mode != "on" or program is None:
        return found
    return _started(folder, key, program)


def ask_to_end(folder: Path, key: str) -> int | None:
    """Tell a driver to end when those who use it are done; how many these are, or None if there is no such driver."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(ANSWER_SECONDS_MAX)
        connection.connect(str(socket_of(folder, key)))
        send(connection, want="end")
        answer = receive(connection)
        return None if answer is None else int(answer["leases"])
    return None


def _ask(folder: Path, key: str) -> Lease | None:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(ANSWER_SECONDS_MAX)
        connection.connect(str(socket_of(folder, key)))
        send(connection, want="lease", key=key)
        answer = receive(connection)
    except OSError:
        answer = None
    if answer is None:
        connection.close()
        return None
    return Lease(connection, int(answer["lease"]), int(answer["port"]), str(answer["secret"]))


def _started(folder: Path, key: str, program: Sequence[str]) -> Lease | None:
    """If two commands start one at once, one of the two processes finds the other and ends."""
    process = subprocess.Popen(
        program,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # it stays when the terminal is closed
    )
    deadline = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < deadline:
        ended = process.poll() is not None
        found = _ask(folder, key)
        if found is not None:
            process.returncode = 0  # it is left to itself: no warning that nobody waits for it
            return found
        if ended and process.returncode != 0:
            return None
        time.sleep(LOOK_SECONDS)
    return None


@contextlib.contextmanager
def session_in(lent: Lease, *, own_workers: bool = False) -> Iterator[SparkSession]:
    """A session of one's own: views, settings and jobs are nobody else's. `own_workers`: Python code that may have
    changed since the last command runs in it, so no worker of another command will do."""
    os.environ.setdefault(PYTHON_VARIABLE, sys.executable)
    quiet_loggers()
    before = {name: os.environ.get(name) for name in (_PORT, _SECRET)}
    os.environ.update({_PORT: str(lent.port), _SECRET: lent.secret})
    handler = signal.getsignal(signal.SIGINT)
    try:
        gateway: Any = launch_gateway()  # type: ignore[no-untyped-call]
    finally:
        _restore(before)
    try:
        session = _session(gateway, lent.number, own_workers=own_workers)
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, handler)  # PySpark's would cancel the jobs of everybody
        yield session
    except (Py4JNetworkError, ConnectionError) as error:
        raise ResidentDriverGone(
            f"the resident driver ended meanwhile; run the command again, or with {SWITCH}=off"
        ) from error
    finally:
        lent.connection.close()
        _forget(gateway)


def _session(gateway: Any, number: int, *, own_workers: bool) -> SparkSession:
    sessions: Any = gateway.jvm.org.apache.spark.sql.classic.SparkSession
    there = sessions.getDefaultSession().get().newSession()
    java_context = gateway.jvm.JavaSparkContext.fromSparkContext(there.sparkContext())
    environment = {WORKERS_OF: str(number)} if own_workers else {}
    # A copy of the settings: PySpark writes the environment into them, and the next command would get it from there.
    context = SparkContext(
        conf=SparkConf(_jconf=there.sparkContext().getConf()),
        gateway=gateway,
        jsc=java_context,
        environment=environment,
    )
    # The Python that the JVM was started with, so that workers of functions and of data sources are the same ones.
    context.pythonExec = gateway.jvm.System.getenv(PYTHON_VARIABLE) or context.pythonExec
    context.addJobTag(TAG.format(number))
    return SparkSession(context, there)


def _restore(before: dict[str, str | None]) -> None:
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _forget(gateway: Any) -> None:
    """PySpark knows one JVM for each process; this one was borrowed. Nothing in it is stopped."""
    context = SparkContext._active_spark_context
    if context is not None:
        # It looks twice a second whether it is to end, and nobody needs to wait for that.
        threading.Thread(target=context._accumulatorServer.shutdown, daemon=True).start()
    SparkContext._active_spark_context = None
    SparkContext._gateway = None
    SparkContext._jvm = None
    SparkSession._instantiatedSession = None
    SparkSession._activeSession = None
    with contextlib.suppress(Py4JError, OSError):
        gateway.close()


def keeper_program() -> list[str]:
    """`ottla pipeline serve` with this Python."""
    return [sys.executable, "-c", "import sys; from ottla.cli.main import main; sys.exit(main())", "pipeline", "serve"]
