"""kafka-get-offsets, kafka-delete-records, kafka-log-dirs and kafka-broker-api-versions against a real broker."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer

from ottla.cli.admin.delete_records import parse_offsets
from ottla.cli.admin.get_offsets import parse_rules
from ottla.cli.common.offset_times import parse_time
from ottla.cli.common.output import CommandError
from ottla.cli.main import main
from ottla.model.names import TopicPartition
from ottla.testing import RunningBroker

Unique = Callable[[str], str]
Captured = pytest.CaptureFixture[str]
Tool = Callable[..., int]

FIRST_MS = 1_700_000_000_000


@pytest.fixture
def tool(ottla_broker: RunningBroker) -> Tool:
    return lambda name, *arguments: main([name, "--bootstrap-server", ottla_broker.bootstrap, *arguments])


@pytest.fixture
def topic(ottla_broker: RunningBroker, unique: Unique, capsys: Captured, tool: Tool) -> str:
    """Three partitions; five records, a second apart, in the second."""
    name = unique("data")
    assert tool("topics", "--create", "--topic", name, "--partitions", "3", "--config", "retention.ms=-1") == 0
    capsys.readouterr()
    producer = Producer({"bootstrap.servers": ottla_broker.bootstrap})
    for number in range(5):
        producer.produce(name, b"x" * 100, partition=1, timestamp=FIRST_MS + number * 1000)
    assert producer.flush(30) == 0
    return name


def lines(capsys: Captured) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_offsets_at_the_ends_and_at_a_time(tool: Tool, topic: str, capsys: Captured) -> None:
    assert tool("get-offsets", "--topic", topic) == 0
    assert lines(capsys) == [f"{topic}:0:0", f"{topic}:1:5", f"{topic}:2:0"]
    assert tool("get-offsets", "--topic", topic, "--time", "-2") == 0
    assert lines(capsys) == [f"{topic}:{n}:0" for n in range(3)]
    assert tool("get-offsets", "--topic", topic, "--time", str(FIRST_MS + 1500)) == 0
    assert lines(capsys) == [f"{topic}:1:2"]
    assert tool("get-offsets", "--topic", topic, "--time", "max-timestamp", "--json") == 0
    [found] = json.loads(capsys.readouterr().out)
    assert found == {"topic": topic, "partition": 1, "offset": 4, "timestamp": FIRST_MS + 4000}


def test_offsets_of_chosen_partitions(tool: Tool, topic: str, capsys: Captured) -> None:
    assert tool("get-offsets", "--topic", topic, "--partitions", "1,2") == 0
    assert lines(capsys) == [f"{topic}:1:5", f"{topic}:2:0"]
    assert tool("get-offsets", "--topic-partitions", f"{topic}:-1,{topic}:2-") == 0
    assert lines(capsys) == [f"{topic}:0:0", f"{topic}:2:0"]
    assert tool("get-offsets", "--topic", "absent-topic") == 1
    assert "no partition matches" in capsys.readouterr().err


def test_records_are_dropped(tool: Tool, topic: str, capsys: Captured, tmp_path: Path) -> None:
    file = tmp_path / "offsets.json"

    def ask(*entries: tuple[int, int]) -> str:
        partitions = [{"topic": topic, "partition": number, "offset": offset} for number, offset in entries]
        file.write_text(json.dumps({"partitions": partitions, "version": 1}))
        return str(file)

    assert tool("delete-records", "--offset-json-file", ask((0, -1), (1, 3))) == 0
    assert lines(capsys) == [
        "Executing records delete operation",
        "Records delete operation completed:",
        f"partition: {topic}-0\tlow_watermark: 0",
        f"partition: {topic}-1\tlow_watermark: 3",
    ]
    assert tool("get-offsets", "--topic", topic, "--partitions", "1", "--time", "earliest") == 0
    assert lines(capsys) == [f"{topic}:1:3"]
    assert tool("delete-records", "--json", "--offset-json-file", ask((1, -1), (1 + 6, 0))) == 1
    dropped, unknown = json.loads(capsys.readouterr().out)
    assert dropped == {"topic": topic, "partition": 1, "low_watermark": 5}
    assert unknown["error"] == "there is no such topic or partition"
    assert tool("delete-records", "--offset-json-file", ask((1, 99))) == 1
    assert f"partition: {topic}-1\terror: the partition does not have that offset" in lines(capsys)


@pytest.mark.one_broker("lists the brokers")
def test_disk_usage(tool: Tool, topic: str, capsys: Captured) -> None:
    assert tool("log-dirs", "--describe", "--topic-list", topic) == 0
    asking, received, document = lines(capsys)
    assert asking == "Querying brokers for log directories information"
    assert received == "Received log directory information from brokers 1"
    [broker] = json.loads(document)["brokers"]
    [directory] = broker["logDirs"]
    sizes = {partition["partition"]: partition["size"] for partition in directory["partitions"]}
    assert set(sizes) == {f"{topic}-{n}" for n in range(3)}
    assert sizes[f"{topic}-1"] > 500 > sizes[f"{topic}-0"] == 0
    assert tool("log-dirs", "--describe", "--broker-list", "1", "--json") == 0
    assert json.loads(capsys.readouterr().out)["version"] == 1
    assert tool("log-dirs", "--describe", "--broker-list", "1,5") == 1
    assert "there is no broker 5; the brokers are 1" in capsys.readouterr().err


@pytest.mark.one_broker("lists the brokers")
def test_what_a_broker_serves(tool: Tool, capsys: Captured, ottla_broker: RunningBroker) -> None:
    assert tool("broker-api-versions") == 0
    first, *shown = lines(capsys)
    assert first == f"{ottla_broker.bootstrap} (id: 1 rack: null isFenced: false) -> ("
    assert "\tProduce(0): 0 to 13 [usable: 13]," in shown
    assert "\tShareFetch(78): UNSUPPORTED," in shown
    assert shown[-1] == ")"
    assert tool("broker-api-versions", "--json") == 0
    [document] = json.loads(capsys.readouterr().out)
    assert {"key": 1, "name": "Fetch", "min": 4, "max": 18} in document["apis"]


def test_times() -> None:
    assert [parse_time(text) for text in ("latest", "-1", "earliest", "1700000000000")] == [-1, -1, -2, FIRST_MS]
    with pytest.raises(CommandError, match="--time wants"):
        parse_time("noon")


def test_rules_for_partitions() -> None:
    everything = [TopicPartition(topic, number) for topic in ("a", "ab") for number in range(4)]

    def chosen(rules: str) -> list[str]:
        return [str(partition) for partition in everything if parse_rules(rules)(partition)]

    assert chosen("a") == ["a-0", "a-1", "a-2", "a-3"]
    assert chosen("a.*:1") == ["a-1", "ab-1"]
    assert chosen(":3") == ["a-3", "ab-3"]
    assert chosen("a:1-3,ab:-1") == ["a-1", "a-2", "ab-0"]
    with pytest.raises(CommandError, match="does not read"):
        parse_rules("a:b")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nonsense", "must read like"),
        ("[]", "must read like"),
        ('{"partitions": [{"topic": "t"}]}', "must read like"),
        ('{"partitions": [], "version": 2}', "version 2"),
        ('{"partitions": [{"topic":"t","partition":0,"offset":1},{"topic":"t","partition":0,"offset":2}]}', "twice"),
    ],
)
def test_files_that_do_not_say_what_to_drop(text: str, words: str) -> None:
    with pytest.raises(CommandError, match=words):
        parse_offsets(text)
