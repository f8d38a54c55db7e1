"""The long form of killed backups and restores: gigabytes to a bucket and back, ten kills of each, on Spark."""

import hashlib
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.committed import content_hash
from tests.pipelines.s3_server import s3_server
from tests.pipelines.standbys import raw
from tests.pipelines.two_clusters import MAIN
from tests.spark.feeding import create_topic

from ottla.client import admin
from ottla.client.admin import Resource, ResourceType
from ottla.client.offsets import delete_records
from ottla.client.settings import client_settings
from ottla.model.names import TopicPartition as At
from ottla.pipelines.backup.manifest import Kind
from ottla.pipelines.connectors.objects.store import S3Access
from ottla.spark import loop
from ottla.spark.connections import shared_cluster
from ottla.testing import broker
from ottla.testing.load import quiet
from ottla.testing.waiting import wait_until

LONG = os.environ.get("OTTLA_SOAK") == "1"
MEGABYTES, KILLS = int(os.environ.get("OTTLA_SOAK_MEGABYTES", "2000")), 10
BUCKET = "backups"
PARTITIONS = 4
VALUE_BYTES = 1_000


def fill(bootstrap: str, topic: str, megabytes: int, chance: random.Random, *, transactional: bool) -> None:
    settings: dict[str, str | int | float | bool] = {
        "bootstrap.servers": bootstrap, "linger.ms": 10, "compression.type": "lz4", "batch.size": 200_000,
    }  # fmt: skip
    if transactional:
        settings["transactional.id"] = topic
    producer = Producer(settings, logger=quiet)
    if transactional:
        producer.init_transactions()
    pool, half = chance.randbytes(8 << 20), VALUE_BYTES // 2
    for begin in range(0, megabytes * 1_000, 5_000):
        if transactional:
            producer.begin_transaction()
        for number in range(begin, begin + 5_000):
            headers: list[tuple[str, bytes | None]] = [("n", b"%d" % number), ("none", None)]
            at = chance.randrange(len(pool) - half)
            producer.produce(topic, pool[at : at + half] * 2, b"%d" % number, number % PARTITIONS, headers=headers)
            producer.poll(0)
        producer.flush()
        if transactional:
            producer.abort_transaction() if chance.random() < 0.2 else producer.commit_transaction()


def killed(command: Sequence[str], kills: int, chance: random.Random, log: Path) -> int:
    """Run a command and kill it at random moments, so often at most; then let it end. How often it was killed."""
    for done in range(kills + 1):
        with log.open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, "-c", MAIN, *command], stdout=output, stderr=output, stdin=subprocess.DEVNULL,
                start_new_session=True,
            )  # fmt: skip
        try:
            code = process.wait(None if done == kills else chance.uniform(3.0, 12.0))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            continue
        assert code == 0, log.read_text()[-3000:]
        return done
    raise AssertionError("the last run is not killed")


def prepare(bootstrap: str, megabytes: int, chance: random.Random) -> None:
    """A plain topic, one with transactions, one that has expired in part, one that was compacted."""
    for topic, transactional in (("plain", False), ("transactional", True), ("expiring", False)):
        create_topic(bootstrap, topic, PARTITIONS)
        fill(bootstrap, topic, megabytes // 4, chance, transactional=transactional)
    cluster = shared_cluster(client_settings({"bootstrap.servers": bootstrap}))
    loop.run(delete_records(cluster, {At("transactional", 0): 777, At("expiring", 1): megabytes * 10}))
    compact = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.bytes": str(1 << 20)}
    create_topic(bootstrap, "compacted", PARTITIONS, compact)
    for _ in range(2):  # the same keys again
        fill(bootstrap, "compacted", megabytes // 8, chance, transactional=False)
    wait_until(
        lambda: content_hash(bootstrap, "compacted", 0)[0] < megabytes * 55, "the cleaner was there", seconds=300
    )
    # From here on it stays as it is, so that there is something to compare with.
    alone = Resource(ResourceType.TOPIC, "compacted")
    loop.run(admin.alter_configs(cluster, alone, add={"cleanup.policy": "delete", "retention.ms": "-1"}))


def log_hash(bootstrap: str, topic: str, partition: int) -> tuple[int, str]:
    """Of the batches as they lie in the log, but for the leader's epoch, which is each cluster's own."""
    found = hashlib.sha256()
    batches = raw(shared_cluster(client_settings({"bootstrap.servers": bootstrap})), At(topic, partition))
    for batch in batches:
        found.update(batch)
    return len(batches), found.hexdigest()


def soak(kind: Kind, megabytes: int, kills: int, folder: Path, seed: int, access: S3Access) -> tuple[int, int]:
    chance = random.Random(seed)
    with broker({"log.cleaner.backoff.ms": "500"}) as source, broker() as target:
        prepare(source.bootstrap, megabytes, chance)
        log = folder / "commands.log"
        os.environ |= {"AWS_ACCESS_KEY_ID": access.access_key or "", "AWS_SECRET_ACCESS_KEY": access.secret_key or ""}
        place = (f"s3://{BUCKET}/kafka", "--s3-endpoint", access.endpoint or "")
        spark = ("--master", "local[2]", "--conf", "spark.driver.memory=768m")
        run = ("backup", "run", *place, "--bootstrap-server", source.bootstrap, "--format", kind, *spark)
        taken = killed(run, kills, chance, log)
        assert killed(("backup", "verify", *place, *spark), 0, chance, log) == 0
        restore = ("backup", "restore", *place, "--bootstrap-server", target.bootstrap, "--hold-retention", *spark)
        restored = killed(restore, kills, chance, log)
        compare = log_hash if kind == "raw" else content_hash
        for topic in ("plain", "transactional", "expiring", "compacted"):
            for partition in range(PARTITIONS):
                theirs = compare(target.bootstrap, topic, partition)
                assert theirs == compare(source.bootstrap, topic, partition), (topic, partition)
                assert theirs[0]
        assert not re.findall("Traceback", log.read_text())
    return taken, restored


@pytest.mark.soak
@pytest.mark.skipif(not LONG, reason="make soak runs it")
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("kind", ["parquet", "raw"])
def test_killed_again_and_again_everything_comes_back_from_a_bucket(kind: Kind, tmp_path: Path) -> None:
    """Raw batches byte for byte, Parquet record for record."""
    started = time.monotonic()
    with s3_server(BUCKET) as access:
        taken, restored = soak(kind, MEGABYTES, KILLS, tmp_path, 1, access)
    print(f"{kind}: killed {taken} times while taking, {restored} while restoring, {time.monotonic() - started:.0f} s")
    assert taken
    assert restored
