"""Exactly once while the broker is killed, paused and restarted: the short form of tests/transactions/soak.py."""

from collections.abc import Iterator

import pytest
from tests.chance import SEED, SOAK
from tests.transactions.checker import summary
from tests.transactions.soak import SETTINGS, Plan, judge, run

from ottla.testing import RunningBroker, broker

OPERATIONS, KILLS = (500_000, 50) if SOAK else (6_000, 2)


@pytest.fixture
def tormented() -> Iterator[RunningBroker]:
    with broker(SETTINGS) as running:
        yield running


@pytest.mark.timeout(3600 if SOAK else 600)
@pytest.mark.parametrize("group_protocol", ["classic", "consumer"])
def test_no_anomaly_under_kills(tormented: RunningBroker, group_protocol: str) -> None:
    done = run(tormented, Plan(OPERATIONS, KILLS, SEED, group_protocol=group_protocol))
    print(f"\n{done.figures()}")
    anomalies = judge(done)
    assert not anomalies, f"seed {SEED}:\n{summary(anomalies)}\n{tormented.log_text()[-4000:]}"
    assert done.recorder.operations >= OPERATIONS
    assert done.kills == KILLS
