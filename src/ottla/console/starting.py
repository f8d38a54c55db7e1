"""Commands that take long (pipelines, mirrors, backups), each in a process of its own that nobody waits for.

They outlive the console, as those do that are started by hand: a console that is started later finds them by what they
leave behind (a state folder, a run in a place of backups), whose locks see to it that nothing runs twice.
"""

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

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


class Job(NamedTuple):
    """A command of Ottla's, and the file for what it says: begun anew at each start, written to by one at a time."""

    name: str
    arguments: tuple[str, ...]
    log: Path
    environment: Mapping[str, str] = {}
    client: Mapping[str, str] | None = None
    """What the command gets as its `--command-config`, over a pipe: passwords are in no file, nor in `ps`."""


class Run(NamedTuple):
    file: str
    """What was started: a file's name, or words."""
    pid: int
    code: int | None
    """None while it runs."""
    log: str
    last_words: str


class Starter:
    """What this console has started since it began."""

    def __init__(self) -> None:
        self._processes: dict[Path, tuple[subprocess.Popen[bytes], str]] = {}
        self._starting = threading.Lock()

    def start(self, job: Job) -> Run:
        """In a thread; one after the other."""
        with self._starting:
            return self._start(job)

    def _start(self, job: Job) -> Run:
        known = self.run_of(job.log)
        if known is not None and known.code is None:
            raise NotStarted(f"{known.file} runs already, in process {known.pid}")
        job.log.parent.mkdir(parents=True, exist_ok=True)
        with job.log.open("wb") as output, client_file(job.client) as (more, pipe):
            process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, *job.arguments, *more],
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
                env={**os.environ, **job.environment}, pass_fds=pipe,
            )  # fmt: skip
        self._processes[job.log] = (process, job.name)
        with contextlib.suppress(subprocess.TimeoutExpired):  # so it should be
            process.wait(EARLY_SECONDS)
        run = self.run_of(job.log)
        assert run is not None
        if run.code:
            why = error_in(run.last_words) or run.last_words or f"exit code {run.code}"
            raise NotStarted(f"{job.name} ended at once: {why}")
        return run

    def run_of(self, log: Path) -> Run | None:
        known = self._processes.get(log)
        if known is None:
            return None
        process, name = known
        code = process.poll()
        return Run(name, process.pid, code, str(log), tail(log) if code else "")


def pipeline_log(file: Path, state_dir: Path) -> Path:
    return state_dir / ".console" / f"{file.name}.log"


def pipeline_job(file: Path, state_dir: Path, bootstrap: str) -> Job:
    """`bootstrap` is for files that name no brokers."""
    return Job(
        file.name, tuple(arguments(file, state_dir)), pipeline_log(file, state_dir), {BOOTSTRAP_VARIABLE: bootstrap}
    )


def arguments(file: Path, state_dir: Path) -> list[str]:
    return ["pipeline", "run", str(file), "--state-dir", str(state_dir)]


@contextlib.contextmanager
def client_file(client: Mapping[str, str] | None) -> Iterator[tuple[list[str], tuple[int, ...]]]:
    """Arguments that name a pipe with these settings in it, and the pipe, for a process that is started meanwhile."""
    if not client:
        yield [], ()
        return
    ours, theirs = os.pipe()
    try:
        os.set_blocking(theirs, False)
        try:
            os.write(theirs, as_properties(client).encode())  # all of it, or an error: a pipe has room for 64 kB
        finally:
            os.close(theirs)
        yield ["--command-config", f"/dev/fd/{ours}"], (ours,)
    finally:
        os.close(ours)


def as_properties(settings: Mapping[str, str]) -> str:
    escaped = {name: value.replace("\\", "\\\\").replace("\n", "\\n") for name, value in settings.items()}
    return "".join(f"{name}={value}\n" for name, value in escaped.items())


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


def last_event(log: Path) -> dict[str, Any]:
    """Of a command that says how far it is in lines of JSON, the last."""
    for line in reversed(tail(log).splitlines()):
        with contextlib.suppress(ValueError):
            found = json.loads(line)
            if isinstance(found, dict):
                return found
    return {}


def error_in(words: str) -> str:
    """What a command complains of last, with the lines that belong to it; empty if it does not."""
    lines = words.splitlines()
    at = next((at for at in reversed(range(len(lines))) if lines[at].startswith("error: ")), None)
    return "" if at is None else "\n".join(lines[at:]).removeprefix("error: ")
