"""`ottla zookeeper`: a real server in the foreground, and what it says when it cannot start."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.cli.common.output import CommandError
from ottla.cli.local.zookeeper import parse_members
from ottla.cli.main import main
from ottla.cluster.zookeeper_server import Member
from ottla.testing.ports import free_ports
from ottla.testing.waiting import wait_until
from ottla.testing.zookeeper import ask

PROGRAM = "import sys; from ottla.cli.main import main; sys.exit(main())"


@contextlib.contextmanager
def running(*arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, *arguments], stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_an_ensemble_from_options_and_a_file(tmp_path: Path) -> None:
    """Two members by options, the third by a file as Kafka has it: they are one ensemble."""
    client = free_ports(3)
    peers = free_ports(6)
    servers = ",".join(f"{n}=127.0.0.1:{peers[2 * n - 2]}:{peers[2 * n - 1]}" for n in (1, 2, 3))
    properties = tmp_path / "zookeeper.properties"
    (tmp_path / "3").mkdir()
    (tmp_path / "3" / "myid").write_text("3\n")
    properties.write_text(
        f"dataDir={tmp_path / '3'}\nclientPort={client[2]}\nadmin.enableServer=false\ninitLimit=10\nsyncLimit=5\n"
        "4lw.commands.whitelist=srvr\n" + "".join(f"server.{entry}\n" for entry in servers.split(","))
    )
    with contextlib.ExitStack() as stack:
        processes = [
            stack.enter_context(
                running(
                    "zookeeper", "--port", str(client[n - 1]), "--data-dir", str(tmp_path / str(n)), "--id", str(n),
                    "--servers", servers, "--heap", "64",
                )
            )
            for n in (1, 2)
        ]  # fmt: skip
        processes.append(stack.enter_context(running("zookeeper", str(properties), "--heap", "64")))

        def modes() -> list[str]:
            said = [ask(port, "srvr").rpartition("Mode: ")[2].split("\n")[0] for port in client]
            return sorted(said) if all(said) else []

        wait_until(lambda: modes() == ["follower", "follower", "leader"], "all three serve", seconds=60)
        processes[0].terminate()
        assert processes[0].wait(20) == 143  # the JVM's way to say that SIGTERM ended it


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--id", "1"], "needs both --servers and --id"),
        (["--servers", "1=a,2=b"], "needs both --servers and --id"),
        (["--servers", "1=a,2=b", "--id", "3"], "--id 3 is not among --servers 1=a,2=b"),
        (["nowhere.properties"], "there is no file nowhere.properties"),
        (["some.properties", "--port", "2182"], "leave out --port"),
    ],
)
def test_mistakes_are_told(arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["zookeeper", *arguments]) == 1
    assert told in capsys.readouterr().err


def test_without_java_the_error_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr("ottla.config.java.importlib.util.find_spec", lambda _: None)
    assert main(["zookeeper"]) == 1
    assert "ZooKeeper needs Java and there is none that it can use" in capsys.readouterr().err


def test_servers_are_read_with_and_without_ports() -> None:
    assert parse_members("1=zk1,2=zk2:12888:13888") == [Member(1, "zk1", 2888, 3888), Member(2, "zk2", 12888, 13888)]
    for wrong in ("zk1", "x=zk1", "1=zk1:2888", "1=zk1:a:b", "1="):
        with pytest.raises(CommandError, match="--servers wants"):
            parse_members(wrong)
    with pytest.raises(CommandError, match="names an id twice"):
        parse_members("1=zk1,1=zk2")
