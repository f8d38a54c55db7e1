"""The commands as programs: installed names, old command lines, `ottla broker` and `ottla up`."""

import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.unit.client.tls import make_certificates, running_proxy

from ottla.cli.common import options
from ottla.cli.main import main, run_by_name
from ottla.testing import RunningBroker, broker
from ottla.testing.zookeeper import shared_zookeeper

Unique = Callable[[str], str]
Captured = pytest.CaptureFixture[str]

START_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 30.0


@pytest.fixture
def as_written(
    monkeypatch: pytest.MonkeyPatch, ottla_broker: RunningBroker, capsys: Captured
) -> Callable[[str], tuple[int, str, str]]:
    """Run a command line from a book or a blog, its host names standing for the broker of this test."""
    monkeypatch.setenv(options.BOOTSTRAP_VARIABLE, ottla_broker.bootstrap)

    def run(line: str) -> tuple[int, str, str]:
        words = line.replace("localhost:9092", ottla_broker.bootstrap).replace("kafka1:9092", ottla_broker.bootstrap)
        monkeypatch.setattr(sys, "argv", words.split())
        try:
            code = run_by_name()
        except SystemExit as stopped:
            code = int(stopped.code or 0)
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run


# {z} stands for the ZooKeeper option as it was written. The backslashes join lines.
OLD_COMMAND_LINES = """
bin/kafka-topics.sh
bin/kafka-topics.sh --zookeeper zookeeper1:2181,zookeeper2:2181,zookeeper3:2181/kafka --topic {topic} --create \
    --partitions 3 --replication-factor 1
bin/kafka-topics.sh {z} --list
bin/kafka-topics.sh {z} --topic {topic} --describe
bin/kafka-topics.sh {z} --describe --unavailable-partitions
./bin/kafka-configs.sh {z} --alter --entity-type topics --entity-name {topic} --add-config segment.ms=60000
./bin/kafka-topics.sh --describe --topic {topic} --bootstrap-server localhost:9092
bin/kafka-consumer-groups.sh
bin/kafka-consumer-groups.sh --bootstrap-server kafka1:9092 --list
bin/kafka-consumer-groups.sh --bootstrap-server kafka1:9092 --reset-offsets --group {group} --topic {topic} --to-latest
./bin/kafka-consumer-groups.sh --bootstrap-server localhost:9092 --group {group} --to-earliest --reset-offsets \
    --execute --topic {topic}
./bin/kafka-consumer-groups.sh --bootstrap-server localhost:9092 --group {group} --describe --new-consumer
./bin/kafka-configs.sh --bootstrap-server localhost:9092 --entity-type topics --entity-name {topic} --alter \
    --add-config retention.ms=60000
bin/kafka-run-class.sh kafka.tools.GetOffsetShell --broker-list localhost:9092 --topic {topic} --time -1
bin/kafka-run-class.sh kafka.admin.TopicCommand {z} --describe --topic {topic}
bin/kafka-topics.sh {z} --topic {topic} --delete
"""


@pytest.fixture(scope="module")
def clustered() -> Iterator[RunningBroker]:
    """A broker of a cluster that shares its ZooKeeper with others, below /kafka."""
    with broker({"zookeeper.connect": f"{shared_zookeeper().connect}/kafka", "node.id": 5}) as running:
        yield running


def test_old_command_lines_run_as_written(
    as_written: Callable[[str], tuple[int, str, str]], clustered: RunningBroker, unique: Unique
) -> None:
    """The ZooKeeper that they name is asked for the brokers, whatever broker else there is."""
    lines = OLD_COMMAND_LINES.format(
        z="--zookeeper zookeeper1:2181/kafka", topic=unique("written"), group=unique("application1")
    )
    address = shared_zookeeper().connect
    for line in lines.strip().splitlines():
        here = re.sub(r"zookeeper1:2181[\w:,]*", address, line)
        here = re.sub(r"localhost:9092|kafka1:9092", clustered.bootstrap, here)
        code, _, errors = as_written(here)
        assert code == 0, f"{line}: {errors}"
        assert (f"has its brokers at {clustered.bootstrap}" in errors) == ("--zookeeper" in line)


