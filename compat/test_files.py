"""Files that Ottla wrote, read by Apache Kafka: its dump tool with every check, and a broker that takes them over."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import confluent_kafka.admin
import pytest
from compat.peer.kafka import Kafka, PeerError, run_tool

from ottla.testing.running import RunningBroker, broker
from ottla.testing.waiting import wait_until

pytestmark = pytest.mark.usefixtures("kafka_libs")

TOPIC = "files"
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
BATCHES, RECORDS = 40, 25
TOTAL = len(CODECS) * BATCHES * RECORDS
DUMP = "org.apache.kafka.tools.DumpLogSegments"
GROUP = "files-group"
WAIT_S = 60


@pytest.fixture(scope="module")
def stopped() -> Iterator[RunningBroker]:
    """A broker that has written segments of every codec, offsets of a group, and was stopped in order."""
    with broker({"log.segment.bytes": 1_048_576, "log.index.interval.bytes": 4096}) as running:
        admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": running.bootstrap})
        for future in admin.create_topics([confluent_kafka.admin.NewTopic(TOPIC, 1, 1)]).values():
            future.result(WAIT_S)
        for codec in CODECS:
            _produce(running.bootstrap, codec)
        _commit(running.bootstrap)
        running.stop()
        yield running


def _produce(bootstrap: str, codec: str) -> None:
    settings = {"bootstrap.servers": bootstrap, "compression.type": codec, "enable.idempotence": True}
    producer = confluent_kafka.Producer(settings)
    for batch in range(BATCHES):
        for number in range(RECORDS):
            key = f"{codec}-{batch}-{number}".encode()
            value = None if number == 7 else f"{key.hex()} ".encode() * 200
            producer.produce(TOPIC, value, key, partition=0, headers={"codec": codec})
        producer.flush(WAIT_S)


def _commit(bootstrap: str) -> None:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP})
    consumer.subscribe([TOPIC])
    wait_until(lambda: consumer.poll(0.1) is None and consumer.assignment(), "the consumer has its partition")
    consumer.commit(offsets=[confluent_kafka.TopicPartition(TOPIC, 0, 123)], asynchronous=False)
    consumer.close()


def _files(running: RunningBroker, pattern: str) -> list[Path]:
    return sorted(running.log_dirs[0].glob(pattern))


def test_segments_and_records(stopped: RunningBroker) -> None:
    segments = _files(stopped, f"{TOPIC}-0/*.log")
    assert len(segments) > 1

    printed = _dump("--deep-iteration", "--print-data-log", "--files", ",".join(map(str, segments)))

    assert len(re.findall(r"^\| offset: ", printed, re.MULTILINE)) == TOTAL
    batches = re.findall(r"^baseOffset: .* isvalid: (\w+)", printed, re.MULTILINE)
    assert batches
    assert set(batches) == {"true"}
    for codec in CODECS:
        assert f"compresscodec: {codec}" in printed
    _no_complaints(printed)


@pytest.mark.parametrize("check", ["--index-sanity-check", "--verify-index-only", "--deep-iteration"])
def test_indexes(stopped: RunningBroker, check: str) -> None:
    indexes = [*_files(stopped, f"{TOPIC}-0/*.index"), *_files(stopped, f"{TOPIC}-0/*.timeindex")]
    assert any(path.stat().st_size for path in indexes)

    printed = _dump(check, "--files", ",".join(map(str, indexes)))

    _no_complaints(printed)
    if check == "--index-sanity-check":
        assert printed.count("passed sanity check") == len(indexes)


def test_a_damaged_index_would_be_noticed(stopped: RunningBroker, tmp_path: Path) -> None:
    """What the tests above rely on: the tool does complain."""
    folder = tmp_path / f"{TOPIC}-0"
    shutil.copytree(stopped.log_dirs[0] / f"{TOPIC}-0", folder)
    index = next(path for path in sorted(folder.glob("*.index")) if path.stat().st_size >= 16)
    damaged = bytearray(index.read_bytes())
    damaged[3] ^= 1  # the first entry's offset
    index.write_bytes(damaged)

    with pytest.raises(AssertionError, match="Mismatches"):
        _no_complaints(_dump("--files", str(index)))


def test_producer_snapshots(stopped: RunningBroker) -> None:
    snapshots = _files(stopped, f"{TOPIC}-0/*.snapshot")
    assert snapshots

    printed = _dump("--files", str(snapshots[-1]))

    assert len(re.findall(r"producerId: \d+ producerEpoch: 0", printed)) == len(CODECS)
    _no_complaints(printed)


def test_offsets_topic(stopped: RunningBroker) -> None:
    segments = [path for path in _files(stopped, "__consumer_offsets-*/*.log") if path.stat().st_size]

    printed = _dump("--offsets-decoder", "--print-data-log", "--files", ",".join(map(str, segments)))

    assert GROUP in printed
    assert re.search(r'"topic":"files".*"offset":123', printed)
    assert '"protocolType":"consumer"' in printed
    _no_complaints(printed)


def _dump(*arguments: str) -> str:
    """What the tool finds wrong it prints to standard error, and ends well all the same."""
    return run_tool(DUMP, *arguments, with_stderr=True)


def _no_complaints(printed: str) -> None:
    for complaint in ("Mismatches", "mismatch", "Found timestamp", "out of order", "Exception"):
        assert complaint not in printed, printed[:3000]
    # The tool takes the first offset of every segment but the oldest for a gap, in Kafka's own files too.
    gaps = [gap for gap in re.findall(r"(-?\d+) is followed by (\d+)", printed) if gap[0] != "-1"]
    assert gaps == []


def test_kafka_takes_the_directory_over(stopped: RunningBroker, tmp_path: Path) -> None:
    """A Kafka whose own topic of this name gets our partition's files serves our records and goes on after them."""
    node = Kafka(tmp_path)
    node.start()
    try:
        admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": node.bootstrap})
        for future in admin.create_topics([confluent_kafka.admin.NewTopic(TOPIC, 1, 1)]).values():
            future.result(WAIT_S)
        node.stop()
        _move_in(stopped.log_dirs[0] / f"{TOPIC}-0", node.log_dir / f"{TOPIC}-0")
        node.start()
        keys = _read_keys(node.bootstrap)
        assert keys == [
            f"{codec}-{batch}-{number}" for codec in CODECS for batch in range(BATCHES) for number in range(RECORDS)
        ]
        producer = confluent_kafka.Producer({"bootstrap.servers": node.bootstrap, "acks": "all"})
        offsets: list[int] = []
        producer.produce(TOPIC, b"next", partition=0, on_delivery=lambda _, message: offsets.append(message.offset()))
        producer.flush(WAIT_S)
        assert offsets == [TOTAL]
        log = (tmp_path / "server.log").read_text()
        assert not re.search(r"(Found invalid|Corrupt|Rebuilding|rebuilding).*files-0", log), log[-3000:]
    except PeerError as error:
        pytest.fail(str(error))
    finally:
        node.stop()


def _move_in(source: Path, target: Path) -> None:
    """Replace the partition's files by ours, and keep the identity that Kafka's metadata knows the topic by."""
    identity = (target / "partition.metadata").read_bytes()
    shutil.rmtree(target)
    shutil.copytree(source, target)
    (target / "partition.metadata").write_bytes(identity)


def _read_keys(bootstrap: str) -> list[str]:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": "reader"})
    consumer.assign([confluent_kafka.TopicPartition(TOPIC, 0, 0)])
    keys: list[str] = []

    def read() -> bool:
        keys.extend(message.key().decode() for message in consumer.consume(1000, 1) if not message.error())
        return len(keys) >= TOTAL

    wait_until(read, f"{TOTAL} records", seconds=WAIT_S)
    consumer.close()
    return keys
