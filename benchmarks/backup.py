"""Backup and restore in MB/s, beside a copy of the log's files on the same disk and beside a plain consumer.

One run: a broker, a topic with records, then each of them once. MB are those of the log, whatever they become in
objects; Spark is started and warmed up before, and its start is shown apart.

With `--s3` backups go to a server with the S3 API on this machine, and its own speed is measured beside them.

Run: python -m benchmarks.backup [--megabytes N] [--record-bytes N] [--partitions N] [--codec NAME] [--s3]
"""

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition
from tests.own_speeds import disk_speed, store_speeds
from tests.pipelines.s3_server import s3_server

from ottla.client import admin
from ottla.client.settings import client_settings
from ottla.pipelines.backup.catalogue import read_catalogue
from ottla.pipelines.backup.manifest import Kind
from ottla.pipelines.backup.restore_plan import RestoreRequest
from ottla.pipelines.backup.restoring import RestoreOptions, plan_restore, run_restore
from ottla.pipelines.backup.running import OpenTasks, RunOptions, run_backup
from ottla.pipelines.backup.store import Place, place_of
from ottla.pipelines.backup.verifying import verify
from ottla.pipelines.backup.work import OnSpark, Tasks
from ottla.pipelines.connectors.objects.store import S3Access
from ottla.spark import loop
from ottla.spark.connections import shared_cluster
from ottla.spark.session import build_session
from ottla.testing import broker

TOPIC = "bench"
BUCKET = "bench"


class Line(NamedTuple):
    what: str
    seconds: float


class Quiet:
    def begin(self, what: str, parts: int, bytes_: int) -> None: ...

    def moved(self, *, records: int, bytes_: int) -> None: ...

    def say(self, text: str) -> None: ...


