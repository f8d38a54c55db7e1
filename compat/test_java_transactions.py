"""Transactions of version 2 without a pause: the Java producer on three brokers, all of them leaders and coordinators.

OTTLA_TEST_TRANSACTIONS says how many, OTTLA_TEST_KILLS how many brokers are killed meanwhile.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from compat.peer.program import own_java_command, program
from confluent_kafka.admin import NewTopic

from ottla.testing.cluster import RunningCluster, cluster

BROKERS = 3
PRODUCERS = 3
TRANSACTIONS = int(os.environ.get("OTTLA_TEST_TRANSACTIONS", "2000"))
KILLS = int(os.environ.get("OTTLA_TEST_KILLS", "0"))
TOLD_EVERY = 50  # as BackToBackCheck does
# A busy machine does more than five transactions a second; after a kill they wait for a session to end.
SECONDS_MAX = 120 + TRANSACTIONS / 5 + 120 * KILLS
# Each coordinator is another broker: three partitions of the state topic, and the program chooses ids to fit.
SETTINGS: dict[str, str | int | bool] = {
    "min.insync.replicas": 2,
    "transaction.state.log.num.partitions": 3,
    "transaction.max.timeout.ms": 900_000,
}


@pytest.fixture
def three_brokers() -> Iterator[RunningCluster]:
    with cluster(BROKERS, settings=SETTINGS) as running:
        yield running


@pytest.fixture
def topic(three_brokers: RunningCluster, unique: Callable[[str], str]) -> str:
    """A partition led by each broker."""
    name = unique("back-to-back")
    three_brokers.create_topic(NewTopic(name, BROKERS, BROKERS))
    three_brokers.wait_until_settled()
    leaders = {three_brokers.leader_of(name, number) for number in range(BROKERS)}
    assert leaders == set(three_brokers.brokers), "every broker leads a partition"
    return name


@pytest.mark.timeout(SECONDS_MAX + 300)
def test_back_to_back_transactions(three_brokers: RunningCluster, topic: str, java_classes: Path) -> None:
    """Every committed record is there once and in order, no aborted one is seen, and no producer fails."""
    arguments = (topic, str(TRANSACTIONS), str(PRODUCERS), "killed" if KILLS else "calm")
    command = own_java_command(
        "Check", three_brokers.bootstrap, "transactions-back-to-back", *arguments, classes=java_classes
    )
    with program("the Java producers", command) as producers:
        for kill in range(1, KILLS + 1):
            wanted = TRANSACTIONS * kill // (KILLS + 1) // TOLD_EVERY
            producers.wait_for(f"{wanted * TOLD_EVERY} transactions", "ended ", times=wanted, seconds=SECONDS_MAX)
            victim = three_brokers.brokers[1 + kill % BROKERS]
            victim.kill()
            producers.wait_for("the producers go on", "ended ", times=wanted + 2, seconds=120)
            victim.start()
            three_brokers.wait_until_settled()
        assert producers.wait(SECONDS_MAX) == 0, producers.text
        assert producers.lines[-1] == "passed", producers.text
