"""Our registry and Apicurio's in turn, on one broker of ours that keeps the state of both.

Both run while they are asked, one at a time. Apicurio's first requests make Java compile itself: they are not counted.
"""

import statistics
import time
from typing import NamedTuple

from benchmarks.schemas_asking import CLIENTS, LOOK_UP_SECONDS, cpu_seconds, look_ups, register, resident_mb
from compat.peer.apicurio import IN_MEMORY, apicurio, fetch_apicurio, in_topics

from ottla.testing.registry import registry
from ottla.testing.running import RunningBroker, broker

OURS, THEIRS = "Ottla", "Apicurio"
WARM_UP = 300
WARM_UP_ROUNDS = 5
REGISTRATIONS = 200


class Side(NamedTuple):
    url: str
    pid: int
    ids: list[int]


def beside(rounds: int) -> None:
    fetch_apicurio()
    with broker() as running:
        _starts(running, rounds)
        with registry(running.bootstrap) as ours, apicurio(in_topics(running.bootstrap, "apicurio")) as theirs:
            sides = {OURS: Side(ours.url, ours.pid, []), THEIRS: Side(theirs.url, theirs.process.pid, [])}
            empty = {name: resident_mb(side.pid) for name, side in sides.items()}
            for side in sides.values():
                side.ids.extend(register(side.url, range(WARM_UP))[0])
                for _ in range(WARM_UP_ROUNDS):
                    look_ups(side.url, side.ids, CLIENTS)
            _registrations(sides, rounds)
            for clients in (1, CLIENTS):
                _look_ups(sides, rounds, clients)
            now = {name: resident_mb(side.pid) for name, side in sides.items()}
            print(
                f"memory: {_both(empty, 'MB')} empty, {_both(now, 'MB')} with {len(sides[OURS].ids)} schemas and "
                f"asked: {now[THEIRS] / now[OURS]:.1f}x less"
            )


def _starts(running: RunningBroker, rounds: int) -> None:
    taken: dict[str, list[float]] = {OURS: [], THEIRS: [], "in memory": []}
    for number in range(rounds):
        began = time.perf_counter()
        with registry(running.bootstrap, "--topic", f"_start{number}", "--group", f"start{number}"):
            taken[OURS].append(time.perf_counter() - began)
        began = time.perf_counter()
        with apicurio(in_topics(running.bootstrap, f"start{number}")):
            taken[THEIRS].append(time.perf_counter() - began)
    began = time.perf_counter()
    with apicurio(IN_MEMORY):
        taken["in memory"].append(time.perf_counter() - began)
    seconds = {name: statistics.median(each) for name, each in taken.items()}
    print(
        f"start until it answers: {OURS} {seconds[OURS]:.2f} s, {THEIRS} {seconds[THEIRS]:.1f} s with its state in "
        f"topics ({seconds['in memory']:.1f} s with none): {_ratio(taken[THEIRS], taken[OURS])} sooner"
    )


def _registrations(sides: dict[str, Side], rounds: int) -> None:
    medians: dict[str, list[float]] = {name: [] for name in sides}
    latencies: dict[str, list[float]] = {name: [] for name in sides}
    cpu = dict.fromkeys(sides, 0.0)
    for number in range(rounds):
        first = WARM_UP + number * REGISTRATIONS
        for name, side in _in_turn(sides, number):
            before = cpu_seconds(side.pid)
            ids, taken = register(side.url, range(first, first + REGISTRATIONS))
            cpu[name] += cpu_seconds(side.pid) - before
            side.ids.extend(ids)
            medians[name].append(statistics.median(taken))
            latencies[name].extend(taken)
    middle = {name: statistics.median(each) for name, each in latencies.items()}
    slow = {name: statistics.quantiles(each, n=100)[98] for name, each in latencies.items()}
    each_ms = {name: seconds * 1000 / (rounds * REGISTRATIONS) for name, seconds in cpu.items()}
    print(
        f"registrations one after the other: {_both(middle, 'ms')}, 99th percentile {_both(slow, 'ms')}; "
        f"CPU {_both(each_ms, 'ms')} each: {_ratio(medians[THEIRS], medians[OURS])} sooner"
    )


def _look_ups(sides: dict[str, Side], rounds: int, clients: int) -> None:
    rates: dict[str, list[float]] = {name: [] for name in sides}
    cpu = dict.fromkeys(sides, 0.0)
    for number in range(rounds):
        for name, side in _in_turn(sides, number):
            before = cpu_seconds(side.pid)
            count = look_ups(side.url, side.ids, clients)
            cpu[name] += (cpu_seconds(side.pid) - before) * 1000 / count / rounds
            rates[name].append(count / LOOK_UP_SECONDS)
    middle = {name: statistics.median(each) for name, each in rates.items()}
    print(
        f"look-ups by id, {clients} clients: {_both(middle, 'a second')}; CPU {_both(cpu, 'ms')} each: "
        f"{_ratio(rates[OURS], rates[THEIRS])}"
    )


def _in_turn(sides: dict[str, Side], number: int) -> list[tuple[str, Side]]:
    """Who goes first changes: whatever the machine does meanwhile is then both's."""
    return list(sides.items())[:: 1 if number % 2 == 0 else -1]


def _ratio(these: list[float], those: list[float]) -> str:
    ratios = [this / that for this, that in zip(these, those, strict=True)]
    return f"{statistics.median(ratios):.2f}x ({min(ratios):.2f} to {max(ratios):.2f})"


def _both(figures: dict[str, float], unit: str) -> str:
    return " and ".join(f"{name} {figure:,.{0 if figure >= 100 else 1}f} {unit}" for name, figure in figures.items())
