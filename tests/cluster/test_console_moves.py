"""Reassignment through the console, on three brokers: planned, throttled, carried out, and then as it was planned."""

from collections.abc import Callable

from tests.console.conftest import CLUSTER, Running, Site

from ottla.console.access.gate import AccessSettings
from ottla.console.clusters import ClusterSettings
from ottla.testing.cluster import RunningCluster
from ottla.testing.waiting import wait_until


def test_partitions_leave_a_broker_and_get_another_factor(
    ottla_cluster: RunningCluster, unique: Callable[[str], str]
) -> None:
    running = Running(ClusterSettings(CLUSTER, {"bootstrap.servers": ottla_cluster.bootstrap}), AccessSettings())
    try:
        site = Site(running.url)
        topic = unique("moved")
        site.do("/topics", name=topic, partitions=6, replication=2)
        site.do(f"/topics/{topic}/produce", value="x" * 1000, value_form="text", count=100, partition=0)
        gone = site.api(f"/topics/{topic}")["partitions"][0]["replicas"][0]

        def places() -> list[list[int]]:
            return [row["replicas"] for row in site.api(f"/topics/{topic}")["partitions"]]

        def settled() -> bool:
            moving = site.api("/reassignment")["moving"]
            return not [each for each in moving if each["topic"] == topic]

        plan = site.api(f"/reassignment?goal=leave&broker={gone}&topics={topic}")
        assert plan["count"] == sum(gone in replicas for replicas in places())
        page = site.page(f"/reassignment?goal=leave&broker={gone}&topics={topic}")
        assert "kafka-reassign-partitions.sh" in page.text
        site.do("/reassignment", goal="leave", broker=gone, topics=topic, throttle=50_000_000)
        wait_until(settled, "the moves at an end", seconds=120, pause=0.5)
        wait_until(lambda: not any(gone in each for each in places()), "nothing left there", seconds=60, pause=0.5)
        site.do("/reassignment", goal="factor", factor=3, topics=topic)
        wait_until(lambda: all(len(each) == 3 for each in places()), "three replicas each", seconds=120, pause=0.5)
        wait_until(settled, "the moves at an end", seconds=120, pause=0.5)
        site.do("/reassignment/unthrottle", topics=topic)
        settings = {each["name"]: each["value"] for each in site.api(f"/topics/{topic}/settings")["settings"]}
        assert not settings["leader.replication.throttled.replicas"]
        assert site.do("/reassignment/elect")["refused"] == 0
    finally:
        running.stop()
