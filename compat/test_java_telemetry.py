"""The Java clients push their metrics (KIP-714), and the broker serves them beside its own."""

import re
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from compat.peer.program import own_java_command

from ottla.cli.main import main
from ottla.testing.running import RunningBroker, broker
from ottla.testing.waiting import wait_until

PATIENCE_S = 60.0


@pytest.fixture
def measured() -> Iterator[RunningBroker]:
    with broker({"metrics.listener": "127.0.0.1:0"}) as running:
        yield running


def scrape(running: RunningBroker) -> str:
    url = re.findall(r"HTTP listener started on (\S+)", running.log_text())[-1]
    with urllib.request.urlopen(f"{url}/metrics", timeout=30) as answer:
        return str(answer.read().decode())


def pushed_by(text: str, client_id: str) -> dict[str, str]:
    """Names of series, and their labels."""
    found = re.findall(r"^(ottla_client_\w+)\{(.*)\} \S+$", text, re.MULTILINE)
    return {name: labels for name, labels in found if f'client_id="{client_id}"' in labels}


def test_java_clients_are_seen_without_touching_them(java_classes: Path, measured: RunningBroker) -> None:
    subscribe = ["--alter", "--name", "all", "--metrics", "*", "--interval", "500"]
    assert main(["client-metrics", "--bootstrap-server", measured.bootstrap, *subscribe]) == 0
    command = own_java_command("Check", measured.bootstrap, "telemetry", classes=java_classes)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            said = process.stdout.readline().decode()
            assert said.startswith("instance "), said + process.stdout.read().decode()
            wait_until(
                lambda: (
                    "ottla_client_producer_record_send_total" in pushed_by(scrape(measured), "java-producer")
                    and "ottla_client_consumer_fetch_manager_records_consumed_total"
                    in pushed_by(scrape(measured), "java-consumer")
                ),
                "what both push is served",
                seconds=PATIENCE_S,
            )
            text = scrape(measured)
            for client_id in ("java-producer", "java-consumer"):
                labels = next(iter(pushed_by(text, client_id).values()))
                assert 'client_software_name="apache-kafka-java"' in labels
            counted = re.search(r"^kafka_server_clientmetrics_plugin_export_count (\d+)$", text, re.MULTILINE)
            failed = re.search(r"^kafka_server_clientmetrics_plugin_error_count (\d+)$", text, re.MULTILINE)
            assert counted is not None
            assert failed is not None
            assert int(counted[1]) >= 2
            assert int(failed[1]) == 0
        finally:
            process.stdin.write(b"\n")
            process.stdin.close()
            left = process.stdout.read().decode()
            process.wait(PATIENCE_S)
    assert left.strip().endswith("passed"), left
    wait_until(lambda: not pushed_by(scrape(measured), "java-producer"), "who has gone is forgotten", seconds=120)
