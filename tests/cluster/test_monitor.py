"""The monitor end to end notices a killed leader, a paused broker and a cut link, and loses nothing to them."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.chance import SOAK
from tests.monitoring.end_to_end import running, wait_for_more, wait_until_noticed

from ottla.monitoring.clients import monitor_client
from ottla.monitoring.endtoend.monitor import EndToEnd
from ottla.monitoring.endtoend.settings import EndToEndSettings
from ottla.monitoring.lag.watching import Watch, WatchSettings
from ottla.testing.cluster import RunningCluster
from ottla.testing.waiting import wait_until

NOTICED_SECONDS_MAX = 30.0
"""For a machine that is busy; on one that is not it takes the time that a record has to be acknowledged."""
AGAIN_SECONDS_MAX = 60.0
QUIET_SECONDS = 3_600.0 if SOAK else 3.0
WRITE_TIMEOUT_S = 1.5


def settings_for(cluster: RunningCluster, topic: str, **more: float) -> EndToEndSettings:
    found = EndToEndSettings("c", monitor_client(cluster.bootstrap, {}), topic, group=topic)
    changed = {"write_timeout_s": WRITE_TIMEOUT_S, "delay_s": 0.1, "commit_s": 1.0, "topic_probe_s": 0.0, **more}
    return found._replace(**changed)  # type: ignore[arg-type]


def led_by(monitor: EndToEnd, broker: int) -> set[int]:
    return {number for number, place in monitor.leaders.places.items() if place.leader == broker}


async def look_at_the_rest(cluster: RunningCluster) -> None:
    """One broker says nothing: what the others know is seen, and nobody is taken for gone."""
    watch = Watch(WatchSettings("c", monitor_client(cluster.bootstrap, {"request.timeout.ms": "1000"})))
    try:
        await watch.once()
        assert watch.last is not None, watch.error
        assert watch.last.failures
        assert not watch.last.reading.whole
        assert watch.last.reading.ends
    finally:
        await watch.close()


def test_faults_are_noticed_and_nothing_is_lost(three_brokers: RunningCluster, unique: Callable[[str], str]) -> None:
    topic = unique("end-to-end")
    assert three_brokers.links is not None
    with running(settings_for(three_brokers, topic)) as monitor:
        everywhere = {0, 1, 2}
        wait_until(lambda: set(monitor.by_partition) == everywhere, "records to each partition", seconds=60)
        wait_for_more(monitor, good=True, partitions=everywhere, seconds=AGAIN_SECONDS_MAX)
        assert {place.leader for place in monitor.leaders.places.values()} == {1, 2, 3}, "each broker leads one"

        # A leader is killed.
        mine = led_by(monitor, 1)
        three_brokers.brokers[1].kill()
        wait_until_noticed("a leader is killed", monitor, partitions=mine, seconds=NOTICED_SECONDS_MAX)
        wait_for_more(monitor, good=True, partitions=everywhere, seconds=AGAIN_SECONDS_MAX)  # another leads
        three_brokers.brokers[1].start()
        three_brokers.wait_until_settled()

        # A broker is paused: it holds its connections and says nothing.
        wait_until(lambda: led_by(monitor, 2), "broker 2 leads one", seconds=AGAIN_SECONDS_MAX)
        mine = led_by(monitor, 2)
        three_brokers.brokers[2].pause()
        wait_until_noticed("a broker is paused", monitor, partitions=mine, seconds=NOTICED_SECONDS_MAX)
        asyncio.run(look_at_the_rest(three_brokers))
        three_brokers.brokers[2].resume()
        wait_for_more(monitor, good=True, partitions=everywhere, seconds=AGAIN_SECONDS_MAX)
        three_brokers.wait_until_settled()

        # A leader is cut off from its followers: what it is given is not acknowledged while they are in sync.
        wait_until(lambda: led_by(monitor, 3), "broker 3 leads one", seconds=AGAIN_SECONDS_MAX)
        mine = led_by(monitor, 3)
        three_brokers.links.cut_off(3)
        wait_until_noticed("a link is cut", monitor, partitions=mine, seconds=NOTICED_SECONDS_MAX)
        three_brokers.links.heal()
        wait_for_more(monitor, good=True, partitions=everywhere, seconds=AGAIN_SECONDS_MAX)

        found = monitor.summary()
        assert found["write"]["ratio"] < 1
        assert found["write"]["budget_left"] < 0, "an objective of 99.9 % is broken by now"
        wait_until(lambda: monitor.counts["consumed"] >= monitor.counts["produced"], "all is read", seconds=60)
        assert monitor.counts["lost"] == 0
        assert monitor.commits.level.good > 0


async def watch_for(seconds: float, settings: EndToEndSettings) -> dict[str, Any]:
    """What a monitor says after a while, and the slowest record of all that time."""
    monitor = EndToEnd(settings)
    slowest: dict[str, float] = {}
    try:
        await monitor.start()
        running = asyncio.ensure_future(monitor.run())
        end = asyncio.get_running_loop().time() + seconds
        probed = False
        while asyncio.get_running_loop().time() < end or not probed:
            await asyncio.wait({running}, timeout=min(10.0, seconds / 3))
            assert not running.done(), running.result()
            found = monitor.summary()
            probed = found["topics"]["done"] + found["topics"]["failed"] > 0 < found["commits"]["done"]
            for name in ("write_delay_ms", "read_delay_ms"):
                slowest[name] = max(slowest.get(name, 0.0), found[name].get("max", 0.0))
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    finally:
        await monitor.close()
    return {**monitor.summary(), "slowest": slowest}


@pytest.mark.timeout(QUIET_SECONDS + 600)
def test_without_faults_all_is_well(three_brokers: RunningCluster, unique: Callable[[str], str]) -> None:
    """For an hour with OTTLA_SOAK=1."""
    settings = settings_for(
        three_brokers, unique("quiet"), write_timeout_s=30.0, latency_max_s=60.0, topic_probe_s=30.0
    )
    found = asyncio.run(watch_for(QUIET_SECONDS, settings))
    print(json.dumps(found, indent=1))
    assert found["write"]["ratio"] == found["read"]["ratio"] == 1.0, found
    assert (found["lost"], found["duplicated"], found["delayed"]) == (0, 0, 0)
    assert found["topics"]["failed"] == found["commits"]["failed"] == 0
    assert found["write"]["budget_left"] == found["read"]["budget_left"] == 1.0
