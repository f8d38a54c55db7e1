"""Confluent's Java registry client, from Flink's jar, and Flink's serializers on it, against our registry."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from compat.peer.java_registry import fetch_registry_client, registry_check
from compat.peer.kafka import Kafka
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from ottla.testing.registry import RunningRegistry, registry, write_users
from ottla.testing.running import RunningBroker

SECONDS_MAX = 120
FIRST = '{"type":"record","name":"Order","fields":[{"name":"id","type":"int"}]}'
SCENARIOS = ["register", "compatibility", "config", "mode", "references", "metadata", "deletes"]


@pytest.fixture(scope="module", autouse=True)
def java_program() -> Path:
    return fetch_registry_client()


@pytest.fixture(scope="module")
def running(ottla_broker: RunningBroker) -> Iterator[RunningRegistry]:
    with registry(ottla_broker.bootstrap) as started:
        yield started


def run(url: str, scenario: str, subject: str, *arguments: str) -> list[str]:
    """What the program printed, if it passed."""
    done = subprocess.run(
        registry_check(url, scenario, subject, *arguments),
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert done.stdout.endswith("passed\n"), done.stdout + done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_java_registry_client(running: RunningRegistry, unique: Callable[[str], str], scenario: str) -> None:
    run(running.url, scenario, f"{unique(scenario)}-value")


def test_java_client_logs_in(ottla_broker: RunningBroker, unique: Callable[[str], str], tmp_path: Path) -> None:
    users = write_users(tmp_path / "users", [("jane", "secret")])
    own = ("--topic", unique("_schemas"), "--group", unique("registry"))
    with registry(ottla_broker.bootstrap, "--users", str(users), *own) as started:
        run(started.url, "login", unique("login"), "jane:secret")


def test_flink_and_python_read_each_other(running: RunningRegistry, unique: Callable[[str], str]) -> None:
    """Python writes with the first version; Flink reads it as the second, and writes that; Python reads it."""
    topic = unique("flink")
    context = SerializationContext(topic, MessageField.VALUE)
    with SchemaRegistryClient({"url": running.url}) as client:
        written = AvroSerializer(client, FIRST)({"id": 42}, context)
        assert written is not None
        lines = run(running.url, "flink", f"{topic}-value", written.hex(), "42")
        sent = next(line.removeprefix("bytes ") for line in lines if line.startswith("bytes "))
        assert AvroDeserializer(client)(bytes.fromhex(sent), context) == {"id": 42, "note": "read by Flink"}
        assert client.get_versions(f"{topic}-value") == [1, 2]


def test_on_apache_kafka(apache_kafka: Kafka, unique: Callable[[str], str]) -> None:
    """Two instances keep their state there: one writes, the other passes on, and a third reads what they wrote."""
    with registry(apache_kafka.bootstrap) as first, registry(apache_kafka.bootstrap) as second:
        for each, scenario in ((first, "register"), (second, "references"), (first, "config"), (second, "deletes")):
            run(each.url, scenario, f"{unique(scenario)}-value")
        expected = subjects(first)
        assert subjects(second) == expected
    with registry(apache_kafka.bootstrap) as later:
        assert subjects(later) == expected


def subjects(running: RunningRegistry) -> list[str]:
    with SchemaRegistryClient({"url": running.url}) as client:
        return sorted(client.get_subjects())
