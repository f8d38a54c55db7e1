"""The controller at work: what it notices, decides and commits."""

import asyncio
import uuid
from collections.abc import Callable, Container, Coroutine, Iterable
from typing import Any

import pytest

from ottla.broker.controller.leading import LeadingController
from ottla.broker.controller.partition_changes import COMMITTED_AT_ONCE
from ottla.broker.controller.reassignments import next_state
from ottla.broker.controller.writes import creation_writes, partition_writes, topic_config_writes
from ottla.cluster.documents import topic_document, topic_path
from ottla.cluster.image import NO_LEADER, ImageChange, PartitionImage, TopicImage
from ottla.cluster.store import ABSENT, StoreError, Write
from ottla.config.broker import BrokerSettings
from ottla.config.live import LiveConfig
from ottla.model.clock import Clock

from .memory_store import MemoryStore


class StillClock:
    def now_ms(self) -> int:
        return 0

    def monotonic(self) -> float:
        return 0.0


def add_topic(store: MemoryStore, name: str, partitions: Iterable[PartitionImage], **configs: str) -> None:
    store.write(creation_writes(TopicImage(name, uuid.uuid4(), tuple(partitions), configs)))


def led(leader: int = 1, replicas: tuple[int, ...] = (1, 2, 3)) -> PartitionImage:
    return PartitionImage(leader, 0, replicas, replicas)


def run(
    steps: Callable[[MemoryStore, LeadingController], Coroutine[Any, Any, None]],
    store: MemoryStore,
    settings: BrokerSettings | None = None,
    clock: Clock | None = None,
) -> None:
    async def main() -> None:
        config = LiveConfig(settings or BrokerSettings())

        def follow(change: ImageChange) -> None:
            for topic in change.written:
                config.update_topic(topic.name, topic.configs)

        store.subscribe(follow)
        for topic in store.image.topics.values():
            config.update_topic(topic.name, topic.configs)
        controller = LeadingController(store, config, 1, clock or StillClock())
        controller.start()
        try:
            async with asyncio.timeout(10):
                await controller.wait_idle()
                await steps(store, controller)
        finally:
            await controller.stop()

    asyncio.run(main())


def state(store: MemoryStore, topic: str = "a", number: int = 0) -> PartitionImage:
    return store.image.topics[topic].partitions[number]


def test_a_lost_brokers_partitions_get_other_leaders_in_few_commits() -> None:
    store = MemoryStore(1, 2, 3, controller=1)
    add_topic(store, "a", [led(2, (2, 3, 1))] * 1000)
    add_topic(store, "b", [led(1)] * 50)

    async def steps(store: MemoryStore, controller: LeadingController) -> None:
        store.commits.clear()
        store.lose(2)
        await controller.wait_idle()
        for partition in store.image.topics["a"].partitions:
            assert (partition.leader, partition.leader_epoch, partition.isr) == (3, 1, (3, 1))
        for partition in store.image.topics["b"].partitions:
            assert (partition.leader, partition.leader_epoch, partition.isr) == (1, 0, (1, 3))
        assert len(store.commits) == 1050 // COMMITTED_AT_ONCE + 1

    run(steps, store)


def test_partitions_that_lost_their_leader_come_first() -> None:
    store = MemoryStore(1, 2, 3, controller=1)
    add_topic(store, "a", [led(1), led(1), led(2, (2, 3, 1))] * 150)
    add_topic(store, "b", [led(1), led(1), led(2, (2, 3, 1))] * 150)

    async def steps(store: MemoryStore, controller: LeadingController) -> None:
        store.commits.clear()
        store.lose(2)
        await controller.wait_idle()
        numbers = [int(write.path.split("/")[5]) for write in store.commits[0]]
        assert all(number % 3 == 2 for number in numbers[:300])

    run(steps, store)


