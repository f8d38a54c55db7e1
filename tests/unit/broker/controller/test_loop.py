"""Decisions made true in a real store."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from ottla.broker.controller.config_decisions import Alteration, ConfigChange, Operation, ResourceType
from ottla.broker.controller.decisions import MorePartitions, NewTopic
from ottla.broker.controller.loop import PRODUCER_ID_BLOCK, Controller
from ottla.cluster.embedded import EmbeddedStore
from ottla.cluster.image import CLUSTER_WIDE, BrokerImage
from ottla.cluster.store import VersionConflict, Write
from ottla.config.broker import BrokerSettings
from ottla.config.live import LiveConfig
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import CONSUMER_OFFSETS, NO_TOPIC_ID


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EmbeddedStore]:
    opened = EmbeddedStore.open(tmp_path)
    asyncio.run(opened.register_broker(BrokerImage(1, None, ())))
    yield opened
    asyncio.run(opened.close())


def controller_of(store: EmbeddedStore) -> Controller:
    return Controller(store, LiveConfig(BrokerSettings()), node_id=1)


def test_a_topics_life(store: EmbeddedStore) -> None:
    async def live() -> None:
        controller = controller_of(store)
        (created,) = await controller.create_topics([NewTopic("a", 2, configs=[("retention.ms", "5")])])
        assert store.image.topics["a"] == created.topic
        await controller.create_partitions([MorePartitions("a", 5)])
        assert len(store.image.topics["a"].partitions) == 5
        wish = ConfigChange(ResourceType.TOPIC, "a", [Alteration("retention.ms", Operation.DELETE, None)])
        await controller.alter_configs([wish])
        assert store.image.topics["a"].configs == {}
        await controller.delete_topics([("a", NO_TOPIC_ID)])
        assert not store.image.topics
        (again,) = await controller.create_topics([NewTopic("a")])
        assert again.topic is not None
        assert created.topic is not None
        assert again.topic.topic_id != created.topic.topic_id

    asyncio.run(live())


def test_nothing_is_left_of_a_deleted_topic(store: EmbeddedStore, tmp_path: Path) -> None:
    async def live() -> None:
        controller = controller_of(store)
        before = store.image.topics
        await controller.create_topics([NewTopic("a", 3, configs=[("retention.ms", "5")])])
        await controller.create_partitions([MorePartitions("a", 4)])
        await controller.delete_topics([("a", NO_TOPIC_ID)])
        assert store.image.topics == before

    asyncio.run(live())
    asyncio.run(store.close())
    again = EmbeddedStore.open(tmp_path)
    assert not again.image.topics
    assert again.version("/config/topics/a") == -1
    asyncio.run(again.close())


def test_validate_only_changes_nothing(store: EmbeddedStore) -> None:
    async def live() -> None:
        controller = controller_of(store)
        (outcome,) = await controller.create_topics([NewTopic("a")], validate_only=True)
        assert outcome.topic is not None
        assert not store.image.topics

    asyncio.run(live())


def test_broker_settings_are_kept_by_whom_they_are_for(store: EmbeddedStore) -> None:
    async def live() -> None:
        controller = controller_of(store)
        await controller.alter_configs(
            [
                ConfigChange(ResourceType.BROKER, name, [Alteration("message.max.bytes", Operation.SET, value)])
                for name, value in (("", "7"), ("1", "8"))
            ]
        )
        assert store.image.broker_configs == {
            CLUSTER_WIDE: {"message.max.bytes": "7"},
            "1": {"message.max.bytes": "8"},
        }

    asyncio.run(live())


def test_many_who_want_the_same_topic_get_one(store: EmbeddedStore) -> None:
    async def live() -> None:
        controller = controller_of(store)
        topics = await asyncio.gather(*(controller.ensure_topic("a") for _ in range(20)))
        assert {topic.topic_id for topic in topics} == {store.image.topics["a"].topic_id}
        offsets = await controller.ensure_offsets_topic()
        assert (offsets.name, len(offsets.partitions)) == (CONSUMER_OFFSETS, 50)
        assert offsets.configs["cleanup.policy"] == "compact"
        with pytest.raises(ApiError) as caught:
            await controller.ensure_topic("no such name")
        assert caught.value.code == ErrorCode.INVALID_TOPIC_EXCEPTION

    asyncio.run(live())


def test_producer_ids_are_never_given_twice(store: EmbeddedStore, tmp_path: Path) -> None:
    async def take(controller: Controller, count: int) -> list[int]:
        return list(await asyncio.gather(*(controller.allocate_producer_id() for _ in range(count))))

    first = asyncio.run(take(controller_of(store), PRODUCER_ID_BLOCK + 3))
    assert first == list(range(PRODUCER_ID_BLOCK + 3))
    asyncio.run(store.close())
    again = EmbeddedStore.open(tmp_path)
    second = asyncio.run(take(controller_of(again), 3))
    assert second == [2 * PRODUCER_ID_BLOCK, 2 * PRODUCER_ID_BLOCK + 1, 2 * PRODUCER_ID_BLOCK + 2]
    asyncio.run(again.close())


class Contended(EmbeddedStore):
    """A store in which someone else is quicker a number of times."""

    conflicts = 0

    async def commit(self, writes: Sequence[Write], *, as_controller: bool = False) -> None:
        if self.conflicts:
            self.conflicts -= 1
            raise VersionConflict(writes[0].path, 0, 1)
        await super().commit(writes)


@pytest.mark.parametrize(("conflicts", "works"), [(3, True), (1000, False)])
def test_a_lost_race_is_run_again_but_not_for_ever(tmp_path: Path, conflicts: int, *, works: bool) -> None:
    opened = Contended.open(tmp_path)
    assert isinstance(opened, Contended)

    async def live() -> None:
        await opened.register_broker(BrokerImage(1, None, ()))
        opened.conflicts = conflicts
        controller = controller_of(opened)
        if works:
            assert (await controller.ensure_topic("a")).name == "a"
        else:
            with pytest.raises(ApiError) as caught:
                await controller.ensure_topic("a")
            assert caught.value.code.retriable

    asyncio.run(live())
    asyncio.run(opened.close())
