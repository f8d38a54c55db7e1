"""The page about logging in, followed as a new user would."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.testing.ports import free_ports
from ottla.testing.waiting import wait_until

PAGE = Path(__file__).parents[2] / "docs/security-sasl.md"
FIRST = PAGE.read_text().split("## One broker, from nothing", 1)[1].split("\n## ", 1)[0]
BLOCK = re.compile(r"```(?P<language>\w+)\n(?P<text>.*?)```", re.DOTALL)

pytestmark = pytest.mark.one_broker("starts one as the page says")


def test_the_first_example_works_as_it_stands(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    environment = {**os.environ, "NEW_PASSWORD": "another good one", "OTTLA_BOOTSTRAP": f"127.0.0.1:{port}"}
    ottla = Path(sys.executable).with_name("ottla")
    broker: subprocess.Popen[str] | None = None
    said = ""

    def run(line: str) -> str:
        program = line.replace("ottla ", f"{shlex.quote(str(ottla))} ", 1) if line.startswith("ottla ") else line
        done = subprocess.run(
            program, shell=True, cwd=tmp_path, env=environment, text=True, capture_output=True, timeout=60, check=False
        )
        assert done.returncode == 0, f"{line}: {done.stderr}"
        return done.stdout

    try:
        for block in BLOCK.finditer(FIRST):
            text = block["text"].replace("9092", str(port))
            if block["language"] == "properties":
                (tmp_path / text.splitlines()[0].removeprefix("# ")).write_text(text)
                continue
            for line in text.splitlines():
                if line.startswith("ottla broker"):
                    broker = subprocess.Popen(
                        [ottla, *shlex.split(line)[1:]],
                        cwd=tmp_path,
                        env={**environment, "OTTLA_RUN_DIR": str(tmp_path / "run")},
                        stdout=subprocess.PIPE,
                        text=True,
                    )
                    assert broker.stdout is not None
                    assert "accepts connections" in wait_until(broker.stdout.readline, "a broker")
                else:
                    said += run(line)
    finally:
        if broker is not None:
            broker.terminate()
            broker.communicate(timeout=60)
    assert "app  SCRAM-SHA-256 (4096 iterations), SCRAM-SHA-512" in said
    assert "Removed user app" in said
    assert "a good password" not in said
