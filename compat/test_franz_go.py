"""The Go client franz-go: its own test of consuming, transforming and producing in transactions, on three brokers.

Its variables say more: KGO_TEST_RECORDS (50,000 here, 500,000 in its own runs), KGO_LOG_LEVEL=debug.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from compat.peer.franz_go import compiled_tests
from compat.peer.program import program

from ottla.testing.cluster import RunningCluster, cluster

RECORDS = int(os.environ.get("KGO_TEST_RECORDS", "50000"))
SECONDS_MAX = 600 + RECORDS // 25
SETTINGS: dict[str, str | int | bool] = {
    "min.insync.replicas": 2,
    "offsets.topic.num.partitions": 3,
    "transaction.state.log.num.partitions": 3,
}


@pytest.fixture(scope="module")
def franz_go() -> Path:
    if shutil.which("go") is None:
        pytest.skip("go is not installed: the tests of franz-go were not run (install Go 1.26 or newer)")
    return compiled_tests()


@pytest.fixture
def three_brokers() -> Iterator[RunningCluster]:
    with cluster(3, settings=SETTINGS) as running:
        yield running


@pytest.mark.timeout(SECONDS_MAX + 300)
def test_transactions_etl(franz_go: Path, three_brokers: RunningCluster) -> None:
    """Chains of consumers that copy in transactions, with all assignors and both group protocols."""
    command = [str(franz_go), "-test.run", "^TestTxnEtl$", "-test.v", "-test.timeout", f"{SECONDS_MAX}s"]
    env = {
        "KGO_SEEDS": three_brokers.bootstrap,
        "KGO_TEST_RF": "3",
        "KGO_TEST_RECORDS": str(RECORDS),
        "KGO_LOG_LEVEL": os.environ.get("KGO_LOG_LEVEL", "none"),
    }
    with program("franz-go", command, env=env) as etl:
        code = etl.wait(SECONDS_MAX + 60)
    assert code == 0, etl.text
    assert "--- PASS: TestTxnEtl" in "\n".join(etl.lines), "franz-go has a test of that name, and it was run"
