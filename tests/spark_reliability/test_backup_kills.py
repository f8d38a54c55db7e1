"""The long form of killed backups and restores: gigabytes, ten kills at random moments of each, on Spark."""

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
from tests.committed import committed
from tests.spark.feeding import create_topic

from ottla.client.offsets import delete_records
from ottla.client.settings import client_settings
from ottla.model.names import TopicPartition as At
from ottla.pipelines.backup.manifest import Kind
from ottla.spark import loop
from ottla.spark.connections import shared_cluster
from ottla.testing import broker
from ottla.testing.load import quiet

LONG = os.environ.get("OTTLA_SOAK") == "1"
MEGABYTES, KILLS = 2_000, 10
MAIN = "import sys; from ottla.cli.main import main; sys.exit(main())"
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
    values = [chance.randbytes(VALUE_BYTES // 2) * 2 for _ in range(200)]
    for begin in range(0, megabytes * 1_000, 5_000):
        if transactional:
            producer.begin_transaction()
        for number in range(begin, begin + 5_000):
            headers: list[tuple[str, bytes | None]] = [("n", b"%d" % number), ("none", None)]
            producer.produce(topic, values[number % 200], b"%d" % number, number % PARTITIONS, headers=headers)
            producer.poll(0)
        producer.flush()
        if transactional:
            producer.abort_transaction() if chance.random() < 0.2 else producer.commit_transaction()


def content_hash(bootstrap: str, topic: str, partition: int) -> tuple[int, str]:
    """Of all committed records in their order, without their offsets."""
    found, count = hashlib.sha256(), 0
    for record in committed(bootstrap, topic, partition):
        found.update(repr(record.content()).encode())
        count += 1
    return count, found.hexdigest()


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


def soak(kind: Kind, megabytes: int, kills: int, folder: Path, seed: int) -> tuple[int, int]:
    chance = random.Random(seed)
    with broker() as source, broker() as target:
        for topic, transactional in (("plain", False), ("transactional", True)):
            create_topic(source.bootstrap, topic, PARTITIONS)
            fill(source.bootstrap, topic, megabytes // 2, chance, transactional=transactional)
        cluster = shared_cluster(client_settings({"bootstrap.servers": source.bootstrap}))
        loop.run(delete_records(cluster, {At("transactional", 0): 777}))
        place, log = str(folder / "place"), folder / "commands.log"
        spark = ("--master", "local[2]", "--conf", "spark.driver.memory=768m")
        run = ("backup", "run", place, "--bootstrap-server", source.bootstrap, "--format", kind, *spark)
        taken = killed(run, kills, chance, log)
        assert killed(("backup", "verify", place, *spark), 0, chance, log) == 0
        restore = ("backup", "restore", place, "--bootstrap-server", target.bootstrap, "--hold-retention", *spark)
        restored = killed(restore, kills, chance, log)
        for topic in ("plain", "transactional"):
            for partition in range(PARTITIONS):
                theirs = content_hash(target.bootstrap, topic, partition)
                assert theirs == content_hash(source.bootstrap, topic, partition), (topic, partition)
        assert not re.findall("Traceback", log.read_text())
    return taken, restored


@pytest.mark.soak
@pytest.mark.skipif(not LONG, reason="make soak runs it")
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("kind", ["parquet", "raw"])
def test_killed_again_and_again_every_record_comes_back_once(kind: Kind, tmp_path: Path) -> None:
    started = time.monotonic()
    taken, restored = soak(kind, MEGABYTES, KILLS, tmp_path, 1)
    print(f"{kind}: killed {taken} times while taking, {restored} while restoring, {time.monotonic() - started:.0f} s")
    assert taken
    assert restored
