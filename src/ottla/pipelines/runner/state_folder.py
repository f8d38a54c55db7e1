"""A pipeline's folder in the state folder: who runs it, what was last known about it, which version is live.

lock            held by the driver that runs the pipeline
run.json        that driver's process id and the address of its HTTP status
status.json     the last status, also after the driver has ended
active.json     the version that `run` goes on with, after a switch
checkpoints/    one for each query
versions/NAME/  the same for a version that is being made beside the live one: lock, run, status, checkpoints
"""

import fcntl
import json
import os
from pathlib import Path
from typing import IO, Any

from ottla.pipelines.errors import FatalFailure

DEFAULT_STATE_DIR = ".ottla/pipelines"


class StateFolder:
    def __init__(self, state_dir: Path, pipeline: str, version: str | None = None) -> None:
        self.path = state_dir.resolve() / pipeline
        if version is not None:
            self.path = self.path / "versions" / version
        self.pipeline = pipeline if version is None else f"{pipeline} ({version})"
        self._lock: IO[bytes] | None = None

    def lock(self) -> None:
        """FatalFailure if another driver runs this pipeline: two of them would undo each other's batches."""
        self.path.mkdir(parents=True, exist_ok=True)
        lock = (self.path / "lock").open("ab")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            raise FatalFailure(
                f"pipeline {self.pipeline} runs already{self._who()}; `ottla pipeline stop` ends it"
            ) from None
        self._lock = lock

    def unlock(self) -> None:
        if self._lock is not None:
            (self.path / "run.json").unlink(missing_ok=True)
            self._lock.close()
            self._lock = None

    @property
    def locked_by_another(self) -> bool:
        if not (self.path / "lock").exists():
            return False
        with (self.path / "lock").open("ab") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return True
        return False

    def write(self, name: str, document: Any) -> None:
        """All or nothing: a reader never sees half of it."""
        self.path.mkdir(parents=True, exist_ok=True)
        new = self.path / f".{name}.new"
        new.write_text(json.dumps(document), encoding="utf-8")
        os.replace(new, self.path / name)

    def read(self, name: str) -> Any:
        """None if it is not there."""
        try:
            return json.loads((self.path / name).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None

    def versions(self) -> list[str]:
        """Those that were begun beside the first one."""
        folder = self.path / "versions"
        return sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.exists() else []

    @property
    def active_version(self) -> str | None:
        active = self.read("active.json")
        return active["version"] if active else None

    def _who(self) -> str:
        run = self.read("run.json")
        return f" in process {run['pid']}" if run else ""
