"""zookeeper-shell, kafka-cluster, kafka-features and kafka-storage against the real thing."""

import io
import sys
from pathlib import Path

import pytest

from ottla.cli.main import main
from ottla.model.names import parse_topic_id
from ottla.testing import RunningBroker, broker
from ottla.testing.zookeeper import shared_zookeeper

Captured = pytest.CaptureFixture[str]


def shell(*words: str, chroot: str = "") -> int:
    return main(["zookeeper-shell", f"{shared_zookeeper().connect}{chroot}", *words])


def test_the_shell_does_one_command(capsys: Captured) -> None:
    assert shell("create", "/one", "hello world") == 0
    assert shell("create", "-s", "/one/n-") == 0
    assert shell("set", "/one", "other") == 0
    assert shell("get", "/one") == 0
    assert shell("ls", "/one") == 0
    assert shell("ls", "-R", "/one") == 0
    assert shell("ls", "/", chroot="/one") == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines() == [
        "Created /one", "Created /one/n-0000000000", "other", "[n-0000000000]", "/one", "/one/n-0000000000",
        "[n-0000000000]",
    ]  # fmt: skip
    assert shell("get", "-s", "/one") == 0
    figures = capsys.readouterr().out.splitlines()
    assert figures[0] == "other"
    assert [line.partition(" = ")[0] for line in figures[1:]] == [
        "cZxid", "ctime", "mZxid", "mtime", "pZxid", "cversion", "dataVersion", "aclVersion", "ephemeralOwner",
        "dataLength", "numChildren",
    ]  # fmt: skip
    assert {"dataVersion = 1", "dataLength = 5", "numChildren = 1", "ephemeralOwner = 0x0"} <= set(figures)
    assert shell("stat", "/one") == 0
    assert capsys.readouterr().out.splitlines() == figures[1:]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["get", "/absent"], "Node does not exist: /absent"),
        (["create", "/zookeeper"], "Node already exists: /zookeeper"),
        (["delete", "/full"], "Node not empty: /full"),
        (["delete", "-v", "7", "/full/leaf"], "version No is not valid : /full/leaf"),
        (["deleteall", "/"], "name what to delete"),
        (["ls", "brokers"], "Path must start with /"),
        (["ls", "-w", "/"], "watches are not kept"),
        (["set", "/full"], "usage: set "),
        (["lsof", "/"], "Command not found: lsof"),
    ],
)
def test_the_shell_says_what_is_wrong(words: list[str], told: str, capsys: Captured) -> None:
    shell("create", "/full")
    shell("create", "/full/leaf")
    capsys.readouterr()
    assert shell(*words) == 1
    assert told in capsys.readouterr().err


def test_the_shell_reads_commands_till_quit(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = "create /many 'a b'\nget /many\nget /nothing\n\ndelete /many\ndeleteall /many\nquit\nget /zookeeper\n"
    monkeypatch.setattr(sys, "stdin", io.StringIO(commands))
    assert shell() == 0
    shown = capsys.readouterr()
    assert shown.out == "Created /many\na b\n"
    assert [line for line in shown.err.splitlines() if line.startswith("error")] == [
        "error: Node does not exist: /nothing",
        "error: Node does not exist: /many",
    ]


def test_the_shell_says_that_nobody_is_there(capsys: Captured) -> None:
    assert main(["zookeeper-shell", "127.0.0.1:1", "ls", "/"]) == 1
    assert "no ZooKeeper can be reached at 127.0.0.1:1" in capsys.readouterr().err


@pytest.mark.one_broker("names one broker")
def test_the_cluster_and_its_endpoints(ottla_broker: RunningBroker, capsys: Captured) -> None:
    assert main(["cluster-info", "cluster-id", "--bootstrap-server", ottla_broker.bootstrap]) == 0
    words = capsys.readouterr().out.split()
    assert words[:2] == ["Cluster", "ID:"]
    assert len(parse_topic_id(words[2]).bytes) == 16
    assert main(["cluster-info", "list-endpoints", "-b", ottla_broker.bootstrap, "--include-fenced-brokers"]) == 0
    head, row = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert head == ["ID", "HOST", "PORT", "RACK", "STATE", "ENDPOINT_TYPE"]
    assert row == ["1", "127.0.0.1", str(ottla_broker.port), "null", "unfenced", "broker"]
    assert main(["cluster-info", "unregister", "-b", ottla_broker.bootstrap, "--id", "1"]) == 1
    assert "is forgotten as soon as it has stopped" in capsys.readouterr().err


def test_features_are_shown_and_stay_what_they_are(ottla_broker: RunningBroker, capsys: Captured) -> None:
    connection = ["--bootstrap-server", ottla_broker.bootstrap]
    assert main(["features", *connection, "describe"]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [(row[0], row[2], row[3], row[4]) for row in rows] == [
        ("Feature: group.version", "SupportedMaxVersion: 1", "FinalizedVersionLevel: 1", "Epoch: 1"),
        ("Feature: transaction.version", "SupportedMaxVersion: 2", "FinalizedVersionLevel: 2", "Epoch: 1"),
    ]
    assert main(["features", *connection, "upgrade", "--feature", "group.version=1"]) == 1
    assert "does not change feature levels" in capsys.readouterr().err
    assert main(["features", *connection, "downgrade", "--feature", "group.version"]) == 1
    assert "FEATURE=LEVEL" in capsys.readouterr().err


def test_a_directory_is_formatted_with_a_chosen_id(tmp_path: Path, capsys: Captured) -> None:
    assert main(["storage", "random-uuid"]) == 0
    chosen = capsys.readouterr().out.strip()
    directories = [tmp_path / "one", tmp_path / "two"]
    config = tmp_path / "server.properties"
    config.write_text(f"process.roles=broker,controller\nnode.id=6\nlog.dirs={','.join(map(str, directories))}\n")
    assert main(["storage", "info", "-c", str(config)]) == 1
    assert f"  {directories[0]} does not exist" in capsys.readouterr().out
    formatting = ["storage", "format", "-t", chosen, "-c", str(config), "--standalone"]
    assert main(formatting) == 0
    assert main(["storage", "info", "-c", str(config)]) == 0
    shown = capsys.readouterr().out
    assert f"cluster.id={chosen}" in shown
    assert "node.id=6" in shown
    assert main(formatting) == 1
    assert "is already formatted" in capsys.readouterr().err
    assert main([*formatting, "--ignore-formatted"]) == 0
    with broker({"log.dirs": ",".join(map(str, directories)), "node.id": 6}) as running:
        assert main(["cluster-info", "cluster-id", "--bootstrap-server", running.bootstrap]) == 0
    assert f"Cluster ID: {chosen}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "extra", "told"),
    [
        ("zookeeper.connect=zk:2181", [], "leave this step out"),
        ("node.id=1", ["--initial-controllers", "1@a:9093:x"], "no quorum of controllers"),
        ("node.id=1", ["--cluster-id", "short"], "is not one of 16 bytes"),
    ],
)
def test_what_cannot_be_formatted(line: str, extra: list[str], told: str, tmp_path: Path, capsys: Captured) -> None:
    config = tmp_path / "server.properties"
    config.write_text(f"{line}\nlog.dirs={tmp_path / 'data'}\n")
    assert main(["storage", "format", "-t", "AAAAAAAAQACAAAAAAAAAAA", "-c", str(config), *extra]) == 1
    assert told in capsys.readouterr().err
    assert not (tmp_path / "data").exists()
