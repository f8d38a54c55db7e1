"""Which brokers and ZooKeeper servers of this user run on this machine, for the scripts that stop them.

Each notes itself in a directory and holds a lock on its note for as long as it lives. A note whose lock is free is what
a killed process left behind: its number may belong to another process by now, so nobody signals it.
"""

import atexit
import fcntl
import json
import os
import signal
import stat
import time
from pathlib import Path
from typing import NamedTuple

RUN_DIR_VARIABLE = "OTTLA_RUN_DIR"
BROKER = "broker"
ZOOKEEPER = "zookeeper"
STOP_SECONDS_MAX = 60.0

_held: list[int] = []  # descriptors whose locks last as long as this process


class Running(NamedTuple):
    pid: int
    node_id: int | None
    note: Path


def run_dir() -> Path:
    """$OTTLA_RUN_DIR, or the user's own place for such files."""
    chosen = os.environ.get(RUN_DIR_VARIABLE)
    if chosen:
        return Path(chosen)
    place = os.environ.get("XDG_RUNTIME_DIR")
    return Path(place, "ottla") if place else Path(f"/tmp/ottla-{os.getuid()}")  # noqa: S108 - checked in _own


def note_process(kind: str, *, node_id: int | None = None, survives_exec: bool = False) -> None:
    """Note this process. OSError where that cannot be done."""
    folder = run_dir()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _own(folder)
    note = folder / f"{kind}-{os.getpid()}"
    descriptor = os.open(note, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.truncate(descriptor, 0)
    os.write(descriptor, json.dumps({"node_id": node_id}).encode())
    os.set_inheritable(descriptor, survives_exec)
    _held.append(descriptor)
    atexit.register(note.unlink, missing_ok=True)


def running(kind: str) -> list[Running]:
    """Those that live; what dead ones left behind is cleared away."""
    found: list[Running] = []
    folder = run_dir()
    if not folder.is_dir():
        return found
    _own(folder)
    for note in sorted(folder.glob(f"{kind}-*")):
        pid = note.name.rpartition("-")[2]
        if not pid.isdecimal():
            continue
        if _is_free(note):
            note.unlink(missing_ok=True)
            continue
        text = note.read_text(encoding="utf-8", errors="replace")
        found.append(Running(int(pid), json.loads(text)["node_id"] if text else None, note))
    return found


def stop(processes: list[Running], number: signal.Signals) -> list[Running]:
    """Signal them and wait for their end; returns those that are still stopping after a while."""
    for process in processes:
        if not _is_free(process.note):
            os.kill(process.pid, number)
    deadline = time.monotonic() + STOP_SECONDS_MAX
    left = processes
    while left and time.monotonic() < deadline:
        left = [process for process in left if not _is_free(process.note)]
        time.sleep(0.05 if left else 0)
    for process in processes:
        if process not in left:
            process.note.unlink(missing_ok=True)
    return left


def _is_free(note: Path) -> bool:
    try:
        descriptor = os.open(note, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def _own(folder: Path) -> None:
    """Another user could have us signal our own processes through a directory that is theirs."""
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise PermissionError(f"{folder} is not a directory of this user; choose another with ${RUN_DIR_VARIABLE}")
