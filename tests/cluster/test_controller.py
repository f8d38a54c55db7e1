"""What the controller does, and its tools, with three real brokers: stops, kills, moves, elections, throttles."""

import contextlib
import json
import re
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from ottla.cli.main import main
from ottla.model.errors import ErrorCode
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.testing.cluster import RunningCluster, cluster
from ottla.testing.requests import METADATA_VERSION, create_topic
from ottla.testing.running import SettingValue
from ottla.testing.waiting import wait_until
from ottla.testing.wire import WireConnection
from ottla.testing.zookeeper import ZooKeeperEnsemble

PARTITION_FIGURES = ("kafka_cluster_partition_underreplicated", "kafka_cluster_partition_insyncreplicascount")
Captured = pytest.CaptureFixture[str]
Tool = Callable[..., int]
Unique = Callable[[str], str]


@pytest.fixture(scope="module")
def shared(ensemble: ZooKeeperEnsemble) -> Iterator[RunningCluster]:
    """Leadership comes back by itself only when a tool asks for it."""
    settings: dict[str, SettingValue] = {"auto.leader.rebalance.enable": False, "metrics.listener": "127.0.0.1:0"}
    with cluster(3, settings=settings, zookeeper=ensemble) as running:
        yield running


@pytest.fixture
def brokers(shared: RunningCluster) -> RunningCluster:
    """All of them run, also after a test that failed while one was down."""
    return shared.start()


@pytest.fixture
def tool(brokers: RunningCluster) -> Tool:
    return lambda name, *arguments: main([name, "--bootstrap-server", brokers.bootstrap, *arguments])


def fill(brokers: RunningCluster, topic: str, partitions: int, size: int = 200) -> None:
    producer = Producer({"bootstrap.servers": brokers.bootstrap, "acks": "all"})
    for number in range(300):
        producer.produce(topic, b"x" * size, partition=number % partitions)
    assert producer.flush(60) == 0


def leaders(brokers: RunningCluster, topic: str) -> list[int]:
    found = brokers.partitions(topic)
    return [found[key].leader for key in sorted(found)]


def figures(brokers: RunningCluster, metric: str, topic: str | None = None) -> list[float]:
    """What the brokers that run say of it, of all partitions of a topic where one is given."""
    which = "" if topic is None else rf'\{{topic="{topic}",partition="\d+"\}}'
    found = []
    for broker in brokers.running:
        *_, url = re.findall(r"HTTP listener started on (\S+)", broker.log_text())
        with urllib.request.urlopen(f"{url}/metrics", timeout=20) as answer:
            text = answer.read().decode()
        found += [float(value) for value in re.findall(rf"^{metric}{which} (\S+)$", text, re.MULTILINE)]
    return found


def write_plan(path: Path, topic: str, replicas: list[list[int]]) -> tuple[str, str]:
    entries = [{"topic": topic, "partition": n, "replicas": brokers} for n, brokers in enumerate(replicas)]
    path.write_text(json.dumps({"version": 1, "partitions": entries}))
    return "--reassignment-json-file", str(path)


def test_a_stopped_broker_hands_over_and_gets_leadership_back_on_request(
    brokers: RunningCluster, tool: Tool, unique: Unique, capsys: Captured
) -> None:
    topic = unique("handed")
    assert tool("topics", "--create", "--topic", topic, "--replica-assignment", "1:2:3,2:3:1,3:1:2") == 0
    assert leaders(brokers, topic) == [1, 2, 3]
    fill(brokers, topic, 3)
    assert [figures(brokers, metric, topic) for metric in PARTITION_FIGURES] == [[0, 0, 0], [3, 3, 3]]
    assert sum(figures(brokers, "kafka_controller_kafkacontroller_activecontrollercount")) == 1
    brokers.brokers[2].stop()
    wait_until(
        lambda: [figures(brokers, metric, topic) for metric in PARTITION_FIGURES] == [[1, 1, 1], [2, 2, 2]],
        "the figures of those that are left",
        seconds=30,
    )
    assert "Controlled shutdown: moved leadership of" in brokers.brokers[2].log_text()
    assert leaders(brokers, topic) == [1, 3, 3]
    capsys.readouterr()
    assert tool("topics", "--describe", "--topic", topic, "--under-replicated-partitions") == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    assert tool("topics", "--describe", "--topic", topic, "--unavailable-partitions") == 0
    assert not capsys.readouterr().out
    brokers.brokers[2].start()
    brokers.wait_until_settled(topic)
    assert sum(figures(brokers, "kafka_server_replicamanager_isrexpands_total")) >= 3
    assert leaders(brokers, topic) == [1, 3, 3]
    assert tool("leader-election", "--election-type", "preferred", "--topic", topic, "--partition", "1") == 0
    assert f"Successfully completed leader election (PREFERRED) for partitions {topic}-1" in capsys.readouterr().out
    wait_until(lambda: leaders(brokers, topic) == [1, 2, 3], "the preferred leader")


