"""Brokers die, stall and come back under load: everything acknowledged is there once, in order, at its offset."""

import threading
from collections.abc import Callable

from tests.cluster.traffic import Traffic

from ottla.testing.cluster import RunningCluster
from ottla.testing.waiting import wait_until

SESSION_SECONDS = 3.0
PAUSE_SECONDS = 5.0


def test_a_killed_leader_is_replaced(three_brokers: RunningCluster, unique: Callable[[str], str]) -> None:
    with Traffic(three_brokers, unique("leader")) as traffic:
        old = three_brokers.leader_of(traffic.topic)
        three_brokers.brokers[old].kill()
        traffic.wait_for_each_partition()
        assert three_brokers.leader_of(traffic.topic) != old
        three_brokers.brokers[old].start()
        three_brokers.wait_until_settled()
        traffic.wait_for_each_partition()
        traffic.finish()
        print(f"\nlongest gap of a partition: {traffic.ledger.longest_gap_of_a_partition:.2f} s")


def test_a_killed_controller_is_replaced(three_brokers: RunningCluster, unique: Callable[[str], str]) -> None:
    with Traffic(three_brokers, unique("controller")) as traffic:
        old = three_brokers.controller_id()
        three_brokers.brokers[old].kill()
        new = three_brokers.controller_id()
        assert new != old
        # The new one does its work: partitions of the one that died get leaders, and topics can be made.
        traffic.wait_for_each_partition()
        three_brokers.brokers[old].start()
        three_brokers.wait_until_settled()
        traffic.finish()


def test_a_rolling_restart_is_not_noticed(three_brokers: RunningCluster, unique: Callable[[str], str]) -> None:
    """Each broker stops in order under load: it hands over first, so that no client sees more than a short wait."""
    with Traffic(three_brokers, unique("rolling")) as traffic:
        for broker in three_brokers.brokers.values():
            before = len(broker.log_text())
            assert broker.stop() == 0
            said = broker.log_text()[before:]
            # While it still answered: nobody had to wait for the end of its session, which would elect others too.
            assert "Controlled shutdown: moved leadership of" in said, said
            assert "Controlled shutdown not complete" not in said
            traffic.wait_for_each_partition()
            broker.start()
            three_brokers.wait_until_settled()
        traffic.wait_for_each_partition()
        print(f"\nlongest gap of a partition: {traffic.ledger.longest_gap_of_a_partition:.2f} s")
        traffic.finish()


def test_a_broker_with_an_empty_disk_is_filled_again(
    three_brokers: RunningCluster, unique: Callable[[str], str]
) -> None:
    with Traffic(three_brokers, unique("replaced")) as traffic:
        victim = three_brokers.leader_of(traffic.topic)
        three_brokers.replace(victim)
        traffic.wait_for_each_partition()
        three_brokers.wait_until_settled()
        # It has everything: the others can go.
        for number in three_brokers.brokers:
            if number != victim:
                three_brokers.brokers[number].stop()
                three_brokers.brokers[number].start()
                three_brokers.wait_until_settled()
        traffic.finish()


def test_a_paused_broker_is_fenced_and_comes_back(three_brokers: RunningCluster, unique: Callable[[str], str]) -> None:
    """It sleeps for longer than its session; when it wakes it must not believe that it leads."""
    with Traffic(three_brokers, unique("paused")) as traffic:
        sleeper = three_brokers.leader_of(traffic.topic)
        three_brokers.brokers[sleeper].pause()

        def elected() -> bool:
            found = three_brokers.partitions_if_told(traffic.topic).values()  # the sleeper may be asked, and is silent
            return bool(found) and all(each.leader != sleeper for each in found)

        wait_until(elected, "others lead", seconds=30)
        threading.Event().wait(PAUSE_SECONDS - SESSION_SECONDS)
        three_brokers.brokers[sleeper].resume()
        traffic.wait_for_each_partition()
        three_brokers.wait_until_settled()
        traffic.finish()


def test_two_brokers_killed_at_once_lose_nothing(three_brokers: RunningCluster, unique: Callable[[str], str]) -> None:
    """One is left, and min.insync.replicas is 2: nothing is taken until another is back."""
    with Traffic(three_brokers, unique("two")) as traffic:
        first, second, _ = three_brokers.brokers.values()
        first.kill()
        second.kill()
        traffic.ledger.begin_anew()
        first.start()
        traffic.wait_for_each_partition()
        second.start()
        three_brokers.wait_until_settled()
        traffic.finish()


def test_all_brokers_killed_at_once_lose_nothing(three_brokers: RunningCluster, unique: Callable[[str], str]) -> None:
    with Traffic(three_brokers, unique("all")) as traffic:
        three_brokers.kill()
        three_brokers.start()
        traffic.wait_for_each_partition()
        three_brokers.wait_until_settled()
        traffic.finish()
