"""The console over real brokers with thousands of topics and groups: how long its pages take, what the brokers feel of
it, and what a hundred browsers cost. Before that what the brokers themselves cost, and at the end (--upset) how one of
them comes back.

    python -m benchmarks.console_scale --brokers 3 --topics 10000 --partitions 5 --groups 10000 --browsers 100 --upset

A record is written every 20 ms, acks=all, by a process of its own: while no console runs, while one browser looks, and
while all of them do. A browser is what the console's script makes of one: a stream of events, and the page again at
each look. More than one broker: with a ZooKeeper.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from benchmarks.console_process import batch, console, memory_mb
from benchmarks.many_partitions import (
    PROBED,
    Many,
    Sizes,
    fill,
    group_name,
    some,
    started,
    tell_costs,
    topic_name,
    upset,
)

from ottla.client.cluster import Cluster
from ottla.client.producer import Producer
from ottla.console.routes import ENTRIES

PAUSE_SECONDS = 0.02
ASKED = 5


class Felt(NamedTuple):
    """What somebody who writes to a broker has of it, and what the brokers' processes do."""

    p50_ms: float
    p99_ms: float
    cores: float


def probe(bootstrap: str, seconds: float) -> list[float]:
    """Milliseconds of each write. In a process of its own."""

    async def write() -> list[float]:
        waits: list[float] = []
        async with Cluster(bootstrap) as cluster, Producer(cluster) as producer:
            until = time.perf_counter() + seconds
            while time.perf_counter() < until:
                began = time.perf_counter()
                await producer.send(batch(PROBED, 0, some(1)))
                await producer.flush()
                waits.append((time.perf_counter() - began) * 1000)
                await asyncio.sleep(PAUSE_SECONDS)
        return waits

    return asyncio.run(write())


async def get(url: str, path: str, headers: str = "") -> tuple[int, int]:
    """Status and bytes."""
    where = urlsplit(url)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {where.netloc}\r\nConnection: close\r\n{headers}\r\n".encode())
        answer = await reader.read()
    finally:
        writer.close()
    return int(answer.split(b" ", 2)[1]), len(answer)


class Browsers:
    """Each has a page open, and asks for it again when the console has looked."""

    def __init__(self, url: str, count: int, paths: Sequence[str]) -> None:
        self.renewed = 0
        self.slowest_ms = 0.0
        self._url, self._count, self._paths = url, count, paths
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> "Browsers":
        self._tasks = [
            asyncio.create_task(self._look(self._paths[number % len(self._paths)])) for number in range(self._count)
        ]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _look(self, path: str) -> None:
        await get(self._url, path)
        where = urlsplit(self._url)
        reader, writer = await asyncio.open_connection(where.hostname, where.port)
        try:
            writer.write(f"GET /c/local/events HTTP/1.1\r\nHost: {where.netloc}\r\n\r\n".encode())
            while line := await reader.readline():
                if line.startswith(b"event: look"):
                    began = time.perf_counter()
                    status, _ = await get(self._url, path, "X-Ottla-Fragment: 1\r\n")
                    assert status == 200, f"{path}: {status}"
                    self.slowest_ms = max(self.slowest_ms, (time.perf_counter() - began) * 1000)
                    self.renewed += 1
        finally:
            writer.close()


def pages(topic: str, group: str) -> list[str]:
    """Every page of the table of routes, of things in the middle of the lists; and the long tables in other orders."""
    some = {"{topic}": topic, "{broker}": "1"}
    queries = {
        "/group": f"id={group}", "/group/reset": f"id={group}&to=earliest",
        "/topics/{topic}/messages": "plain=1", "/topics/{topic}/messages/record": "partition=0&offset=0",
        "/topics/{topic}/settings": "set.retention.ms=1000", "/reassignment": "goal=spread",
        "/dead-letters/letter": None, "/schema": None,
        "/backups/restore": None,
    }  # fmt: skip
    found = []
    for entry in ENTRIES:
        query = queries.get(entry.path, "")
        if entry.method == "GET" and entry.template and query is not None:
            path = entry.path
            for name, value in some.items():
                path = path.replace(name, value)
            found.append(path + (f"?{query}" if query else ""))
    return [
        *found, "/reassignment?goal=leave&broker=3", "/topics?q=77", "/topics?sort=-size&page=100",
        "/topics?sort=-speed&internal=1", f"/groups?q={topic}", "/groups?sort=-waiting&page=100",
        "/groups?status=ERR",
    ]  # fmt: skip