def test_the_partitions_of_a_killed_broker_get_leaders_and_the_times_are_told(
    brokers: RunningCluster, tool: Tool, unique: Unique
) -> None:
    topic = unique("many")
    assert tool("topics", "--create", "--topic", topic, "--partitions", "500", "--replication-factor", "3") == 0
    victim = next(number for number in brokers.brokers if number != brokers.controller_id())
    controller = brokers.controller_id()
    line = re.compile(
        rf"broker {victim} failed or shut down\): (\d+) partition states changed, (\d+) leaders elected, "
        r"0 partitions offline; .*"
    )
    before = len(brokers.brokers[controller].log_text())
    brokers.brokers[victim].kill()

    def told() -> re.Match[str] | None:
        return line.search(brokers.brokers[controller].log_text(), before)

    found = wait_until(told, seconds=60, what="the controller's line about it")
    assert found is not None
    assert int(found[2]) >= 500 // 3
    # On a busy machine leaders may have taken some followers out of the ISR themselves before the session ended.
    assert int(found[1]) >= int(found[2])
    assert len(re.findall(r"([\d.]+) ms", found[0])) == 3, "noticed, decided, committed"
    brokers.brokers[victim].start()
    brokers.wait_until_settled(topic)


def test_partitions_move_with_a_throttle_which_goes_away(
    brokers: RunningCluster, tool: Tool, unique: Unique, tmp_path: Path, capsys: Captured
) -> None:
    topic = unique("moving")
    assert tool("topics", "--create", "--topic", topic, "--replica-assignment", "1:2,1:2") == 0
    fill(brokers, topic, 2)
    plan = write_plan(tmp_path / "plan.json", topic, [[3, 1], [2, 3]])
    assert tool("reassign-partitions", "--execute", *plan, "--throttle", "100000000") == 0
    out = capsys.readouterr().out
    assert "The inter-broker throttle limit was set to 100000000 B/s" in out

    def completed() -> bool:
        assert tool("reassign-partitions", "--verify", *plan) == 0
        return capsys.readouterr().out.count("is completed.") == 2

    wait_until(completed, seconds=60, what="the end of the moves")
    found = brokers.partitions(topic)
    assert [found[topic, n].replicas for n in range(2)] == [[3, 1], [2, 3]]
    assert [sorted(found[topic, n].isrs) for n in range(2)] == [[1, 3], [2, 3]]
    assert tool("configs", "--describe", "--topic", topic) == 0
    assert "throttled" not in capsys.readouterr().out
    arguments = ("--topics-include", topic, "--time", "-2", "--once")
    assert tool("replica-verification", *arguments) == 0
    assert "max lag is 0" in capsys.readouterr().out


