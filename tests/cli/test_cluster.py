"""`ottla cluster`: a whole cluster with one command, and nothing left of it afterwards."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.request import urlopen

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from ottla.cli.local.cluster import _parse, broker_settings
from ottla.cli.main import main
from ottla.config.load import load_settings
from ottla.testing.load import quiet
from ottla.testing.ports import free_ports
from ottla.testing.waiting import wait_until

PROGRAM = "import sys; from ottla.cli.main import main; sys.exit(main())"


def start(tmp_path: Path, *arguments: str) -> "tuple[subprocess.Popen[bytes], Path]":
    log = tmp_path / "cluster.log"
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, "cluster", "--data", str(tmp_path / "data"), *arguments],
            stdout=subprocess.PIPE,
            stderr=stderr,
        )
    return process, log


def pids(log: Path) -> list[int]:
    return [int(pid) for pid in re.findall(r"\| process (\d+)", log.read_text())]


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_it_serves_survives_a_broker_and_stops_in_order(tmp_path: Path) -> None:
    port = free_ports(1)[0]
    options = ["--brokers", "3", "--port", str(port), "--racks", "a,b", "--registry", "0", "--console", "0"]
    options += ["--log-level", "info"]
    process, log = start(tmp_path, *options)
    assert process.stdout is not None
    try:
        bootstrap = process.stdout.readline().decode().strip()
        assert bootstrap == ",".join(f"127.0.0.1:{port + offset}" for offset in range(3)), log.read_text()
        admin = AdminClient({"bootstrap.servers": bootstrap}, logger=quiet)
        assert sorted(admin.list_topics(timeout=30).brokers) == [1, 2, 3]
        producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"}, logger=quiet)
        producer.produce("news", b"hello")
        assert producer.flush(30) == 0
        (partition,) = admin.list_topics("news", timeout=30).topics["news"].partitions.values()
        assert sorted(partition.replicas) == [1, 2, 3]

        registries = "The schema registry answers on http://127.0.0.1:"
        wait_until(
            lambda: log.read_text().count(registries) == 3, "a registry answers beside every broker", seconds=120
        )
        (console,) = wait_until(
            lambda: re.findall(r"The console is at (http://127.0.0.1:\d+)\n", log.read_text()),
            "a console answers",
            seconds=120,
        )
        with urlopen(f"{console}/api/c/local/brokers", timeout=60) as answer:
            told = json.load(answer)
        assert (told["listeners"], told["failures"]) == (3, [])
        assert "Produce" in {row["request"] for row in told["requests"]}

        _, victim, *_ = pids(log)
        os.kill(victim, signal.SIGKILL)
        wait_until(lambda: "broker-1 ended with exit code -9; 7 run on" in log.read_text(), "it is told")
        producer.produce("news", b"hello again")
        assert producer.flush(60) == 0
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    wait_until(lambda: not any(map(runs, pids(log))), "all children have ended")
    text = log.read_text()
    assert re.search(r"^broker-2  \| .*ottla\.broker\.process: Broker 2 shutting down$", text, re.MULTILINE)


def test_the_children_end_with_a_killed_parent(tmp_path: Path) -> None:
    port = free_ports(1)[0]
    process, log = start(tmp_path, "--brokers", "1", "--port", str(port), "--registry", "none", "--console", "none")
    assert process.stdout is not None
    try:
        assert process.stdout.readline(), log.read_text()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    assert len(pids(log)) == 2
    wait_until(lambda: not any(map(runs, pids(log))), "ZooKeeper and the broker have ended", seconds=30)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [(["--brokers", "0"], "--brokers wants a number of 1 or more"), (["--port", "70000"], "--port wants a number")],
)
def test_mistakes_are_told(arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["cluster", *arguments])
    assert told in capsys.readouterr().err


def test_the_first_member_of_a_group_does_not_wait_for_others() -> None:
    args = _parse(["--set", "group.initial.rebalance.delay.ms=7"], "ottla cluster")
    own = broker_settings(args, 1, "127.0.0.1:2181")
    assert load_settings(None, own).group_initial_rebalance_delay_ms == 0
    assert load_settings(None, [*own, *args.settings]).group_initial_rebalance_delay_ms == 7
    assert load_settings(None).group_initial_rebalance_delay_ms == 3000, "servers do as Kafka does"


def test_a_broker_that_cannot_start_ends_it_all(tmp_path: Path) -> None:
    said = ended(tmp_path, "--zookeeper", "127.0.0.1:1", "--set", "zookeeper.connection.timeout.ms=500")
    assert "broker-1 ended with exit code 1 before it served" in said


def test_what_no_broker_knows_is_told_before_anything_starts(tmp_path: Path, unique: Callable[[str], str]) -> None:
    name = unique("no.such")
    assert ended(tmp_path, "--set", f"{name}=1") == f"error: {name}: there is no such setting\n"
    assert not (tmp_path / "data").exists(), "not even ZooKeeper"


def ended(folder: Path, *options: str) -> str:
    """What a cluster of one broker says that fails."""
    process, log = start(folder, "--brokers", "1", *options)
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(60) == 1
    return log.read_text()
