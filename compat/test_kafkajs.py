"""kafkajs against a running broker, by a program of ours in compat/js."""

import subprocess
from pathlib import Path

from compat.peer.kafka import ROOT, require

from ottla.testing.running import RunningBroker


def test_kafkajs(kafkajs: Path, ottla_broker: RunningBroker) -> None:
    node = require("node", why="to run kafkajs (Debian: apt install nodejs)")
    command = [node, "--no-deprecation", str(ROOT / "compat" / "js" / "check.js"), ottla_broker.bootstrap]

    done = subprocess.run(command, cwd=kafkajs, capture_output=True, text=True, timeout=120, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip() == "passed"
