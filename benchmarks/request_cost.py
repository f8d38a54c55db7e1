"""What one request costs the broker's process, from the readable socket to the sent response: CPU time, no waiting.

Two source trees can be compared: a worker runs on each, and they take turns round by round, so that whatever else the
machine does falls on both. The cost is the lowest tenth of the rounds: what disturbs a round only ever adds to it.

With --metrics it is the same tree twice: with everything that `metrics.listener` brings, and without.

Run: python -m benchmarks.request_cost [--against OTHER/src | --metrics] [--rounds N]
"""

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

REQUESTS_PER_ROUND = 200
WARM_UP_REQUESTS = 500
TOPIC = "cost"
METRICS = "OTTLA_BENCHMARK_METRICS"
HERE = Path(__file__).parent.parent / "src"


class Bench:
    """One broker in this process and one connection to it, which is driven by hand."""

    def __init__(self, node: Any, port: int) -> None:
        self._node = node
        self._client = socket.create_connection(("127.0.0.1", port))
        self._client.setblocking(False)
        self._client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection: Any = None

    async def connect(self) -> None:
        while not self._node._server._connections:  # noqa: ASYNC110 (the server tells nobody)
            await asyncio.sleep(0)
        (self._connection,) = self._node._server._connections

    async def ask(self, frame: bytes) -> None:
        """The same calls that the loop would make, without the loop, unless the answer has to wait."""
        self._client.sendall(frame)
        self._connection._on_readable()
        self._connection.flush()
        while True:
            try:
                self._client.recv(1 << 20)
            except BlockingIOError:
                await asyncio.sleep(0)
            else:
                return

    async def run(self, frame: bytes, requests: int) -> float:
        """CPU microseconds per request, the client's two system calls among them."""
        started = time.process_time_ns()
        for number in range(requests):
            await self.ask(frame)
            if number % 100 == 99:
                await asyncio.sleep(0)
        return (time.process_time_ns() - started) / requests / 1000


def frames(topic_id: Any) -> dict[str, bytes]:
    from ottla.protocol.apis import API  # noqa: PLC0415 (the tree to measure is chosen by then)
    from ottla.protocol.codec import encode  # noqa: PLC0415
    from ottla.protocol.frames import request_frame  # noqa: PLC0415
    from ottla.protocol.messages import api_versions, fetch, metadata, produce  # noqa: PLC0415
    from ottla.protocol.records import NewRecord, encode_batch  # noqa: PLC0415

    def frame(request: Any, version: int) -> bytes:
        flexible = version >= API[request.API_KEY].flexible_from
        return request_frame(request.API_KEY, version, 7, "bench", encode(request, version), flexible=flexible)

    def written(count: int, value: bytes) -> Any:
        batch = encode_batch([NewRecord(None, value, 1_700_000_000_000)] * count)
        data = produce.PartitionProduceData(index=0, records=batch)
        topic = produce.TopicProduceData(name=TOPIC, topic_id=topic_id, partition_data=[data])
        return produce.ProduceRequest(acks=1, timeout_ms=1000, topic_data=[topic])

    partition = fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=4096)
    topics = [fetch.FetchTopic(topic=TOPIC, topic_id=topic_id, partitions=[partition])]
    fetching = fetch.FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=4096, session_epoch=-1, topics=topics)
    return {
        "produce, one record": frame(written(1, b"x" * 100), 12),
        "produce, 16 KiB": frame(written(160, b"x" * 100), 12),
        "fetch, 4 KiB": frame(fetching, 12),
        "metadata": frame(metadata.MetadataRequest(topics=None), 12),
        "api versions": frame(api_versions.ApiVersionsRequest(2 * "x", "1"), 3),
    }


async def work() -> None:
    """Measure what a line of standard input asks for; answer with the figure."""
    from ottla.broker.node import Node  # noqa: PLC0415
    from ottla.broker.process import open_store  # noqa: PLC0415
    from ottla.config.load import settings_from  # noqa: PLC0415

    loop = asyncio.get_running_loop()
    with tempfile.TemporaryDirectory() as directory:
        settings = settings_from(
            {"log.dirs": directory, "listeners": "PLAINTEXT://127.0.0.1:0", "log.retention.bytes": str(64 << 20),
             "log.segment.bytes": str(32 << 20)}
        )  # fmt: skip
        node = Node(settings, await open_store(settings))
        if METRICS in os.environ:
            from ottla.broker.metrics.showing import Shown  # noqa: PLC0415

            Shown(node).start()
        await node.start()
        try:
            topic = await node.controller.ensure_topic(TOPIC)
            assert node._server is not None
            bench = Bench(node, node._server.listeners[0].port)
            await bench.connect()
            prepared = frames(topic.topic_id)
            for frame in prepared.values():
                await bench.run(frame, WARM_UP_REQUESTS)
            print(json.dumps(list(prepared)), flush=True)
            while name := (await loop.run_in_executor(None, sys.stdin.readline)).strip():
                print(await bench.run(prepared[name], REQUESTS_PER_ROUND), flush=True)
        finally:
            await node.stop()


class Worker:
    def __init__(self, tree: Path, *, metrics: bool = False) -> None:
        environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONHASHSEED": "0"}
        if metrics:
            environment[METRICS] = "1"
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--work"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin, self._process.stdout
        self.names: list[str] = json.loads(self._out.readline())

    def measure(self, name: str) -> float:
        print(name, file=self._in, flush=True)
        return float(self._out.readline())

    def end(self) -> None:
        self._in.close()
        self._process.wait()


def low(costs: Iterable[float]) -> float:
    ordered = sorted(costs)
    return statistics.mean(ordered[: max(1, len(ordered) // 10)])


def compare(ours: Worker, other: Worker | None, rounds: int, wanted: str, say: Callable[[str], None]) -> None:
    for name in [name for name in ours.names if wanted in name]:
        pairs = []
        for number in range(rounds):
            if other is None:
                pairs.append((ours.measure(name), 0.0))
            elif number % 2:
                pairs.append((ours.measure(name), other.measure(name)))
            else:
                theirs = other.measure(name)
                pairs.append((ours.measure(name), theirs))
        cost = low(mine for mine, _ in pairs)
        line = f"{name:<24} {cost:8.2f} µs"
        if other is not None:
            theirs = low(theirs for _, theirs in pairs)
            median = statistics.median(mine / theirs for mine, theirs in pairs)
            line += f"   the other {theirs:8.2f} µs   ratio {cost / theirs:6.3f}   (median of rounds {median:6.3f})"
        say(line)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", type=Path, help="another tree's src directory")
    parser.add_argument("--metrics", action="store_true", help="this tree with metrics on, against itself without")
    parser.add_argument("--rounds", type=int, default=201)
    parser.add_argument("--only", default="", help="the kinds of requests whose name has this in it")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        import uvloop  # noqa: PLC0415

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(work())
        return 0
    ours = Worker(HERE, metrics=arguments.metrics)
    against: Path | None = HERE if arguments.metrics else arguments.against
    other = Worker(against) if against is not None else None
    try:
        compare(ours, other, arguments.rounds, arguments.only, print)
    finally:
        ours.end()
        if other is not None:
            other.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
