"""A broker that leaves hands over; one that comes back after a crash claims nothing."""

import asyncio
import uuid

import pytest

from ottla.broker.controller.lost_logs import missing_logs
from ottla.broker.controller.membership import hand_over, rejoin
from ottla.broker.controller.writes import creation_writes, partition_writes
from ottla.cluster.image import NO_LEADER, BrokerImage, PartitionImage, TopicImage
from ottla.cluster.store import Session, StoreError
from ottla.model.errors import OttlaError
from ottla.model.names import TopicPartition
from ottla.testing.clock import ManualClock

from .memory_store import MemoryStore

CLOCK = ManualClock()


def with_topic(*partitions: PartitionImage, brokers: tuple[int, ...] = (1, 2, 3)) -> MemoryStore:
    store = MemoryStore(*brokers)
    store.write(creation_writes(TopicImage("a", uuid.uuid4(), partitions)))
    return store


def led(leader: int, isr: tuple[int, ...], epoch: int = 0) -> PartitionImage:
    return PartitionImage(leader, epoch, (1, 2, 3), isr)


def test_everything_that_can_be_handed_over_is() -> None:
    store = with_topic(led(1, (1, 2, 3)), led(2, (2, 1)), led(1, (1,)), led(3, (3, 2)))
    asyncio.run(hand_over(store, 1, CLOCK, floor=lambda topic: 1))
    assert store.image.topics["a"].partitions == (led(2, (2, 3), 1), led(2, (2,)), led(1, (1,)), led(3, (3, 2)))
    assert len(store.commits) == 1


def test_what_it_leads_can_be_handed_over_first() -> None:
    store = with_topic(led(1, (1, 2, 3)), led(2, (2, 1)))
    asyncio.run(hand_over(store, 1, CLOCK, only_led=True, floor=lambda topic: 1))
    assert store.image.topics["a"].partitions == (led(2, (2, 3), 1), led(2, (2, 1)))
    asyncio.run(hand_over(store, 1, CLOCK, floor=lambda topic: 1))
    assert store.image.topics["a"].partitions == (led(2, (2, 3), 1), led(2, (2,)))


def test_whoever_was_quicker_is_not_overwritten() -> None:
    store = with_topic(led(1, (1, 2, 3)))

    def shrink() -> None:
        store.write(partition_writes({("a", 0): led(1, (1, 3))}, store.image, store.version))

    store.before_commit = [shrink]
    asyncio.run(hand_over(store, 1, CLOCK, floor=lambda topic: 1))
    assert store.image.topics["a"].partitions == (led(3, (3,), 1),)


def test_without_a_store_nothing_is_waited_for() -> None:
    store = with_topic(led(1, (1, 2)))
    store.session = Session.SUSPENDED
    asyncio.run(hand_over(store, 1, CLOCK, floor=lambda topic: 1))
    assert not store.commits


def test_a_store_that_fails_is_tried_again() -> None:
    store = with_topic(led(1, (1, 2)))

    def fail() -> None:
        raise StoreError("gone for a moment")

    store.before_commit = [fail]
    asyncio.run(hand_over(store, 1, CLOCK, floor=lambda topic: 1))
    assert store.image.topics["a"].partitions == (led(2, (2,), 1),)


def test_after_a_crash_nothing_is_claimed() -> None:
    store = with_topic(led(1, (1, 2)), led(2, (2, 1)), led(1, (1,)), led(2, (2, 3)), brokers=(2, 3))
    asyncio.run(rejoin(store, 1, "me", CLOCK))
    assert store.image.topics["a"].partitions == (
        led(NO_LEADER, (2,), 1),
        led(2, (2,), 1),
        led(1, (1,), 1),
        led(2, (2, 3), 1),
    )


def test_only_what_lost_its_log_is_taken_back() -> None:
    store = with_topic(led(1, (1, 2)), led(2, (2, 1)), led(1, (1,)), brokers=(2, 3))
    here = {TopicPartition("a", 0)}
    topic_id = store.image.topics["a"].topic_id
    missing = missing_logs(store.image, 1, lambda tp, wanted: tp in here and wanted == topic_id)
    assert missing == {("a", 1), ("a", 2)}
    asyncio.run(rejoin(store, 1, "me", CLOCK, missing))
    assert store.image.topics["a"].partitions == (led(1, (1, 2)), led(2, (2,), 1), led(1, (1,), 1))


def test_its_own_former_life_is_no_hindrance() -> None:
    store = with_topic(led(2, (2, 1)), brokers=(2,))
    asyncio.run(store.register_broker(BrokerImage(1, None, (), incarnation="me")))
    asyncio.run(rejoin(store, 1, "me", CLOCK))
    assert store.image.topics["a"].partitions == (led(2, (2,), 1),)


def test_another_broker_with_the_same_id_is_left_alone() -> None:
    store = with_topic(led(1, (1, 2)))
    store.session_timeout_ms = 5
    with pytest.raises(OttlaError, match="another broker runs with id 1"):
        asyncio.run(rejoin(store, 1, "me", CLOCK))
    assert not store.commits
