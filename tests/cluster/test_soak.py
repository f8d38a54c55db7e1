"""Faults of all kinds while a cluster is written to: the short form of tests/cluster/soak.py."""

import json
from pathlib import Path

import pytest
from tests.chance import SEED, SOAK
from tests.cluster.soak import Plan, in_rounds

FAULTS, WRITES, COPIES, ROUNDS = (100, 1_000_000, 100_000, 4) if SOAK else (3, 6_000, 250, 1)


@pytest.mark.timeout(7200 if SOAK else 600)
def test_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    """The clients are processes of their own: librdkafka may free the error text of a fenced producer twice."""
    plan = Plan(FAULTS, WRITES, COPIES, SEED, writes_per_second=3_000 if SOAK else 1_000)
    found = in_rounds(plan, ROUNDS, tmp_path)
    print(f"\n{json.dumps(found)}")
    assert found["clean"], f"seed {SEED}: {json.dumps(found)}; the brokers' logs are in {tmp_path}"
    assert sum(found["faults"].values()) == FAULTS
    assert found["acknowledged"] >= WRITES
    assert found["copies"] >= COPIES
