"""Mirrors beside MirrorMaker 2: throughput, CPU per GB, memory and delay, on the same machine, brokers and data.

A source and a target, both Ottla, one broker each. Every program gets a target of its own, finds a topic that is full,
and copies it: counted from the first record in the target to the last. Then records come one by one, and each is timed
from before it was sent to when a consumer of the target has it. Programs run one after the other.

Run: python -m benchmarks.mirroring [--megabytes N] [--record-bytes N] [--partitions N] [--seconds N] [--only NAME ...]
"""

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import yaml
from benchmarks.backup import TOPIC, fill
from compat.peer.ecosystem import ecosystem_command, fetch_ecosystem, write_properties
from confluent_kafka import Consumer, Producer, TopicPartition

from ottla.client import admin
from ottla.client.settings import client_settings
from ottla.model.names import TopicPartition as At
from ottla.spark import loop
from ottla.spark.connections import shared_cluster
from ottla.spark.reading import resolving
from ottla.testing import broker
from ottla.testing.ports import free_ports

MAIN = "import sys; from ottla.cli.main import main; sys.exit(main())"
HEAP = ("-Xms256M", "-Xmx2G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")
"""What connect-mirror-maker.sh passes."""
DELAYED_PER_SECOND = 500
COPY_S_MAX = 600.0
SAMPLE_S = 0.2
WARM_UP = 2_000
"""Records whose delay does not count: the programs get used to small batches."""

MIRROR_MAKER: dict[str, str | int] = {
    "clusters": "A,B", "A->B.enabled": "true", "B->A.enabled": "false", "A->B.topics": TOPIC, "tasks.max": 2,
    "replication.factor": 1, "B.producer.compression.type": "lz4",
    **{f"{each}.topic.replication.factor": 1 for each in ("checkpoints", "heartbeats", "offset-syncs")},
    **{f"{each}.storage.replication.factor": 1 for each in ("config", "offset", "status")},
}  # fmt: skip
TUNED: dict[str, str | int] = {
    "A.consumer.max.poll.records": 5_000, "A.consumer.fetch.min.bytes": 65_536, "A.consumer.fetch.max.wait.ms": 50,
    "B.producer.batch.size": 262_144, "B.producer.linger.ms": 20, "B.producer.buffer.memory": 67_108_864,
}  # fmt: skip
ONCE: dict[str, str | int] = {
    "B.exactly.once.source.support": "enabled", "dedicated.mode.enable.internal.rest": "true",
}  # fmt: skip


class Ends(NamedTuple):
    source: str
    target: str


class Figures(NamedTuple):
    name: str
    start_s: float
    """From the program's start to the first record in the target."""
    copy_s: float
    cpu_s: float
    start_cpu_s: float
    broker_cpu_s: float
    memory_mb: float
    delays_ms: list[float]


class Usage:
    """CPU time and memory of a process and all that it has started, sampled; processes that ended are remembered."""

    def __init__(self, pid: int) -> None:
        self._root = psutil.Process(pid)
        self._cpu: dict[int, float] = {}
        self.memory_bytes_max = 0

    def sample(self) -> float:
        memory = 0
        try:
            family = [self._root, *self._root.children(recursive=True)]
        except psutil.NoSuchProcess:
            return self.cpu_s
        for process in family:
            try:
                times = process.cpu_times()
                self._cpu[process.pid] = times.user + times.system
                memory += process.memory_full_info().pss
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue
        self.memory_bytes_max = max(self.memory_bytes_max, memory)
        return self.cpu_s

    @property
    def cpu_s(self) -> float:
        return sum(self._cpu.values())


def mirror_file(folder: Path, ends: Ends, **flow: Any) -> Path:
    path = folder / "mirror.yaml"
    clusters = {"A": {"bootstrap": ends.source}, "B": {"bootstrap": ends.target}}
    one = {"from": "A", "to": "B", "topics": TOPIC, **flow}
    limits = {"trigger": "100 ms"}
    path.write_text(yaml.safe_dump({"name": "bench", "clusters": clusters, "flows": [one], "limits": limits}))
    return path


