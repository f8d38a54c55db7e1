"""A real Prometheus scrapes a cluster of three and the monitor; our rules fire when they should, and end."""

import json
import os
import re
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from compat.public_queries import ASKED
from compat.rule_cases import document
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.cli.main import main
from ottla.monitoring.dashboards import panels, rules
from ottla.monitoring.dashboards.files import RULES_FILE, write_files
from ottla.testing.cluster import RunningCluster
from ottla.testing.ports import free_ports
from ottla.testing.running import broker
from ottla.testing.waiting import wait_until
from ottla.testing.zookeeper import zookeeper

PATIENCE = 120.0
PROGRAM = (
    "import sys; from ottla.testing.child import end_with_parent; end_with_parent(); "
    "from ottla.cli.main import main; sys.exit(main())"
)
# These ask for what happened, which nothing may have: no answer is the good one.
QUIET_PANELS = {"Errors", "Groups by state", "Time until caught up"}
PIPELINES = "ottla-pipelines"
# A ZooKeeper of one server has no quorum.
NOT_IN_ONE_SERVER = {"zookeeper_leaderuptime", "zookeeper_status_quorumsize"}


class Scraper:
    """A Prometheus that scrapes and judges every second."""

    def __init__(self, url: str) -> None:
        self._url = url

    def get(self, path: str, **parameters: str) -> Any:
        query = f"?{urllib.parse.urlencode(parameters)}" if parameters else ""
        with urllib.request.urlopen(f"{self._url}/api/v1/{path}{query}", timeout=30) as answer:
            return json.load(answer)["data"]

    def firing(self) -> set[str]:
        return {each["labels"]["alertname"] for each in self.get("alerts")["alerts"] if each["state"] == "firing"}

    def value(self, expression: str) -> list[Any]:
        return list(self.get("query", query=expression)["result"])

    def wait_for(self, *alerts: str) -> None:
        for alert in alerts:
            wait_until(lambda alert=alert: alert in self.firing(), f"{alert} fires", seconds=PATIENCE, pause=0.2)  # type: ignore[misc]

    def wait_for_end(self, *alerts: str) -> None:
        wait_until(lambda: not self.firing() & set(alerts), f"{alerts} end", seconds=PATIENCE, pause=0.2)


