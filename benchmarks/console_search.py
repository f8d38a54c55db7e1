"""The console's search beside a plain consumer: records a second, time to the first match, how long others wait.

    python -m benchmarks.console_search --records 10000000

One broker, four partitions, JSON of some 100 bytes in batches of a thousand in lz4, a needle every millionth record.
The plain consumer is confluent-kafka, which asks for a thousand messages at a time and looks at the value of each.
"""

import argparse
import asyncio
import http.client
import resource
import statistics
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import NamedTuple
from urllib.parse import urlencode

import uvloop
from benchmarks.console_process import batch, console, memory_mb
from confluent_kafka import Consumer, TopicPartition

from ottla.client.admin import create_topic
from ottla.client.cluster import Cluster
from ottla.client.producer import Producer
from ottla.console.process import SWITCH_SECONDS
from ottla.console.search.query import parse_query
from ottla.console.search.scanning import End, Scan
from ottla.protocol.compression import Codec
from ottla.protocol.records import NewRecord
from ottla.testing import broker

TOPIC, PARTITIONS = "searched", 4
TICK_SECONDS = 0.01
USERS, BATCH_RECORDS = 100_000, 1000
STOP_SECONDS = 0.5

SEARCHES = {
    "a word that nobody has": "no-such-word-anywhere",
    "a word, oldest first": "no-such-word-anywhere order:oldest",
    "a rare word": "needle",
    "a word of every 100,000th": "user-77777",
    "a path, text": '$.user="nobody"',
    "a path, number": "$.amount>1000000",
    "a path, only seen by reading": "$.amount<0",
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
    asyncio.run(_fill(bootstrap, records))


async def _fill(bootstrap: str, records: int) -> None:
    """The same hundred thousand records again and again, so that making them takes no longer than writing them."""
    made = [batch(TOPIC, 0, _records(number), Codec.LZ4) for number in range(USERS // BATCH_RECORDS)]
    planted = batch(TOPIC, 0, _records(0, "a needle"), Codec.LZ4)
    async with Cluster(bootstrap) as cluster, Producer(cluster) as producer:
        for number in range(records // BATCH_RECORDS):
            last_of_a_million = (number + 1) * BATCH_RECORDS % 1_000_000 == 0
            own = planted if last_of_a_million else made[number % len(made)]
            now_ms = time.time_ns() // 1_000_000
            await producer.send(
                own._replace(partition=number % PARTITIONS, base_timestamp=now_ms, max_timestamp=now_ms)
            )
        await producer.flush()


def _records(number: int, needle: str = "some words") -> list[NewRecord]:
    """A batch of the users from `number` thousand on; the last of them has the needle."""
    found = []
    for user in range(number * BATCH_RECORDS, (number + 1) * BATCH_RECORDS):
        note = needle if user % BATCH_RECORDS == BATCH_RECORDS - 1 else "some words"
        value = f'{{"id":{user * 7},"user":"user-{user}","amount":{user % 9973}.5,"note":"{note} to fill it"}}'
        found.append(NewRecord(f"key-{user}".encode(), value.encode(), 0))
    return found


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


async def stop(bootstrap: str) -> float:
    """Seconds from the word to the end of a search that would go on for long."""
    async with Cluster(bootstrap) as cluster:
        scan = Scan(cluster, TOPIC, parse_query("$.amount<0"))
        asked = 0.0

        def say() -> None:
            nonlocal asked
            asked = time.perf_counter()
            scan.stop()

        asyncio.get_running_loop().call_later(STOP_SECONDS, say)
        async for _ in scan.steps():
            pass
        assert scan.end is End.STOPPED, "it was over before it could be stopped"
        return time.perf_counter() - asked


def through_the_console(bootstrap: str, line: str) -> tuple[float, float]:
    """As a browser hears of it: seconds to the first match, and the memory of the console's process then."""
    with console(bootstrap) as (url, pid):
        connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=120)
        connection.request("GET", "/api/clusters")  # the process is warm, its look at the cluster is not
        connection.getresponse().read()
        started = time.perf_counter()
        connection.request("GET", f"/c/local/topics/{TOPIC}/messages/stream?{urlencode({'q': line})}")
        answer = connection.getresponse()
        first = 0.0
        while text := answer.readline():
            if text.startswith(b"event: hits") and not first:
                first = time.perf_counter() - started
            if text.startswith(b"event: done"):
                break
        found = memory_mb(pid, "VmHWM")
        connection.close()
        return first, found


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
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            print(f"a search that is stopped ends after {runner.run(stop(running.bootstrap)) * 1000:.0f} ms")
        heard_s, memory = through_the_console(running.bootstrap, "needle")
        print(f"through the console: first match after {heard_s * 1000:.0f} ms; its memory, at most: {memory:.0f} MB")
        print(f"memory of this process, at most: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


async def _create(bootstrap: str) -> None:
    async with Cluster(bootstrap) as cluster:
        await create_topic(cluster, TOPIC, partitions=PARTITIONS, replication_factor=1)


if __name__ == "__main__":
    main()