def test_a_move_that_takes_long_is_listed_and_given_up(
    brokers: RunningCluster, tool: Tool, unique: Unique, tmp_path: Path, capsys: Captured
) -> None:
    topic = unique("slow")
    assert tool("topics", "--create", "--topic", topic, "--replica-assignment", "1:2") == 0
    fill(brokers, topic, 1, size=20_000)
    plan = write_plan(tmp_path / "plan.json", topic, [[3, 1]])
    assert tool("reassign-partitions", "--execute", *plan, "--throttle", "1") == 0
    capsys.readouterr()
    assert tool("reassign-partitions", "--list") == 0
    assert f"{topic}-0: replicas: 3,1,2. adding: 3. removing: 2." in capsys.readouterr().out
    assert tool("topics", "--describe", "--topic", topic) == 0
    assert "\tAdding Replicas: 3\tRemoving Replicas: 2" in capsys.readouterr().out
    assert tool("topics", "--describe", "--topic", topic, "--under-replicated-partitions") == 0
    assert not capsys.readouterr().out
    assert tool("reassign-partitions", "--execute", *plan) == 1
    assert "--additional" in capsys.readouterr().err
    assert tool("reassign-partitions", "--cancel", *plan) == 0
    assert f"Successfully cancelled partition reassignment for: {topic}-0" in capsys.readouterr().out
    assert sorted(brokers.partitions(topic)[topic, 0].replicas) == [1, 2]


def test_a_replica_is_made_in_the_directory_that_the_plan_chooses(
    brokers: RunningCluster, tool: Tool, unique: Unique, tmp_path: Path, capsys: Captured
) -> None:
    topic = unique("directory")
    assert tool("topics", "--create", "--topic", topic, "--replica-assignment", "1") == 0
    directory = str(brokers.brokers[2].log_dirs[0])
    entry = {"topic": topic, "partition": 0, "replicas": [2, 1], "log_dirs": [directory, "any"]}
    (tmp_path / "plan.json").write_text(json.dumps({"version": 1, "partitions": [entry]}))
    plan = ("--reassignment-json-file", str(tmp_path / "plan.json"))
    assert tool("reassign-partitions", "--execute", *plan) == 0
    assert f"Successfully started log directory moves for: {topic}-0-2" in capsys.readouterr().out

    def completed() -> bool:
        assert tool("reassign-partitions", "--verify", *plan) == 0
        out = capsys.readouterr().out
        return "is completed." in out and f"Reassignment of replica {topic}-0-2 completed successfully." in out

    wait_until(completed, "the end of the move", seconds=60)


def test_settings_of_any_broker_are_changed_and_told(brokers: RunningCluster, tool: Tool, capsys: Captured) -> None:
    for number in brokers.brokers:
        entity = ("--entity-type", "brokers", "--entity-name", str(number))
        assert tool("configs", "--alter", *entity, "--add-config", f"log.cleaner.backoff.ms={20_000 + number}") == 0
    capsys.readouterr()
    for number in brokers.brokers:
        entity = ("--entity-type", "brokers", "--entity-name", str(number))
        assert tool("configs", "--describe", *entity) == 0
        assert f"log.cleaner.backoff.ms={20_000 + number} " in capsys.readouterr().out
        assert tool("configs", "--alter", *entity, "--delete-config", "log.cleaner.backoff.ms") == 0


def test_what_one_broker_was_told_the_others_know_when_asked(brokers: RunningCluster, unique: Unique) -> None:
    topic = unique("at-once")
    with contextlib.ExitStack() as stack:
        first, second, third = (
            stack.enter_context(WireConnection(broker.host, broker.port)) for broker in brokers.brokers.values()
        )
        for _ in range(10):
            assert create_topic(first, topic) == ErrorCode.NONE
            asked = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
            found = second.call(asked, METADATA_VERSION, MetadataResponse).topics[0]
            assert found.error_code == ErrorCode.NONE
            listed = third.call(MetadataRequest(topics=None), METADATA_VERSION, MetadataResponse).topics
            assert topic in {entry.name for entry in listed}
            gone = third.call(DeleteTopicsRequest(topic_names=[topic], timeout_ms=10_000), 5, DeleteTopicsResponse)
            assert gone.responses[0].error_code == ErrorCode.NONE
            assert create_topic(second, topic) == ErrorCode.NONE
            gone = first.call(DeleteTopicsRequest(topic_names=[topic], timeout_ms=10_000), 5, DeleteTopicsResponse)
            assert gone.responses[0].error_code == ErrorCode.NONE
