"""The wheel in an environment of its own, used from a folder that knows nothing of this checkout."""

import contextlib
import json
import os
import select
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.packaging.conftest import COMPILES, ROOT, SECONDS_MAX, Environment, clean_variables

import ottla
from ottla.cli.names import BY_SCRIPT
from ottla.testing.ports import free_ports

TEST = """
from confluent_kafka import Consumer, Producer


def test_an_order_arrives(ottla_broker):
    producer = Producer({"bootstrap.servers": ottla_broker.bootstrap})
    producer.produce("orders", value="two tickets")
    assert producer.flush(60) == 0
    consumer = Consumer(
        {"bootstrap.servers": ottla_broker.bootstrap, "group.id": "g", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["orders"])
    message = consumer.poll(timeout=60)
    assert message is not None and message.value() == b"two tickets"
    consumer.close()
"""

PIPELINE = """
name: enriched
sources:
  orders: {topic: orders, format: json, schema: "id STRING, amount DOUBLE", start: earliest}
steps:
  - sql: SELECT id, amount * 2 AS doubled FROM orders WHERE amount > 0
sinks:
  - {topic: orders.doubled, key: id, format: json, delivery: exactly_once}
  - {sqlite: ./orders.db, table: orders, mode: upsert, keys: [id], create: true}
"""


@contextlib.contextmanager
def started(environment: Environment, *words: str) -> Iterator[str]:
    """A server of the environment; yields its first line, and sees that SIGTERM ends it in order."""
    process = subprocess.Popen(
        [environment.bin / words[0], *words[1:]],
        cwd=environment.folder,
        env={**clean_variables(), **environment.variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        readable, _, _ = select.select([process.stdout], [], [], SECONDS_MAX)
        line = process.stdout.readline().decode() if readable else ""
        assert line, process.communicate(timeout=SECONDS_MAX)
        yield line
        process.send_signal(signal.SIGTERM)
        _, logged = process.communicate(timeout=SECONDS_MAX)
        assert process.returncode == 0, logged.decode()
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def bootstrap(environment: Environment) -> Iterator[str]:
    (port,) = free_ports(1)
    with started(environment, "ottla", "up", "--port", str(port)) as line:
        assert line.startswith(f"Ottla is up on 127.0.0.1:{port}."), line
        yield f"127.0.0.1:{port}"
    assert (environment.folder / ".ottla").is_dir()


def test_it_is_the_wheel_that_runs(environment: Environment) -> None:
    where = environment.run(
        "python", "-c", "import ottla, pyspark_ottla; print(ottla.__file__, pyspark_ottla.__file__)"
    )
    assert [str(environment.bin.parent) in path for path in where.split()] == [True, True]
    assert str(ROOT / "src") not in environment.run("python", "-c", "import sys; print(sys.path)")
    assert environment.run("ottla", "--version") == f"ottla {ottla.__version__}\n"


def test_every_command_is_there_under_kafkas_names(environment: Environment) -> None:
    installed = {path.name for path in environment.bin.iterdir()}
    assert set(BY_SCRIPT) <= installed
    assert {f"{name}.sh" for name in BY_SCRIPT if not name.endswith(".sh")} <= installed


def test_what_is_produced_is_consumed(environment: Environment, bootstrap: str) -> None:
    here = ("--bootstrap-server", bootstrap, "--topic", "news")
    environment.run("kafka-topics.sh", *here, "--create", "--partitions", "3")
    environment.run("kafka-console-producer.sh", *here, text="hello\nworld\n")
    read = environment.run("kafka-console-consumer.sh", *here, "--from-beginning", "--max-messages", "2")
    assert sorted(read.split()) == ["hello", "world"]


def test_doctor_finds_all_well_and_the_compiled_kernel(environment: Environment, bootstrap: str) -> None:
    told = json.loads(environment.run("ottla", "doctor", "--json", "--bootstrap-server", bootstrap))
    assert told["ok"] is True, told
    kernel = [check["found"] for check in told["checks"] if check["check"] == "kernel"]
    assert kernel == ["compiled"] or not COMPILES


def test_the_fixture_comes_with_the_package(environment: Environment) -> None:
    folder = environment.folder / "project"
    folder.mkdir()
    (folder / "test_orders.py").write_text(TEST)
    told = environment.run("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, folder)
    assert "1 passed" in told


@pytest.mark.timeout(600)
def test_a_pipeline_runs(environment: Environment, bootstrap: str) -> None:
    """From a topic through Spark to a topic, exactly once, and to a database."""
    rows = "".join(json.dumps({"id": f"o{n}", "amount": n}) + "\n" for n in range(10))
    environment.run("kafka-console-producer", "--bootstrap-server", bootstrap, "--topic", "orders", text=rows)
    (environment.folder / "orders.yaml").write_text(PIPELINE)
    where = ("--bootstrap-server", bootstrap, "--master", "local[1]")
    environment.run("ottla", "pipeline", "run", "orders.yaml", "--once", *where)
    with contextlib.closing(sqlite3.connect(environment.folder / "orders.db")) as database:
        assert database.execute("SELECT count(*), sum(doubled) FROM orders").fetchone() == (9, 90.0)
    reading = (
        "--topic",
        "orders.doubled",
        "--from-beginning",
        "--max-messages",
        "9",
        "--isolation-level",
        "read_committed",
    )
    written = environment.run("kafka-console-consumer", "--bootstrap-server", bootstrap, *reading)
    assert sorted(json.loads(line)["id"] for line in written.splitlines()) == [f"o{n}" for n in range(1, 10)]


def test_a_broker_starts_from_the_sample_file(environment: Environment, tmp_path: Path) -> None:
    sample = environment.bin.parent / "share/ottla/config/server.properties"
    (port,) = free_ports(1)
    places = ("--override", f"log.dirs={tmp_path}", "--override", f"listeners=PLAINTEXT://127.0.0.1:{port}")
    with started(environment, "kafka-server-start.sh", str(sample), *places) as line:
        assert "accepts connections" in line