def ottla_command(folder: Path, ends: Ends, **flow: Any) -> list[str]:
    path = mirror_file(folder, ends, **flow)
    command = [sys.executable, "-c", MAIN, "mirror", str(path), "--state-dir", str(folder / "state")]
    return [*command, "--master", "local[2]"]


def mirror_maker_command(folder: Path, ends: Ends, settings: Mapping[str, str | int]) -> list[str]:
    (port,) = free_ports(1)
    own = {"A.bootstrap.servers": ends.source, "B.bootstrap.servers": ends.target}
    rest: dict[str, str | int] = {"listeners": f"http://127.0.0.1:{port}"} if ONCE.items() <= settings.items() else {}
    path = write_properties(folder / "mm2.properties", {**MIRROR_MAKER, **own, **settings, **rest})
    return ecosystem_command("org.apache.kafka.connect.mirror.MirrorMaker", str(path), flags=HEAP)


PROGRAMS: dict[str, Callable[[Path, Ends], list[str]]] = {
    "mirrormaker": lambda folder, ends: mirror_maker_command(folder, ends, {}),
    "mirrormaker, tuned": lambda folder, ends: mirror_maker_command(folder, ends, TUNED),
    "mirrormaker, tuned, exactly once": lambda folder, ends: mirror_maker_command(folder, ends, {**TUNED, **ONCE}),
    "ottla mirror": ottla_command,
    "ottla mirror, standby": lambda folder, ends: ottla_command(folder, ends, names="keep", offsets="keep"),
}


