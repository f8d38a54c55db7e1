"""Apache Kafka's own command-line tools against a running broker."""

import json
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from compat.peer.kafka import PeerError, java_command, run_tool

from ottla.protocol.apis import API
from ottla.testing.running import RunningBroker

pytestmark = pytest.mark.usefixtures("kafka_libs")

TOOLS = "org.apache.kafka.tools"
TOPICS = f"{TOOLS}.TopicCommand"
GROUPS = f"{TOOLS}.consumer.group.ConsumerGroupCommand"
PRODUCE = f"{TOOLS}.ConsoleProducer"
CONSUME = f"{TOOLS}.consumer.ConsoleConsumer"
CONFIGS = "kafka.admin.ConfigCommand"

Tool = Callable[..., str]
Unique = Callable[[str], str]


@pytest.fixture
def tool(ottla_broker: RunningBroker) -> Tool:
    """Run a tool against the broker and give back what it printed."""

    def run(main_class: str, *arguments: str, stdin: str | None = None) -> str:
        return run_tool(main_class, "--bootstrap-server", ottla_broker.bootstrap, *arguments, stdin=stdin)

    return run


@pytest.fixture
def topic(tool: Tool, unique: Unique) -> str:
    """A topic with two partitions."""
    name = unique("tools")
    tool(TOPICS, "--create", "--topic", name, "--partitions", "2", "--replication-factor", "1")
    return name


def _fill(tool: Tool, topic: str, count: int) -> None:
    tool(PRODUCE, "--topic", topic, stdin="".join(f"line {number}\n" for number in range(count)))


def test_topics(tool: Tool, topic: str) -> None:
    assert topic in tool(TOPICS, "--list").split()
    tool(TOPICS, "--create", "--topic", topic, "--if-not-exists")
    with pytest.raises(PeerError, match="already exists"):
        tool(TOPICS, "--create", "--topic", topic)

    tool(TOPICS, "--alter", "--topic", topic, "--partitions", "5")
    described = tool(TOPICS, "--describe", "--topic", topic)
    assert f"Topic: {topic}" in described
    assert "PartitionCount: 5" in described
    assert described.count("Leader: 1") == 5
    assert tool(TOPICS, "--describe", "--under-replicated-partitions").strip() == ""

    tool(TOPICS, "--delete", "--topic", topic)
    assert topic not in tool(TOPICS, "--list").split()


def test_topic_settings(tool: Tool, topic: str) -> None:
    entity = ("--entity-type", "topics", "--entity-name", topic)
    tool(CONFIGS, "--alter", *entity, "--add-config", "retention.ms=86400000,cleanup.policy=[compact,delete]")
    described = tool(CONFIGS, "--describe", *entity)
    assert "retention.ms=86400000" in described
    assert "DYNAMIC_TOPIC_CONFIG:retention.ms=86400000" in described
    assert "cleanup.policy=compact,delete" in described
    assert "retention.ms=86400000" in tool(TOPICS, "--describe", "--topic", topic)

    tool(CONFIGS, "--alter", *entity, "--delete-config", "retention.ms")
    assert "retention.ms" not in tool(CONFIGS, "--describe", *entity)
    with pytest.raises(PeerError, match="retention"):
        tool(CONFIGS, "--alter", *entity, "--add-config", "retention.ms=soon")


def test_broker_settings(tool: Tool) -> None:
    entity = ("--entity-type", "brokers", "--entity-name", "1")
    tool(CONFIGS, "--alter", *entity, "--add-config", "message.max.bytes=2000000")
    assert "message.max.bytes=2000000" in tool(CONFIGS, "--describe", *entity)
    tool(CONFIGS, "--alter", *entity, "--delete-config", "message.max.bytes")
    assert "message.max.bytes" not in tool(CONFIGS, "--describe", *entity)
    assert "log.segment.bytes=" in tool(CONFIGS, "--describe", "--all", *entity)


