"""docs/tools.md: its example is written down and run, and prints what the page says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.examples.test_first_pipeline import Command, WriteFile, missing_line, steps

from ottla.testing import RunningBroker

PAGE = Path(__file__).parents[2] / "docs" / "tools.md"


def test_the_example_of_the_page(tmp_path: Path, ottla_broker: RunningBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.setenv("OTTLA_BOOTSTRAP", ottla_broker.bootstrap)
    found = list(steps(PAGE.read_text()))
    for step in found:
        if isinstance(step, WriteFile):
            (tmp_path / step.name).write_text(step.text)
            continue
        done = subprocess.run(
            ["bash", "-c", step.line], cwd=tmp_path, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == step.exit_code, f"{step.line}\n{done.stdout}"
        assert missing_line(step.output, done.stdout) is None, f"{step.line}\n{done.stdout}"
    assert sum(isinstance(step, Command) for step in found) > 5
