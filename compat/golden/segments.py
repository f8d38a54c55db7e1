"""Log files as Apache Kafka writes them: every codec, two segments, indexes, a producer snapshot, committed offsets."""

import json
import shutil
from pathlib import Path

import confluent_kafka
import confluent_kafka.admin
from compat.peer.kafka import Kafka, run_tool

TOPIC = "segments"
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
FIRST_TIMESTAMP = 1_700_000_000_000
HOUR_MS = 3_600_000
WAIT_S = 30
GROUP = "keeper"
OFFSETS_TOPIC = "__consumer_offsets"


def write_segments(node: Kafka) -> None:
    """Fill a topic and commit offsets on a running node."""
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": node.bootstrap})
    # A new segment comes when timestamps have moved on by more than segment.ms.
    config = {"segment.ms": str(2 * HOUR_MS), "index.interval.bytes": "200", "retention.ms": "-1"}
    for future in admin.create_topics([confluent_kafka.admin.NewTopic(TOPIC, 1, 1, config=config)]).values():
        future.result(WAIT_S)
    for segment in range(2):
        for number, codec in enumerate(CODECS):
            _produce(node.bootstrap, codec, FIRST_TIMESTAMP + segment * 3 * HOUR_MS + number * 1000)
        _produce_with_java(node.bootstrap)
    settings = {"bootstrap.servers": node.bootstrap, "group.id": GROUP, "client.id": "golden"}
    consumer = confluent_kafka.Consumer(settings)
    consumer.subscribe([TOPIC])
    while not consumer.assignment():
        consumer.poll(0.1)
    offsets = [confluent_kafka.TopicPartition(TOPIC, 0, 7, "a note", 0)]
    consumer.commit(offsets=offsets, asynchronous=False)
    consumer.close()


def _produce(bootstrap: str, codec: str, timestamp: int) -> None:
    settings = {"bootstrap.servers": bootstrap, "compression.type": codec, "enable.idempotence": True, "linger.ms": 50}
    producer = confluent_kafka.Producer(settings)
    for number in range(4):
        key = None if number == 0 else f"{codec}-{number}".encode()
        value = None if number == 1 else f"value {number} of a batch written with {codec}. ".encode() * 3
        headers = [("codec", codec.encode()), ("none", None)] if number == 2 else None
        producer.produce(TOPIC, value, key, partition=0, timestamp=timestamp + number, headers=headers)
    producer.flush(WAIT_S)


def _produce_with_java(bootstrap: str) -> None:
    """Java's own compressors frame their blocks differently from librdkafka's."""
    for codec in CODECS:
        arguments = ("--topic", TOPIC, "--compression-codec", codec, "--reader-property", "parse.key=true")
        lines = "".join(f"java-{number}\twritten by Java with {codec}, {codec}, {codec}\n" for number in range(3))
        run_tool("org.apache.kafka.tools.ConsoleProducer", "--bootstrap-server", bootstrap, *arguments, stdin=lines)


def expected_records(bootstrap: str) -> list[dict[str, object]]:
    """The records as librdkafka reads them back."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": "unused"})
    partition = confluent_kafka.TopicPartition(TOPIC, 0, 0)
    _, end = consumer.get_watermark_offsets(partition, WAIT_S)
    consumer.assign([partition])
    records: list[dict[str, object]] = []
    while len(records) < end:
        for message in consumer.consume(100, 1):
            headers = [[name, None if value is None else value.decode()] for name, value in message.headers() or []]
            records.append(
                {
                    "offset": message.offset(), "timestamp": message.timestamp()[1],
                    "key": None if message.key() is None else message.key().decode(),
                    "value": None if message.value() is None else message.value().decode(), "headers": headers,
                }
            )  # fmt: skip
    consumer.close()
    return records


def copy_segments(node: Kafka, records: list[dict[str, object]], target: Path) -> None:
    """Take the files of the stopped node, and the one partition of the offsets topic that holds our group."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(node.log_dir / f"{TOPIC}-0", target / f"{TOPIC}-0")
    for folder in sorted(node.log_dir.glob(f"{OFFSETS_TOPIC}-*")):
        if any(GROUP.encode() in path.read_bytes() for path in folder.glob("*.log")):
            shutil.copytree(folder, target / folder.name)
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint", "log-start-offset-checkpoint"):
        shutil.copy(node.log_dir / name, target / name)
    shutil.copy(node.log_dir / "meta.properties", target / "meta.properties")
    (target / "records.json").write_text(json.dumps(records, indent=1) + "\n")