def fill(bootstrap: str, megabytes: int, record_bytes: int, partitions: int, codec: str) -> int:
    chance = random.Random(1)
    # Half of each value compresses, half does not: about what JSON with ids does.
    pool, half = chance.randbytes(8 << 20), record_bytes // 2
    tail = b"x" * (record_bytes - half)
    settings = {"bootstrap.servers": bootstrap, "linger.ms": 20, "batch.size": 262_144, "compression.type": codec}
    producer = Producer(settings)
    records = megabytes * 1_000_000 // record_bytes
    for number in range(records):
        while True:
            try:
                at = chance.randrange(len(pool) - half)
                producer.produce(TOPIC, pool[at : at + half] + tail, b"%d" % number, number // 1000 % partitions)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()
    return records


def read_all(bootstrap: str, partitions: int, records: int) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", "enable.auto.commit": False})
    consumer.assign([TopicPartition(TOPIC, number, 0) for number in range(partitions)])
    left = records
    while left > 0:
        left -= len(consumer.consume(100_000, 1.0))
    consumer.close()


def timed(what: str, work: Callable[[], object]) -> Line:
    started = time.perf_counter()
    work()
    line = Line(what, time.perf_counter() - started)
    print(f"  {line.what}: {line.seconds:.1f} s", file=sys.stderr, flush=True)
    return line


def measure(args: argparse.Namespace, folder: Path, access: S3Access | None) -> tuple[int, list[Line]]:
    with broker({"log.dirs": str(folder / "log")}) as running:
        bootstrap = running.bootstrap
        cluster = shared_cluster(client_settings({"bootstrap.servers": bootstrap}))
        loop.run(admin.create_topic(cluster, TOPIC, partitions=args.partitions))
        records = fill(bootstrap, args.megabytes, args.record_bytes, args.partitions, args.codec)
        files = sorted(folder.glob(f"log/{TOPIC}-*/*.log"))
        size = sum(path.stat().st_size for path in files)
        own = [disk_speed(files, folder / "copy")]
        if access is not None:
            own += store_speeds(place_of(f"s3://{BUCKET}/own", access), size)
        lines = [Line(each.what, each.seconds * size / each.bytes) for each in own]
        lines.append(timed("plain consumer (librdkafka)", lambda: read_all(bootstrap, args.partitions, records)))
        begun = time.perf_counter()
        spark = build_session("bench", args.master, {}, short_lived=True)
        lines.append(Line("start of Spark", time.perf_counter() - begun))
        tasks = OnSpark(spark)

        @contextmanager
        def open_tasks(_: int) -> Iterator[Tasks]:
            yield tasks

        kinds: tuple[Kind, ...] = ("raw", "parquet")
        warm_up(bootstrap, folder, open_tasks)
        for kind in kinds:
            place = place_of(str(folder / kind) if access is None else f"s3://{BUCKET}/{kind}", access)
            options = RunOptions(place, {"bootstrap.servers": bootstrap}, TOPIC, kind=kind)
            lines.append(timed(f"backup, {kind}", lambda options=options: run_backup(options, open_tasks, Quiet())))  # type: ignore[misc]
            restore(place, kind, bootstrap, records, open_tasks, lines)
            shutil.rmtree(folder / kind, ignore_errors=True)
            for prefix in (kind, f"{kind}.unchecked"):
                loop.run(admin.delete_topic(cluster, f"{prefix}.{TOPIC}"))
        spark.stop()
    return size, lines


def warm_up(bootstrap: str, folder: Path, open_tasks: OpenTasks) -> None:
    """Workers have loaded what they need: the first tasks of a session cost a second more."""
    cluster = shared_cluster(client_settings({"bootstrap.servers": bootstrap}))
    loop.run(admin.create_topic(cluster, "warm", partitions=4))
    producer = Producer({"bootstrap.servers": bootstrap})
    for partition in range(4):
        producer.produce("warm", b"x", partition=partition)
    producer.flush()
    options = RunOptions(place_of(str(folder / "warm")), {"bootstrap.servers": bootstrap}, "warm")
    manifest = run_backup(options, open_tasks, Quiet())
    assert manifest is not None
    back = RestoreOptions(options.place, options.client, RestoreRequest(prefix="up."))
    run_restore(back, plan_restore(back, manifest), open_tasks, Quiet())


def restore(place: Place, kind: str, bootstrap: str, records: int, open_tasks: OpenTasks, lines: list[Line]) -> None:
    (manifest,) = read_catalogue(place).manifests
    assert manifest.records == records
    lines.append(timed(f"verify, {kind}", lambda: verify(place, [manifest], open_tasks, Quiet())))
    options = RestoreOptions(place, {"bootstrap.servers": bootstrap}, RestoreRequest(prefix=f"{kind}."))
    plan = plan_restore(options, manifest)
    lines.append(timed(f"restore, {kind}", lambda: run_restore(options, plan, open_tasks, Quiet())))
    quick = options._replace(request=RestoreRequest(prefix=f"{kind}.unchecked."), unchecked=True)
    again = plan_restore(quick, manifest)
    lines.append(timed(f"restore, {kind}, --unchecked", lambda: run_restore(quick, again, open_tasks, Quiet())))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--record-bytes", type=int, default=1000)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--codec", default="none", choices=("none", "gzip", "snappy", "lz4", "zstd"))
    parser.add_argument("--master", default="local[*]")
    parser.add_argument("--s3", action="store_true", help="to a server with the S3 API instead of a folder")
    parser.add_argument("--folder", help="on the disk to measure (default: a temporary one)")
    args = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(dir=args.folder, prefix="ottla-backup-") as folder,
        s3_server(BUCKET) if args.s3 else nullcontext() as access,
    ):
        size, lines = measure(args, Path(folder), access)
    copied = size / lines[0].seconds
    print(f"{size / 1e6:.0f} MB of log, {args.partitions} partitions, {args.record_bytes} B records, {args.codec}")
    print("| | seconds | MB/s | of the copy |\n|---|---|---|---|")
    for line in lines:
        if line.what.startswith("start"):
            print(f"| {line.what} | {line.seconds:.1f} | | |")
        else:
            rate = size / line.seconds
            print(f"| {line.what} | {line.seconds:.1f} | {rate / 1e6:.0f} | {rate / copied:.2f} |")


if __name__ == "__main__":
    main()
