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
_HASH_SEED = "PYTHONHASHSEED"


def start_nursery(environment: Mapping[str, str]) -> str | None:
    """Where it will listen; None where there can be none. It ends with this process."""
    if not hasattr(os, "pidfd_open"):  # Linux alone; elsewhere libraries also mind being forked
        return None
    folder = Path(tempfile.mkdtemp(prefix="ottla-workers-"))
    place = str(folder / "socket")
    if len(os.fsencode(place)) > _PATH_BYTES_MAX:
        folder.rmdir()
        return None
    reads, _writes = os.pipe()  # its other end is never closed, but by the end of this process
    process = subprocess.Popen(
        [sys.executable, "-m", "ottla.spark.workers.nursery", place],
        stdin=reads,
        stdout=subprocess.DEVNULL,
        # Spark's scripts fix the seed, so that all workers put a key into the same partition.
        env={**environment, _HASH_SEED: environment.get(_HASH_SEED, "0")},
        start_new_session=True,  # Ctrl-C is for the driver
    )
    os.close(reads)
    process.returncode = 0  # it is left to itself: no warning that nobody waits for it
    return place


def told_to_java(place: str | None) -> dict[str, str]:
    """What the JVM's environment has to say about it."""
    return {} if place is None else {PLACE_VARIABLE: place}
