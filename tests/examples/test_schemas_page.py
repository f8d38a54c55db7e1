"""docs/schemas.md: its files are written and its commands run, and print what the page says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.examples.test_first_pipeline import Command, WriteFile, missing_line, steps

from ottla.testing.ports import free_ports
from ottla.testing.registry import registry
from ottla.testing.running import broker

PAGE = Path(__file__).parents[2] / "docs" / "schemas.md"


def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.setenv("OTTLA_REGISTRY", url)
    found = list(steps(PAGE.read_text()))
    with (
        broker({"confluent.schema.registry.url": url}) as running,
        registry(running.bootstrap, "--listen", f"127.0.0.1:{port}"),
    ):
        monkeypatch.setenv("OTTLA_BOOTSTRAP", running.bootstrap)
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
    assert sum(isinstance(step, Command) for step in found) > 10