def test_a_partition_that_cannot_be_decided_holds_up_no_other(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = MemoryStore(1, 2, 3, controller=1)
    add_topic(store, "a", [led(2, (2, 3, 1))] * 3)

    def stumble(
        partition: PartitionImage, alive: Container[int], *, unclean: bool, floor: int
    ) -> PartitionImage | None:
        if partition is store.image.topics["a"].partitions[1]:
            raise ValueError("nobody foresaw this")
        return next_state(partition, alive, unclean=unclean, floor=floor)

    async def steps(store: MemoryStore, controller: LeadingController) -> None:
        monkeypatch.setattr("ottla.broker.controller.leading.next_state", stumble)
        store.lose(2)
        await controller.wait_idle()
        assert [partition.leader for partition in store.image.topics["a"].partitions] == [3, 2, 3]
        assert "a-1: Leader election failed" in caplog.text

    run(steps, store)


def test_only_the_controller_acts() -> None:
    store = MemoryStore(1, 2, 3, controller=2)
    add_topic(store, "a", [led(2)])

    async def steps(store: MemoryStore, controller: LeadingController) -> None:
        store.lose(2)
        await controller.wait_idle()
        assert not store.commits
        store.acting = 1
        store.elect_controller(1)
        await controller.wait_idle()
        assert controller.active
        assert state(store).leader == 1
        store.elect_controller(3)
        store.lose(1)
        await controller.wait_idle()
        assert state(store).leader == 1

    run(steps, store)


def test_a_returning_broker_leads_what_waited_for_it() -> None:
    store = MemoryStore(1, 2, controller=1)
    add_topic(store, "a", [led(2, (2,))])

    async def steps(store: MemoryStore, controller: LeadingController) -> None:
        store.lose(2)
        await controller.wait_idle()
        assert (state(store).leader, state(store).isr) == (NO_LEADER, (2,))
        store.back(2)
        await controller.wait_idle()
        assert (state(store).leader, state(store).leader_epoch) == (2, 2)

    run(steps, store)


def test_partitions_without_state_get_one() -> None:
    store = MemoryStore(1, 2, 3, controller=1)

    async def steps(store: MemoryStore, controller: LeadingController) -> None:
        document = topic_document(uuid.uuid4(), [PartitionImage(NO_LEADER, 0, (3, 2), ())] * 700)
        await store.commit([Write(topic_path("a"), document, ABSENT)])
        await controller.wait_idle()
        assert {(each.leader, each.isr) for each in store.image.topics["a"].partitions} == {(3, (3, 2))}

    run(steps, store)


def test_a_topic_that_names_a_broker_which_has_just_gone_is_seen_to() -> None:
    store = MemoryStore(1, 3, controller=1)

    async def steps(store: MemoryStore, controller: LeadingController) -> None:
        add_topic(store, "a", [led(2, (2, 3))])
        await controller.wait_idle()
        assert (state(store).leader, state(store).isr) == (3, (3,))

    run(steps, store)


def test_unclean_elections_follow_the_topics_setting_also_when_it_is_changed() -> None:
    store = MemoryStore(1, 2, 3, controller=1)
    lost = PartitionImage(2, 0, (2, 3), (2,))
    add_topic(store, "a", [lost], **{"unclean.leader.election.enable": "true"})
    add_topic(store, "b", [lost])

    async def steps(store: MemoryStore, controller: LeadingController) -> None:
        store.lose(2)
        await controller.wait_idle()
        assert (state(store, "a").leader, state(store, "a").isr) == (3, (3,))
        assert state(store, "b").leader == NO_LEADER
        await store.commit(topic_config_writes("b", {"unclean.leader.election.enable": "true"}, store.version))
        await controller.wait_idle()
        assert (state(store, "b").leader, state(store, "b").isr) == (3, (3,))

    run(steps, store)


def test_a_leader_that_was_quicker_is_not_overwritten() -> None:
    """The leader shrinks its in-sync replicas while the election of others is on its way."""
    store = MemoryStore(1, 2, 3, controller=1)
    add_topic(store, "a", [led(2, (2, 3, 1)), led(1)])

    async def steps(store: MemoryStore, controller: LeadingController) -> None:
        def shrink() -> None:
            shrunk = PartitionImage(1, 0, (1, 2, 3), (1,))
            store.write(partition_writes({("a", 1): shrunk}, store.image, store.version))

        store.before_commit.append(shrink)
        store.lose(2)
        await controller.wait_idle()
        assert (state(store, number=1).leader, state(store, number=1).isr) == (1, (1,))
        assert (state(store).leader, state(store).leader_epoch, state(store).isr) == (3, 1, (3, 1))

    run(steps, store)


def test_what_happens_during_a_commit_is_not_forgotten() -> None:
    store = MemoryStore(1, 2, 3, controller=1)
    add_topic(store, "a", [led(2, (2, 3, 1))])

    async def steps(store: MemoryStore, controller: LeadingController) -> None:
        store.before_commit.append(lambda: store.lose(3))
        store.lose(2)
        await controller.wait_idle()
        assert (state(store).leader, state(store).isr) == (1, (1,))

    run(steps, store)


def test_a_store_that_fails_is_tried_again() -> None:
    store = MemoryStore(1, 2, 3, controller=1)
    add_topic(store, "a", [led(2, (2, 3, 1))])

    def fail() -> None:
        raise StoreError("gone for a moment")

    async def steps(store: MemoryStore, controller: LeadingController) -> None:
        store.before_commit += [fail, fail]
        store.lose(2)
        await controller.wait_idle()
        assert state(store).leader == 3

    run(steps, store)


def test_a_deposed_controller_writes_nothing() -> None:
    store = MemoryStore(1, 2, 3, controller=1)
    add_topic(store, "a", [led(2, (2, 3, 1))])

    async def steps(store: MemoryStore, controller: LeadingController) -> None:
        store.acting = 0  # another one was elected; the news is on its way
        told = asyncio.Event()

        def tell() -> None:
            store.elect_controller(3)
            told.set()

        store.before_commit = [lambda: None, tell]
        store.lose(2)
        await told.wait()
        await controller.wait_idle()
        assert not store.commits

    run(steps, store)


def test_moves_are_finished_when_the_new_replicas_are_in_sync() -> None:
    store = MemoryStore(1, 2, 3, 4, controller=1)
    add_topic(store, "a", [PartitionImage(2, 0, (4, 2), (2,), adding=(4,), removing=(2,))])

    async def steps(store: MemoryStore, controller: LeadingController) -> None:
        assert state(store).replicas == (4, 2)
        grown = PartitionImage(2, 0, (4, 2), (2, 4), adding=(4,), removing=(2,))
        await store.commit(partition_writes({("a", 0): grown}, store.image, store.version))
        await controller.wait_idle()
        assert state(store) == PartitionImage(4, 1, (4,), (4,))

    run(steps, store)


def test_leadership_goes_back_to_first_replicas_when_too_much_is_elsewhere() -> None:
    store = MemoryStore(1, 2, 3, controller=1)
    add_topic(store, "a", [led(2, (1, 2))] * 2 + [led(1, (1, 2))] * 8)
    add_topic(store, "b", [led(1, (2, 1))] + [led(2, (2, 1))] * 9)

    async def steps(store: MemoryStore, controller: LeadingController) -> None:
        await controller.rebalance()
        await controller.wait_idle()
        assert {each.leader for each in store.image.topics["a"].partitions} == {1}  # 20% were elsewhere
        assert state(store, "b").leader == 1  # 10% is allowed

    run(steps, store)


def test_rebalancing_can_be_switched_off() -> None:
    store = MemoryStore(1, 2, controller=1)
    add_topic(store, "a", [led(2, (1, 2))])

    async def steps(store: MemoryStore, controller: LeadingController) -> None:
        await controller.rebalance()
        await controller.wait_idle()
        assert state(store).leader == 2

    run(steps, store, BrokerSettings(auto_leader_rebalance_enable=False))


def test_the_log_tells_what_was_done_and_how_long_it_took(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore(1, 2, 3, controller=1)
    add_topic(store, "a", [led(2, (2, 3, 1))] * 500)

    async def steps(store: MemoryStore, controller: LeadingController) -> None:
        store.lose(2)
        await controller.wait_idle()

    with caplog.at_level("INFO"):
        run(steps, store)
    (line,) = [
        record.getMessage() for record in caplog.records if "broker 2 failed or shut down" in record.getMessage()
    ]
    assert "500 partition states changed, 500 leaders elected, 0 partitions offline" in line
    assert "decided in" in line
    assert "committed in" in line
    assert "(commits: 2)" in line
