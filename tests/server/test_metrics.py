"""GET /metrics of a real broker: what happened is in it."""

import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.testing import BrokerDidNotStart, RunningBroker
from ottla.testing import broker as broker_with

LINE = re.compile(r'[a-z_0-9]+(\{([a-z_]+="([^"\\\n]|\\.)*",?)+\})? ([0-9.e+-]+|NaN)')
TEXT = "text/plain; version=0.0.4; charset=utf-8"


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with broker_with(settings={"metrics.listener": "127.0.0.1:0"}) as running:
        yield running


def scrape(broker: RunningBroker, accept: str = "") -> tuple[str, str]:
    """(text, type)."""
    url = re.findall(r"HTTP listener started on (\S+)", broker.log_text())[-1]
    request = urllib.request.Request(f"{url}/metrics", headers={"Accept": accept} if accept else {})
    with urllib.request.urlopen(request, timeout=20) as answer:
        return answer.read().decode(), answer.headers["content-type"]


def value(text: str, series: str) -> float:
    (found,) = re.findall(rf"^{re.escape(series)} (\S+)$", text, re.MULTILINE)
    return float(found)


def test_what_happens_is_seen(broker: RunningBroker) -> None:
    before, kind = scrape(broker)
    assert kind == TEXT
    assert value(before, "kafka_server_replicamanager_leadercount") == 0
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic("news", 2)])["news"].result(30)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0})
    for number in range(10):
        producer.produce("news", str(number), partition=1)
    assert producer.flush(30) == 0
    after, _ = scrape(broker)
    assert all(line.startswith("# ") or LINE.fullmatch(line) for line in after.splitlines())
    which = '{topic="news",partition="1"}'
    for series, expected in {
        "kafka_server_replicamanager_leadercount": 2,
        "kafka_server_replicamanager_partitioncount": 2,
        "kafka_server_replicamanager_underreplicatedpartitions": 0,
        "kafka_server_replicamanager_underminisrpartitioncount": 0,
        "kafka_server_replicamanager_atminisrpartitioncount": 2,
        "kafka_server_replicamanager_offlinereplicacount": 0,
        "kafka_controller_kafkacontroller_activecontrollercount": 1,
        "kafka_controller_kafkacontroller_offlinepartitionscount": 0,
        "kafka_controller_kafkacontroller_preferredreplicaimbalancecount": 0,
        "kafka_controller_kafkacontroller_globaltopiccount": 1,
        "kafka_controller_kafkacontroller_globalpartitioncount": 2,
        "kafka_controller_kafkacontroller_activebrokercount": 1,
        f"kafka_cluster_partition_replicascount{which}": 1,
        f"kafka_log_log_logendoffset{which}": 10,
        f"kafka_log_log_logstartoffset{which}": 0,
        f"kafka_log_log_numlogsegments{which}": 1,
        "kafka_log_logmanager_offlinelogdirectorycount": 0,
    }.items():
        assert value(after, series) == expected, series
    assert value(after, f"kafka_log_log_size{which}") > 100
    assert 0 < value(after, "process_open_fds") < value(after, "process_max_fds")
    assert value(after, "process_resident_memory_bytes") > 10_000_000
    assert value(after, "process_cpu_seconds_total") >= value(before, "process_cpu_seconds_total") > 0
    assert (
        sum(
            map(
                float,
                re.findall(r"^kafka_network_requestmetrics_requestspersec.*Produce.* (\S+)$", after, re.MULTILINE),
            )
        )
        > 0
    )


def test_whoever_asks_for_openmetrics_gets_it(broker: RunningBroker) -> None:
    text, kind = scrape(broker, "application/openmetrics-text; version=1.0.0, text/plain; q=0.5")
    assert kind == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert text.endswith("# EOF\n")


def test_other_paths_and_bad_addresses(broker: RunningBroker, tmp_path: Path) -> None:
    url = re.findall(r"HTTP listener started on (\S+)", broker.log_text())[-1]
    with pytest.raises(urllib.error.HTTPError, match="404") as refused:
        urllib.request.urlopen(f"{url}/", timeout=20)
    refused.value.close()
    taken = url.removeprefix("http://")
    for address, told in (("nowhere:x", "is not a number"), (taken, "in use by another program")):
        with (
            pytest.raises(BrokerDidNotStart, match=told),
            broker_with(data_dir=tmp_path, settings={"metrics.listener": address}),
        ):
            pass