def test_console_with_keys_and_headers(tool: Tool, topic: str) -> None:
    lines = "a:1,b:2\tkey\tvalue\nc:\tkey2\tvalue2\n"
    parse = [word for name in ("parse.key", "parse.headers") for word in ("--reader-property", f"{name}=true")]
    tool(PRODUCE, "--topic", topic, *parse, "--compression-codec", "zstd", stdin=lines)
    wanted = ("key", "headers", "offset", "partition")
    shown = [word for name in wanted for word in ("--formatter-property", f"print.{name}=true")]
    read = tool(CONSUME, "--topic", topic, "--from-beginning", "--max-messages", "2", *shown)
    assert sorted(re.sub(r"Partition:\d\tOffset:\d\t", "", line) for line in read.splitlines()) == sorted(
        ["a:1,b:2\tkey\tvalue", "c:\tkey2\tvalue2"]
    )


def test_consumer_groups(tool: Tool, topic: str, unique: Unique) -> None:
    group = unique("group")
    _fill(tool, topic, 20)
    tool(CONSUME, "--topic", topic, "--group", group, "--from-beginning", "--max-messages", "20")

    assert group in tool(GROUPS, "--list").split()
    assert _offsets(tool, group) == (20, 0)
    assert "Empty" in tool(GROUPS, "--describe", "--group", group, "--state")

    reset = ("--reset-offsets", "--group", group, "--topic", topic)
    assert "NEW-OFFSET" in tool(GROUPS, *reset, "--to-earliest", "--dry-run")
    assert _offsets(tool, group) == (20, 0)
    tool(GROUPS, *reset, "--to-earliest", "--execute")
    assert _offsets(tool, group) == (0, 20)
    tool(GROUPS, *reset, "--to-latest", "--execute")
    tool(GROUPS, *reset, "--shift-by", "-1", "--execute")
    committed, lag = _offsets(tool, group)
    assert committed + lag == 20
    assert lag >= 1
    tool(GROUPS, *reset, "--to-datetime", "2020-01-01T00:00:00.000", "--execute")
    assert _offsets(tool, group) == (0, 20)
    tool(GROUPS, *reset, "--by-duration", "PT0S", "--execute")

    tool(GROUPS, "--delete-offsets", "--group", group, "--topic", topic)
    tool(GROUPS, "--delete", "--group", group)
    assert group not in tool(GROUPS, "--list").split()


def _offsets(tool: Tool, group: str) -> tuple[int, int]:
    """The sums of committed offsets and of lag over the partitions."""
    rows = [line.split() for line in tool(GROUPS, "--describe", "--group", group).splitlines() if group in line]
    rows = [row for row in rows if row[0] == group]
    return sum(int(row[3]) for row in rows), sum(int(row[5]) for row in rows)


def test_listing_of_all_groups(tool: Tool, topic: str, unique: Unique) -> None:
    group = unique("group")
    _fill(tool, topic, 1)
    tool(CONSUME, "--topic", topic, "--group", group, "--from-beginning", "--max-messages", "1")
    (row,) = [line.split() for line in tool(f"{TOOLS}.GroupsCommand", "--list").splitlines() if line.startswith(group)]
    assert row == [group, "Classic", "consumer"]


def test_offsets_by_time(tool: Tool, topic: str) -> None:
    _fill(tool, topic, 10)
    answers = {}
    for when in ("latest", "earliest", "max-timestamp", "earliest-local", "latest-tiered"):
        printed = tool(f"{TOOLS}.GetOffsetShell", "--topic", topic, "--time", when)
        answers[when] = [int(line.split(":")[2] or -1) for line in printed.splitlines()]
    assert sum(answers["latest"]) == 10
    assert answers["earliest"] == answers["earliest-local"] == [0, 0]
    assert max(answers["max-timestamp"]) >= 0


def test_deleting_records(tool: Tool, topic: str, tmp_path: Path) -> None:
    tool(PRODUCE, "--topic", topic, "--reader-property", "parse.key=true", stdin="k\tv\n" * 10)
    sizes = tool(f"{TOOLS}.GetOffsetShell", "--topic", topic, "--time", "latest").splitlines()
    (partition,) = [int(line.split(":")[1]) for line in sizes if line.endswith(":10")]
    wanted = tmp_path / "offsets.json"
    wanted.write_text(json.dumps({"partitions": [{"topic": topic, "partition": partition, "offset": 4}], "version": 1}))

    printed = tool(f"{TOOLS}.DeleteRecordsCommand", "--offset-json-file", str(wanted))

    assert "low_watermark: 4" in printed
    earliest = tool(f"{TOOLS}.GetOffsetShell", "--topic", topic, "--time", "earliest")
    assert f"{topic}:{partition}:4" in earliest.splitlines()


