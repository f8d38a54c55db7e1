"""The driver's part: a nursery beside the JVM that is about to start."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from ottla.spark.workers.words import PLACE_VARIABLE

DAEMON_SETTING = "spark.python.daemon.module"
DAEMON = "ottla.spark.workers.daemon"
_PATH_BYTES_MAX = 107
_PROGRAM = "ottla.spark.workers.forking"
_HASH_SEED = "PYTHONHASHSEED"


def start_nursery(environment: Mapping[str, str]) -> str | None:
    """Where it will listen; None where there can be none. It ends with this process."""
    folder = Path(tempfile.mkdtemp(prefix="ottla-workers-"))
    place = str(folder / "socket")
    # Spark's scripts fix the seed, so that all workers put a key into the same partition.
    seeded = {**environment, _HASH_SEED: environment.get(_HASH_SEED, "0")}
    if not can_listen_at(place):
        folder.rmdir()
        return None
    start_forking(_PROGRAM, place, seeded)
    return place


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
    return {} if place is None else {PLACE_VARIABLE: place}