@contextmanager
def scraping(program: str, folder: Path, targets: dict[str, list[str]]) -> Iterator[Scraper]:
    """With our rules, but for their patience."""
    write_files(str(folder))
    text = (folder / RULES_FILE).read_text()
    (folder / RULES_FILE).write_text(re.sub(r"^(\s+for:) \S+$", r"\1 1s", text, flags=re.MULTILINE))
    jobs = [{"job_name": job, "static_configs": [{"targets": addresses}]} for job, addresses in targets.items()]
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(folder / RULES_FILE)],
        "scrape_configs": jobs,
    }
    (folder / "prometheus.yml").write_text(json.dumps(config))  # YAML, of which JSON is a part
    (port,) = free_ports(1)
    with (folder / "prometheus.log").open("w") as log:
        process = subprocess.Popen(
            [
                program,
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=log,
            stderr=log,
        )
    try:
        scraper = Scraper(f"http://127.0.0.1:{port}")
        wait_until(lambda: _answers(scraper), "Prometheus answers", seconds=PATIENCE, pause=0.2)
        yield scraper
    finally:
        process.terminate()
        process.wait(60)


def _answers(scraper: Scraper) -> bool:
    try:
        return scraper.value("vector(1)") != []
    except OSError:
        return False


@contextmanager
def monitoring(*arguments: str) -> Iterator[str]:
    """`ottla monitor`, and where it listens."""
    (port,) = free_ports(1)
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "monitor", "--listen", str(port), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    try:
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(60)
        assert process.stdin is not None
        process.stdin.close()


def test_promtool_accepts_our_rules(prometheus: str, tmp_path: Path) -> None:
    write_files(str(tmp_path))
    done = subprocess.run(
        ["promtool", "check", "rules", str(tmp_path / RULES_FILE)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    count = sum(len(group) for group in rules.written().values())
    assert f"{count} rules found" in done.stdout


def test_every_rule_fires_when_it_should_and_says_what_is_the_matter(prometheus: str, tmp_path: Path) -> None:
    """Of all rules, played from series; the tests below have the trouble itself."""
    write_files(str(tmp_path))
    (tmp_path / "cases.json").write_text(json.dumps(document(RULES_FILE)))
    done = subprocess.run(
        ["promtool", "test", "rules", "cases.json"], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def three_brokers(tmp_path: Path) -> Iterator[tuple[RunningCluster, list[str]]]:
    """With a metrics listener each."""
    ports = free_ports(3)
    with zookeeper(1) as ensemble:
        cluster = RunningCluster(tmp_path / "cluster", brokers=3, zookeeper=ensemble)
        for each, port in zip(cluster.brokers.values(), ports, strict=True):
            each.change({"metrics.listener": f"127.0.0.1:{port}", "offsets.topic.num.partitions": 3})
        try:
            cluster.start()
            cluster.wait_until_settled()
            yield cluster, [f"127.0.0.1:{port}" for port in ports]
        finally:
            cluster.close()


def test_rules_fire_when_a_broker_is_killed_and_when_a_group_stalls(
    prometheus: str, three_brokers: tuple[RunningCluster, list[str]], tmp_path: Path, unique: Callable[[str], str]
) -> None:
    cluster, listeners = three_brokers
    topic = unique("stalls")
    cluster.create_topic(NewTopic(topic, 1, 3))
    with ExitStack() as stack:
        where = stack.enter_context(
            monitoring("--bootstrap-server", cluster.bootstrap, "--refresh", "1", "--intervals", "5")
        )
        folder = tmp_path / "prometheus"
        folder.mkdir()
        scraper = stack.enter_context(scraping(prometheus, folder, {"kafka": listeners, "ottla-monitor": [where]}))
        wait_until(lambda: len(scraper.value("up == 1")) == 4, "all four are scraped", seconds=PATIENCE, pause=0.2)
        wait_until(
            lambda: scraper.value("kmf_services_produce_service_produce_availability_avg > 0.99"),
            "records get through",
            seconds=PATIENCE,
            pause=0.2,
        )
        assert not scraper.firing() & {"KafkaScrapeDown", "KafkaControllerCount", "ConsumerGroupStalled", "RecordsLost"}

        # A broker is killed.
        cluster.brokers[2].kill()
        scraper.wait_for("KafkaScrapeDown", "KafkaUnderReplicated", "ErrorBudgetBurnsFast")
        cluster.brokers[2].start()
        cluster.wait_until_settled()
        scraper.wait_for_end("KafkaScrapeDown", "KafkaUnderReplicated")

        # A member of a group lives, and does not move.
        producer = Producer({"bootstrap.servers": cluster.bootstrap})
        for _ in range(100):
            producer.produce(topic, b"x")
        assert producer.flush(60) == 0
        consumer = Consumer(
            {"bootstrap.servers": cluster.bootstrap, "group.id": topic, "enable.auto.commit": False,
             "auto.offset.reset": "earliest"}
        )  # fmt: skip
        stack.callback(consumer.close)
        consumer.subscribe([topic])
        wait_until(lambda: consumer.poll(0.5) is not None, "it reads", seconds=PATIENCE)
        consumer.commit(offsets=[TopicPartition(topic, 0, 3)], asynchronous=False)
        scraper.wait_for("ConsumerGroupStalled")
        (told,) = scraper.value(f'burrow_kafka_topic_partition_status{{consumer_group="{topic}"}}')
        assert told["value"][1] == "5"
        consumer.commit(offsets=[TopicPartition(topic, 0, 100)], asynchronous=False)
        scraper.wait_for_end("ConsumerGroupStalled")
        assert "RecordsLost" not in scraper.firing()
        _every_panel_has_data(scraper, lambda uid: uid != PIPELINES)
        _every_public_query_has_data(scraper, cluster)


def _every_panel_has_data(scraper: Scraper, looked_at: Callable[[str], bool]) -> None:
    """By now everything has happened that these dashboards show."""
    empty = [
        (panel.title, query.expression)
        for board in panels.written()
        if looked_at(board.uid)
        for panel in board.panels
        for query in panel.queries
        if panel.title not in QUIET_PANELS and not scraper.value(query.expression)
    ]
    assert not empty


def _every_public_query_has_data(scraper: Scraper, cluster: RunningCluster) -> None:
    """What public dashboards and rules ask for, after what they ask about has happened: somebody has quotas, uses
    them, and does something wrong."""
    quotas = "producer_byte_rate=1000000,consumer_byte_rate=1000000,request_percentage=200"
    assert main(["configs", "--bootstrap-server", cluster.bootstrap, "--alter", "--client-defaults",
                 "--add-config", quotas]) == 0  # fmt: skip
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "client.id": "with quotas"})
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "public", "client.id": "with quotas",
                         "auto.offset.reset": "earliest"})  # fmt: skip
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic("public", 3, 3)])["public"].result(60)
    consumer.subscribe(["public"])
    left = set(ASKED) - NOT_IN_ONE_SERVER

    def all_seen() -> bool:
        producer.produce("public", b"x")
        producer.flush(10)
        consumer.poll(0.2)
        failed = admin.create_topics([NewTopic("public", 3, 3)])["public"]
        assert failed.exception(60) is not None
        left.difference_update([query for query in left if scraper.value(query)])
        return not left

    try:
        wait_until(all_seen, "every query has data", seconds=PATIENCE, pause=0.5)
    except AssertionError:
        raise AssertionError(f"no data for {sorted(left)}") from None
    finally:
        consumer.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk takes root")