@contextmanager
def started(command: Sequence[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, stdin=subprocess.DEVNULL, start_new_session=True
        )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def ends_of(bootstrap: str, topic: str, partitions: int, *, committed: bool) -> int:
    cluster = shared_cluster(client_settings({"bootstrap.servers": bootstrap}))
    places = [At(topic, number) for number in range(partitions)]
    return sum(loop.run(resolving.latest(cluster, places, committed=committed)).values())


def measure(name: str, source: str, records: int, args: argparse.Namespace, folder: Path) -> Figures:
    topic = TOPIC if "standby" in name else f"A.{TOPIC}"
    folder.mkdir()
    with broker({"log.dirs": str(folder / "log")}) as target:
        ends, log = Ends(source, target.bootstrap), folder / "program.log"
        command = PROGRAMS[name](folder, ends)
        begun = time.perf_counter()
        with started(command, log) as process:
            usage, serving = Usage(process.pid), Usage(target.pid)

            def wait(committed: bool, wanted: int) -> float:
                while ends_of(ends.target, topic, args.partitions, committed=committed) < wanted:
                    usage.sample()
                    alive, late = process.poll() is None, time.perf_counter() - begun > COPY_S_MAX
                    if late or not alive:
                        raise SystemExit(f"{name} {'is too slow' if alive else 'ended'}:\n{log.read_text()[-3000:]}")
                    time.sleep(SAMPLE_S / 4)
                return time.perf_counter()

            first = wait(committed=False, wanted=1)
            cpu_before, served_before = usage.sample(), serving.sample()
            last = wait(committed=True, wanted=records)
            cpu, served = usage.sample() - cpu_before, serving.sample() - served_before
            print(f"  {name}: {records:,} records in {last - first:.1f} s", file=sys.stderr, flush=True)
            delays = measure_delays(ends, topic, args)
            usage.sample()
        return Figures(name, first - begun, last - first, cpu, cpu_before, served, usage.memory_bytes_max / 1e6, delays)


def measure_delays(ends: Ends, topic: str, args: argparse.Namespace) -> list[float]:
    """Milliseconds from before a record was sent to when a consumer of the target has it."""
    settings = {"bootstrap.servers": ends.target, "group.id": "bench", "fetch.wait.max.ms": 10}
    consumer = Consumer({**settings, "isolation.level": "read_committed", "enable.auto.commit": False})
    cluster = shared_cluster(client_settings({"bootstrap.servers": ends.target}))
    places = [At(topic, number) for number in range(args.partitions)]
    stand = loop.run(resolving.latest(cluster, places, committed=True))
    consumer.assign([TopicPartition(at.topic, at.partition, stand[at]) for at in places])
    count = WARM_UP + args.seconds * DELAYED_PER_SECOND
    sender = threading.Thread(target=send_slowly, args=(ends.source, count, args.partitions))
    sender.start()
    delays: list[float] = []
    given_up_at = time.monotonic() + count / DELAYED_PER_SECOND + 60
    while len(delays) < count and time.monotonic() < given_up_at:
        came = [message.value() or b"0" for message in consumer.consume(1_000, 0.05) if message.error() is None]
        now = time.time_ns()
        delays += [(now - int(value)) / 1e6 for value in came]
    sender.join()
    consumer.close()
    if len(delays) < count:
        raise SystemExit(f"only {len(delays)} of {count} records came")
    return sorted(delays[WARM_UP:])


def send_slowly(bootstrap: str, count: int, partitions: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    begun = time.monotonic()
    for number in range(count):
        ahead = begun + number / DELAYED_PER_SECOND - time.monotonic()
        if ahead > 0:
            time.sleep(ahead)
        producer.produce(TOPIC, b"%d" % time.time_ns(), partition=number % partitions)
        producer.poll(0)
    producer.flush()


def report(found: Sequence[Figures], size: int, records: int) -> str:
    lines = [
        "| | MB/s | records/s | CPU s/GB | of the target's broker | memory | start | delay p50 | p99 |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for each in found:
        cuts = statistics.quantiles(each.delays_ms, n=100)
        lines.append(
            f"| {each.name} | {size / each.copy_s / 1e6:.0f} | {records / each.copy_s:,.0f} | "
            f"{each.cpu_s / size * 1e9:.1f} | {each.broker_cpu_s / size * 1e9:.1f} | {each.memory_mb:,.0f} MB | "
            f"{each.start_s:.1f} s, {each.start_cpu_s:.1f} s CPU | {cuts[49]:.0f} ms | {cuts[98]:.0f} ms |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=500, help="of records, before they are compressed")
    parser.add_argument("--record-bytes", type=int, default=1000)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--codec", default="lz4", choices=("none", "gzip", "snappy", "lz4", "zstd"))
    parser.add_argument("--seconds", type=int, default=20, help="of records that come one by one")
    parser.add_argument("--only", action="append", choices=[*PROGRAMS], help="may be repeated (default: all)")
    parser.add_argument("--folder", help="on the disk to use (default: a temporary one)")
    args = parser.parse_args()
    fetch_ecosystem()
    with tempfile.TemporaryDirectory(dir=args.folder, prefix="ottla-mirroring-") as text:
        folder = Path(text)
        with broker({"log.dirs": str(folder / "log")}) as source:
            cluster = shared_cluster(client_settings({"bootstrap.servers": source.bootstrap}))
            loop.run(admin.create_topic(cluster, TOPIC, partitions=args.partitions))
            fill(source.bootstrap, args.megabytes, args.record_bytes, args.partitions, args.codec)
            found = []
            for number, name in enumerate(args.only or PROGRAMS):
                records = ends_of(source.bootstrap, TOPIC, args.partitions, committed=True)
                found.append(measure(name, source.bootstrap, records, args, folder / str(number)))
    size, records = args.megabytes * 1_000_000, args.megabytes * 1_000_000 // args.record_bytes
    print(f"{args.megabytes} MB, {args.record_bytes} B records, {args.partitions} partitions, {args.codec}")
    print(report(found, size, records))


if __name__ == "__main__":
    main()
