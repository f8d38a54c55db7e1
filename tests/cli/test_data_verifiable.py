"""verifiable-producer and verifiable-consumer: the events that Kafka's system tests read."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from ottla.cli.main import main
from ottla.testing import RunningBroker

Unique = Callable[[str], str]
Captured = pytest.CaptureFixture[str]
TOOL = [sys.executable, "-c", "import sys; from ottla.cli.main import main; sys.exit(main())"]


def events(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def produce(ottla_broker: RunningBroker) -> Callable[..., int]:
    return lambda *arguments: main(["verifiable-producer", "--bootstrap-server", ottla_broker.bootstrap, *arguments])


@pytest.fixture
def consume(ottla_broker: RunningBroker) -> Callable[..., int]:
    return lambda *arguments: main(["verifiable-consumer", "--bootstrap-server", ottla_broker.bootstrap, *arguments])


def test_the_events_of_a_producer(produce: Callable[..., int], capsys: Captured, unique: Unique) -> None:
    topic = unique("produced")
    more = ["--max-messages", "3", "--repeating-keys", "2", "--value-prefix", "7"]
    assert produce("--topic", topic, *more) == 0
    start, *sent, end, data = events(capsys.readouterr().out)
    assert list(start) == ["timestamp", "name"]
    assert (start["name"], end["name"]) == ("startup_complete", "shutdown_complete")
    assert [[event[field] for field in ("name", "key", "value", "offset", "topic", "partition")] for event in sent] == [
        ["producer_send_success", str(n % 2), f"7.{n}", n, topic, 0] for n in range(3)
    ]
    assert list(data) == ["timestamp", "name", "sent", "acked", "target_throughput", "avg_throughput"]
    assert (data["sent"], data["acked"], data["target_throughput"]) == (3, 3, -1)


def test_create_times_start_where_asked(
    produce: Callable[..., int], ottla_broker: RunningBroker, capsys: Captured, unique: Unique
) -> None:
    topic = unique("created")
    assert produce("--topic", topic, "--max-messages", "1", "--message-create-time", "1000000") == 0
    capsys.readouterr()
    show = ["console-consumer", "--bootstrap-server", ottla_broker.bootstrap, "--topic", topic, "--from-beginning"]
    assert main([*show, "--max-messages", "1", "--json"]) == 0
    assert 1_000_000 <= json.loads(capsys.readouterr().out)["timestamp"] < 1_100_000


def test_a_record_that_is_lost_is_reported(capsys: Captured, tmp_path: object) -> None:
    file = f"{tmp_path}/client.properties"
    with open(file, "w") as out:
        out.write("delivery.timeout.ms=300\nlinger.ms=0\n")
    arguments = ["--bootstrap-server", "127.0.0.1:1", "--topic", "t", "--max-messages", "1", "--producer.config", file]
    assert main(["verifiable-producer", *arguments]) == 0
    captured = capsys.readouterr()
    assert "Connection to node -1 (/127.0.0.1:1) could not be established. Broker may not be" in captured.err
    _start, lost, _end, data = events(captured.out)
    assert list(lost) == ["timestamp", "name", "exception", "key", "value", "message", "topic"]
    assert (lost["name"], lost["value"], lost["topic"]) == ("producer_send_error", "0", "t")
    assert (data["sent"], data["acked"]) == (1, 0)


def test_the_events_of_a_consumer(
    produce: Callable[..., int], consume: Callable[..., int], capsys: Captured, unique: Unique
) -> None:
    topic = unique("consumed")
    assert produce("--topic", topic, "--max-messages", "3") == 0
    capsys.readouterr()
    assert consume("--topic", topic, "--group-id", unique("group"), "--max-messages", "2", "--verbose") == 0
    found = events(capsys.readouterr().out)
    place = {"topic": topic, "partition": 0}
    by_name = {event["name"]: event for event in found}
    assert found[0]["name"] == "startup_complete"
    assert [event["name"] for event in found[-2:]] == ["partitions_revoked", "shutdown_complete"]
    assert by_name["partitions_assigned"]["partitions"] == [place]
    data = [event for event in found if event["name"] == "record_data"]
    assert [(event["key"], event["value"], event["offset"]) for event in data] == [(None, "0", 0), (None, "1", 1)]
    consumed = [event for event in found if event["name"] == "records_consumed"]
    assert sum(event["count"] for event in consumed) == 2
    assert consumed[-1]["partitions"][0]["maxOffset"] == 1
    committed = by_name["offsets_committed"]
    assert (committed["offsets"], committed["success"]) == ([place | {"offset": 2}], True)
    assert "error" not in committed


def test_autocommit_has_no_commit_events_but_commits(
    produce: Callable[..., int], consume: Callable[..., int], capsys: Captured, unique: Unique
) -> None:
    topic, group = unique("auto"), unique("group")
    assert produce("--topic", topic, "--max-messages", "4") == 0
    common = ["--topic", topic, "--group-id", group, "--max-messages", "2", "--enable-autocommit"]
    capsys.readouterr()
    assert consume(*common) == 0
    assert "offsets_committed" not in capsys.readouterr().out
    assert consume(*common, "--assignment-strategy", "org.apache.kafka.clients.consumer.RoundRobinAssignor") == 0
    assert '"minOffset":2,"maxOffset":3' in capsys.readouterr().out


def test_sigterm_ends_a_consumer_in_order(
    ottla_broker: RunningBroker, produce: Callable[..., int], unique: Unique
) -> None:
    topic = unique("terminated")
    assert produce("--topic", topic, "--max-messages", "1") == 0
    command = [*TOOL, "verifiable-consumer", "--bootstrap-server", ottla_broker.bootstrap, "--topic", topic]
    with subprocess.Popen([*command, "--group-id", unique("group")], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        seen = ""
        while "offsets_committed" not in seen:
            line = process.stdout.readline()
            assert line, f"ended early: {seen}"
            seen += line
        process.send_signal(signal.SIGTERM)
        rest = process.stdout.read()
        assert process.wait(timeout=30) == 0
    names = [event["name"] for event in events(rest)]
    assert names == ["shutdown_requested", "partitions_revoked", "shutdown_complete"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--group-protocol", "consumer", "--session-timeout", "5000"],
        ["--group-remote-assignor", "uniform"],
        ["--assignment-strategy", "com.acme.Assignor"],
    ],
)
def test_what_the_consumer_refuses(consume: Callable[..., int], capsys: Captured, arguments: list[str]) -> None:
    assert consume("--topic", "t", "--group-id", "g", *arguments) == 1
    assert capsys.readouterr().err.startswith("error: ")
