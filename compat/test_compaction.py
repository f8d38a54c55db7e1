"""Compaction as Apache Kafka sees it: its own tester, and its dump tool on cleaned segments."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import confluent_kafka.admin
import pytest
from compat.peer.kafka import Kafka, java_command, run_tool

from ottla.testing.running import RunningBroker, broker
from ottla.testing.waiting import wait_until

pytestmark = pytest.mark.usefixtures("kafka_libs")

TESTER = "org.apache.kafka.tools.LogCompactionTester"
DUMP = "org.apache.kafka.tools.DumpLogSegments"
TOPIC = "table"
KEYS, ROUNDS = 200, 120
WAIT_S = 60
# Segments are finished early and cleaned at once, so that a test of seconds sees what days bring about.
SETTINGS: dict[str, str | int] = {
    "log.segment.bytes": 1_048_576,
    "log.roll.ms": 300,
    "log.cleaner.backoff.ms": 100,
    "log.cleaner.min.cleanable.ratio": "0.1",
    "log.cleaner.delete.retention.ms": 100,
    "log.segment.delete.delay.ms": 0,
}


@pytest.mark.parametrize("codec", ["none", "zstd", "lz4", "snappy", "gzip"])
def test_kafkas_tester(codec: str) -> None:
    with broker(SETTINGS) as running:
        command = java_command(
            TESTER, "--bootstrap-server", running.bootstrap, "--messages", "100000", "--duplicates", "50",
            "--percent-deletes", "20", "--topics", "2", "--sleep", "3", "--compression-type", codec,
        )  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Data verification is completed" in done.stdout
        assert re.search(r"Validated [1-9]\d* values, 0 mismatches", done.stdout), done.stdout
        reduction = re.search(r"\(([\d.]+)% reduction\)", done.stdout)
        assert reduction is not None
        assert float(reduction[1]) > 50, done.stdout


@pytest.fixture(scope="module")
def cleaned() -> Iterator[RunningBroker]:
    """A broker that was stopped after cleaning a topic with every codec, deletions and transactions."""
    with broker({**SETTINGS, "log.cleaner.delete.retention.ms": 3_600_000}) as running:
        admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": running.bootstrap})
        topic = confluent_kafka.admin.NewTopic(TOPIC, 1, 1, config={"cleanup.policy": "compact"})
        admin.create_topics([topic])[TOPIC].result(WAIT_S)
        for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
            _write(running.bootstrap, codec)
        producer = confluent_kafka.Producer({"bootstrap.servers": running.bootstrap})
        end = _write_one(producer)
        wait_until(lambda: _write_one(producer) and _cleaned_to(running) >= end, "the log is cleaned", seconds=WAIT_S)
        running.stop()
        yield running


def _write(bootstrap: str, codec: str) -> None:
    """Transactions, every fifth of them aborted, of values and deletions."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap, "compression.type": codec, "transactional.id": f"writer-{codec}"}
    )
    producer.init_transactions(WAIT_S)
    for number in range(ROUNDS):
        producer.begin_transaction()
        for key in range(number % 7, KEYS, 7):
            value = None if key % 10 == 3 else f"{codec} {number} ".encode() * 10
            producer.produce(TOPIC, value, f"key-{key}".encode(), partition=0)
        if number % 5 == 4:
            producer.abort_transaction(WAIT_S)
        else:
            producer.commit_transaction(WAIT_S)


def _write_one(producer: confluent_kafka.Producer) -> int:
    """One more record, which finishes a segment that is old enough; returns its offset."""
    offsets: list[int] = []
    producer.produce(TOPIC, b"later", b"last", 0, on_delivery=lambda _, message: offsets.append(message.offset()))
    producer.flush(WAIT_S)
    return offsets[0]


def _cleaned_to(running: RunningBroker) -> int:
    checkpoint = running.log_dirs[0] / "cleaner-offset-checkpoint"
    text = checkpoint.read_text() if checkpoint.exists() else ""
    offsets = re.findall(rf"^{TOPIC} 0 (\d+)$", text, re.MULTILINE)
    return int(offsets[0]) if offsets else -1


def _files(running: RunningBroker, pattern: str) -> list[Path]:
    return sorted((running.log_dirs[0] / f"{TOPIC}-0").glob(pattern))


def test_the_dump_tool_accepts_cleaned_segments(cleaned: RunningBroker) -> None:
    segments = [path for path in _files(cleaned, "*.log") if path.stat().st_size]
    printed = run_tool(
        DUMP, "--deep-iteration", "--print-data-log", "--files", ",".join(map(str, segments)), with_stderr=True
    )
    assert set(re.findall(r"^baseOffset: .* isvalid: (\w+)", printed, re.MULTILINE)) == {"true"}
    assert re.search(r"deleteHorizonMs: (OptionalLong\[)?\d{13}", printed), printed[:2000]
    keys = re.findall(r"key: (key-\d+)", printed)
    assert KEYS <= len(keys) < 3 * KEYS
    for complaint in ("Exception", "mismatch", "Mismatches", "out of order"):
        assert complaint not in printed, printed[:3000]


@pytest.mark.parametrize("check", ["--index-sanity-check", "--verify-index-only"])
def test_the_dump_tool_accepts_their_indexes(cleaned: RunningBroker, check: str) -> None:
    indexes = [*_files(cleaned, "*.index"), *_files(cleaned, "*.timeindex")]
    printed = run_tool(DUMP, check, "--files", ",".join(map(str, indexes)), with_stderr=True)
    for complaint in ("Exception", "Mismatches", "Found timestamp mismatch", "out of order"):
        assert complaint not in printed, printed[:3000]


def test_kafka_serves_a_cleaned_partition(cleaned: RunningBroker, tmp_path: Path) -> None:
    """A Kafka that gets our partition's files serves the table that they hold."""
    node = Kafka(tmp_path, settings={"log.cleaner.enable": "false"})
    node.start()
    try:
        admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": node.bootstrap})
        topic = confluent_kafka.admin.NewTopic(TOPIC, 1, 1, config={"cleanup.policy": "compact"})
        admin.create_topics([topic])[TOPIC].result(WAIT_S)
        node.stop()
        target = node.log_dir / f"{TOPIC}-0"
        identity = (target / "partition.metadata").read_bytes()
        for path in target.iterdir():
            path.unlink()
        for path in _files(cleaned, "*"):
            (target / path.name).write_bytes(path.read_bytes())
        (target / "partition.metadata").write_bytes(identity)
        node.start()
        table = _read_table(node.bootstrap)
    finally:
        node.stop()
    cleaned.restart()
    assert _read_table(cleaned.bootstrap) == table
    alive = {key for key, value in table.items() if value is not None}
    assert alive == {f"key-{key}" for key in range(KEYS) if key % 10 != 3} | {"last"}


def _read_table(bootstrap: str) -> dict[str, bytes | None]:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "reader", "isolation.level": "read_committed"}
    )
    place = confluent_kafka.TopicPartition(TOPIC, 0, 0)
    _, end = consumer.get_watermark_offsets(place, timeout=WAIT_S)
    consumer.assign([place])
    table: dict[str, bytes | None] = {}

    def read() -> bool:
        for message in consumer.consume(1000, 0.5):
            assert message.error() is None, message.error()
            table[message.key().decode()] = message.value()
        return bool(consumer.position([place])[0].offset >= end)

    wait_until(read, f"the reader is at {end}", seconds=WAIT_S)
    consumer.close()
    return table
