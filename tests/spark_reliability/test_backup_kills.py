"""The long form of killed backups and restores: gigabytes to a bucket and back, ten kills of each, on Spark.

OTTLA_SOAK=1 OTTLA_SOAK_MEGABYTES=10000 python -m pytest -s tests/spark_reliability/test_backup_kills.py

The kills are spread over the way: each comes when so much is there. Damage is looked for before the restore.
"""

import hashlib
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

import pytest
from tests.chance import SOAK
from tests.committed import Partition, content_hashes
from tests.own_speeds import Speed, disk_speed, store_speeds
from tests.pipelines.s3_server import s3_server
from tests.pipelines.standbys import raw
from tests.pipelines.two_clusters import MAIN
from tests.spark_reliability.backup_topics import CLEANING, GROUP, PARTITIONS, TOPICS, files_of, prepare, size_of

from ottla.client.cluster import Cluster
from ottla.client.groups import group_offsets
from ottla.client.settings import client_settings
from ottla.model.names import TopicPartition as At
from ottla.pipelines.backup import store
from ottla.pipelines.backup.catalogue import read_catalogue
from ottla.pipelines.backup.manifest import Kind
from ottla.pipelines.backup.naming import manifest_path
from ottla.pipelines.backup.store import Place, place_of
from ottla.pipelines.connectors.objects.store import S3Access
from ottla.spark import loop
from ottla.spark.connections import shared_cluster
from ottla.testing import broker
from ottla.testing.waiting import wait_until

MEGABYTES = int(os.environ.get("OTTLA_SOAK_MEGABYTES", "2000"))
KILLS = int(os.environ.get("OTTLA_SOAK_KILLS", "10"))
FOLDER = os.environ.get("OTTLA_SOAK_FOLDER")
BUCKET = "backups"
OWN_BYTES = 512 << 20
STEP_S_MAX = 1_500.0
LAST_KILL = 0.85
"""Of the way: what is restored from Parquet is smaller than the log was, by aborted transactions."""


