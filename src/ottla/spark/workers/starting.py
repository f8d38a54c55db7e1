"""The driver's part: a nursery beside the JVM that is about to start, and the Python that Spark is told to start."""

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from ottla.spark.workers.words import PLACE_VARIABLE

DAEMON_SETTING = "spark.python.daemon.module"
DAEMON = "ottla.spark.workers.daemon"
PYTHON_VARIABLE = "PYSPARK_PYTHON"
_PATH_BYTES_MAX = 107
_PROGRAM = "ottla.spark.workers.forking"
_HASH_SEED = "PYTHONHASHSEED"

# `spark.python.daemon.module` counts only for workers that run tasks. Those that find, make and plan a data source, the
# process of a stream's source and the one that begins a state are started by names that Spark has fixed.
_PYTHON = """\
#!/bin/sh
case "$1 $2" in
  "-m pyspark.daemon") shift 2; exec {python} -m {daemon} "$@" ;;
  "-m pyspark.sql.streaming."*) shift; exec {python} -m {daemon} "$@" ;;
esac
exec {python} "$@"
"""


def start_nursery(environment: Mapping[str, str]) -> str | None:
    """Where it will listen; None where there can be none. It ends with this process."""
    folder = Path(tempfile.mkdtemp(prefix="ottla-workers-"))
    place = str(folder / "socket")
    # Spark's scripts fix the seed, so that all workers put a key into the same partition.
    seeded = {**environment, _HASH_SEED: environment.get(_HASH_SEED, "0")}
    if not can_listen_at(place):
        folder.rmdir()
        return None
    write_python(place)
    start_forking(_PROGRAM, place, seeded)
    return place


def python_of(place: str) -> Path:
    """What Spark starts as Python: it asks the nursery for all that it can become, and is Python for the rest."""
    return Path(place).with_name("python")


def write_python(place: str) -> None:
    python = python_of(place)
    python.write_text(_PYTHON.format(python=shlex.quote(sys.executable), daemon=DAEMON))
    python.chmod(0o700)


def can_listen_at(place: str) -> bool:
    """Linux alone: elsewhere libraries mind being forked."""
    return hasattr(os, "pidfd_open") and len(os.fsencode(place)) <= _PATH_BYTES_MAX


def start_forking(module: str, place: str, environment: Mapping[str, str]) -> int:
    """Start a program that is a `Nursery` at this place. It ends with this process, or when the returned file, which is
    the other end of its standard input, is closed."""
    reads, writes = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-m", module, place],
        stdin=reads,
        stdout=subprocess.DEVNULL,
        env=dict(environment),
        start_new_session=True,  # Ctrl-C is for the driver
    )
    os.close(reads)
    process.returncode = 0  # it is left to itself: no warning that nobody waits for it
    return writes


def told_to_java(place: str | None) -> dict[str, str]:
    """What the JVM's environment has to say about it."""
    if place is None:
        return {}
    python = python_of(place)
    can_start = os.access(python, os.X_OK)  # not where temporary files cannot be executed
    return {PLACE_VARIABLE: place} | ({PYTHON_VARIABLE: str(python)} if can_start else {})
