"""What a scrape costs a broker with thousands of partitions: how long the loop is held at a time, CPU, memory.

The loop is held for the longest step between two turns; CPU is that of the whole process, reading, text and answer.

Run: python -m benchmarks.scrape [--partitions N] [--scrapes N]
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import uvloop


def _resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


async def _longest_step(work: Any) -> tuple[float, Any]:
    """Milliseconds of CPU that the loop's thread was busy between two of its turns while `work` ran."""
    longest = 0.0
    running = asyncio.ensure_future(work)
    while not running.done():
        began = time.thread_time_ns()
        await asyncio.sleep(0)
        longest = max(longest, (time.thread_time_ns() - began) / 1e6)
    return longest, await running


async def measure(partitions: int, scrapes: int) -> None:
    from ottla.broker.metrics.scraping import pieces  # noqa: PLC0415
    from ottla.broker.metrics.showing import Shown  # noqa: PLC0415
    from ottla.broker.node import Node  # noqa: PLC0415
    from ottla.broker.process import _calm_garbage_collection, _let_the_loop_preempt_threads, open_store  # noqa: PLC0415
    from ottla.config.load import settings_from  # noqa: PLC0415

    async def scrape(telemetry: Any) -> tuple[int, int]:
        """As the listener does it: each piece goes before the next is asked for. Lines and bytes."""
        lines = size = 0
        async for piece in pieces(telemetry):
            lines += piece.count(b"\nkafka_")
            size += len(piece)
        return lines, size

    with tempfile.TemporaryDirectory() as directory:
        settings = settings_from(
            {"log.dirs": directory, "listeners": "PLAINTEXT://127.0.0.1:0", "num.partitions": "100"}
        )
        node = Node(settings, await open_store(settings))
        shown = Shown(node)
        await node.start()
        try:
            for number in range(partitions // 100):
                await node.controller.ensure_topic(f"topic-{number}")
            _calm_garbage_collection()
            _let_the_loop_preempt_threads()
            before = _resident_mb()
            shown.start()
            costs, reading = [], []
            for _ in range(scrapes):
                began, thread = time.process_time_ns(), time.thread_time_ns()
                lines, size = await scrape(node.telemetry)
                reading.append((time.thread_time_ns() - thread) / 1e6)
                costs.append((time.process_time_ns() - began) / 1e6)
            memory = _resident_mb() - before
            # By themselves: looking at the clock all the time costs, too.
            steps = [(await _longest_step(scrape(node.telemetry)))[0] for _ in range(scrapes)]
            print(f"{len(node.partitions)} partitions, {lines} lines, {size / 1e6:.1f} MB of text")
            print(f"the loop at a time: median {statistics.median(steps):.2f} ms, most {max(steps):.2f} ms")
            print(f"CPU on the loop: median {statistics.median(reading):.1f} ms")
            print(f"CPU in all: median {statistics.median(costs):.1f} ms, least {min(costs):.1f} ms")
            print(f"memory: {memory:.1f} MB more")
        finally:
            await shown.stop()
            await node.stop()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=4_000)
    parser.add_argument("--scrapes", type=int, default=20)
    arguments = parser.parse_args()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(measure(arguments.partitions, arguments.scrapes))
    return 0


if __name__ == "__main__":
    sys.exit(main())
