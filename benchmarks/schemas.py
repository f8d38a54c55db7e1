"""What schemas cost: checking them at the broker, asking a registry for them, and reading many versions of one.

    python -m benchmarks.schemas                       all four
    python -m benchmarks.schemas --only validation     produce to a topic that checks schemas and to one that does not
    python -m benchmarks.schemas --only registry       look-ups and registrations, start and memory
    python -m benchmarks.schemas --only beside         the same of Apicurio Registry, in turn (needs Maven)
    python -m benchmarks.schemas --only evolving       ten versions through pipelines beside one, to Parquet and back
    python -m benchmarks.schemas --only evolving --records 1000000

What is compared is done in turn, round after round: a busy machine makes both slow alike, so it is ratios that count.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psutil
from benchmarks.schemas_asking import asking
from benchmarks.schemas_beside import beside
from benchmarks.schemas_evolving import evolving
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.registry.client import RegistryClient
from ottla.registry.framing import id_prefix
from ottla.testing.ports import free_ports
from ottla.testing.registry import RunningRegistry, registry
from ottla.testing.running import RunningBroker, broker

VALUE_BYTES = 100
CHECKED, PLAIN = "checked", "plain"
PATIENCE_S = 120.0


@contextmanager
def broker_and_registry() -> Iterator[tuple[RunningBroker, RunningRegistry]]:
    (port,) = free_ports(1)
    with (
        broker({"confluent.schema.registry.url": f"http://127.0.0.1:{port}"}) as running,
        registry(running.bootstrap, "--listen", f"127.0.0.1:{port}") as beside,
    ):
        yield running, beside


def validation(records: int, rounds: int) -> None:
    with broker_and_registry() as (running, beside):
        with RegistryClient(beside.url) as client:
            schema_id = client.register(f"{CHECKED}-value", '"bytes"').schema_id
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        check = {"confluent.value.schema.validation": "true"}
        topics = [NewTopic(CHECKED, 1, config=check), NewTopic(PLAIN, 1)]
        for done in admin.create_topics(topics).values():
            done.result(PATIENCE_S)
        value = id_prefix(schema_id) + bytes(VALUE_BYTES - 5)
        for codec in ("none", "lz4"):
            _produce(running, PLAIN, value, records // 10, codec)
            taken: dict[str, list[tuple[float, float]]] = {PLAIN: [], CHECKED: []}
            for number in range(rounds):
                for topic in (PLAIN, CHECKED) if number % 2 == 0 else (CHECKED, PLAIN):
                    taken[topic].append(_produce(running, topic, value, records, codec))
            rates = {topic: statistics.median(rate for rate, _ in each) for topic, each in taken.items()}
            cpu = {topic: statistics.median(seconds for _, seconds in each) for topic, each in taken.items()}
            ratios = [
                with_check[0] / without[0] for with_check, without in zip(taken[CHECKED], taken[PLAIN], strict=True)
            ]
            print(
                f"produce, {VALUE_BYTES} bytes, {codec}: {rates[PLAIN]:,.0f} records/s unchecked, "
                f"{rates[CHECKED]:,.0f} checked: {statistics.median(ratios):.2f}x ({min(ratios):.2f} to "
                f"{max(ratios):.2f}); broker's CPU {cpu[PLAIN] / records * 1e6:.2f} and "
                f"{cpu[CHECKED] / records * 1e6:.2f} us a record"
            )


def _produce(running: RunningBroker, topic: str, value: bytes, records: int, codec: str) -> tuple[float, float]:
    """Records a second, and seconds of the broker's processor time."""
    settings = {"bootstrap.servers": running.bootstrap, "compression.type": codec, "linger.ms": 5}
    producer = Producer({**settings, "queue.buffering.max.messages": 1_000_000})
    process = psutil.Process(running.pid)
    before, began = process.cpu_times(), time.perf_counter()
    for _ in range(records):
        while True:
            try:
                producer.produce(topic, value)
                break
            except BufferError:
                producer.poll(0.1)
    left = producer.flush(PATIENCE_S)
    seconds, after = time.perf_counter() - began, process.cpu_times()
    assert left == 0
    return records / seconds, after.user + after.system - before.user - before.system


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.schemas", description=__doc__.partition("\n")[0])
    parser.add_argument("--only", choices=("validation", "registry", "beside", "evolving"))
    parser.add_argument("--records", type=int, default=100_000, help="in each run (100000; the issue wants 1000000)")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    parts: dict[str, Callable[[], None]] = {
        "validation": lambda: validation(arguments.records, arguments.rounds),
        "registry": lambda: asking(arguments.rounds),
        "beside": lambda: beside(arguments.rounds),
        "evolving": lambda: evolving(arguments.records, arguments.rounds),
    }
    for name, part in parts.items():
        if arguments.only in (None, name):
            part()


if __name__ == "__main__":
    main()
