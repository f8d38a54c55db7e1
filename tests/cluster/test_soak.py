"""Faults of all kinds while a cluster is written to: the short form of tests/cluster/soak.py."""

import os
import time

import pytest
from tests.cluster.soak import SETTINGS, Plan, run

from ottla.testing.cluster import cluster
from ottla.testing.zookeeper import ZooKeeperEnsemble

SOAK = os.environ.get("OTTLA_SOAK") == "1"
SEED = int(os.environ.get("OTTLA_SEED", time.time_ns() % 1_000_000_007))
FAULTS, WRITES, COPIES = (100, 1_000_000, 100_000) if SOAK else (4, 12_000, 500)


@pytest.mark.timeout(7200 if SOAK else 240)
def test_nothing_acknowledged_is_lost(ensemble: ZooKeeperEnsemble) -> None:
    with cluster(3, settings=SETTINGS, zookeeper=ensemble, cuttable=True) as running:
        result = run(running, Plan(FAULTS, WRITES, COPIES, SEED, writes_per_second=3_000 if SOAK else 1_000))
        print(f"\n{result.to_json()}")
        logs = "\n".join(each.log_text()[-2000:] for each in running.brokers.values())
    assert result.clean, f"seed {SEED}: {result.to_json()}\n{logs}"
    assert sum(result.faults.values()) == FAULTS
    assert result.acknowledged >= WRITES
    assert result.copies >= COPIES
