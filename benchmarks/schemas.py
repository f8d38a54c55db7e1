"""What schemas cost: checking them at the broker, asking a registry for them, and reading many versions of one.

    python -m benchmarks.schemas                       all three
    python -m benchmarks.schemas --only validation     produce to a topic that checks schemas and to one that does not
    python -m benchmarks.schemas --only registry       look-ups and registrations, start and memory
    python -m benchmarks.schemas --only evolving       ten versions through pipelines beside one, to Parquet and back
    python -m benchmarks.schemas --only evolving --records 1000000

What is compared is done in turn, round after round: a busy machine makes both slow alike, so it is ratios that count.
"""

import argparse
import json
import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psutil
from benchmarks.schemas_evolving import evolving
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.registry.client import RegistryClient
from ottla.registry.framing import id_prefix
from ottla.testing.ports import free_ports
from ottla.testing.registry import RunningRegistry, registry
from ottla.testing.running import RunningBroker, broker

VALUE_BYTES = 100
CLIENTS = 2
CHECKED, PLAIN = "checked", "plain"
PATIENCE_S = 120.0
LOOK_UP_SECONDS = 3.0


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


def asking(rounds: int) -> None:
    """Start, memory, look-ups and registrations of one registry, with its own processor time: others' is not in it."""
    with broker() as running:
        _starts(running, rounds, "a new topic", lambda n: ["--topic", f"_start{n}", "--group", f"start{n}"])
        with registry(running.bootstrap) as beside:
            empty, before = _resident_mb(beside), _cpu(beside)
            ids, latencies = _register(beside.url, 1_000)
            each_ms = (_cpu(beside) - before) * 1000 / len(ids)
            print(
                f"registrations one after the other: {statistics.median(latencies):.1f} ms, 99th percentile "
                f"{statistics.quantiles(latencies, n=100)[98]:.1f} ms; CPU {each_ms:.1f} ms each"
            )
            print(f"memory: {empty:.0f} MB empty, {_resident_mb(beside):.0f} MB with {len(ids)} schemas")
            for clients in (1, CLIENTS):
                before, counts = _cpu(beside), [_look_ups(beside.url, ids, clients) for _ in range(rounds)]
                each_us = (_cpu(beside) - before) * 1e6 / sum(counts)
                rate = statistics.median(counts) / LOOK_UP_SECONDS
                print(f"look-ups by id, {clients} clients: {rate:,.0f} a second; CPU {each_us:.0f} us each")
        _starts(running, rounds, f"{len(ids)} schemas", lambda _: [])


def _starts(running: RunningBroker, rounds: int, what: str, options: Callable[[int], list[str]]) -> None:
    taken = []
    for number in range(rounds):
        began = time.perf_counter()
        with registry(running.bootstrap, *options(number)) as started:
            taken.append((time.perf_counter() - began, _cpu(started)))
    seconds, cpu = (statistics.median(each) for each in zip(*taken, strict=True))
    print(f"start until it answers, with {what}: {seconds * 1000:.0f} ms; CPU {cpu * 1000:.0f} ms")


def _register(url: str, count: int) -> tuple[list[int], list[float]]:
    ids, latencies = [], []
    with RegistryClient(url) as client:
        for number in range(count):
            fields = [{"name": f"f{each}", "type": "string"} for each in range(10)]
            text = json.dumps({"type": "record", "name": f"R{number}", "fields": fields})
            began = time.perf_counter()
            ids.append(client.register(f"s{number}-value", text).schema_id)
            latencies.append((time.perf_counter() - began) * 1000)
    return ids, latencies


def _look_ups(url: str, ids: list[int], clients: int) -> int:
    with multiprocessing.get_context("spawn").Pool(clients) as pool:
        return sum(pool.starmap(_look_up, [(url, ids)] * clients))


def _look_up(url: str, ids: list[int]) -> int:
    count = 0
    with RegistryClient(url) as client:
        client.get(f"/schemas/ids/{ids[0]}")
        began = time.perf_counter()
        while time.perf_counter() - began < LOOK_UP_SECONDS:
            client.get(f"/schemas/ids/{ids[count % len(ids)]}")
            count += 1
    return count


def _cpu(running: RunningRegistry) -> float:
    """Seconds so far."""
    times = psutil.Process(running.pid).cpu_times()
    return float(times.user + times.system)


def _resident_mb(running: RunningRegistry) -> float:
    return float(psutil.Process(running.pid).memory_info().rss) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.schemas", description=__doc__.partition("\n")[0])
    parser.add_argument("--only", choices=("validation", "registry", "evolving"))
    parser.add_argument("--records", type=int, default=100_000, help="in each run (100000; the issue wants 1000000)")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    parts: dict[str, Callable[[], None]] = {
        "validation": lambda: validation(arguments.records, arguments.rounds),
        "registry": lambda: asking(arguments.rounds),
        "evolving": lambda: evolving(arguments.records, arguments.rounds),
    }
    for name, part in parts.items():
        if arguments.only in (None, name):
            part()


if __name__ == "__main__":
    main()
