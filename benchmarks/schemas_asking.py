"""Asking a registry: how soon it answers, how many look-ups and registrations it does, and what it takes for them."""

import json
import multiprocessing
import statistics
import time
from collections.abc import Callable, Sequence

import psutil

from ottla.registry.client import RegistryClient
from ottla.testing.registry import registry
from ottla.testing.running import RunningBroker, broker

CLIENTS = 2
LOOK_UP_SECONDS = 3.0


def asking(rounds: int) -> None:
    """Start, memory, look-ups and registrations of one registry, with its own processor time: others' is not in it."""
    with broker() as running:
        _starts(running, rounds, "a new topic", lambda n: ["--topic", f"_start{n}", "--group", f"start{n}"])
        with registry(running.bootstrap) as beside:
            empty, before = resident_mb(beside.pid), cpu_seconds(beside.pid)
            ids, latencies = register(beside.url, range(1_000))
            each_ms = (cpu_seconds(beside.pid) - before) * 1000 / len(ids)
            print(
                f"registrations one after the other: {statistics.median(latencies):.1f} ms, 99th percentile "
                f"{statistics.quantiles(latencies, n=100)[98]:.1f} ms; CPU {each_ms:.1f} ms each"
            )
            print(f"memory: {empty:.0f} MB empty, {resident_mb(beside.pid):.0f} MB with {len(ids)} schemas")
            for clients in (1, CLIENTS):
                before, counts = cpu_seconds(beside.pid), [look_ups(beside.url, ids, clients) for _ in range(rounds)]
                each_us = (cpu_seconds(beside.pid) - before) * 1e6 / sum(counts)
                rate = statistics.median(counts) / LOOK_UP_SECONDS
                print(f"look-ups by id, {clients} clients: {rate:,.0f} a second; CPU {each_us:.0f} us each")
        _starts(running, rounds, f"{len(ids)} schemas", lambda _: [])


def _starts(running: RunningBroker, rounds: int, what: str, options: Callable[[int], list[str]]) -> None:
    taken = []
    for number in range(rounds):
        began = time.perf_counter()
        with registry(running.bootstrap, *options(number)) as started:
            taken.append((time.perf_counter() - began, cpu_seconds(started.pid)))
    seconds, cpu = (statistics.median(each) for each in zip(*taken, strict=True))
    print(f"start until it answers, with {what}: {seconds * 1000:.0f} ms; CPU {cpu * 1000:.0f} ms")


def register(url: str, numbers: Sequence[int]) -> tuple[list[int], list[float]]:
    """A new schema for each number; their ids, and how many milliseconds each took."""
    ids, latencies = [], []
    with RegistryClient(url) as client:
        for number in numbers:
            fields = [{"name": f"f{each}", "type": "string"} for each in range(10)]
            text = json.dumps({"type": "record", "name": f"R{number}", "fields": fields})
            began = time.perf_counter()
            ids.append(client.register(f"s{number}-value", text).schema_id)
            latencies.append((time.perf_counter() - began) * 1000)
    return ids, latencies


def look_ups(url: str, ids: list[int], clients: int) -> int:
    """How many as many clients got in LOOK_UP_SECONDS."""
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


def cpu_seconds(pid: int) -> float:
    """So far."""
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def resident_mb(pid: int) -> float:
    return float(psutil.Process(pid).memory_info().rss) / 1e6