def test_a_zookeeper_without_brokers_or_without_an_answer_is_no_other_cluster(
    as_written: Callable[[str], tuple[int, str, str]],
) -> None:
    """The broker of $OTTLA_BOOTSTRAP answers, and is not asked."""
    connect = shared_zookeeper().connect
    for zookeeper, told in {
        f"{connect}/nowhere": "no broker is registered below /nowhere; start one, or name the brokers",
        "127.0.0.1:1": "no ZooKeeper can be reached at 127.0.0.1:1 (127.0.0.1:1: Connection refused)",
        "127.0.0.1:none": "'127.0.0.1:none' is not host:port",
        f"{connect}/kafka --bootstrap-server b:1": "both say which cluster is meant",
    }.items():
        code, out, errors = as_written(f"bin/kafka-topics.sh --list --zookeeper {zookeeper}")
        assert (code, out) == (1, "")
        assert told in errors
    code, out, _ = as_written(f"bin/zookeeper-shell.sh {connect} ls /")
    assert code == 0
    assert "nowhere" not in out, "looking creates nothing"


@pytest.mark.parametrize("name", ["kafka-topics", "kafka-topics.sh", "ottla"])
def test_installed_executables_answer(name: str) -> None:
    executable = Path(sys.executable).with_name(name)
    done = subprocess.run([executable, "--help"], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.startswith(f"usage: {name} ")


def test_a_reader_that_goes_away_is_no_error() -> None:
    executable = Path(sys.executable).with_name("ottla")
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([executable, "--help"], stdout=writing, stderr=subprocess.PIPE, check=False, timeout=60)
    os.close(writing)
    assert done.stderr == b""
    assert done.returncode == 141


@contextmanager
def running(*arguments: str, cwd: Path) -> Iterator["subprocess.Popen[bytes]"]:
    executable = Path(sys.executable).with_name(arguments[0])
    process = subprocess.Popen(
        [executable, *arguments[1:]],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=cwd,
        bufsize=0,  # so that reading one line leaves the rest for communicate
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def first_line(process: "subprocess.Popen[bytes]") -> str:
    assert process.stdout is not None
    readable, _, _ = select.select([process.stdout], [], [], START_SECONDS_MAX)
    assert readable, "nothing was said"
    return process.stdout.readline().decode()


def stop(process: "subprocess.Popen[bytes]") -> tuple[str, str]:
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=STOP_SECONDS_MAX)
    assert process.returncode == 0, err
    return out.decode(), err.decode()


def test_a_broker_says_one_line_and_stops_when_asked(tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_text("node.id=7\nlog.dirs=data\nlisteners=PLAINTEXT://127.0.0.1:1\n")
    override = ["--override", "listeners=PLAINTEXT://127.0.0.1:0"]
    with running("kafka-server-start.sh", "server.properties", *override, cwd=tmp_path) as process:
        line = first_line(process)
        assert line.startswith("ottla broker 7 accepts connections on PLAINTEXT://127.0.0.1:")
        bootstrap = line.strip().rpartition("://")[2]
        assert main(["topics", "--bootstrap-server", bootstrap, "--list"]) == 0
        out, err = stop(process)
    assert out == ""
    assert "open to the network" not in err
    assert (tmp_path / "data").is_dir()


def test_a_port_open_to_the_network_must_be_meant_and_is_warned_about(tmp_path: Path) -> None:
    listen = ["ottla", "broker", "--set", "listeners=PLAINTEXT://0.0.0.0:0", "--set", "log.dirs=data"]
    with running(*listen, cwd=tmp_path) as process:
        _, err = process.communicate(timeout=START_SECONDS_MAX)
        assert process.returncode == 1
    assert b"PLAINTEXT://0.0.0.0:0 is open to other machines, and PLAINTEXT asks nobody who they are" in err
    assert b"ottla.allow.unauthenticated.listeners=true" in err
    with running(*listen, "--set", "ottla.allow.unauthenticated.listeners=true", cwd=tmp_path) as process:
        first_line(process)
        _, text = stop(process)
    assert "PLAINTEXT://0.0.0.0:0 is open to the network" in text


def test_up_keeps_its_data_here_and_shows_the_way(tmp_path: Path, capsys: Captured) -> None:
    with running("ottla", "up", "--set", "listeners=PLAINTEXT://127.0.0.1:0", cwd=tmp_path) as process:
        line = first_line(process)
        assert line.startswith("Ottla is up on 127.0.0.1:")
        address = line.split()[4].rstrip(".")
        describe = ["configs", "--describe", "--entity-type", "brokers", "--entity-name", "1", "--all"]
        assert main([*describe, "--bootstrap-server", address]) == 0
        out, err = stop(process)
    assert "group.initial.rebalance.delay.ms=0 " in capsys.readouterr().out, "the first consumer reads at once"
    assert f"export OTTLA_BOOTSTRAP={address}" in out
    assert "ottla topics --create" in out
    assert err == ""
    assert (tmp_path / ".ottla").is_dir()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["broker", "absent.properties"], "absent.properties: No such file"),
        (["broker", "--set", "log.segment.byte=1"], "did you mean log.segment.bytes?"),
        (["broker", "--set", "nonsense"], "key=value"),
    ],
)
def test_a_broker_that_cannot_start_says_why(arguments: list[str], words: str, capsys: Captured) -> None:
    assert main(arguments) == 1
    assert words in capsys.readouterr().err


