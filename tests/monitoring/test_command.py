"""`ottla monitor` and `ottla top` as people run them, against a real broker."""

import base64
import contextlib
import json
import os
import pty
import re
import select
import signal
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.cli.main import main
from ottla.monitoring.metrics import MONITOR_METRICS
from ottla.monitoring.top.exposition import parse
from ottla.testing import RunningBroker
from ottla.testing.tls import Certificates
from ottla.testing.waiting import wait_until
from ottla.tls.authority import LOCAL_HOSTS

PROGRAM_ON_TERMINAL = "import sys; from ottla.cli.main import main; sys.exit(main())"
PROGRAM = (
    "import sys; from ottla.testing.child import end_with_parent; end_with_parent(); "
    "from ottla.cli.main import main; sys.exit(main())"
)


@pytest.fixture
def topic(unique: Callable[[str], str]) -> str:
    return unique("monitored")


class Running:
    """A monitor as a process of its own."""

    def __init__(self, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, "monitor", "--listen", "0", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stderr is not None
        self.said = ""
        while (found := re.search(r"serving (https?://\S+)/metrics", self.said)) is None:
            line = self._process.stderr.readline()
            assert line, self.said
            self.said += line
        self.url = found[1]

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(self.url + path, timeout=30) as answer:
            return json.load(answer)

    def text(self, path: str) -> str:
        try:
            with urllib.request.urlopen(self.url + path, timeout=30) as answer:
                return str(answer.read().decode())
        except urllib.error.HTTPError as error:
            return str(error.read().decode())

    def metrics(self) -> dict[str, float]:
        """The last value by name."""
        return {each.name: each.value for each in parse(self.text("/metrics"))}

    def stop(self) -> tuple[int, str]:
        self._process.send_signal(signal.SIGTERM)
        out, _ = self._process.communicate(timeout=60)
        return self._process.returncode, out

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()


@pytest.fixture
def monitor(ottla_broker: RunningBroker, topic: str) -> Iterator[Running]:
    running = Running(
        "--bootstrap-server", ottla_broker.bootstrap, "--topic", topic, "--refresh", "0.2", "--record-delay-ms", "20",
        "--group-allowlist", f"^{topic}$", "--json",
    )  # fmt: skip
    yield running
    running.close()


def test_the_monitor_serves_burrows_api_and_metrics(monitor: Running, topic: str) -> None:
    wait_until(lambda: monitor.text("/burrow/admin/ready") == "READY", "the monitor has looked", seconds=60)
    assert monitor.text("/burrow/admin") == "GOOD"
    assert monitor.get("/v3/kafka")["clusters"] == ["local"]
    # The monitor itself is a group: it commits how far it has read.
    wait_until(lambda: monitor.get("/v3/kafka/local/consumer")["consumers"] == [topic], "its group", seconds=60)
    wait_until(lambda: topic in monitor.get("/v3/kafka/local/topic")["topics"], "its topic is listed", seconds=60)
    (end,) = monitor.get(f"/v3/kafka/local/topic/{topic}")["offsets"]
    assert end > 0
    assert monitor.get(f"/v3/kafka/local/topic/{topic}/consumers")["consumers"] == [topic]
    status = monitor.get(f"/v3/kafka/local/consumer/{topic}/lag")["status"]
    (partition,) = status["partitions"]
    assert (status["cluster"], status["group"], partition["topic"]) == ("local", topic, topic)
    assert set(partition["end"]) == {"offset", "timestamp", "observedAt", "lag"}
    assert len(monitor.get(f"/v3/kafka/local/consumer/{topic}")["topics"][topic][0]["offsets"]) == 10
    missing = json.loads(monitor.text("/v3/kafka/local/consumer/nobody/status"))
    assert (missing["error"], missing["status"]["status"]) == (False, "NOTFOUND")
    assert json.loads(monitor.text("/v3/kafka/nowhere/topic"))["message"] == "cluster not found"
    assert json.loads(monitor.text("/nothing"))["error"] is True
    wait_until(
        lambda: monitor.metrics().get("kmf_services_offset_commit_service_offset_commit_service_success_total"), ""
    )
    found = monitor.metrics()
    assert found["kmf_services_produce_service_records_produced_total"] > 0
    assert found["kmf_services_consume_service_records_lost_total"] == 0
    assert found["burrow_kafka_consumer_status"] >= 1
    assert set(found) <= set(MONITOR_METRICS)
    code, out = monitor.stop()
    assert code == 0
    last = json.loads(out.splitlines()[-1])
    assert last["end_to_end"][0]["produced"] > 0


def test_who_may_read_what_is_served(tmp_path: Path) -> None:
    """Over HTTPS, with a login; no cluster is needed to be turned away."""
    certificates = Certificates(tmp_path / "tls")
    users = tmp_path / "users"
    users.write_text("prometheus=secret\n")
    running = Running(
        "--bootstrap-server", "127.0.0.1:1", "--no-end-to-end", "--listen-login", str(users),
        "--listen-certificate", str(certificates.pem("monitor", LOCAL_HOSTS)),
    )  # fmt: skip
    try:
        assert running.url.startswith("https://")
        trust = ssl.create_default_context(cafile=str(certificates.ca))

        def answer(login: str | None) -> int:
            request = urllib.request.Request(running.url + "/burrow/admin")
            if login is not None:
                request.add_header("Authorization", "Basic " + base64.b64encode(login.encode()).decode())
            try:
                with urllib.request.urlopen(request, timeout=30, context=trust) as told:
                    return int(told.status)
            except urllib.error.HTTPError as error:
                return error.code

        assert [answer(each) for each in (None, "prometheus:wrong", "other:secret", "prometheus:secret")] == [
            401, 401, 401, 200,
        ]  # fmt: skip
    finally:
        running.close()


def test_a_gate_opens_for_a_cluster_that_keeps_its_objective(
    ottla_broker: RunningBroker, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--bootstrap-server", ottla_broker.bootstrap, "--topic", topic, "--duration", "1", "--json"]
    # What is slow on a busy machine is no fault of the broker's.
    assert (
        main(
            [
                "monitor",
                "--once",
                "--slo",
                "99.9",
                "--write-timeout-ms",
                "60000",
                "--latency-max-ms",
                "60000",
                *arguments,
            ]
        )
        == 0
    )
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["kept"], found["faults"], found["lost"]) == (True, [], 0)
    assert found["write"]["ratio"] == found["read"]["ratio"] == 1.0
    assert found["commits"]["done"] == 1
    assert found["topics"]["creation_ms"] > 0


def test_a_gate_stays_closed_where_records_are_too_slow(
    ottla_broker: RunningBroker, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--bootstrap-server", ottla_broker.bootstrap, "--topic", topic, "--duration", "0.5"]
    code = main(["monitor", "--once", "--no-topic-probe", "--write-timeout-ms", "0.001", *arguments])
    assert code == 1
    assert "FAULT: write availability is 0.000 %, below 99.9 %" in capsys.readouterr().out


def test_a_gate_stays_closed_without_a_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["monitor", "--once", "--bootstrap-server", "127.0.0.1:1"]) == 1
    assert "no broker answers at 127.0.0.1:1" in capsys.readouterr().err


def test_xinfras_configuration_is_followed(
    ottla_broker: RunningBroker, topic: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = {
        "one": {
            "class.name": "com.linkedin.xinfra.monitor.apps.SingleClusterMonitor",
            "topic": topic,
            "zookeeper.connect": "localhost:2181",
            "bootstrap.servers": ottla_broker.bootstrap,
            "produce.record.delay.ms": 20,
            "topic-management.partitionsToBrokersRatio": 2.0,
            "topic-management.topic.props": {"retention.ms": "3600000"},
            "produce.producer.props": {"client.id": "kmf-client-id", "linger.ms": 5},
            "consume.latency.sla.ms": "20000",
        },
        "reporter": {"class.name": "com.linkedin.xinfra.monitor.services.DefaultMetricsReporterService"},
    }
    path = tmp_path / "xinfra.properties"
    path.write_text("# as Xinfra Monitor has it\n" + json.dumps(config, indent=2))
    assert main(["monitor", "--once", "--duration", "0.5", "--json", "--config", str(path)]) == 0
    said = capsys.readouterr()
    (found,) = json.loads(said.out)
    brokers = len(found["brokers"])
    assert (found["name"], found["topic"], len(found["partitions"])) == ("one", topic, 2 * brokers)
    assert {each["leader"] for each in found["partitions"]} == set(found["brokers"])
    for named in ("zookeeper.connect", "linger.ms", "reporter"):
        assert f"{named}: " in said.err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"a": {"class.name": "x.MultiClusterMonitor"}}', "class.name is one of"),
        ('{"a": {"class.name": "SingleClusterMonitor"}}', "bootstrap.servers is missing"),
        ('{"a": {"class.name": "SingleClusterMonitor", "topik": "t"}}', "topik is not known; did you mean topic?"),
        (
            '{"a": {"class.name": "SingleClusterMonitor", "bootstrap.servers": "h", "produce.record.delay.ms": "x"}}',
            "produce.record.delay.ms is a number, not 'x'",
        ),
        ('{"a": ', "Expecting value"),
        ("[cluster.local]", "cluster.local.class-name is kafka here"),
    ],
)
def test_a_wrong_configuration_is_an_error(
    text: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    assert main(["monitor", "--config", str(path)]) == 1
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--config", "x", "--refresh", "3"], "--refresh has no effect here: --config says it"),
        (["--config", "x", "--bootstrap-server", "h:1"], "--bootstrap-server has no effect here: --config says it"),
        (["--no-lag", "--intervals", "3"], "--intervals has no effect here: no consumer groups are looked at"),
        (["--no-end-to-end", "--slo", "99"], "--slo has no effect here: no records are sent"),
        (["--duration", "3"], "--duration has no effect here: it is for --once"),
        (["--once", "--listen", "8001"], "--listen has no effect here: --once serves nothing"),
        (["--no-lag", "--no-end-to-end"], "leave nothing to do"),
        (["--intervals", "1"], "--intervals is at least 2"),
    ],
)
def test_an_option_that_would_be_ignored_is_an_error(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["monitor", *arguments]) == 1
    assert told in capsys.readouterr().err


