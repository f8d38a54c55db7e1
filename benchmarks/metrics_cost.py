"""What metrics cost a broker that real clients keep busy: two brokers, with `metrics.listener` and without, take turns.

The figure is the CPU time of the broker's process for the same records, the least of some rounds: other work on the
machine only ever adds to it. What a scrape costs is measured by benchmarks.scrape.

    python -m benchmarks.metrics_cost [--rounds N] [--records N]
"""

import argparse
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.testing import RunningBroker, broker

VALUE = bytes(100)
TOPIC = "load"
READS = 4


def cpu_seconds(process: int) -> float:
    """Of all its threads, to the nanosecond: the sum that `stat` has is in hundredths of a second."""
    threads = Path(f"/proc/{process}/task").glob("*/schedstat")
    return sum(int(each.read_text().split()[0]) for each in threads) / 1e9


class Load:
    """What clients do to one broker. They stay: a connection costs more than a request."""

    def __init__(self, running: RunningBroker, records: int) -> None:
        self._process = running.pid
        self._records = records
        where = {"bootstrap.servers": running.bootstrap, "log_level": 3}
        admin = AdminClient(where)
        admin.create_topics([NewTopic(TOPIC, 1)])[TOPIC].result(60)
        producing = {**where, "queue.buffering.max.messages": 1_000_000}
        self._producer = Producer({**producing, "linger.ms": 5, "batch.size": 16_384})
        self._sender = Producer({**producing, "linger.ms": 0, "batch.num.messages": 1})
        self._consumer = Consumer({**where, "group.id": "load", "enable.auto.commit": False})

    def cost(self, work: Callable[["Load"], None]) -> float:
        before = cpu_seconds(self._process)
        work(self)
        return cpu_seconds(self._process) - before

    def produce(self) -> None:
        _produce(self._producer, self._records)

    def produce_one_by_one(self) -> None:
        """A request for each record."""
        _produce(self._sender, self._records // 20)

    def consume(self) -> None:
        """The same records some times over: reading is a `sendfile`, and costs next to nothing."""
        for _ in range(READS):
            self._consumer.assign([TopicPartition(TOPIC, 0, 0)])
            left = self._records
            while left > 0:
                left -= len(self._consumer.consume(10_000, 1.0))
        self._consumer.unassign()

    def close(self) -> None:
        self._consumer.close()


def _produce(producer: Producer, records: int) -> None:
    for _ in range(records):
        producer.produce(TOPIC, VALUE)
        producer.poll(0)
    assert producer.flush(300) == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--records", type=int, default=1_000_000)
    arguments = parser.parse_args()
    with broker({"metrics.listener": ""}) as off, broker({"metrics.listener": "127.0.0.1:0"}) as on:
        loads = (Load(on, arguments.records), Load(off, arguments.records))
        try:
            for work in (Load.produce, Load.consume, Load.produce_one_by_one):
                rounds = []
                for load in loads:
                    load.cost(work)  # warm
                for number in range(arguments.rounds):
                    order = loads if number % 2 else loads[::-1]
                    found = {load: load.cost(work) for load in order}
                    rounds.append(tuple(found[load] for load in loads))
                least = [min(each) for each in zip(*rounds, strict=True)]
                median = statistics.median(mine / other for mine, other in rounds)
                print(
                    f"{work.__name__:<20} {least[0]:6.2f} s with metrics, {least[1]:6.2f} s without: "
                    f"ratio {least[0] / least[1]:.3f}, median of rounds {median:.3f}"
                )
        finally:
            for load in loads:
                load.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
