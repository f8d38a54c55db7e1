"""How near a client with a quota comes to its bound, and what that does to one without, beside Apache Kafka.

    python -m benchmarks.quotas
    python -m benchmarks.quotas --brokers ottla --seconds 22

Both brokers at the same time, each with clients of its own, so that a slow moment of the machine is one for both. A
producer and a consumer with a quota run side by side with a producer that has none and sends ten times as much, and
that ran without them before. What a client may use at once in the beginning (ten seconds' worth) is not counted.
Kafka's quotas let through ten seconds' worth in waves: what is measured are whole waves where there are any, and beside
them every minute that can be cut out of the run.
"""

import argparse
import contextlib
import itertools
import multiprocessing
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import NamedTuple, TypeAlias

import confluent_kafka
from benchmarks import wire
from benchmarks.brokers import KINDS, Broker, new_broker

from ottla import testing
from ottla.cli.main import main as ottla

RATE = 1_000_000
VALUE = bytes(9_800)
HELD = "held"
SETTLING_SECONDS = 12.0
LOOK_SECONDS = 0.05
SILENCE_SECONDS = 1.0
WAVES_MIN = 2
WITHIN = 0.10
MINUTE_SECONDS = 60.0
ALONE_SECONDS_MAX = 15.0
LOG_SHOWN = 2_000
FREE = "free"
FREE_RATE = 10 * RATE

Counter: TypeAlias = "Synchronized[int]"


class Rate(NamedTuple):
    """Bytes a second: over whole waves, and of the slowest and the fastest minute."""

    over_waves: float
    slowest: float
    fastest: float


class Figures(NamedTuple):
    produced: Rate
    consumed: Rate
    beside: Rate
    alone: Rate


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
    # Quotas count what is sent, and an answer ends in the middle of a batch, which clients drop: many batches to one.
    settings = {"bootstrap.servers": bootstrap, "client.id": client_id, "group.id": client_id}
    consumer = confluent_kafka.Consumer({**settings, "max.partition.fetch.bytes": 1_000_000})
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


def minutes(looks: Sequence[Look]) -> tuple[float, float]:
    """Of all minutes that begin with a look, the slowest and the fastest; of a run that is shorter, all of it."""
    found: list[float] = []
    ends = iter(looks)
    end = next(ends)
    for begin in looks:
        while end.at - begin.at < MINUTE_SECONDS:
            following = next(ends, None)
            if following is None:
                break
            end = following
        if found and end.at - begin.at < MINUTE_SECONDS:
            break
        found.append((end.counted - begin.counted) / max(end.at - begin.at, LOOK_SECONDS))
    return min(found), max(found)


def rates(workers: Sequence[Worker], seconds: float) -> list[Rate]:
    time.sleep(SETTLING_SECONDS)
    looks: list[list[Look]] = [[] for _ in workers]
    ends = time.monotonic() + seconds
    while (now := time.monotonic()) < ends:
        for seen, worker in zip(looks, workers, strict=True):
            seen.append(Look(now, worker.counted))
        time.sleep(LOOK_SECONDS)
    return [Rate(rate_over_waves(seen), *minutes(seen)) for seen in looks]


def set_quotas(bootstrap: str) -> None:
    quotas = f"producer_byte_rate={RATE},consumer_byte_rate={RATE}"
    whose = ["--bootstrap-server", bootstrap, "--alter", "--client", HELD]
    assert ottla(["configs", *whose, "--add-config", quotas]) == 0


def measure(ports: Mapping[str, int], seconds: float) -> dict[str, Figures]:
    """Of brokers on these ports, by their names, all at the same time."""
    addresses = [f"127.0.0.1:{port}" for port in ports.values()]
    for port, bootstrap in zip(ports.values(), addresses, strict=True):
        wire.create_topics(port, [HELD, FREE], 1)
        set_quotas(bootstrap)
    free = [Worker(produce, bootstrap, FREE, FREE) for bootstrap in addresses]
    workers = list(free)
    try:
        alone = rates(free, min(seconds, ALONE_SECONDS_MAX))
        workers += [Worker(produce, bootstrap, HELD, HELD) for bootstrap in addresses]
        workers += [Worker(consume, bootstrap, FREE, HELD) for bootstrap in addresses]
        found = rates(workers, seconds)
    finally:
        for worker in workers:
            worker.stop()
    count = len(addresses)
    beside, produced, consumed = found[:count], found[count : 2 * count], found[2 * count :]
    return dict(zip(ports, map(Figures, produced, consumed, beside, alone), strict=True))


@contextlib.contextmanager
def running(kinds: Sequence[str]) -> Iterator[dict[str, Broker]]:
    with tempfile.TemporaryDirectory(prefix="ottla-bench-") as folder, contextlib.ExitStack() as stack:
        brokers = {kind: new_broker(kind, Path(folder, kind)) for kind in kinds}
        for kind, broker in brokers.items():
            broker.prepare()
            broker.launch()
            stack.callback(broker.stop)
            try:
                wire.wait_for_first_record(broker.port, "ready")
            except wire.WireError as error:
                log = Path(folder, kind, "server.log").read_text(errors="replace")
                raise SystemExit(f"{broker.name}: {error}; its log ends:\n{log[-LOG_SHOWN:]}") from None
        yield brokers


def of_ottla(seconds: float) -> Figures:
    """As a test starts a broker."""
    with testing.broker() as broker:
        return measure({"ottla": broker.port}, seconds)["ottla"]


def table(figures: Mapping[str, Figures], names: Mapping[str, str]) -> Iterator[str]:
    """Lines of a table, as the page has it."""
    yield "| client | " + " | ".join(names[kind] for kind in figures) + " |"
    yield "|---" * (len(figures) + 1) + "|"
    for what, of in (("producer", "produced"), ("consumer", "consumed")):
        rows: list[Rate] = [getattr(each, of) for each in figures.values()]
        shares = (f"{rate.over_waves / RATE:.1%}" for rate in rows)
        yield f"| {what} with {RATE / 1e6:g} MB/s: of its bound, over whole waves | {' | '.join(shares)} |"
        spans = (f"{rate.slowest / RATE:.0%} to {rate.fastest / RATE:.0%}" for rate in rows)
        yield f"| the same, in the slowest and in the fastest minute | {' | '.join(spans)} |"
    free = (f"{each.beside.over_waves / 1e6:.2f} ({each.alone.over_waves / 1e6:.2f})" for each in figures.values())
    yield f"| producer without a quota, MB/s (before the others came) | {' | '.join(free)} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=100.0, help="how long clients with quotas are watched (100)")
    parser.add_argument("--brokers", default="ottla,kafka", help="which to run (ottla,kafka)")
    arguments = parser.parse_args()
    kinds = arguments.brokers.split(",")
    if unknown := set(kinds) - set(KINDS):
        parser.error(f"unknown broker {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
    with running(kinds) as brokers:
        figures = measure({kind: broker.port for kind, broker in brokers.items()}, arguments.seconds)
        print("\n".join(table(figures, {kind: broker.name for kind, broker in brokers.items()})))
    ours = figures.get("ottla")
    held = (ours.produced, ours.consumed) if ours is not None else ()
    return int(any(abs(rate.over_waves / RATE - 1) > WITHIN for rate in held))


if __name__ == "__main__":
    raise SystemExit(main())