def test_top_shows_the_cluster_once(
    ottla_broker: RunningBroker, topic: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--bootstrap-server", ottla_broker.bootstrap]
    assert main(["monitor", "--once", "--duration", "0.3", "--topic", topic, "--no-topic-probe", *where]) in (0, 1)
    capsys.readouterr()
    assert main(["top", "--json", "--delay", "0.1", *where]) == 0
    found = json.loads(capsys.readouterr().out)
    assert sum(each["is_controller"] for each in found["brokers"]) == 1
    (mine,) = [each for each in found["topics"] if each["topic"] == topic]
    assert mine["records"] > 0
    assert mine["records_per_second"] == 0
    assert topic in [each["group"] for each in found["groups"]]
    svg = tmp_path / "top.svg"
    assert main(["top", "--once", "--delay", "0.1", "--rows", "500", "--svg", str(svg), *where]) == 0
    shown = capsys.readouterr().out
    assert topic in shown
    assert "lag over time" in shown
    assert svg.read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["monitor", "--listen", "0", "--refresh", "0.2"], ["sli", "budget left", "consumer groups of local"]),
        (["top", "--delay", "0.2"], ["broker", "records/s", "lag over time"]),
    ],
    ids=["monitor", "top"],
)
def test_people_at_a_terminal_see_live_tables(
    arguments: list[str], shown: list[str], ottla_broker: RunningBroker, topic: str
) -> None:
    """On a real terminal of its own; what ends it is what people type."""
    where = ["--bootstrap-server", ottla_broker.bootstrap]
    # Leaves a group behind, without which `top` has nothing to say of groups.
    assert main(["monitor", "--once", "--duration", "0.3", "--topic", topic, "--no-topic-probe", *where]) in (0, 1)
    more = ["--topic", topic] if arguments[0] == "monitor" else []
    pid, terminal = pty.fork()
    if pid == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # ignored where the tests were started in the background
        # So high that the topics of the tests before leave room for the tables below theirs.
        os.environ.update(COLUMNS="120", LINES="400", TERM="xterm-256color")
        os.execv(
            sys.executable,
            [
                sys.executable,
                "-c",
                PROGRAM_ON_TERMINAL,
                *arguments,
                *more,
                *where,
            ],
        )
    said = bytearray()

    def read_on() -> bool:
        with contextlib.suppress(OSError):  # its end, as Linux tells it
            if select.select([terminal], [], [], 0.1)[0]:
                said.extend(os.read(terminal, 65_536))
        return all(word.encode() in said for word in shown)

    try:
        wait_until(read_on, f"{shown} on the screen: {bytes(said[-2000:])!r}", seconds=60)
        os.write(terminal, b"\x03")
        ended: list[int] = []

        def has_ended() -> bool:
            read_on()
            found, status = os.waitpid(pid, os.WNOHANG)
            if found:
                ended.append(os.waitstatus_to_exitcode(status))
            return bool(found)

        wait_until(has_ended, "Ctrl-C ends it", seconds=60)
        assert ended == [0]
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        raise
    finally:
        os.close(terminal)


def test_top_says_when_nobody_answers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", "--once", "--bootstrap-server", "127.0.0.1:1"]) == 1
    assert "no broker answers at 127.0.0.1:1" in capsys.readouterr().err
