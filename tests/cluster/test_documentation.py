"""The examples of docs/cluster.md, run as they stand there but for the port."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from ottla.testing.ports import free_ports

DOCUMENT = Path(__file__).parents[2] / "docs" / "cluster.md"
PROGRAM = "import sys; from ottla.cli.main import main; sys.exit(main())"
START, *BLOCKS = re.findall(r"^```bash\n(.+?)^```", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
(EXAMPLE,) = re.findall(r"^```python\n(.+?)^```", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)


def test_the_laptop(tmp_path: Path) -> None:
    assert START == "ottla cluster\n"
    port = free_ports(1)[0]
    with (tmp_path / "log").open("wb") as log:
        cluster = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, "cluster", "--port", str(port)],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=log,
        )
    assert cluster.stdout is not None
    try:
        bootstrap = cluster.stdout.readline().decode().strip()
        assert bootstrap, (tmp_path / "log").read_text()
        (script,) = BLOCKS
        written = "127.0.0.1:9092,127.0.0.1:9093,127.0.0.1:9094"
        assert written in script
        environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script.replace(written, bootstrap)],
            env=environment, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.splitlines()[-1] == "1000"
        assert re.search(r"Topic: news\s.*ReplicationFactor: 3", done.stdout)
        cluster.send_signal(signal.SIGINT)
        assert cluster.wait(60) == 0
    finally:
        cluster.kill()
        cluster.wait()
        cluster.stdout.close()


def test_the_example_in_python(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", EXAMPLE], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert re.match(r"127\.0\.0\.1:\d+,.* [123]\n", done.stdout)
