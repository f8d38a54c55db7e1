"""Pipelines of one folder, each started as `ottla pipeline run` in a process of its own.

They outlive the console, as those do that are started by hand: `ottla pipeline stop` ends one, and a console that is
started later finds it by its state folder. That folder's lock sees to it that no pipeline runs twice.
"""

import contextlib
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import NamedTuple

from ottla.model.defaults import BOOTSTRAP_VARIABLE
from ottla.model.errors import OttlaError

PROGRAM = "import sys; from ottla.cli.main import main; sys.exit(main())"
SUFFIXES = (".yaml", ".yml", ".sql", ".py")
FILES_MAX = 50
EARLY_SECONDS = 2.0
"""What is wrong with a file is mostly known by then, and told to whoever starts it."""
TAIL_BYTES = 8_000


class NotStarted(OttlaError):
    """It ended at once; the message is what it said."""


class Run(NamedTuple):
    file: str
    pid: int
    code: int | None
    """None while it runs."""
    log: str
    last_words: str


class Starter:
    """What this console has started since it began."""

    def __init__(self) -> None:
        self._processes: dict[Path, tuple[subprocess.Popen[bytes], Path]] = {}
        self._starting = threading.Lock()

    def start(self, file: Path, state_dir: Path, bootstrap: str) -> Run:
        """In a thread; one after the other."""
        with self._starting:
            return self._start(file, state_dir, bootstrap)

    def _start(self, file: Path, state_dir: Path, bootstrap: str) -> Run:
        known = self.run_of(file)
        if known is not None and known.code is None:
            raise NotStarted(f"{file.name} runs already, in process {known.pid}")
        log = state_dir / ".console" / f"{file.name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, *arguments(file, state_dir)],
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
                env={**os.environ, BOOTSTRAP_VARIABLE: bootstrap},  # for files that name no brokers
            )  # fmt: skip
        self._processes[file] = (process, log)
        with contextlib.suppress(subprocess.TimeoutExpired):  # so it should be
            process.wait(EARLY_SECONDS)
        run = self.run_of(file)
        assert run is not None
        if run.code:
            raise NotStarted(f"{file.name} ended at once: {run.last_words or f'exit code {run.code}'}")
        return run

    def run_of(self, file: Path) -> Run | None:
        known = self._processes.get(file)
        if known is None:
            return None
        process, log = known
        code = process.poll()
        return Run(file.name, process.pid, code, str(log), tail(log) if code else "")


def arguments(file: Path, state_dir: Path) -> list[str]:
    return ["pipeline", "run", str(file), "--state-dir", str(state_dir)]


def files_of(folder: str) -> dict[str, Path]:
    """Those that may be started, by name: files of the folder itself, and no links that lead out of it."""
    if not folder:
        return {}
    home = Path(folder).resolve()
    try:
        found = sorted(
            path for path in home.iterdir() if path.suffix in SUFFIXES and not path.name.startswith((".", "-"))
        )
    except OSError:
        return {}
    kept = [path for path in found if path.is_file() and path.resolve().parent == home]
    return {path.name: path for path in kept[:FILES_MAX]}


def tail(log: Path) -> str:
    try:
        with log.open("rb") as lines:
            lines.seek(max(0, log.stat().st_size - TAIL_BYTES))
            return lines.read().decode(errors="replace").strip()
    except OSError:
        return ""
