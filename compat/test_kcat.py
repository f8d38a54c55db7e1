"""kcat against a running broker."""

import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from ottla.testing.running import RunningBroker

Run = Callable[..., str]


@pytest.fixture
def run(kcat: str, ottla_broker: RunningBroker) -> Run:
    """Run kcat against the broker with these arguments; its failure is the test's."""

    def run_kcat(*arguments: str, stdin: str | None = None) -> str:
        command = [kcat, "-b", ottla_broker.bootstrap, *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run_kcat


def test_metadata(run: Run, unique: Callable[[str], str], ottla_broker: RunningBroker) -> None:
    topic = unique("kcat")
    run("-P", "-t", topic, stdin="one\n")

    seen: dict[str, Any] = json.loads(run("-L", "-J"))

    (broker,) = seen["brokers"]
    assert broker["name"] == ottla_broker.bootstrap
    assert seen["controllerid"] == broker["id"]
    (described,) = [each for each in seen["topics"] if each["topic"] == topic]
    assert described["partitions"] == [
        {"partition": 0, "leader": broker["id"], "replicas": [{"id": broker["id"]}], "isrs": [{"id": broker["id"]}]}
    ]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_keys_headers_and_codecs_come_through(run: Run, unique: Callable[[str], str], codec: str) -> None:
    topic = unique("kcat")
    lines = "".join(f"key-{number}:value {number} {'x' * 500}\n" for number in range(50))
    run("-P", "-t", topic, "-K:", "-H", "trace=abc", "-H", "empty=", "-z", codec, stdin=lines)

    read = run("-C", "-t", topic, "-e", "-q", "-f", "%o|%k|%h|%s\n")

    assert read.splitlines() == [
        f"{number}|key-{number}|trace=abc,empty=|value {number} {'x' * 500}" for number in range(50)
    ]


def test_null_values(run: Run, unique: Callable[[str], str]) -> None:
    topic = unique("kcat")
    run("-P", "-t", topic, "-K:", "-Z", stdin="gone:\nkept:here\n")

    assert run("-C", "-t", topic, "-e", "-q", "-f", "%k %S\n").splitlines() == ["gone -1", "kept 4"]


@pytest.mark.parametrize(
    ("offset", "expected"),
    [("beginning", "0 1 2 3 4 5 6 7 8 9"), ("7", "7 8 9"), ("-2", "8 9"), ("end", "")],
)
def test_offsets(run: Run, unique: Callable[[str], str], offset: str, expected: str) -> None:
    topic = unique("kcat")
    run("-P", "-t", topic, "-X", "acks=all", stdin="".join(f"{number}\n" for number in range(10)))

    assert run("-C", "-t", topic, "-p", "0", "-o", offset, "-e", "-q").split() == expected.split()


def test_offsets_by_time(run: Run, unique: Callable[[str], str]) -> None:
    topic = unique("kcat")
    run("-P", "-t", topic, "-X", "enable.idempotence=true", stdin="one\ntwo\n")
    stamps = [int(word) for word in run("-C", "-t", topic, "-e", "-q", "-f", "%T\n").split()]

    answers = [run("-Q", "-t", f"{topic}:0:{stamp}") for stamp in (-1, -2, stamps[0], stamps[-1] + 1)]

    assert [answer.split("offset ")[1].strip() for answer in answers] == ["2", "0", "0", "-1"]


def test_group(run: Run, unique: Callable[[str], str]) -> None:
    topic, group = unique("kcat"), unique("group")
    run("-P", "-t", topic, stdin="one\ntwo\n")
    consume = ("-G", group, "-e", "-q", "-X", "auto.offset.reset=earliest", topic)

    assert run(*consume).split() == ["one", "two"]
    run("-P", "-t", topic, stdin="three\n")
    assert run(*consume).split() == ["three"]
