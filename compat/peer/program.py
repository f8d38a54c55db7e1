"""A program that runs beside a test: what it says is kept, it can be killed, and it never outlives the test."""

import contextlib
import itertools
import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self

from compat.peer.kafka import fetch, java_command

from ottla.testing.child import guard
from ottla.testing.waiting import wait_until

LINES_SHOWN = 60
COMPLAINT_LINES_SHOWN = 25
COMPLAINT = re.compile(r"\bERROR\b|\bFATAL\b|Exception:|panic:|--- FAIL")
START_SECONDS_MAX = 120.0
# Several programs of Java share a machine with the brokers: each small, and none busy with optimising itself for long.
SMALL = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


def own_java_command(main_class: str, *arguments: str, classes: Path) -> list[str]:
    """The command line that runs a program of ours from compat/java."""
    return java_command(main_class, *arguments, flags=SMALL, classpath=f"{classes}:{fetch()}/*")


class Program:
    """One process at a time; `start` after `kill` runs the same command again."""

    def __init__(self, name: str, command: Sequence[str], *, env: Mapping[str, str] | None = None) -> None:
        self.name = name
        self.lines: list[str] = []
        """What all its processes said, standard error among it."""
        self._command = list(command)
        self._env = {**os.environ, "LC_ALL": "C.UTF-8", **(env or {})}
        self._process: subprocess.Popen[str] | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        self._reader: threading.Thread | None = None

    def start(self) -> Self:
        assert not self.running, f"{self.name} runs already"
        self._let_go()
        process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=self._env,
            start_new_session=True,  # an interrupt at the terminal is for the test, which then ends us
        )
        self._process = process
        self._guard = guard(process.pid)
        self._reader = threading.Thread(target=self._read, args=(process,), daemon=True)
        self._reader.start()
        return self

    def _read(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self.lines.append(line.rstrip())

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None, f"{self.name} does not run"
        return self._process.pid

    @property
    def text(self) -> str:
        """Its first complaint, which the many that follow would hide, and the last of what it said."""
        different = [line for line, _ in itertools.groupby(self.lines)]
        first = next((at for at, line in enumerate(different) if COMPLAINT.search(line)), len(different))
        shown = [f"{self.name} complained first:", *different[first : first + COMPLAINT_LINES_SHOWN]]
        last = [f"{self.name} said last:", *different[-LINES_SHOWN:]]
        return "\n".join([*(shown if first < len(different) - LINES_SHOWN else []), *last])

    def count(self, beginning: str) -> int:
        """How many lines begin so."""
        return sum(line.startswith(beginning) for line in self.lines)

    def wait_for(self, what: str, beginning: str, *, times: int = 1, seconds: float = START_SECONDS_MAX) -> None:
        """Until so many lines begin so; a program that ends before has failed."""

        def come() -> bool:
            return self.count(beginning) >= times or not self.running

        try:
            wait_until(come, what, seconds=seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}; {self.text}") from None
        if self.count(beginning) < times:
            self.wait(10)
            assert self.count(beginning) >= times, f"{self.name} ended before: {what}; {self.text}"

    def wait(self, seconds: float) -> int:
        """Its exit code, once it has ended by itself."""
        assert self._process is not None
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} did not end within {seconds:g} s; {self.text}") from None
        self._let_go()
        return code

    def end_input(self) -> None:
        """Close its standard input, which is how our programs are asked to finish."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.close()

    def stop(self, seconds: float = 60.0) -> int:
        """SIGTERM; its exit code."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self.wait(seconds)

    def kill(self) -> None:
        """SIGKILL, if it runs."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
        self._let_go()

    def _let_go(self) -> None:
        """Reap the process, and its guard before it: the number may be given to another process then."""
        if self._guard is not None:
            self._guard.kill()
            self._guard.communicate()
            self._guard = None
        if self._process is not None:
            self._process.wait()
            assert self._reader is not None
            self._reader.join(10)
            for pipe in (self._process.stdin, self._process.stdout):
                assert pipe is not None
                with contextlib.suppress(OSError):
                    pipe.close()
            self._process = None


@contextlib.contextmanager
def program(name: str, command: Sequence[str], *, env: Mapping[str, str] | None = None) -> Iterator[Program]:
    """A program that runs while the block does, or until it ends."""
    running = Program(name, command, env=env)
    try:
        yield running.start()
    finally:
        running.kill()


@contextlib.contextmanager
def explained(programs: Iterable[Program]) -> Iterator[None]:
    """An assertion that fails in the block tells what the programs said, too."""
    try:
        yield
    except AssertionError as error:
        for each in programs:
            error.add_note(each.text)
        raise
