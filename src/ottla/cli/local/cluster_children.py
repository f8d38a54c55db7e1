"""The processes of `ottla cluster`: started, listened to, and ended with the command whatever happens to it."""

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from ottla.cli.local import secure
from ottla.cli.local.broker_process import METRICS_ON
from ottla.cli.local.console_child import ANSWERS as CONSOLE_ANSWERS
from ottla.cli.local.console_child import command as console_command
from ottla.cli.local.registry_child import ANSWERS as REGISTRY_ANSWERS
from ottla.cli.local.registry_child import command as registry_command
from ottla.cluster.zookeeper_server import command, write_config
from ottla.http.address import HttpAddress
from ottla.testing.child import guard
from ottla.testing.zookeeper import ask

_COLOURS = (36, 32, 33, 35, 34, 31)
_BROKER_PROGRAM = (
    "import sys; from ottla.testing.child import end_with_parent; end_with_parent(); "
    "from ottla.cli.main import main; sys.exit(main())"
)
_BROKER_SERVES = re.compile(r"accepts connections on ")
_lines = threading.Lock()


class Child:
    """A process whose lines appear on our standard error with its name in front.

    `serves` is what a broker says when it is ready; a program that is not ours says nothing of the kind.
    """

    def __init__(self, name: str, program: Sequence[str], colour: int, *, serves: re.Pattern[str] | None) -> None:
        self.name = name
        self.ready = threading.Event()
        self.metrics = ""
        """Where it tells them, once it has said so: before it is ready."""
        self._colour = colour
        self._serves = serves
        self._started = time.monotonic()
        self._process = subprocess.Popen(
            program,
            stdin=subprocess.PIPE,  # held open and never written to: its end is how the child knows of ours
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,  # Ctrl-C is for us, who stop the children in order
        )
        # What watches its own standard input needs no guard.
        self._guard = guard(self._process.pid) if serves is None else None
        assert self._process.stdout is not None
        self._listener = threading.Thread(target=self._listen, args=(self._process.stdout,), daemon=True)
        self._listener.start()
        self.say(f"process {self._process.pid}")

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def age_seconds(self) -> float:
        return time.monotonic() - self._started

    @property
    def ended(self) -> bool:
        return self.exit_code is not None

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        code = self._process.poll()
        if code is not None and self._guard is not None:
            self._guard.kill()
        return code

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()

    def wait(self, seconds: float) -> bool:
        """Whether it ended in that time."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        self._listener.join(seconds)
        return True

    def say(self, line: str) -> None:
        with _lines:
            print(f"{prefix(self.name, self._colour)} {line.rstrip()}", file=sys.stderr, flush=True)

    def _listen(self, lines: IO[str]) -> None:
        for line in lines:
            self.say(line)
            if METRICS_ON in line:
                self.metrics = line.rpartition(METRICS_ON)[2].strip()
            if self._serves is not None and self._serves.search(line):
                self.ready.set()


def broker_child(number: int, settings: Sequence[str], log_level: str, log_format: str) -> Child:
    program = [sys.executable, "-c", _BROKER_PROGRAM, "broker", "--log-level", log_level, "--log-format", log_format]
    program += [part for setting in settings for part in ("--set", setting)]
    return Child(f"broker-{number}", program, _COLOURS[(number - 1) % len(_COLOURS)], serves=_BROKER_SERVES)


def registry_child(
    number: int, bootstrap: str, address: HttpAddress, secured: secure.Secured | None, log_level: str
) -> Child:
    program = registry_command(bootstrap, address, secured, log_level)
    return Child(f"registry-{number}", program, _COLOURS[(number - 1) % len(_COLOURS)], serves=REGISTRY_ANSWERS)


def console_child(
    bootstrap: str, address: HttpAddress, registry: str, metrics: Sequence[str], secured: secure.Secured | None,
    log_level: str,
) -> Child:  # fmt: skip
    program = console_command(bootstrap, address, registry, metrics, secured, log_level)
    return Child("console", program, 90, serves=CONSOLE_ANSWERS)


def zookeeper_child(data_dir: Path, port: int, *, log_level: str) -> Child:
    config = write_config(data_dir, port=port, settings={"tickTime": 500})
    level = "warn" if log_level == "warning" else log_level
    child = Child("zookeeper", [*command(log_level=level), str(config)], 90, serves=None)
    threading.Thread(target=_announce, args=(child, port), daemon=True).start()
    return child


def _announce(child: Child, port: int) -> None:
    """ZooKeeper logs no line that says it serves: it is asked."""
    while not child.ended:
        if "Mode: " in ask(port, "srvr"):
            child.say(f"accepts connections on 127.0.0.1:{port}")
            child.ready.set()
            return
        time.sleep(0.05)


def prefix(name: str, colour: int) -> str:
    """The name, coloured where a person looks and has not asked for plain text (https://no-color.org)."""
    padded = f"{name:<9} |"
    plain = not sys.stderr.isatty() or os.environ.get("NO_COLOR")
    return padded if plain else f"\x1b[{colour}m{padded}\x1b[0m"
