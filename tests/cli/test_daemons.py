"""`-daemon` and the scripts that stop what it started."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.cli.local import processes
from ottla.cli.main import main
from ottla.testing.ports import free_ports
from ottla.testing.zookeeper import ask

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else's processes are seen, and nothing is left in the working directory."""
    monkeypatch.setenv(processes.RUN_DIR_VARIABLE, str(tmp_path / "run"))
    monkeypatch.setenv("LOG_DIR", str(tmp_path / "logs"))
    monkeypatch.chdir(tmp_path)


def script(name: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    program = Path(sys.executable).with_name(name)
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False, timeout=120)


def test_a_broker_in_the_background_and_its_end(tmp_path: Path, capsys: Captured) -> None:
    (port,) = free_ports(1)
    (tmp_path / "server.properties").write_text(
        f"broker.id=3\nlisteners=PLAINTEXT://127.0.0.1:{port}\nlog.dirs={tmp_path / 'data'}\n"
    )
    assert script("kafka-server-stop.sh").stdout == "No kafka server to stop\n"
    started = script("kafka-server-start.sh", "-daemon", "server.properties")
    try:
        assert started.returncode == 0, started.stderr
        assert main(["topics", "--list", "--bootstrap-server", f"127.0.0.1:{port}"]) == 0, "it serves at once"
        (known,) = processes.running(processes.BROKER)
        assert f"process {known.pid} runs in the background" in started.stderr
        assert known.node_id == 3
        assert script("kafka-server-stop.sh", "--node-id", "4").returncode == 1
    finally:
        stopped = script("kafka-server-stop.sh")
    assert stopped.returncode == 0
    assert processes.running(processes.BROKER) == []
    assert "ottla.broker.process: Broker 3 shutting down" in (tmp_path / "logs" / "kafkaServer.out").read_text()
    assert list((tmp_path / "run").iterdir()) == [], "no note is left behind"


def test_a_broker_that_cannot_start_says_so_before_the_script_returns(tmp_path: Path) -> None:
    in_the_way = tmp_path / "data"
    in_the_way.write_text("")
    done = script("kafka-server-start.sh", "-daemon", "--override", f"log.dirs={in_the_way}")
    assert done.returncode == 1
    assert "it ended with exit code 1" in done.stderr
    wrong = script("kafka-server-start.sh", "-daemon", "--override", "log.segment.byte=1")
    assert wrong.returncode == 1
    assert "did you mean log.segment.bytes?" in wrong.stderr


def test_a_zookeeper_from_a_plain_file_in_the_background(tmp_path: Path) -> None:
    """The file of the notes has neither a whitelist nor anything about the admin server."""
    (port,) = free_ports(1)
    (tmp_path / "zookeeper.properties").write_text(
        f"tickTime=2000\ndataDir={tmp_path / 'zk'}\nclientPort={port}\ninitLimit=20\nsyncLimit=5\n"
    )
    started = script("zookeeper-server-start.sh", "-daemon", "zookeeper.properties", "--heap", "64")
    try:
        assert started.returncode == 0, started.stderr
        assert ask(port, "ruok") == "imok"
        assert "zk_znode_count" in ask(port, "mntr")
        shown = script("zookeeper-shell.sh", f"127.0.0.1:{port}", "ls", "/")
        assert shown.stdout == "[zookeeper]\n", shown.stderr
    finally:
        stopped = script("zookeeper-server-stop.sh")
    assert stopped.returncode == 0
    assert ask(port, "ruok") == ""
    assert script("zookeeper-server-stop.sh").stdout == "No zookeeper server to stop\n"


def test_a_note_of_a_dead_process_is_no_target(tmp_path: Path) -> None:
    """Its number may be another's by now: here it is ours."""
    (tmp_path / "run").mkdir(mode=0o700)
    (tmp_path / "run" / f"broker-{os.getpid()}").write_text('{"node_id": 1}')
    assert processes.running(processes.BROKER) == []
    assert list((tmp_path / "run").iterdir()) == []


def test_a_process_that_is_slow_to_end_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = (
        "import signal, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN); from ottla.cli.local import processes; "
        "processes.note_process('broker', node_id=9); print('ready', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", held], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        monkeypatch.setattr(processes, "STOP_SECONDS_MAX", 0.2)
        (known,) = processes.running(processes.BROKER)
        assert processes.stop([known], signal.SIGTERM) == [known]
        assert process.stdin is not None
        process.stdin.close()


def test_a_directory_of_somebody_else_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "run").mkdir()
    monkeypatch.setattr(os, "getuid", lambda: 4_242)
    with pytest.raises(PermissionError, match="is not a directory of this user"):
        processes.running(processes.BROKER)
