"""A broker that refuses: the console tools say what is wrong and what to do, and not after minutes."""

import io
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from ottla.cli.main import main
from ottla.testing import RunningBroker, broker

Captured = pytest.CaptureFixture[str]
Unique = Callable[[str], str]
TOOL = [sys.executable, "-c", "import sys; from ottla.cli.main import main; sys.exit(main())"]


@pytest.fixture(scope="module")
def strict() -> Iterator[RunningBroker]:
    """A broker that creates no topic by itself."""
    with broker({"auto.create.topics.enable": False, "group.min.session.timeout.ms": 6000}) as running:
        yield running


def _at(strict: RunningBroker, name: str, *arguments: str) -> int:
    return main([name, "--bootstrap-server", strict.bootstrap, *arguments])


def _create_compacted(strict: RunningBroker, name: str) -> str:
    assert _at(strict, "topics", "--create", "--topic", name, "--config", "cleanup.policy=compact") == 0
    return name


def test_a_record_without_a_key_for_a_compacted_topic(
    strict: RunningBroker, unique: Unique, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    topic = _create_compacted(strict, unique("compacted"))
    reader = ["--reader-property", "parse.key=true", "--reader-property", "null.marker=NULL"]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"k\tv\nNULL\tv\nNULL\tw\n")))
    assert _at(strict, "console-producer", "--topic", topic, *reader) == 1
    with_key, *keyless, _sum = capsys.readouterr().err.splitlines()
    assert "(key 'k') was not sent: Local: an invalid record in the same batch" in with_key
    assert len(keyless) == 2
    for line in keyless:
        assert "the topic has cleanup.policy=compact, so every record needs a key" in line
        assert "parse.key=true" in line


def test_a_session_timeout_out_of_bounds(strict: RunningBroker, unique: Unique, capsys: Captured) -> None:
    topic = _create_compacted(strict, unique("bounds"))
    assert _at(strict, "console-consumer", "--topic", topic, "--consumer-property", "session.timeout.ms=1") == 1
    said = capsys.readouterr().err
    logged = strict.log_text()
    for text in (said, logged):
        assert "session.timeout.ms=1 " in text
        assert "group.min.session.timeout.ms=6000" in text
        assert "group.max.session.timeout.ms=1800000" in text


@pytest.mark.parametrize(
    "arguments",
    [["console-producer"], ["console-consumer"], ["console-consumer", "--partition", "0"]],
    ids=["producer", "consumer", "one partition"],
)
def test_a_topic_that_does_not_exist(strict: RunningBroker, unique: Unique, arguments: list[str]) -> None:
    topic = unique("missing")
    name, *options = arguments
    command = [*TOOL, name, "--bootstrap-server", strict.bootstrap, "--topic", topic, *options]
    began = time.monotonic()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as tool:
        try:
            assert tool.stdin is not None
            assert tool.stderr is not None
            tool.stdin.write("a\n")
            tool.stdin.flush()
            said = tool.stderr.readline()
            assert topic in said
            assert "does not exist (UNKNOWN_TOPIC_OR_PARTITION)" in said
            assert "auto.create.topics.enable=true" in said
            assert time.monotonic() - began < 29  # librdkafka's own word on it comes after 30 seconds, if at all
        finally:
            tool.kill()


def test_what_becomes_of_records_for_a_topic_that_does_not_exist(
    strict: RunningBroker, unique: Unique, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    topic = unique("missing")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\n")))
    assert _at(strict, "console-producer", "--topic", topic, "--max-block-ms", "1000") == 1
    warning, refusal, _sum = capsys.readouterr().err.splitlines()
    assert warning.endswith("waiting for it")
    assert "was not sent: Broker: Unknown topic or partition" in refusal
    assert "kafka-topics --create" in refusal
