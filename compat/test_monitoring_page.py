"""docs/monitoring.md, done as a newcomer would: from nothing to alerts that fire in a real Prometheus, and end.

The commands are run as they stand, ports and all, in a network of their own that has nothing but loopback.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.examples.test_first_pipeline import Command, WriteFile, missing_line, steps

from ottla.testing.waiting import wait_until

PAGE = Path(__file__).parents[1] / "docs" / "monitoring.md"
PATIENCE = 300.0
STAYING = ("ottla up", "ottla pipeline run", "prometheus ")
ASKING = "promtool query"
"""Asks for what comes to pass by itself: it is asked again until it prints what the page shows."""


class Terminals:
    """Commands in one folder and one network: some stay, the others are waited for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._holder = subprocess.Popen(["unshare", "--net", "cat"], stdin=subprocess.PIPE)
        here = Path("/proc/self/ns/net").readlink()
        wait_until(lambda: Path(f"/proc/{self._holder.pid}/ns/net").readlink() != here, "a network", seconds=30)
        self._enter = ["nsenter", "--net", f"--target={self._holder.pid}"]
        subprocess.run([*self._enter, "ip", "link", "set", "lo", "up"], check=True)
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self._environment = {**os.environ, "PATH": path, "OTTLA_RESIDENT": "off"}
        self._stayed: dict[str, subprocess.Popen[bytes]] = {}

    def write(self, file: WriteFile) -> None:
        is_part = file.text.startswith(" ")
        with (self._folder / file.name).open("a" if is_part else "w") as target:
            target.write(file.text)
        if is_part:
            self._stayed["prometheus"].send_signal(signal.SIGHUP)

    def do(self, command: Command) -> None:
        if command.line.startswith(STAYING) or command.line == "ottla monitor":
            self._stay(command)
        elif command.line.startswith(ASKING):
            wait_until(lambda: self._missing(command) is None, command.line, seconds=PATIENCE, pause=1.0)
        else:
            missing = self._missing(command)
            assert missing is None, f"$ {command.line}\nthe page shows `{missing}`, but:\n{self.printed}"

    def _stay(self, command: Command) -> None:
        log = self._folder / f"terminal-{len(self._stayed)}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*self._enter, "bash", "-c", f"exec {command.line}"], cwd=self._folder, env=self._environment,
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            )  # fmt: skip
        self._stayed[command.line.split()[0] if command.line.startswith("prometheus") else command.line] = process

        def ready() -> bool:
            assert process.poll() is None, f"$ {command.line}\n{log.read_text()}"
            return missing_line(command.output, log.read_text()) is None

        wait_until(ready, f"{command.line} says what the page shows", seconds=PATIENCE)

    def _missing(self, command: Command) -> str | None:
        """What the page shows and was not printed; where it shows nothing, what was."""
        done = subprocess.run(
            [*self._enter, "bash", "-c", command.line], cwd=self._folder, env=self._environment, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE, check=False,
        )  # fmt: skip
        self.printed = done.stdout
        assert done.returncode == command.exit_code or command.line.startswith(ASKING), self.printed
        return missing_line(command.output, self.printed) if command.output else (self.printed.strip() or None)

    def close(self) -> None:
        for process in reversed(self._stayed.values()):
            process.terminate()
        for process in self._stayed.values():
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        assert self._holder.stdin is not None
        self._holder.stdin.close()
        self._holder.wait(30)


@pytest.fixture
def terminals(tmp_path: Path) -> Iterator[Terminals]:
    if os.geteuid() != 0 or shutil.which("nsenter") is None:
        pytest.skip("a network of its own takes root")
    found = Terminals(tmp_path)
    yield found
    found.close()


@pytest.mark.timeout(1800)
def test_from_nothing_to_an_alert_that_fires(prometheus: str, terminals: Terminals) -> None:
    page = PAGE.read_text()
    todo = list(steps(page[page.index("## Ten minutes") : page.index("## `ottla top`")]))
    commands = [step.line for step in todo if isinstance(step, Command)]
    assert len(commands) > 15
    assert len([line for line in commands if re.search("ALERTS.*firing|ALERTS.*Pipeline", line)]) == 2
    for step in todo:
        if isinstance(step, WriteFile):
            terminals.write(step)
        else:
            terminals.do(step)
