"""What happens to a cluster moves the monitor's metrics: all that docs/monitor-metrics.md lists."""

import asyncio
import time

import pytest
from tests.metrics_moved import MONITOR, moved

from ottla.client.cluster import Address, Broker, Cluster
from ottla.model.names import TopicPartition
from ottla.monitoring.clients import monitor_client
from ottla.monitoring.endtoend.ledger import Outcome
from ottla.monitoring.endtoend.monitor import EndToEnd
from ottla.monitoring.endtoend.settings import EndToEndSettings
from ottla.monitoring.endtoend.slo import Objective
from ottla.monitoring.endtoend.writing import Sent
from ottla.monitoring.figures import as_text
from ottla.monitoring.lag import watching
from ottla.monitoring.lag.figures import lag_figures
from ottla.monitoring.lag.notices import Notice, NotifierRule
from ottla.monitoring.lag.notifiers import NotSent
from ottla.monitoring.lag.rules import Rules
from ottla.monitoring.lag.watching import Directory, Notices, Watch, WatchSettings
from ottla.monitoring.looking import Look
from ottla.monitoring.readings import GroupReading, Owner, PartitionPlace, Reading
from ottla.monitoring.serving import Monitor

CLIENT = monitor_client("127.0.0.1:1", {})
HERE, LEADERLESS = TopicPartition("orders", 0), TopicPartition("orders", 1)


class Post:
    """A notifier that reaches people, or does not."""

    def __init__(self, name: str, *, works: bool) -> None:
        self.rule = NotifierRule(name)
        self._works = works

    def send(self, notice: Notice) -> None:
        if not self._works:
            raise NotSent("nobody is there")


def seen(end: int, commit: int, failures: tuple[str, ...]) -> Look:
    """A group that reads, and one with a member that does not move; a partition has lost its leader and a replica."""
    owners = {HERE: Owner("h", "c")}
    groups = {
        "reading": GroupReading({HERE: commit}, owners, "Stable", 1),
        "stalled": GroupReading({HERE: 3}, owners, "Stable", 1),
    }
    places = {HERE: PartitionPlace(1, (1, 2), (1, 2)), LEADERLESS: PartitionPlace(None, (1, 2), (2,))}
    brokers = {1: Broker(1, Address("h", 1), None)}
    reading = Reading({HERE: end}, groups, {"orders": 2}, not failures)
    return Look("id", 1, brokers, places, frozenset(), reading, failures)


async def look_twice(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = [seen(100, 50, ()), seen(110, 90, ("broker 2 does not answer",))]

    async def look(cluster: Cluster) -> Look:
        await asyncio.sleep(0.02)  # speeds are by the clock
        return looks.pop(0)

    async def directories(cluster: Cluster) -> list[Directory]:
        return [Directory(1, "/d", 1000, 500)]

    async def written_ms(partition: TopicPartition, offset: int) -> int:
        return int(time.time() * 1000) - 60_000

    monkeypatch.setattr(watching, "look", look)
    monkeypatch.setattr(watching, "directories", directories)
    monkeypatch.setattr(watch, "_written_ms", written_ms)
    await watch.once()
    await watch.once()
    await watch._judge(int(time.time() * 1000))  # with the ages that were learnt


def send_records(end: EndToEnd) -> None:
    """One is acknowledged and read, another refused; what else can become of a record, and of a probe."""
    for index in (1, 2):
        end._ledger(0).sent(index, int(time.time() * 1000))
    end._was_sent(Sent(0, 1, 7, 12.5))
    end._was_sent(Sent(0, 2, None, 0.0, "no leader"))
    end._was_read(0, 1, 0)
    end._count_read(Outcome(read=1, delayed=1, lost=1, duplicated=1, delays_ms=(15,)))
    end._fetch_failed("no leader")
    end.leaders.places = {0: PartitionPlace(1, (1,), (1,))}
    for good in (True, False):
        end.commits.level.note(int(good), int(not good), time.time())
    end.commits.delays.note(3.0, time.time())
    end.topics.creation_ms, end.topics.deletion_ms, end.topics.failures = 20.0, 10.0, 1


def test_everything_that_the_monitor_lists_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> tuple[str, str]:
        notices = Notices([Post("good", works=True), Post("bad", works=False)])
        watch = Watch(WatchSettings("c", CLIENT, Rules(intervals=2)), notices)
        settings = EndToEndSettings("c", CLIENT, "probe")
        end = EndToEnd(settings)
        lower = EndToEnd(settings._replace(objective=Objective(ratio=0.9)))  # it differs by what is wanted

        def text(of: EndToEnd) -> str:
            monitor = Monitor([watch], notices, [of])
            return as_text([*monitor.figures(), *lag_figures(monitor.judged())])

        try:
            before = text(lower)
            await look_twice(watch, monkeypatch)
            send_records(end)
            return before, text(end)
        finally:
            for each in (watch, end, lower):
                await each.close()

    before, after = asyncio.run(work())
    assert set(MONITOR) - moved(before, after) == set(), "these do not move"
