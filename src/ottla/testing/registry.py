"""A schema registry for a test: `with registry(bootstrap) as running: running.url`."""

import contextlib
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from ottla.model.errors import OttlaError

START_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 30.0
_PROGRAM = (
    "import sys; from ottla.testing.child import end_with_parent; end_with_parent(); "
    "from ottla.cli.main import main; sys.exit(main())"
)
_ANSWERS = "The schema registry answers on "


class RegistryDidNotStart(OttlaError):
    """What it said is in the message."""


class RunningRegistry:
    """A process with a registry; `url` is where it answers."""

    def __init__(self, bootstrap: str, *options: str) -> None:
        self._lines: list[str] = []
        self._ready = threading.Event()
        self.url = ""
        command = [sys.executable, "-c", _PROGRAM, "registry", "--bootstrap-server", bootstrap]
        listen = [] if "--listen" in options else ["--listen", "127.0.0.1:0"]
        self._process = subprocess.Popen(
            [*command, *listen, *options],
            stdin=subprocess.PIPE,  # held open: its end is how the registry knows of ours
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        self._listener = threading.Thread(target=self._listen, args=(self._process.stdout,), daemon=True)
        self._listener.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def log_text(self) -> str:
        return "".join(self._lines)

    def wait_until_ready(self) -> "RunningRegistry":
        self._ready.wait(START_SECONDS_MAX)
        if not self.url:
            self.kill()
            raise RegistryDidNotStart(f"the registry did not start:\n{self.log_text}")
        return self

    def kill(self) -> None:
        """As a crash does."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait(STOP_SECONDS_MAX)
        self._end()

    def stop(self) -> int:
        """As an operator does; the exit code."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(STOP_SECONDS_MAX)
        self._end()
        return self._process.returncode

    def _end(self) -> None:
        self._listener.join(STOP_SECONDS_MAX)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def _listen(self, lines: IO[str]) -> None:
        for line in lines:
            self._lines.append(line)
            if line.startswith(_ANSWERS):
                self.url = line.removeprefix(_ANSWERS).strip()
                self._ready.set()
        self._ready.set()


@contextlib.contextmanager
def registry(bootstrap: str, *options: str) -> Iterator[RunningRegistry]:
    running = RunningRegistry(bootstrap, *options)
    try:
        yield running.wait_until_ready()
    finally:
        running.stop()


def write_users(path: Path, users: Sequence[tuple[str, str]]) -> Path:
    """A file for `--users`."""
    path.write_text("".join(f"{name}: {password}\n" for name, password in users))
    return path
