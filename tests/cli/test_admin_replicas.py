"""kafka-reassign-partitions, kafka-leader-election and kafka-replica-verification against a real broker."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer

from ottla.cli.admin.leader_election import parse_partitions
from ottla.cli.common.output import CommandError
from ottla.cli.main import main
from ottla.model.names import TopicPartition
from ottla.testing import RunningBroker

Unique = Callable[[str], str]
Captured = pytest.CaptureFixture[str]
Tool = Callable[..., int]


@pytest.fixture
def tool(ottla_broker: RunningBroker) -> Tool:
    return lambda name, *arguments: main([name, "--bootstrap-server", ottla_broker.bootstrap, *arguments])


@pytest.fixture
def topic(tool: Tool, unique: Unique, capsys: Captured) -> str:
    name = unique("moved")
    assert tool("topics", "--create", "--topic", name, "--partitions", "2") == 0
    capsys.readouterr()
    return name


def plan_file(tmp_path: Path, topic: str, replicas: list[int], **more: object) -> str:
    path = tmp_path / "plan.json"
    entries = [{"topic": topic, "partition": number, "replicas": replicas, **more} for number in range(2)]
    path.write_text(json.dumps({"version": 1, "partitions": entries}))
    return str(path)


@pytest.mark.one_broker("moves what has one replica")
def test_a_plan_is_proposed_executed_and_verified(tool: Tool, topic: str, tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "topics.json").write_text(json.dumps({"version": 1, "topics": [{"topic": topic}]}))
    topics = ("--topics-to-move-json-file", str(tmp_path / "topics.json"))
    assert tool("reassign-partitions", "--generate", *topics, "--broker-list", "1") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Current partition replica assignment"
    assert lines[3] == "Proposed partition reassignment configuration"
    assert json.loads(lines[1]) == json.loads(lines[4])
    (tmp_path / "plan.json").write_text(lines[4])
    plan = ("--reassignment-json-file", str(tmp_path / "plan.json"))
    assert tool("reassign-partitions", "--execute", *plan) == 0
    out = capsys.readouterr().out
    assert "Save this to use as the --reassignment-json-file option during rollback" in out
    assert f"Successfully started partition reassignments for {topic}-0,{topic}-1" in out
    assert tool("reassign-partitions", "--verify", *plan) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"Status of partition reassignment:\nReassignment of partition {topic}-0 is completed.\n")
    assert "Clearing broker-level throttles on broker 1" in out
    assert f"Clearing topic-level throttles on topic {topic}" in out
    assert tool("reassign-partitions", "--verify", *plan, "--preserve-throttles", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["active"] is False
    assert [each["state"] for each in document["partitions"]] == ["completed", "completed"]
    assert tool("reassign-partitions", "--cancel", *plan) == 0
    assert capsys.readouterr().out.startswith("None of the specified partition reassignments are active.\n")
    assert tool("reassign-partitions", "--list") == 0
    assert capsys.readouterr().out == "No partition reassignments found.\n"


@pytest.mark.one_broker("moves what has one replica")
def test_what_cannot_be_is_told_in_words(tool: Tool, topic: str, tmp_path: Path, capsys: Captured) -> None:
    plan = ("--reassignment-json-file", plan_file(tmp_path, topic, [7]))
    assert tool("reassign-partitions", "--execute", *plan) == 1
    assert "there is no broker 7 now; the brokers are: 1" in capsys.readouterr().err
    assert tool("reassign-partitions", "--verify", *plan) == 0
    assert "but replica set is 1 rather than 7." in capsys.readouterr().out
    plan = ("--reassignment-json-file", plan_file(tmp_path, "not-there", [1]))
    assert tool("reassign-partitions", "--execute", *plan) == 1
    assert "there is no partition not-there-0" in capsys.readouterr().err
    plan = ("--reassignment-json-file", plan_file(tmp_path, topic, [1], log_dirs=["/nowhere"]))
    assert tool("reassign-partitions", "--execute", *plan) == 1
    assert "cannot move to /nowhere: the broker has no such directory" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--execute"], "--execute needs --reassignment-json-file"),
        (["--generate", "--topics-to-move-json-file", "x"], "--generate needs --broker-list"),
        (["--list", "--throttle", "5"], "--throttle goes with --execute, not --list"),
        (["--list", "--verify"], "exactly one action"),
        (["--execute", "--reassignment-json-file", "x", "--throttle", "0"], "bytes per second"),
    ],
)
def test_options_that_do_not_fit(tool: Tool, capsys: Captured, arguments: list[str], words: str) -> None:
    with pytest.raises(SystemExit) as stopped:
        tool("reassign-partitions", *arguments)
    assert stopped.value.code == 1
    assert words in capsys.readouterr().err


def test_a_file_that_is_not_there(tool: Tool, capsys: Captured) -> None:
    assert tool("reassign-partitions", "--execute", "--reassignment-json-file", "/nowhere/x") == 1
    assert "cannot read /nowhere/x" in capsys.readouterr().err


def test_elections(tool: Tool, topic: str, tmp_path: Path, capsys: Captured) -> None:
    election = ("leader-election", "--election-type")
    assert tool(*election, "preferred", "--topic", topic, "--partition", "0") == 0
    assert capsys.readouterr().out == f"Valid replica already elected for partitions {topic}-0\n"
    assert tool(*election, "UNCLEAN", "--topic", topic, "--partition", "7") == 1
    assert f"{topic}-7" in capsys.readouterr().err
    (tmp_path / "some.json").write_text(json.dumps({"partitions": [{"topic": topic, "partition": 1}]}))
    assert tool(*election, "preferred", "--path-to-json-file", str(tmp_path / "some.json"), "--json") == 0
    assert json.loads(capsys.readouterr().out) == [{"topic": topic, "partition": 1, "elected": False, "error": None}]
    assert tool(*election, "preferred", "--all-topic-partitions") == 0
    assert "nothing to elect" in capsys.readouterr().out
    for arguments in (["sideways", "--all-topic-partitions"], ["preferred"], ["preferred", "--topic", topic]):
        with pytest.raises(SystemExit):
            tool(*election, *arguments)


def test_files_with_partitions() -> None:
    named = '{"partitions": [{"topic": "a", "partition": 3}]}'
    assert parse_partitions(named) == [TopicPartition("a", 3)]
    for text, words in (
        ("{}", "must read like"),
        ('{"partitions": []}', "names no partition"),
        ('{"partitions": [{"topic": "a", "partition": 3}, {"topic": "a", "partition": 3}]}', "a-3"),
    ):
        with pytest.raises(CommandError, match=words):
            parse_partitions(text)


def test_a_lone_replica_is_equal_to_itself(
    tool: Tool, topic: str, ottla_broker: RunningBroker, capsys: Captured
) -> None:
    producer = Producer({"bootstrap.servers": ottla_broker.bootstrap})
    for number in range(100):
        producer.produce(topic, b"x" * 100, partition=number % 2)
    assert producer.flush(30) == 0
    assert tool("replica-verification", "--topics-include", topic, "--time", "-2", "--once") == 0
    out = capsys.readouterr().out
    assert "verification process is started" in out
    assert "max lag is 0 for partition" in out
    assert "among 2 partitions" in out
    assert tool("replica-verification", "--topics-include", "not-there", "--once") == 1
    assert "no topic matches" in capsys.readouterr().err
