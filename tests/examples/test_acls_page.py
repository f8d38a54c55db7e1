"""docs/security-acls.md: its broker is started, its commands are run, and print what the page says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.examples.test_first_pipeline import Command, WriteFile, missing_line, steps

from ottla.config.properties import parse_properties
from ottla.testing import broker

PAGE = Path(__file__).parents[2] / "docs" / "security-acls.md"


def test_the_example_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = list(steps(PAGE.read_text()))
    files = {step.name: step.text for step in found if isinstance(step, WriteFile)}
    settings = parse_properties(files.pop("server.properties"))
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    with broker({**settings, "listeners": "CLIENTS://127.0.0.1:0"}) as running:
        monkeypatch.setenv("OTTLA_BOOTSTRAP", running.bootstrap)
        for step in found:
            if isinstance(step, Command):
                # The names that come with an installation may be newer than this one's.
                line = step.line.replace("kafka-acls.sh", "ottla acls").replace("kafka-topics.sh", "ottla topics")
                done = subprocess.run(
                    ["bash", "-c", line], cwd=tmp_path, stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False,
                )  # fmt: skip
                assert done.returncode == step.exit_code, f"{step.line}\n{done.stdout}"
                assert missing_line(step.output, done.stdout) is None, f"{step.line}\n{done.stdout}"
                if not step.output:
                    assert done.stdout == "", step.line
    assert sum(isinstance(step, Command) for step in found) > 7
