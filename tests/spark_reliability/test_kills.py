"""The short form of the soak: a pipeline on a standalone cluster of two workers loses an executor. See `soak`."""

from pathlib import Path

import pytest
from tests.chance import SOAK
from tests.spark_reliability.soak import soak
from tests.spark_reliability.world import Payments

PAYMENTS, KILLS, BATCH = (Payments(1_000_000, 20), 20, 20_000) if SOAK else (Payments(5_000, 2), 1, 2_500)


@pytest.mark.timeout(3_600 if SOAK else 900)
def test_a_cluster_that_loses_executors_writes_everything_once(tmp_path: Path) -> None:
    report = soak("executor", KILLS, PAYMENTS, BATCH, 1, tmp_path)
    assert report.kills == KILLS
    assert report.wrong == {}


@pytest.mark.soak
@pytest.mark.skipif(not SOAK, reason="make soak runs it")
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("target", ["driver", "broker"])
def test_kills_leave_every_record_once(target: str, tmp_path: Path) -> None:
    report = soak(target, KILLS, PAYMENTS, BATCH, 1, tmp_path)
    assert report.kills == KILLS
    assert report.wrong == {}
