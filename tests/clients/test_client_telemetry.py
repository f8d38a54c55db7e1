"""Client telemetry (KIP-714): librdkafka pushes for real, and what it says is in the metrics of the broker."""

import re
import urllib.request
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from ottla.cli.main import run
from ottla.cli.names import BY_CLASS
from ottla.testing import RunningBroker
from ottla.testing import broker as broker_with
from ottla.testing.waiting import wait_until

TOOL = BY_CLASS["org.apache.kafka.tools.ClientMetricsCommand"]


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with broker_with(settings={"metrics.listener": "127.0.0.1:0"}) as running:
        yield running


def scrape(broker: RunningBroker) -> str:
    url = re.findall(r"HTTP listener started on (\S+)", broker.log_text())[-1]
    with urllib.request.urlopen(f"{url}/metrics", timeout=20) as answer:
        return str(answer.read().decode())


def tool(broker: RunningBroker, *arguments: str) -> None:
    assert run(TOOL, ["--bootstrap-server", broker.bootstrap, *arguments], "kafka-client-metrics") == 0


def test_librdkafka_pushes_what_is_subscribed(broker: RunningBroker, capsys: pytest.CaptureFixture[str]) -> None:
    tool(
        broker, "--alter", "--name", "mine", "--metrics", "*", "--interval", "200", "--match", "client_id=seen-.*"
    )  # fmt: skip
    producers = [
        Producer({"bootstrap.servers": broker.bootstrap, "client.id": name, "enable.metrics.push": True})
        for name in ("seen-1", "unseen")
    ]
    for producer in producers:
        producer.produce("news", b"hello")
        assert producer.flush(30) == 0

    def pushed() -> list[str]:
        for producer in producers:
            producer.poll(0)
        return re.findall(r'^(ottla_client_\w+)\{client_id="seen-1".* \S+$', scrape(broker), re.MULTILINE)

    wait_until(lambda: len(set(pushed())) >= 3, "the client's metrics are told")
    names = set(pushed())
    assert "ottla_client_producer_connection_creation_total" in names, names
    text = scrape(broker)
    assert 'client_id="unseen"' not in text, "nobody subscribed to it"
    line = re.search(r"^ottla_client_producer_connection_creation_total\{(.*)\} (\S+)$", text, re.MULTILINE)
    assert line is not None
    figures = re.findall(r'^ottla_client_\w+\{client_id="seen-1".*\} (\S+)$', text, re.MULTILINE)
    assert any(float(figure) > 0 for figure in figures), figures
    assert 'client_software_name="confluent-kafka-python"' in line[1] or "librdkafka" in line[1], line[1]
    assert float(re.findall(r"^kafka_server_clientmetrics_instancecount (\S+)$", text, re.MULTILINE)[0]) >= 2
    assert float(re.findall(r"^kafka_server_clientmetrics_plugin_export_count (\S+)$", text, re.MULTILINE)[0]) >= 1
    capsys.readouterr()
    tool(broker, "--describe")
    assert capsys.readouterr().out.splitlines() == [
        "Client metrics configs for mine are:",
        "  interval.ms=200",
        "  match=client_id=seen-.*",
        "  metrics=*",
    ]
    tool(broker, "--delete", "--name", "mine")
    capsys.readouterr()
    tool(broker, "--list")
    assert capsys.readouterr().out.strip() == ""


def test_where_nobody_would_see_it_nothing_is_asked_for() -> None:
    with broker_with() as plain:
        assert AdminClient({"bootstrap.servers": plain.bootstrap}).list_topics(timeout=30) is not None
