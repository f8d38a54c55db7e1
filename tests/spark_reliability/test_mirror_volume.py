"""Millions of records through a mirror: each as it was, in the order of its partition. `OTTLA_SOAK_RECORDS` of them."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from confluent_kafka import Producer
from tests.chance import SOAK
from tests.committed import content_hashes
from tests.pipelines.two_clusters import MAIN
from tests.spark.feeding import create_topic

from ottla.testing import broker
from ottla.testing.load import quiet

RECORDS = int(os.environ.get("OTTLA_SOAK_RECORDS", "1000000"))
TOPIC, PARTITIONS = "orders", 4
EARLY_MS = 1_700_000_000_000


def fill(bootstrap: str, records: int, value_bytes: int) -> None:
    """With keys, headers and times that are no use to anybody but to be compared; nulls among them."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "compression.type": "lz4"}, logger=quiet)
    pool = random.Random(value_bytes).randbytes(1 << 20) * 2
    headers: list[tuple[str, bytes | None]] = [("trace", b"7"), ("trace", None), ("", b"")]
    for number in range(records):
        at = number * 31 % (1 << 20)
        value = None if number % 1_000 == 0 else pool[at : at + value_bytes]
        key = None if number % 3 == 0 else b"%d" % number
        while True:
            try:
                producer.produce(
                    TOPIC, value, key, number % PARTITIONS, timestamp=EARLY_MS + number * 7 % 100_003,
                    headers=headers if number % 10 == 0 else None,
                )  # fmt: skip
                break
            except BufferError:
                producer.poll(0.05)
        if number % 1_000 == 0:
            producer.poll(0)
    assert producer.flush(120) == 0


@pytest.mark.soak
@pytest.mark.skipif(not SOAK, reason="takes minutes; make soak runs it")
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("value_bytes", [100, 1_000])
def test_every_record_arrives_as_it_was(value_bytes: int, tmp_path: Path) -> None:
    with broker() as east, broker() as west:
        create_topic(east.bootstrap, TOPIC, PARTITIONS, {"retention.ms": "-1"})  # its times are of years ago
        fill(east.bootstrap, RECORDS, value_bytes)
        path = tmp_path / "mirror.yaml"
        clusters = {name: {"bootstrap": each.bootstrap} for name, each in (("east", east), ("west", west))}
        flow = {"from": "east", "to": "west", "topics": TOPIC, "provenance": False, "heartbeats": False}
        limits = {"max_records": 1_000_000}
        path.write_text(yaml.safe_dump({"name": "m", "clusters": clusters, "flows": [flow], "limits": limits}))
        words = ("mirror", str(path), "--once", "--state-dir", str(tmp_path / "state"), "--master", "local[2]")
        began = time.monotonic()
        subprocess.run([sys.executable, "-c", MAIN, *words], check=True)
        print(f"\n{RECORDS:,} records of {value_bytes} B mirrored in {time.monotonic() - began:.0f} s")
        began = time.monotonic()
        copies = [(west.bootstrap, f"east.{TOPIC}", number) for number in range(PARTITIONS)]
        originals = [(east.bootstrap, TOPIC, number) for number in range(PARTITIONS)]
        found = content_hashes(copies + originals)
        print(f"all of them read on both sides in {time.monotonic() - began:.0f} s")
        assert found[:PARTITIONS] == found[PARTITIONS:]
        assert sum(count for count, _ in found[:PARTITIONS]) == RECORDS
