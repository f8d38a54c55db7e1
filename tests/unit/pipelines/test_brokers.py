"""Brokers are looked for before Spark starts: who needs them, where, and what to do."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from ottla.cli.main import main
from ottla.client.cluster import Address
from ottla.client.presence import Absent
from ottla.client.security import Security
from ottla.pipelines.errors import ConnectorProblem
from ottla.pipelines.runner.brokers import check_brokers, places_with_topics
from ottla.pipelines.runner.deploy import deploy
from ottla.pipelines.runner.deployment import Deployment

TOPICS = """
name: orders
bootstrap: kafka-1:9092,kafka-2:9092
sources: {orders: {topic: orders, format: json, schema: "id STRING"}}
tables: {items: {topic: items, format: json, schema: "id STRING"}, local: {files: items.csv, format: csv}}
steps: [{sql: SELECT o.id FROM orders o JOIN items USING (id) JOIN local USING (id)}]
sinks: [{files: ./lake, format: parquet}, {topic: out, format: json}]
errors: {dead_letter: dead}
"""
FILES = """
name: copy
sources: {lines: {files: in.txt, format: text}}
sinks: [{files: ./lake, format: parquet}]
"""


def deployed(folder: Path, text: str, bootstrap: str | None = None) -> Deployment:
    path = folder / "p.yaml"
    path.write_text(text)
    return deploy(path, bootstrap=bootstrap, state_dir=folder)


def nobody(bootstrap: str, _security: Security) -> Sequence[Absent]:
    hosts = [entry.partition(":")[0] for entry in bootstrap.split(",")]
    return [Absent(-n, Address(host, 9092), f"10.0.0.{n}", "refused") for n, host in enumerate(hosts, 1)]


def test_every_part_that_needs_a_broker_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConnectorProblem) as told:
        check_brokers([deployed(tmp_path, TOPICS)], nobody)
    first, one, two, advice = str(told.value).splitlines()
    assert "no broker answers at kafka-1:9092,kafka-2:9092 (`bootstrap` in the file)" in first
    assert "sources.orders, tables.items, sinks[1], errors.dead_letter cannot do without" in first
    assert "Connection to node -1 (kafka-1/10.0.0.1:9092) could not be established" in one
    assert "Connection to node -2 (kafka-2/10.0.0.2:9092) could not be established" in two
    assert "ottla up" in advice


def test_the_option_is_named_where_it_says_the_brokers(tmp_path: Path) -> None:
    with pytest.raises(ConnectorProblem, match=r"at other:1 \(--bootstrap-server\)"):
        check_brokers([deployed(tmp_path, TOPICS, "other:1")], nobody)


def test_nobody_is_asked_where_no_topic_is_read_or_written(tmp_path: Path) -> None:
    deployment = deployed(tmp_path, FILES)
    assert list(places_with_topics(deployment.checked)) == []
    check_brokers([deployment], nobody)


def test_the_same_brokers_are_asked_once(tmp_path: Path) -> None:
    asked = []

    def there(bootstrap: str, _security: Security) -> Sequence[Absent]:
        asked.append(bootstrap)
        return []

    check_brokers([deployed(tmp_path, TOPICS), deployed(tmp_path, TOPICS)], there)
    assert asked == ["kafka-1:9092,kafka-2:9092"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["run"],
        ["run", "--batch"],
        ["replay-dead-letters", "--all"],
        ["reprocess", "--version", "v2"],
    ],
)
def test_spark_is_not_started_in_vain(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    def started(*_: object, **__: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("ottla.pipelines.runner.session.pipeline_session", started)
    text = TOPICS.replace("kafka-1:9092,kafka-2:9092", "127.0.0.1:1").replace("{files: ./lake, format: parquet}, ", "")
    path = tmp_path / "orders.yaml"
    path.write_text(text)
    command, *options = arguments
    assert main(["pipeline", command, str(path), "--state-dir", str(tmp_path), *options]) == 1
    assert "no broker answers at 127.0.0.1:1" in capsys.readouterr().err
