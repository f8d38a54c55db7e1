"""Real consumers in trouble are told apart within their windows, over the wire."""

import asyncio
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.monitoring.clients import monitor_client
from ottla.monitoring.lag.rules import Rules, Status
from ottla.monitoring.lag.watching import Watch, WatchSettings
from ottla.testing import RunningBroker
from ottla.testing.waiting import wait_until

INTERVALS = 5
STEP = 20
SILENCE_LOOKS_MAX = 2_000


class Reader:
    """A real member of a group of its own, that commits what it is told to."""

    def __init__(self, bootstrap: str, topic: str, group: str) -> None:
        self.topic = topic
        self.group = group
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": 30_000,
            }
        )
        self._consumer.subscribe([topic])
        wait_until(lambda: self._consumer.poll(0.1) is not None, f"{group} reads", seconds=60)

    def commit(self, offset: int) -> None:
        self._consumer.poll(0)
        self._consumer.commit(offsets=[TopicPartition(self.topic, 0, offset)], asynchronous=False)

    def close(self) -> None:
        self._consumer.close()


@pytest.fixture
def topic(ottla_broker: RunningBroker, unique: Callable[[str], str]) -> str:
    name = unique("judged")
    admin = AdminClient({"bootstrap.servers": ottla_broker.bootstrap})
    admin.create_topics([NewTopic(name, 1)])[name].result(30)
    return name


@pytest.fixture
def produce(ottla_broker: RunningBroker, topic: str) -> Iterator[Callable[[int], None]]:
    producer = Producer({"bootstrap.servers": ottla_broker.bootstrap})

    def produce_some(count: int) -> None:
        for _ in range(count):
            producer.produce(topic, b"x")
        assert producer.flush(60) == 0

    yield produce_some
    producer.flush(10)


def test_lagging_stalled_stopped_and_rewound_consumers_are_told_apart(
    ottla_broker: RunningBroker, topic: str, produce: Callable[[int], None], unique: Callable[[str], str]
) -> None:
    produce(10 * STEP)
    names = ("keeping-up", "lagging", "stalled", "stopped", "rewound")
    readers = {name: Reader(ottla_broker.bootstrap, topic, unique(name)) for name in names}
    client = monitor_client(ottla_broker.bootstrap, {})
    pattern = "|".join(f"^{reader.group}$" for reader in readers.values())

    async def judge() -> dict[str, Status]:
        watch = Watch(WatchSettings("c", client, Rules(intervals=INTERVALS), allow=pattern))
        end = 10 * STEP

        def states() -> dict[str, Status]:
            found = {}
            for name, reader in readers.items():
                group = watch.book.group(reader.group, newest(watch))
                assert group is not None
                found[name] = group.partitions[0].status
            return found

        try:
            for turn in range(INTERVALS):
                end += STEP
                produce(STEP)
                readers["keeping-up"].commit(end)
                readers["lagging"].commit(5 * (turn + 1))
                readers["stalled"].commit(7)
                if turn < INTERVALS - 1:
                    readers["stopped"].commit(turn + 1)
                else:
                    await asyncio.to_thread(readers["stopped"].close)
                readers["rewound"].commit(100 + turn if turn < INTERVALS - 2 else turn)
                await watch.once()
            return await until(watch, states)
        finally:
            await watch.close()

    try:
        found = asyncio.run(judge())
    finally:
        for name, reader in readers.items():
            if name != "stopped":
                reader.close()
    assert found == {
        "keeping-up": Status.OK,
        "lagging": Status.WARN,
        "stalled": Status.STALL,
        "stopped": Status.STOP,
        "rewound": Status.REWIND,
    }


def newest(watch: Watch) -> int:
    """The time of the last look, so that how long a test takes between two of them changes nothing."""
    groups = (watch.book.commits(name) for name in watch.book.groups)
    return max(commits[-1].observed_ms for group in groups for commits, _, _ in (group or {}).values())


async def until(watch: Watch, states: Callable[[], dict[str, Status]]) -> dict[str, Status]:
    """All but the one that stopped are what they are as soon as their windows are full; its silence has to last."""
    others = {name: status for name, status in states().items() if name != "stopped"}
    for _ in range(SILENCE_LOOKS_MAX):
        if states()["stopped"] is Status.STOP:
            break
        await asyncio.sleep(0.05)
        await watch.once()
    return {**others, "stopped": states()["stopped"]}


def test_lag_in_seconds_of_records_older_than_the_window(
    ottla_broker: RunningBroker, topic: str, produce: Callable[[int], None], unique: Callable[[str], str]
) -> None:
    """Whoever starts to watch a group that is far behind asks the oldest unread record for its age."""
    produce(10)
    reader = Reader(ottla_broker.bootstrap, topic, unique("late"))
    reader.commit(3)
    reader.close()

    async def judge() -> tuple[float | None, int]:
        client = monitor_client(ottla_broker.bootstrap, {})
        watch = Watch(WatchSettings("c", client, allow=f"^{reader.group}$"))
        try:
            await watch.once()
            group = watch.book.group(reader.group, newest(watch) + 60_000)
            assert group is not None
            return group.partitions[0].waiting_s, group.total_lag
        finally:
            await watch.close()

    age, lag = asyncio.run(judge())
    assert lag == 7
    assert age is not None
    assert age >= 60
