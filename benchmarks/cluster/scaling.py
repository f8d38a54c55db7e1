"""Many partitions: python -m benchmarks.cluster.scaling [--single 4000] [--three 10000] [--output docs].

On one broker, and on three with three replicas of each: how long it takes to create them, to write to every one, to
start again, and (three brokers) to fail over; what memory and file descriptors that costs. The table in scaling.md is
written anew by every run.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.cluster.clusters import OttlaCluster, admin_of, resident_mb
from benchmarks.cluster.watching import decision_of
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.testing.load import RECONNECT, quiet
from ottla.testing.process import open_descriptors
from ottla.testing.running import RunningBroker
from ottla.testing.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
TOPIC_PARTITIONS = 100
WAIT_S_MAX = 600.0
UNITS = {"s": "s", "mb": "MB"}
BEGIN, END = "<!-- measured: begin -->\n", "<!-- measured: end -->\n"


def _timed(work: Callable[[], object]) -> float:
    begun = time.monotonic()
    work()
    return round(time.monotonic() - begun, 2)


def _create(admin: AdminClient, partitions: int, replicas: int) -> list[str]:
    names = [f"many-{number}" for number in range(max(1, partitions // TOPIC_PARTITIONS))]
    each = partitions // len(names)
    for start in range(0, len(names), 10):
        new = [NewTopic(name, each, replication_factor=replicas) for name in names[start : start + 10]]
        for future in admin.create_topics(new, operation_timeout=120.0, request_timeout=120.0).values():
            future.result(180)
    return names


def _settled(admin: AdminClient, partitions: int, *, replicas: int | None) -> bool:
    """Every partition has a leader and, if that is asked for, so many replicas in sync."""
    try:
        topics = admin.list_topics(timeout=60.0).topics
    except KafkaException:
        return False
    found = [each for name, topic in topics.items() if name.startswith("many-") for each in topic.partitions.values()]
    led = [each for each in found if each.leader > 0 and (replicas is None or len(each.isrs) == replicas)]
    return len(led) >= partitions


def _write_everywhere(bootstrap: str, names: list[str]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 20, **RECONNECT}, logger=quiet)
    refused: list[str] = []
    for name in names:
        for number in range(TOPIC_PARTITIONS):
            producer.produce(
                name, b"x", partition=number, on_delivery=lambda error, _: refused.append(str(error)) if error else None
            )
        producer.poll(0)
    assert producer.flush(WAIT_S_MAX) == 0, "not everything was acknowledged"
    assert not refused, refused[:3]


def one_broker(partitions: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="ottla-scaling-") as folder:
        broker = RunningBroker(Path(folder), {}, for_tests=False)
        try:
            broker.start()
            admin = AdminClient({"bootstrap.servers": broker.bootstrap}, logger=quiet)
            names: list[str] = []
            create = _timed(lambda: names.extend(_create(admin, partitions, 1)))
            write = _timed(lambda: _write_everywhere(broker.bootstrap, names))
            memory, descriptors = resident_mb([broker.pid]), open_descriptors(broker.pid)
            stop = _timed(broker.stop)
            start = _timed(broker.start)
            write_again = _timed(lambda: _write_everywhere(broker.bootstrap, names))
            broker.kill()
            recover = _timed(broker.start)
        finally:
            broker.close()
    return {
        "partitions": partitions, "create_s": create, "first_write_to_each_s": write, "memory_mb": round(memory),
        "descriptors": descriptors, "stop_s": stop, "start_s": start, "write_to_each_s": write_again,
        "start_after_kill_s": recover,
    }  # fmt: skip


def three_brokers(partitions: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="ottla-scaling-") as folder:
        cluster = OttlaCluster(Path(folder), {"min.insync.replicas": 2})
        try:
            start_empty = _timed(cluster.start)
            admin = admin_of(cluster)
            names: list[str] = []
            create = _timed(lambda: names.extend(_create(admin, partitions, 3)))
            in_sync = _timed(lambda: _wait(lambda: _settled(admin, partitions, replicas=3), "all are in sync"))
            write = _timed(lambda: _write_everywhere(cluster.bootstrap, names))
            memory = resident_mb(cluster.broker_pids())
            zookeeper = resident_mb(cluster.other_pids())
            victim = cluster.cluster.brokers[2]
            began = time.time()
            victim.kill()
            others = cluster.cluster.running
            begun = time.monotonic()
            _wait(lambda: _settled(admin, partitions, replicas=2), "the others lead all")
            fail_over = round(time.monotonic() - begun, 2)
            decision = decision_of(others, began)
            write_without = _timed(lambda: _write_everywhere(cluster.bootstrap, names))
            start = _timed(victim.start)
            join = _timed(lambda: _wait(lambda: _settled(admin, partitions, replicas=3), "all are in sync again"))
            stop = _timed(victim.stop)
        finally:
            cluster.stop()
    return {
        "partitions": partitions, "replicas": 3, "start_empty_s": start_empty, "create_s": create,
        "in_sync_s": in_sync, "first_write_to_each_s": write, "memory_of_a_broker_mb": round(memory / 3),
        "memory_of_a_zookeeper_mb": round(zookeeper / 3), "fail_over_s": fail_over,
        "of_it_decided_s": round(decision.decided_ms / 1000, 3),
        "of_it_committed_s": round(decision.committed_ms / 1000, 3),
        "write_to_each_s": write_without, "start_s": start, "in_sync_again_s": join, "hand_over_and_stop_s": stop,
    }  # fmt: skip


def _wait(condition: Callable[[], bool], what: str) -> None:
    wait_until(condition, what, seconds=WAIT_S_MAX)


def table(results: dict[str, dict[str, float]]) -> str:
    lines = [f"{time.strftime('%d %B %Y')}, on two cores.", ""]
    for title, figures in results.items():
        lines += [f"**{title}**", "", "| | |", "|---|---|"]
        lines += [f"| {_label(name)} | {value:,} |" for name, value in figures.items()]
        lines.append("")
    return "\n".join(lines)


def _label(name: str) -> str:
    words, _, unit = name.rpartition("_")
    return f"{words.replace('_', ' ')}, {UNITS[unit]}" if unit in UNITS else name.replace("_", " ")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster.scaling", description=__doc__)
    parser.add_argument("--single", type=int, default=4_000, help="partitions on one broker; 0 to leave it out (4000)")
    parser.add_argument("--three", type=int, default=10_000, help="partitions on three; 0 to leave it out (10000)")
    parser.add_argument("--output", type=Path, help="folder with scaling.md, whose table is written anew")
    arguments = parser.parse_args()
    results: dict[str, dict[str, float]] = {}
    if arguments.single:
        results["one broker"] = one_broker(arguments.single)
    if arguments.three:
        results["three brokers"] = three_brokers(arguments.three)
    print(json.dumps(results, indent=1))
    if arguments.output is not None:
        page = arguments.output / "scaling.md"
        before, _, rest = page.read_text().partition(BEGIN)
        page.write_text(before + BEGIN + table(results) + END + rest.partition(END)[2])


if __name__ == "__main__":
    main()