@dataclass
class Commands:
    """Commands of one place: killed on their way, or let alone. What they say goes to a file."""

    place: Sequence[str]
    log: Path
    chance: random.Random
    speeds: list[str] = field(default_factory=list)

    def killed(self, words: Sequence[str], progress: Callable[[], float]) -> int:
        """Kill it KILLS times, the first time soon after its start, and let it end. How often it was killed."""
        slices = [(number + self.chance.random()) / KILLS * LAST_KILL for number in range(1, KILLS)]
        for done, moment in enumerate([0.0, *slices][:KILLS]):
            process = self._started(words)
            not_before = time.monotonic() + (self.chance.uniform(3.0, 12.0) if not done else 0.0)

            def is_there(
                process: "subprocess.Popen[bytes]" = process, moment: float = moment, after: float = not_before
            ) -> bool:
                ended = process.poll() is not None
                return ended or (time.monotonic() > after and progress() >= moment)

            try:
                wait_until(is_there, f"{words[0]} is at {moment:.0%}", seconds=STEP_S_MAX, pause=0.25)
                if process.poll() is not None:
                    assert process.returncode == 0, self.said()
                    return done
            finally:
                _kill(process)
        assert self.run(words) == 0, self.said()
        return KILLS

    def run(self, words: Sequence[str]) -> int:
        process = self._started(words)
        try:
            return process.wait(STEP_S_MAX)
        finally:
            _kill(process)

    def said(self) -> str:
        return self.log.read_text()[-3_000:]

    def _started(self, words: Sequence[str]) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-c", MAIN, "backup", words[0], *self.place, *words[1:]]
        with self.log.open("ab") as output:
            return subprocess.Popen(
                command, stdout=output, stderr=output, stdin=subprocess.DEVNULL, start_new_session=True
            )


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """With all that it started; nothing happens to one that has ended."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def log_hash(bootstrap: str, topic: str, partition: int) -> tuple[int, str]:
    """Of the batches as they lie in the log, but for the leader's epoch, which is each cluster's own."""
    found = hashlib.sha256()
    batches = raw(_cluster(bootstrap), At(topic, partition))
    for batch in batches:
        found.update(batch)
    return len(batches), found.hexdigest()


def log_hashes(wanted: Sequence[Partition]) -> list[tuple[int, str]]:
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        return [*pool.map(log_hash, *zip(*wanted, strict=True))]


def refuse_damage(commands: Commands, place: Place, spark: Sequence[str], restore: Sequence[str]) -> None:
    """A flipped byte, a missing object, a manifest that was cut short: found by verify, refused by restore."""
    (manifest,) = read_catalogue(place).manifests
    objects = [stored.path for _, stored in manifest.objects()]
    # An early one is flipped: a restore that reads everything first comes to it soon.
    flipped, missing = commands.chance.choice(objects[:4]), commands.chance.choice(objects[4:])
    contents = {path: store.read(place, path) for path in (flipped, missing, manifest_path(manifest.id))}
    damaged = bytearray(contents[flipped])
    damaged[commands.chance.randrange(len(damaged))] ^= 1 << commands.chance.randrange(8)
    store.write(place, flipped, bytes(damaged))
    store.delete(place, missing)
    assert commands.run(restore) == 1
    assert re.search(f"nothing was restored: {re.escape(missing)} is missing", commands.said()), commands.said()
    size = sum(stored.bytes for _, stored in manifest.objects())
    began = time.perf_counter()
    assert commands.run(("verify", *spark)) == 1
    commands.speeds.append(str(Speed("verify, start of Spark included", size, time.perf_counter() - began)))
    said = commands.said()
    assert re.search(f"{re.escape(flipped)} fails its checksum", said), said
    assert re.search(f"{re.escape(missing)} is missing", said), said
    assert said.rstrip().endswith(": 2 problems"), said
    store.write(place, missing, contents[missing])
    assert commands.run(restore) == 1
    assert re.search(f"nothing was restored: {re.escape(flipped)} fails its checksum", commands.said())
    store.write(place, flipped, contents[flipped])
    path = manifest_path(manifest.id)
    store.write(place, path, contents[path][: len(contents[path]) // 2])
    for words in (("verify", *spark), restore):
        assert commands.run(words) == 1
    store.write(place, path, contents[path])


def soak(kind: Kind, megabytes: int, folder: Path, seed: int, access: S3Access) -> list[str]:
    chance = random.Random(seed)
    logs, copies = folder / "source", folder / "target"
    place = place_of(f"s3://{BUCKET}/kafka", access)
    words = (f"s3://{BUCKET}/kafka", "--s3-endpoint", access.endpoint or "")
    commands = Commands(words, folder / "commands.log", chance)
    spark = ("--master", "local[2]", "--conf", "spark.driver.memory=768m")
    with broker({"log.dirs": str(logs), **CLEANING}) as source, broker({"log.dirs": str(copies)}) as target:
        prepare(source.bootstrap, logs, megabytes, chance)
        size = size_of(logs)
        commands.speeds.append(f"{kind}: {size / 1e6:,.0f} MB of log")
        speeds = [disk_speed(files_of(logs), folder / "copy", OWN_BYTES)]
        speeds += store_speeds(place_of(f"s3://{BUCKET}/own", access), OWN_BYTES)
        commands.speeds += map(str, speeds)

        def taken() -> float:
            return sum(stored.bytes for stored in store.listed(place, "data")) / size

        began = time.perf_counter()
        kills = commands.killed(("run", "--bootstrap-server", source.bootstrap, "--format", kind, *spark), taken)
        took = Speed(f"backup, killed {kills} times", size, time.perf_counter() - began)
        commands.speeds.append(str(took))
        assert kills == KILLS
        restore = ("restore", "--bootstrap-server", target.bootstrap, "--hold-retention", *spark)
        refuse_damage(commands, place, spark, restore)
        assert not size_of(copies), "what was refused left nothing behind"
        began = time.perf_counter()
        kills = commands.killed(restore, lambda: size_of(copies) / size)
        took = Speed(f"restore, killed {kills} times", size, time.perf_counter() - began)
        commands.speeds.append(str(took))
        assert kills == KILLS
        commands.speeds.append(compare(kind, source.bootstrap, target.bootstrap))
        assert not re.findall("Traceback", commands.log.read_text())
    return commands.speeds


def compare(kind: Kind, source: str, target: str) -> str:
    places = [(topic, number) for topic in TOPICS for number in range(PARTITIONS)]
    wanted = [(bootstrap, *place) for bootstrap in (source, target) for place in places]
    began = time.perf_counter()
    found = log_hashes(wanted) if kind == "raw" else content_hashes(wanted, offsets=True)
    for place, before, after in zip(places, found, found[len(places) :], strict=False):
        assert before == after, place
        assert before[0], place
    groups = [loop.run(group_offsets(_cluster(bootstrap), GROUP)) for bootstrap in (source, target)]
    assert groups[0] == groups[1]
    assert groups[0]
    count = sum(count for count, _ in found[: len(places)])
    what = "batches, byte for byte" if kind == "raw" else "records with their offsets"
    return f"{count:,} {what}: equal, compared in {time.perf_counter() - began:.0f} s"


def _cluster(bootstrap: str) -> Cluster:
    return shared_cluster(client_settings({"bootstrap.servers": bootstrap}))


@pytest.mark.soak
@pytest.mark.skipif(not SOAK, reason="make soak runs it")
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("kind", ["raw", "parquet"])
def test_killed_again_and_again_everything_comes_back_from_a_bucket(
    kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Raw batches byte for byte, Parquet record for record."""
    with tempfile.TemporaryDirectory(prefix="ottla-soak-", dir=FOLDER) as folder, s3_server(BUCKET) as access:
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", access.access_key or "")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", access.secret_key or "")
        # The server takes twice as long to read bodies that come in chunks with a checksum behind them.
        monkeypatch.setenv("AWS_REQUEST_CHECKSUM_CALCULATION", "when_required")
        began = time.monotonic()
        for line in soak(kind, MEGABYTES, Path(folder), 1, access):
            print(line)
    print(f"{kind}: {time.monotonic() - began:.0f} s in all")
