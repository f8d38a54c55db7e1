"""The log cleaner on many records of fewer keys, beside Apache Kafka's on the very same files.

Run: python -m benchmarks.compaction [--records N] [--keys N] [--value-bytes N] [--skip-kafka]
"""

import argparse
import asyncio
import logging
import random
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import psutil
from compat.peer.kafka import Kafka
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.broker.node import SystemClock
from ottla.broker.storage.compaction.cleaner import LogCleaner
from ottla.broker.storage.manager import LogManager
from ottla.broker.storage.scan import iterate_headers
from ottla.broker.storage.segment import Segment
from ottla.config.broker import BrokerSettings
from ottla.config.topic import TopicSettings
from ottla.model.names import TopicPartition, new_topic_id
from ottla.protocol.compression import CODEC_NAMES, Codec
from ottla.protocol.records import NewRecord, encode_batch

TP = TopicPartition("table", 0)
BATCH_RECORDS = 150
MIB = 1024 * 1024
SEGMENT_BYTES = 100 * MIB
TOPIC = TopicSettings(cleanup_policy=("compact",), segment_bytes=SEGMENT_BYTES)
# Kafka's own summary of a cleaning; the second line is the one that both cleaners are measured by.
KAFKA_SECONDS = re.compile(r"([\d,.]+) MB of log processed in ([\d,.]+) seconds")
KAFKA_SIZES = re.compile(r"(Start|End) size: [\d,.]+ MB \(([\d,]+) messages\)")
WAIT_SECONDS = 1800


class Outcome(NamedTuple):
    name: str
    bytes_read: int
    records: int
    records_left: int
    seconds: float
    cpu_seconds: float
    memory_bytes: int


def generate(directory: Path, records: int, keys: int, value_bytes: int, codec: Codec) -> None:
    """A log of random keys, finished by one more segment so that everything before it can be cleaned."""
    logs = LogManager(BrokerSettings(log_dirs=(str(directory),)), lambda _: TOPIC, SystemClock(), cluster_id="bench")
    logs.open()
    log = logs.create(TP, new_topic_id())
    chance = random.Random(1)
    filler = chance.randbytes(value_bytes // 2).hex().encode()
    now_ms = int(time.time() * 1000)
    for begin in range(0, records, BATCH_RECORDS):
        count = min(BATCH_RECORDS, records - begin)
        batch = [NewRecord(b"key-%09d" % chance.randrange(keys), filler, now_ms) for _ in range(count)]
        log.append_as_leader(encode_batch(batch, codec=codec), 0, now_ms)
    last = log.segments.active
    filling = NewRecord(b"last", b"x" * (SEGMENT_BYTES // 200), now_ms)
    while log.segments.active is last:
        log.append_as_leader(encode_batch([filling]), 0, now_ms)
    logs.close()


async def clean_with_ottla(directory: Path) -> Outcome:
    settings = BrokerSettings(log_dirs=(str(directory),))
    logs = LogManager(settings, lambda _: TOPIC, SystemClock(), cluster_id="bench")
    logs.open()
    log = logs.get(TP)
    assert log is not None
    before = sum(segment.size for segment in log.segments.all[:-1])
    records = log.segments.active.base_offset
    cleaner = LogCleaner(logs, lambda: settings, SystemClock())
    started = time.monotonic()
    await cleaner.run()
    seconds = time.monotonic() - started
    await cleaner.stop()
    assert cleaner.last_stats is not None
    left = _records_left(log.segments.all[:-1])
    logs.close()
    stats = cleaner.last_stats
    return Outcome("ottla", before, records, left, seconds, stats.cpu_seconds, stats.memory_bytes_max)


def _records_left(segments: list[Segment]) -> int:
    return sum(
        header.record_count
        for segment in segments
        for _, header in iterate_headers(segment.file, 0, segment.size, segment.base_offset)
    )


def clean_with_kafka(source: Path, folder: Path) -> Outcome:
    """Give the partition's files to a Kafka node and wait for what its cleaner says in the log."""
    settings = {"log.cleaner.backoff.ms": "100", "log.segment.bytes": str(SEGMENT_BYTES)}
    node = Kafka(folder, settings=settings)
    node.start()
    try:
        admin = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})
        topic = NewTopic(TP.topic, 1, 1, config={"cleanup.policy": "compact", "segment.bytes": str(SEGMENT_BYTES)})
        admin.create_topics([topic])[TP.topic].result(60)
        node.stop()
        target = node.log_dir / str(TP)
        identity = (target / "partition.metadata").read_bytes()
        shutil.rmtree(target)
        shutil.copytree(source / str(TP), target)
        (target / "partition.metadata").write_bytes(identity)
        (folder / "server.log").write_text("")
        node.start()
        said = _wait_for_summary(folder / "server.log")
        process = psutil.Process(node.pid)
        memory = process.memory_info().rss
        cpu_seconds = sum(process.cpu_times()[:2])  # the node's start is among it
    finally:
        node.stop()
    figures = KAFKA_SECONDS.search(said)
    sizes = {name: int(count.replace(",", "")) for name, count in KAFKA_SIZES.findall(said)}
    assert figures is not None
    mib, seconds = (float(number.replace(",", "")) for number in figures.groups())
    return Outcome("kafka", int(mib * MIB), sizes["Start"], sizes["End"], seconds, cpu_seconds, memory)


def _wait_for_summary(path: Path) -> str:
    deadline = time.monotonic() + WAIT_SECONDS
    marker = f"cleaned log {TP}"
    while time.monotonic() < deadline:
        text = path.read_text(errors="replace")
        place = text.find(marker)
        if place >= 0 and "fewer messages" in text[place:]:
            return text[place : place + 2000]
        time.sleep(0.2)
    raise TimeoutError(f"Kafka's cleaner said nothing within {WAIT_SECONDS} s:\n{path.read_text()[-2000:]}")


def report(outcome: Outcome) -> None:
    print(
        f"{outcome.name:<6} {outcome.bytes_read / MIB:9.1f} MiB  {outcome.records:>11,} -> {outcome.records_left:>10,} "
        f"records  {outcome.seconds:8.1f} s  {outcome.bytes_read / MIB / outcome.seconds:8.1f} MiB/s  "
        f"{outcome.records / outcome.seconds:12,.0f} records/s  {outcome.cpu_seconds:7.1f} s of CPU  "
        f"{outcome.memory_bytes / MIB:7.0f} MiB of memory"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--value-bytes", type=int, default=80)
    parser.add_argument("--codec", choices=sorted(CODEC_NAMES), default="none")
    parser.add_argument("--skip-kafka", action="store_true", help="do not run Apache Kafka beside it")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    folder = Path(tempfile.mkdtemp(prefix="ottla-compaction-"))
    try:
        codec = CODEC_NAMES[arguments.codec]
        generate(folder / "data", arguments.records, arguments.keys, arguments.value_bytes, codec)
        kafka = None if arguments.skip_kafka else clean_with_kafka(folder / "data", folder / "kafka")
        ottla = asyncio.run(clean_with_ottla(folder / "data"))
        for outcome in filter(None, (ottla, kafka)):
            report(outcome)
        if kafka is not None:
            print(f"ratio  {ottla.records / ottla.seconds / (kafka.records / kafka.seconds):.2f} of Kafka's records/s")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
