"""What metrics cost a broker that real clients keep busy: two brokers, with `metrics.listener` and without, take turns.

The figure is the CPU time of the broker's process for the same records, without what it uses up when nobody asks it
anything, which is told by itself; the median of some rounds, each broker first in every other one. What a scrape costs
is measured by benchmarks.scrape, and one request by benchmarks.request_cost.

    python -m benchmarks.metrics_cost [--rounds N] [--records N]
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import generator
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.testing import RunningBroker, broker

TOPIC = "load"
READS = 4
"""Reading is a `sendfile` and costs little: the same records are read some times over."""
IDLE_SECONDS = 10.0


def cpu_seconds(process: int) -> float:
    """Of all its threads, to the nanosecond: the sum that `stat` has is in hundredths of a second."""
    threads = Path(f"/proc/{process}/task").glob("*/schedstat")
    return sum(int(each.read_text().split()[0]) for each in threads) / 1e9


class Load:
    """What clients do to one broker."""

    def __init__(self, running: RunningBroker, records: int) -> None:
        self._bootstrap = running.bootstrap
        self._process = running.pid
        self._records = records
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        admin.create_topics([NewTopic(TOPIC, 1)])[TOPIC].result(60)
        before = cpu_seconds(self._process)
        time.sleep(IDLE_SECONDS)
        self.idle = (cpu_seconds(self._process) - before) / IDLE_SECONDS
        """Seconds of CPU in a second."""

    def cost(self, work: Callable[["Load"], None]) -> float:
        began, before = time.monotonic(), cpu_seconds(self._process)
        work(self)
        return cpu_seconds(self._process) - before - self.idle * (time.monotonic() - began)

    def produce(self) -> None:
        self._run("produce", self._records, P__linger__ms=5, P__batch__size=16_384)

    def consume(self) -> None:
        for _ in range(READS):
            self._run("consume", self._records)

    def produce_one_by_one(self) -> None:
        """A request for each record."""
        self._run("produce", self._records // 20, P__linger__ms=0, P__batch__num__messages=1)

    def _run(self, mode: str, records: int, **properties: int) -> None:
        generator.run(mode, brokers=self._bootstrap, topic=TOPIC, records=records, **properties)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--records", type=int, default=1_000_000)
    arguments = parser.parse_args()
    generator.build()
    with broker({"metrics.listener": ""}) as off, broker({"metrics.listener": "127.0.0.1:0"}) as on:
        loads = (Load(on, arguments.records), Load(off, arguments.records))
        print(f"idle: {1000 * loads[0].idle:.1f} ms in a second with metrics, {1000 * loads[1].idle:.1f} ms without")
        for work in (Load.produce, Load.consume, Load.produce_one_by_one):
            rounds = []
            for number in range(-1, arguments.rounds):
                order = loads if number % 2 else loads[::-1]
                found = {load: load.cost(work) for load in order}
                if number >= 0:  # the first is to get warm
                    rounds.append(tuple(found[load] for load in loads))
            medians = [statistics.median(each) for each in zip(*rounds, strict=True)]
            least = [min(each) for each in zip(*rounds, strict=True)]
            pairs = statistics.median(mine / other for mine, other in rounds)
            print(
                f"{work.__name__:<20} {medians[0]:6.3f} s with metrics, {medians[1]:6.3f} s without: ratio {pairs:.3f} "
                f"(of the least {least[0] / least[1]:.3f})",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
