"""How near a client with a quota comes to its bound, and what that does to one without.

    python -m benchmarks.quotas
    python -m benchmarks.quotas --seconds 22

A producer and a consumer with a quota run side by side with a producer that has none and sends ten times as much, and
that ran alone before. What a client may use at once in the beginning (ten seconds' worth) is not counted. Kafka's
quotas, and ours, let through ten seconds' worth in waves: what is measured are whole waves.
"""

import argparse
import itertools
import multiprocessing
import time
from collections.abc import Callable, Sequence
from multiprocessing.sharedctypes import Synchronized
from typing import NamedTuple, TypeAlias

import confluent_kafka

from ottla import testing
from ottla.cli.main import main as ottla
from ottla.testing.requests import create_topic
from ottla.testing.wire import WireConnection

RATE = 1_000_000
VALUE = bytes(9_800)
HELD = "held"
SETTLING_SECONDS = 12.0
LOOK_SECONDS = 0.05
SILENCE_SECONDS = 1.0
WAVES_MIN = 2
WITHIN = 0.10
FREE = "free"
FREE_RATE = 10 * RATE

Counter: TypeAlias = "Synchronized[int]"


class Figures(NamedTuple):
    """Bytes a second."""

    produced: float
    consumed: float
    beside: float
    alone: float


def produce(bootstrap: str, topic: str, client_id: str, counted: Counter) -> None:
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": client_id,
            "batch.size": 50_000,
            "queue.buffering.max.messages": 300,
        }
    )

    def count(error: object, message: confluent_kafka.Message) -> None:
        assert error is None, error
        counted.value += len(VALUE)

    begun, sent = time.monotonic(), 0
    while True:
        if client_id == FREE and sent > FREE_RATE * (time.monotonic() - begun):
            producer.poll(0.005)
            continue
        try:
            producer.produce(topic, VALUE, on_delivery=count)
            sent += len(VALUE)
        except BufferError:
            producer.poll(0.01)
        producer.poll(0)


def consume(bootstrap: str, topic: str, client_id: str, counted: Counter) -> None:
    settings = {"bootstrap.servers": bootstrap, "client.id": client_id, "group.id": client_id}
    consumer = confluent_kafka.Consumer({**settings, "max.partition.fetch.bytes": 100_000})
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    while True:
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            counted.value += len(message.value())


class Worker:
    def __init__(self, work: Callable[[str, str, str, Counter], None], bootstrap: str, topic: str, client: str) -> None:
        self._counted = multiprocessing.Value("q", 0, lock=False)
        self._process = multiprocessing.Process(
            target=work, args=(bootstrap, topic, client, self._counted), daemon=True
        )
        self._process.start()

    @property
    def counted(self) -> int:
        return int(self._counted.value)

    def stop(self) -> None:
        self._process.kill()
        self._process.join()


class Look(NamedTuple):
    """How much a client had moved at a moment."""

    at: float
    counted: int


def rate_over_waves(looks: Sequence[Look]) -> float:
    """Bytes a second from the beginning of the first wave to that of the last, or over all if it does not go in waves.

    A wave is what moves after a second of silence. Ten seconds' worth go through at once and are paid for afterwards:
    a minute that begins and ends anywhere has half a wave too many or too few, up to a tenth of it.
    """
    begins: list[Look] = []
    moved_at = looks[0].at
    for before, look in itertools.pairwise(looks):
        if look.counted > before.counted:
            if look.at - moved_at >= SILENCE_SECONDS:
                begins.append(before)
            moved_at = look.at
    first, last = (begins[0], begins[-1]) if len(begins) > WAVES_MIN else (looks[0], looks[-1])
    return (last.counted - first.counted) / (last.at - first.at)


def rates(workers: list[Worker], seconds: float) -> list[float]:
    time.sleep(SETTLING_SECONDS)
    looks: list[list[Look]] = [[] for _ in workers]
    ends = time.monotonic() + seconds
    while (now := time.monotonic()) < ends:
        for seen, worker in zip(looks, workers, strict=True):
            seen.append(Look(now, worker.counted))
        time.sleep(LOOK_SECONDS)
    return [rate_over_waves(seen) for seen in looks]


def measure(seconds: float) -> Figures:
    with testing.broker() as broker:
        for topic in (HELD, FREE):
            with WireConnection(broker.host, broker.port) as connection:
                assert create_topic(connection, topic) == 0
        quotas = f"producer_byte_rate={RATE},consumer_byte_rate={RATE}"
        whose = ["--bootstrap-server", broker.bootstrap, "--alter", "--client", HELD]
        assert ottla(["configs", *whose, "--add-config", quotas]) == 0
        free = Worker(produce, broker.bootstrap, FREE, FREE)
        (alone,) = rates([free], min(seconds, 15.0))
        workers = [
            Worker(produce, broker.bootstrap, HELD, HELD),
            Worker(consume, broker.bootstrap, FREE, HELD),
            free,
        ]
        produced, consumed, beside = rates(workers, seconds)
        for worker in workers:
            worker.stop()
        return Figures(produced, consumed, beside, alone)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=75.0)
    figures = measure(parser.parse_args().seconds)
    far = False
    for what, rate in (("produced", figures.produced), ("consumed", figures.consumed)):
        share = rate / RATE
        far |= abs(share - 1) > WITHIN
        print(f"{what} with a quota of {RATE / 1e6:g} MB/s: {rate / 1e6:.3f} MB/s, {share:.1%} of its bound")
    print(
        f"produced without a quota: {figures.beside / 1e6:.1f} MB/s beside them, {figures.alone / 1e6:.1f} MB/s alone"
    )
    return 1 if far else 0


if __name__ == "__main__":
    raise SystemExit(main())
