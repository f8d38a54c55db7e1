"""docs/first-pipeline.md, done as a newcomer would: its files written, its commands run, their output compared.

A line of output in the page must be printed in its turn; `...` in it stands for anything, and a line of nothing else
for any number of lines.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ottla.testing import broker

PAGE = Path(__file__).parents[2] / "docs" / "first-pipeline.md"
_BLOCK = re.compile(r"```(?P<language>\w+)\n(?P<text>.*?)```", re.DOTALL)
_FILE = re.compile(r"`(?P<name>[\w.]+\.(?:jsonl|yaml))`")
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
def test_every_command_of_the_page(tmp_path: Path) -> None:
    programs = Path(sys.executable).parent
    with broker() as running:
        environment = {
            **os.environ,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "OTTLA_BOOTSTRAP": running.bootstrap,
            "COLUMNS": "200",
        }
        for step in steps(PAGE.read_text()):
            if isinstance(step, WriteFile):
                (tmp_path / step.name).write_text(step.text)
            elif step.line == "ottla up":
                continue  # `running` is the broker that the page starts in another terminal; test_up_greets runs it
            else:
                _run(step, tmp_path, environment)


def _run(command: Command, folder: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(
        ["bash", "-c", command.line], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=False,
    )  # fmt: skip
    told = f"$ {command.line}\n{done.stdout}"
    assert done.returncode == command.exit_code, told
    missing = missing_line(command.output, done.stdout)
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
