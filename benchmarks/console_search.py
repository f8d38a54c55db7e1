"""The console's search beside a plain consumer: records a second, time to the first match, how long others wait.

    python -m benchmarks.console_search --records 10000000

One broker, four partitions, JSON of some 100 bytes in batches of lz4, a needle planted every millionth record. The
plain consumer is confluent-kafka, which asks for a thousand messages at a time and looks at the value of each.
"""

import argparse
import asyncio
import resource
import statistics
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import NamedTuple

import uvloop
from confluent_kafka import Consumer, Producer, TopicPartition

from ottla.client.admin import create_topic
from ottla.client.cluster import Cluster
from ottla.console.process import SWITCH_SECONDS
from ottla.console.search.query import parse_query
from ottla.console.search.scanning import Scan
from ottla.testing import broker

TOPIC, PARTITIONS = "searched", 4
TICK_SECONDS = 0.01

SEARCHES = {
    "a word that nobody has": "no-such-word-anywhere",
    "a word, oldest first": "no-such-word-anywhere order:oldest",
    "a rare word": "needle",
    "a word of every 100,000th": "user-77777",
    "a path, text": '$.user="nobody"',
    "a path, number": "$.amount>1000000",
    "a header": "header.trace:x",
    "tombstones": "value:null",
}


class Measured(NamedTuple):
    seconds: float
    first_s: float | None
    scanned: int
    matched: int
    waits_ms: list[float]


def fill(bootstrap: str, records: int) -> None:
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "compression.type": "lz4",
            "linger.ms": 20,
            "batch.size": 200_000,
            "queue.buffering.max.messages": 500_000,
        }
    )
    for number in range(records):
        user, amount = number % 100_000, number % 9973
        value = f'{{"id":{number},"user":"user-{user}","amount":{amount}.5,"note":"some words to fill it"}}'
        if number % 1_000_000 == 999_999:
            value = value.replace("some words", "a needle")
        while True:
            try:
                producer.produce(TOPIC, value, f"key-{number}", partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.05)
        if number % 1000 == 0:
            producer.poll(0)
    left = producer.flush(120)
    assert left == 0, f"{left} records were not written"


def consume(bootstrap: str, records: int) -> float:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "plain", "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition(TOPIC, number, 0) for number in range(PARTITIONS)])
    started = time.perf_counter()
    seen = found = 0
    while seen < records:
        for message in consumer.consume(1000, 10):
            seen += 1
            found += b"no-such-word" in (message.value() or b"")
    seconds = time.perf_counter() - started
    consumer.close()
    return seconds


async def search(bootstrap: str, line: str) -> Measured:
    """With a second task on the loop that wants to run every 10 ms, as another request of the console does."""
    waits: list[float] = []

    async def beside() -> None:
        while True:
            asked = time.perf_counter()
            await asyncio.sleep(TICK_SECONDS)
            waits.append((time.perf_counter() - asked - TICK_SECONDS) * 1000)

    async with Cluster(bootstrap) as cluster:
        scan = Scan(cluster, TOPIC, parse_query(line))
        ticking = asyncio.create_task(beside())
        started = time.perf_counter()
        first = None
        async for found in scan.steps():
            if found and first is None:
                first = time.perf_counter() - started
        seconds = time.perf_counter() - started
        ticking.cancel()
        return Measured(seconds, first, scan.scanned, scan.matched, waits)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3, help="of the plain consumer")
    parser.add_argument("--only", help="searches whose name has this in it")
    wanted = parser.parse_args()
    sys.setswitchinterval(SWITCH_SECONDS)
    with broker({"log.retention.bytes": -1}) as running:
        asyncio.run(_create(running.bootstrap))
        # What producers and consumers keep is theirs: the memory told at the end is that of searching.
        with ProcessPoolExecutor(1, get_context("spawn")) as others:
            others.submit(fill, running.bootstrap, wanted.records).result()
            rounds = [others.submit(consume, running.bootstrap, wanted.records).result() for _ in range(wanted.rounds)]
        plain = statistics.median(rounds)
        rate = wanted.records / plain
        print(f"{'plain consumer':32} {rate:12,.0f} records/s")
        for name, line in SEARCHES.items():
            if wanted.only and wanted.only not in name:
                continue
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                found = runner.run(search(running.bootstrap, line))
            assert found.scanned == wanted.records, f"{name}: only {found.scanned} were looked at"
            own = found.scanned / found.seconds
            first = "-" if found.first_s is None else f"{found.first_s * 1000:.0f} ms"
            waits = sorted(found.waits_ms)
            late = waits[int(len(waits) * 0.99)] if waits else 0
            print(
                f"{name:32} {own:12,.0f} records/s  ratio {own / rate:5.2f}  matched {found.matched:8,}"
                f"  first {first:>8}  others waited p99 {late:.0f} ms"
            )
        print(f"memory of this process, at most: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


async def _create(bootstrap: str) -> None:
    async with Cluster(bootstrap) as cluster:
        await create_topic(cluster, TOPIC, partitions=PARTITIONS, replication_factor=1)


if __name__ == "__main__":
    main()