def test_log_dirs(tool: Tool, topic: str, ottla_broker: RunningBroker) -> None:
    _fill(tool, topic, 5)
    printed = tool(f"{TOOLS}.LogDirsCommand", "--describe", "--topic-list", topic)
    (answer,) = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    (log_dir,) = answer["brokers"][0]["logDirs"]
    assert log_dir["error"] is None
    assert log_dir["logDir"] == str(ottla_broker.log_dirs[0])
    assert {each["partition"] for each in log_dir["partitions"]} == {f"{topic}-0", f"{topic}-1"}
    assert sum(each["size"] for each in log_dir["partitions"]) > 0


def test_api_versions_are_usable(tool: Tool) -> None:
    printed = tool(f"{TOOLS}.BrokerApiVersionsCommand")
    found = re.findall(r"(\w+)\((\d+)\): (?:(\d+)(?: to (\d+))? \[usable: (\d+)\]|UNSUPPORTED)", printed)
    usable = {int(key): int(best) for _, key, _, _, best in found if best}
    assert len(usable) >= 29
    for key, best in usable.items():
        # Kafka keeps its newest InitProducerId to itself.
        assert best == (5 if key == 22 else API[key].max_version), API[key].name


def test_cluster_id(ottla_broker: RunningBroker) -> None:
    printed = run_tool(f"{TOOLS}.ClusterTool", "cluster-id", "--bootstrap-server", ottla_broker.bootstrap)
    assert re.match(r"Cluster ID: \S{22}$", printed.strip())


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_performance_tools(tool: Tool, topic: str, ottla_broker: RunningBroker, acks: str) -> None:
    size = ("--num-records", "20000", "--record-size", "200", "--throughput", "-1")
    properties = ("--command-property", f"acks={acks}", "--command-property", "compression.type=lz4")
    printed = tool(f"{TOOLS}.ProducerPerformance", "--topic", topic, *size, *properties)
    assert "20000 records sent" in printed

    printed = tool(f"{TOOLS}.ConsumerPerformance", "--topic", topic, "--num-records", "20000")
    assert int(printed.splitlines()[1].split(",")[4]) >= 20000
    assert ottla_broker.running


def test_end_to_end_latency(tool: Tool, topic: str) -> None:
    arguments = ("--topic", topic, "--num-records", "100", "--producer-acks", "all", "--record-size", "100")
    assert "99th = " in tool(f"{TOOLS}.EndToEndLatency", *arguments)


def test_verifiable_clients(tool: Tool, topic: str, ottla_broker: RunningBroker, unique: Unique) -> None:
    printed = tool(f"{TOOLS}.VerifiableProducer", "--topic", topic, "--max-messages", "50", "--acks", "-1")
    events = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    assert sum(event["name"] == "producer_send_success" for event in events) == 50

    arguments = ("--topic", topic, "--group-id", unique("group"), "--reset-policy", "earliest", "--max-messages", "50")
    consumer = java_command(
        f"{TOOLS}.VerifiableConsumer", "--bootstrap-server", ottla_broker.bootstrap, *arguments, flags=("-Xmx256m",)
    )
    process = subprocess.Popen(consumer, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        consumed = 0
        for line in process.stdout:
            event: dict[str, Any] = json.loads(line) if line.startswith("{") else {}
            consumed += event["count"] if event.get("name") == "records_consumed" else 0
            if consumed >= 50:
                break
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert consumed == 50


def test_client_compatibility_checker(topic: str, ottla_broker: RunningBroker) -> None:
    """Kafka's own checker of what a client may expect of a broker."""
    expected = {
        "offsets-for-times-supported": True, "cluster-id-supported": True, "expect-record-too-large-exception": False,
        "create-topics-supported": True, "describe-acls-supported": False, "describe-configs-supported": True,
        "idempotent-producer-supported": True,
    }  # fmt: skip
    features = [word for name, there in expected.items() for word in (f"--{name}", str(there).lower())]
    server = ("--bootstrap-server", ottla_broker.bootstrap)
    printed = run_tool(
        f"{TOOLS}.ClientCompatibilityTest", *server, "--topic", topic, "--num-cluster-nodes", "1", *features
    )
    assert "SUCCESS" in printed