async def time_pages(url: str, prefix: str, own: Sequence[str]) -> None:
    print(f"{'page':58} {'first':>8} {'median':>8} {'worst':>8} {'kB':>6}")
    worst = 0.0
    for path in own:
        waits, size = [], 0
        for _ in range(ASKED):
            began = time.perf_counter()
            status, size = await get(url, prefix + path)
            waits.append((time.perf_counter() - began) * 1000)
            assert status in (200, 409), f"{path}: {status}"
        worst = max(worst, *waits)
        print(
            f"{prefix + path:58} {waits[0]:5.0f} ms {statistics.median(waits):5.0f} ms {max(waits):5.0f} ms"
            f" {size / 1000:6.0f}"
        )
    print(f"the slowest answer of all: {worst:.0f} ms")


class Bench:
    def __init__(self, many: Many, sizes: Sizes, others: ProcessPoolExecutor, seconds: float) -> None:
        self._many, self._others, self._seconds = many, others, seconds
        self._topic, self._group = topic_name(min(777, sizes.topics - 1)), group_name(min(777, sizes.groups - 1))

    async def felt(self, when: str) -> Felt:
        before, began = self._many.cpu_seconds(), time.perf_counter()
        loop = asyncio.get_running_loop()
        waits = sorted(await loop.run_in_executor(self._others, probe, self._many.bootstrap, self._seconds))
        cores = (self._many.cpu_seconds() - before) / (time.perf_counter() - began)
        found = Felt(statistics.median(waits), waits[int(len(waits) * 0.99)], cores)
        print(f"{when:32} a write p50 {found.p50_ms:.1f} ms, p99 {found.p99_ms:.1f} ms; brokers: {cores:.2f} cores")
        return found

    async def run(self, browsers: int) -> None:
        await tell_costs(self._many, self._seconds)
        await self.felt("without a console")
        with console(self._many.bootstrap) as (url, pid):
            began = time.perf_counter()
            status, _ = await get(url, "/c/local/")
            assert status == 200
            print(f"a page that is asked for at once waits {time.perf_counter() - began:.2f} s for the first look")
            await time_pages(url, "/c/local", pages(self._topic, self._group))
            await time_pages(url, "/api/c/local", ["/topics", "/groups", "/"])
            print(f"memory of the console: {memory_mb(pid):.0f} MB, at most {memory_mb(pid, 'VmHWM'):.0f} MB")
            paths = ["/c/local/", "/c/local/topics", "/c/local/groups", f"/c/local/topics/{self._topic}"]
            for count in (1, browsers):
                async with Browsers(url, count, paths) as open_now:
                    await self.felt(f"with {count} browser{'s' if count > 1 else ''}")
                print(
                    f"  {open_now.renewed} pages renewed, the slowest in {open_now.slowest_ms:.0f} ms; memory of the "
                    f"console {memory_mb(pid):.0f} MB, at most {memory_mb(pid, 'VmHWM'):.0f} MB"
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topics", type=int, default=10_000)
    parser.add_argument("--partitions", type=int, default=1, help="of each topic")
    parser.add_argument("--replicas", type=int, default=1, help="of each partition")
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--browsers", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=30.0, help="of each measurement")
    parser.add_argument("--brokers", type=int, default=1, help="more than one: with a ZooKeeper")
    parser.add_argument("--upset", action="store_true", help="stop, kill and start a broker at the end")
    wanted = parser.parse_args()
    sizes = Sizes(wanted.topics, wanted.partitions, wanted.replicas, wanted.groups)
    with (
        tempfile.TemporaryDirectory(prefix="ottla-scale-") as folder,
        started(wanted.brokers, Path(folder)) as many,
        ProcessPoolExecutor(1, get_context("spawn")) as others,
    ):
        asyncio.run(fill(many.bootstrap, sizes))
        asyncio.run(Bench(many, sizes, others, wanted.seconds).run(wanted.browsers))
        if wanted.upset:
            asyncio.run(upset(many, sizes))


if __name__ == "__main__":
    main()
