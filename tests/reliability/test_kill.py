"""kill -9 under load: what was acknowledged is in the log once and in order, after every restart."""

import random
import time
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tests.chance import SEED, SOAK

from ottla.testing import RunningBroker, broker
from ottla.testing.ledger import Ledger, audit
from ottla.testing.load import LoadProducer, quiet, read_log
from ottla.testing.waiting import wait_until

ROUNDS = 50 if SOAK else 4
TOPIC = "ledger"
PARTITIONS = 6
PRODUCERS = 4
RECORDS_PER_SECOND = 4_000  # of each producer
RECORDS_PER_ROUND = 3_000  # of each producer

# Small segments and frequent checkpoints: kills then meet rolls and half-written checkpoints too.
SETTINGS = {
    "log.segment.bytes": 1_048_576,
    "log.flush.offset.checkpoint.interval.ms": 250,
    "log.flush.scheduler.interval.ms": 250,
}
CODECS = ("none", "lz4", "zstd", "none")


@pytest.fixture
def running() -> Iterator[RunningBroker]:
    with broker(SETTINGS) as started:
        admin = AdminClient({"bootstrap.servers": started.bootstrap}, logger=quiet)
        admin.create_topics([NewTopic(TOPIC, PARTITIONS)])[TOPIC].result(30)
        yield started


@pytest.mark.timeout(3600 if SOAK else 600)
def test_acknowledged_records_survive_kills_under_load(running: RunningBroker) -> None:
    chance = random.Random(SEED)
    ledger = Ledger()
    producers = [
        LoadProducer(
            running.bootstrap, TOPIC, PARTITIONS, number=number, ledger=ledger,
            records_per_second=RECORDS_PER_SECOND, allowed=0, client_settings={"compression.type": CODECS[number]},
        ).start()
        for number in range(PRODUCERS)
    ]  # fmt: skip
    restarts_ms: list[float] = []
    for number in range(ROUNDS):
        for producer in producers:
            producer.allow(RECORDS_PER_ROUND)
        # In the middle of the round's load: what is left of it goes on after the restart, beside the audit.
        _wait_for_more(
            ledger, chance.randrange(1, RECORDS_PER_ROUND * PRODUCERS * 3 // 4), f"load before kill {number}"
        )
        running.kill()
        promised = ledger.promised()
        begun = time.monotonic()
        running.restart()
        restarts_ms.append((time.monotonic() - begun) * 1000)
        result = audit(promised, read_log(running.bootstrap, TOPIC, PARTITIONS))
        assert result.clean, f"after kill {number} of seed {SEED}: {result}\n{running.log_text()[-4000:]}"
        assert not ledger.refusals, f"after kill {number} of seed {SEED}: {ledger.refusals[:5]}"
    everything = ROUNDS * RECORDS_PER_ROUND * PRODUCERS
    wait_until(lambda: ledger.total == everything, f"all of {everything} records are acknowledged", seconds=120)
    for producer in producers:
        producer.stop()
    result = audit(ledger.promised(), read_log(running.bootstrap, TOPIC, PARTITIONS))
    assert result.clean, f"seed {SEED}: {result}"
    assert not ledger.refusals, f"seed {SEED}: {ledger.refusals[:5]}"
    assert result.records_read == result.acknowledged, "nothing unacknowledged may be left when all producers are done"
    restarts_ms.sort()
    print(
        f"\n{ROUNDS} kills, seed {SEED}: {result.acknowledged:,} records acknowledged, {result.records_read:,} in the "
        f"log, {result.lost} lost, {result.doubled} twice, {result.out_of_order} out of order, {result.misplaced} "
        f"misplaced; restart median {restarts_ms[len(restarts_ms) // 2]:.0f} ms, longest {restarts_ms[-1]:.0f} ms"
    )


def _wait_for_more(ledger: Ledger, count: int, what: str) -> None:
    target = ledger.total + count
    wait_until(lambda: ledger.total >= target, f"{what}: {target} acknowledged", seconds=60)