@pytest.mark.one_broker("takes the address of the one broker")
def test_a_port_in_use_is_said_in_words(ottla_broker: RunningBroker, tmp_path: Path) -> None:
    listener = f"listeners=PLAINTEXT://{ottla_broker.bootstrap}"
    with running("ottla", "broker", "--set", listener, "--set", "log.dirs=data", cwd=tmp_path) as process:
        _, err = process.communicate(timeout=START_SECONDS_MAX)
    assert process.returncode == 1
    assert b"is another broker running" in err
    assert b"Traceback" not in err


def test_the_tools_speak_tls(tmp_path: Path, capsys: Captured) -> None:
    certificates = make_certificates(tmp_path)
    file = tmp_path / "client.properties"
    file.write_text(f"security.protocol=SSL\nssl.ca.location={certificates.authority}\n")
    with (
        running_proxy(certificates) as proxy,
        broker({"advertised.listeners": f"PLAINTEXT://127.0.0.1:{proxy.port}"}) as running,
    ):
        proxy.target = (running.host, running.port)
        arguments = ["--bootstrap-server", f"127.0.0.1:{proxy.port}", "--command-config", str(file)]
        assert main(["topics", "--create", "--topic", "secret", *arguments]) == 0
        assert main(["topics", "--list", *arguments]) == 0
    assert "secret" in capsys.readouterr().out


def test_settings_for_the_client_work_or_are_refused(
    ottla_broker: RunningBroker, tmp_path: Path, capsys: Captured
) -> None:
    file = tmp_path / "client.properties"
    arguments = ["topics", "--list", "--bootstrap-server", ottla_broker.bootstrap, "--command-config", str(file)]
    file.write_text("client.id=me\nrequest.timeout.ms=5000\nsecurity.protocol=PLAINTEXT\n")
    assert main(arguments) == 0
    for text, words in {
        "security.protocol=SASL_SSL": "sasl.mechanism is missing: one of PLAIN, SCRAM-SHA-256",
        "sasl.mechanism=PLAIN": "sasl.mechanism needs security.protocol=SASL_SSL or SASL_PLAINTEXT",
        "request.timeout.ms=soon": "request.timeout.ms is a whole number",
        "linger.ms=5": "linger.ms is not a client setting that is known here",
    }.items():
        file.write_text(text)
        assert main(arguments) == 1
        assert words in capsys.readouterr().err