def test_a_rule_fires_when_a_disk_is_full(prometheus: str, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", str(disk)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
    try:
        folder = tmp_path / "prometheus"
        folder.mkdir()
        with (
            broker({"log.dirs": str(disk / "data")}, data_dir=tmp_path / "home") as running,
            monitoring("--bootstrap-server", running.bootstrap, "--refresh", "1", "--no-end-to-end") as where,
            scraping(prometheus, folder, {"ottla-monitor": [where]}) as scraper,
        ):
            wait_until(
                lambda: scraper.value("ottla_monitor_log_directory_bytes"), "its disk", seconds=PATIENCE, pause=0.2
            )
            assert "LogDirectoryFull" not in scraper.firing()
            ballast = disk / "ballast"
            ballast.write_bytes(bytes(31 << 20))
            scraper.wait_for("LogDirectoryFull")
            ballast.unlink()
            scraper.wait_for_end("LogDirectoryFull")
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


ORDERS = """
name: orders
sources: {orders: {topic: orders, format: json, schema: "id STRING NOT NULL, at TIMESTAMP"}}
steps: [{deduplicate: {keys: [id], time: at, within: 1 minute}}]
sinks: [{topic: orders.once, key: id}]
errors: {dead_letter: orders.dead}
limits: {trigger: 1 second}
"""
FAILING = """
name: failing
sources: {orders: {topic: orders}}
sinks: [{postgres: "postgresql://me:me@127.0.0.1:1/db?connect_timeout=1", table: t}]
errors: {retries: 4, backoff: 2 seconds, backoff_max: 2 seconds}
"""


@pytest.mark.timeout(900)
def test_rules_fire_when_pipelines_fail_and_set_records_aside(prometheus: str, tmp_path: Path) -> None:
    (tmp_path / "orders.yaml").write_text(ORDERS)
    (tmp_path / "failing.yaml").write_text(FAILING)
    folder = tmp_path / "prometheus"
    folder.mkdir()
    with broker(data_dir=tmp_path / "home") as running, ExitStack() as stack:
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        admin.create_topics([NewTopic("orders", 1)])["orders"].result(60)
        producer = Producer({"bootstrap.servers": running.bootstrap})

        def send(*values: str) -> None:
            for value in values:
                producer.produce("orders", value.encode())
            assert producer.flush(60) == 0

        where = stack.enter_context(driving(tmp_path, running.bootstrap))
        scraper = stack.enter_context(scraping(prometheus, folder, {"ottla-pipelines": [where]}))
        wait_until(lambda: scraper.value('ottla_pipeline_state{pipeline="orders",state="running"}'), "it runs",
                   seconds=PATIENCE, pause=0.5)  # fmt: skip
        for minute in range(3):
            send(json.dumps({"id": str(minute), "at": f"2026-01-01T10:{10 * minute:02}:00Z"}))
            wait_until(
                lambda minute=minute: scraper.value(f'ottla_pipeline_input_rows_total{{pipeline="orders"}} > {minute}'),  # type: ignore[misc]
                "it reads", seconds=PATIENCE, pause=0.5,
            )  # fmt: skip
        scraper.wait_for("PipelineRestarts", "PipelineFailed")
        assert "PipelineDeadLetters" not in scraper.firing()
        send("this is not JSON")
        scraper.wait_for("PipelineDeadLetters")
        _every_panel_has_data(scraper, lambda uid: uid == PIPELINES)
        assert not scraper.firing() & {"PipelineStalled", "PipelineFallsBehind", "KafkaScrapeDown"}


@contextmanager
def driving(folder: Path, bootstrap: str) -> Iterator[str]:
    """`ottla pipeline run` of all files of a folder, and where it listens."""
    (port,) = free_ports(1)
    files = sorted(map(str, folder.glob("*.yaml")))
    with (folder / "driver.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, "pipeline", "run", *files, "--bootstrap-server", bootstrap,
             "--port", str(port), "--state-dir", str(folder / "state"), "--master", "local[2]"],
            stdin=subprocess.PIPE, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(120)
        assert process.stdin is not None
        process.stdin.close()
