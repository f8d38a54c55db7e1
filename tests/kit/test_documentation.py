"""The examples of docs/testing-kit.md, run as they stand there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCUMENT = Path(__file__).parents[2] / "docs" / "testing-kit.md"
EXAMPLES = re.findall(r"^## (.+?)$.*?^```python\n(.+?)^```", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)


def _run(arguments: list[str], directory: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, *arguments], cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=120, check=False,
    )  # fmt: skip


def test_the_document_has_the_examples_it_promises() -> None:
    assert len(EXAMPLES) == 3
    assert "confluent_kafka" in EXAMPLES[0][1]
    assert "aiokafka" in EXAMPLES[1][1]


@pytest.mark.parametrize(("title", "code"), EXAMPLES, ids=[title for title, _ in EXAMPLES])
def test_example(title: str, code: str, tmp_path: Path) -> None:
    (tmp_path / "test_example.py").write_text(code)
    if "def test_" in code:
        done = _run(["-m", "pytest", "-q", "-W", "error", "--strict-markers", "test_example.py"], tmp_path)
        assert "1 passed" in done.stdout, done.stdout
    else:
        done = _run(["test_example.py"], tmp_path)
        assert done.returncode == 0, done.stdout
        assert done.stdout.startswith("127.0.0.1:"), done.stdout
