"""docs/first-pipeline.md, done as a newcomer would: its files written, its commands run, their output compared.

A line of output in the page must be printed in its turn; `...` in it stands for anything, and a line of nothing else
for any number of lines.

Commands are processes of their own, as the newcomer's are. Only those that start Spark are called in this process, all
but the first `run`: a dozen JVMs would take minutes, and the session of the test run is there.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ottla.cli.main import main
from ottla.testing import broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path(__file__).parents[2] / "docs" / "first-pipeline.md"
RUN = "ottla pipeline run"
WITH_SPARK = ("ottla pipeline test", RUN, "ottla pipeline replay-dead-letters", "ottla sql")
_BLOCK = re.compile(r"```(?P<language>\w+)\n(?P<text>.*?)```", re.DOTALL)
_FILE = re.compile(r"`(?P<name>[\w.]+\.(?:avsc|jsonl|ya?ml|py|properties))`")
_EXIT_CODE = re.compile(r"\[exit code (?P<code>\d+)\]")


@dataclass
class Command:
    line: str
    output: list[str] = field(default_factory=list)
    exit_code: int = 0


@dataclass(frozen=True)
class WriteFile:
    name: str
    text: str


def steps(page: str) -> Iterator[Command | WriteFile]:
    """Files are named in the text right before their block."""
    position = 0
    for block in _BLOCK.finditer(page):
        before, position = page[position : block.start()], block.end()
        if block["language"] != "console":
            names = _FILE.findall(before)
            assert names, f"no file name before {block['text'][:60]}"
            yield WriteFile(names[-1], block["text"])
            continue
        command: Command | None = None
        for line in block["text"].splitlines():
            if line.startswith("$ "):
                if command is not None:
                    yield command
                command = Command(line.removeprefix("$ "))
            elif found := _EXIT_CODE.fullmatch(line):
                assert command is not None
                command.exit_code = int(found["code"])
            else:
                assert command is not None
                command.output.append(line)
        assert command is not None
        yield command


def missing_line(expected: list[str], printed: str) -> str | None:
    """The first line of the page that was not printed after those before it."""
    lines = iter(printed.splitlines())
    for line in expected:
        if line.strip() == "...":
            continue
        pattern = re.compile(".*".join(re.escape(part) for part in line.rstrip().split("...")) + r"\s*")
        if not any(pattern.fullmatch(candidate.rstrip()) for candidate in lines):
            return line
    return None


def test_the_page_is_read_as_meant() -> None:
    found = list(steps(PAGE.read_text()))
    assert [step.name for step in found if isinstance(step, WriteFile)] == [
        "orders.jsonl",
        "orders.yaml",
        "enriched.jsonl",
    ]
    commands = [step.line for step in found if isinstance(step, Command)]
    assert len(commands) > 15
    for part in ("lint", "test", "run", "replay-dead-letters"):
        assert any(f"ottla pipeline {part}" in line for line in commands)


@pytest.mark.parametrize(
    ("expected", "printed", "missing"),
    [
        (["a", "c"], "a\nb\nc\n", None),
        (["c", "a"], "a\nb\nc\n", "a"),
        (["x...z"], "x y z", None),
        (["...", "b"], "a\nb", None),
        (["a"], "ab", "a"),
    ],
)
def test_lines_are_looked_for_in_their_order(expected: list[str], printed: str, missing: str | None) -> None:
    assert missing_line(expected, printed) == missing


@pytest.mark.timeout(1800)
def test_every_command_of_the_page(
    tmp_path: Path, spark: "SparkSession", monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    programs = Path(sys.executable).parent
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("COLUMNS", "200")
    with broker() as running:
        monkeypatch.setenv("OTTLA_BOOTSTRAP", running.bootstrap)
        seen: set[str] = set()
        for step in steps(PAGE.read_text()):
            if isinstance(step, WriteFile):
                (tmp_path / step.name).write_text(step.text)
            elif step.line == "ottla up":
                continue  # `running` is the broker that the page starts in another terminal; test_up_greets runs it
            elif step.line.startswith(WITH_SPARK) and (not step.line.startswith(RUN) or step.line in seen):
                _call(step, capfd)
            else:
                _run(step)
                seen.add(step.line)
        assert any(line.startswith(RUN) for line in seen)


def _run(command: Command) -> None:
    done = subprocess.run(
        ["bash", "-c", command.line], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=900, check=False,
    )  # fmt: skip
    _compare(command, done.returncode, done.stdout)


def _call(command: Command, capfd: pytest.CaptureFixture[str]) -> None:
    capfd.readouterr()
    code = main(shlex.split(command.line)[1:])
    printed = capfd.readouterr()
    _compare(command, code, printed.out + printed.err)


def _compare(command: Command, code: int, printed: str) -> None:
    told = f"$ {command.line}\n{printed}"
    assert code == command.exit_code, told
    missing = missing_line(command.output, printed)
    assert missing is None, f"the page shows `{missing}`, but:\n{told}"


def test_up_greets_as_the_page_says(tmp_path: Path) -> None:
    (up,) = [step for step in steps(PAGE.read_text()) if isinstance(step, Command) and step.line == "ottla up"]
    process = subprocess.Popen(
        [Path(sys.executable).parent / "ottla", "up", "--port", "0"], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        greeting = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:9092", process.stdout.readline())
    finally:
        process.terminate()
        process.communicate(timeout=30)
    assert missing_line(up.output[:1], greeting) is None, greeting
