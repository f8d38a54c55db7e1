"""Decisions made true in a real store."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from ottla.broker.controller.config_decisions import Alteration, ConfigChange, Operation, ResourceType
from ottla.broker.controller.decisions import MorePartitions, NewTopic, plan_topics
from ottla.broker.controller.leading import LeadingController
from ottla.broker.controller.loop import PRODUCER_ID_BLOCK, Controller
from ottla.broker.controller.partition_decisions import ElectionType, Move
from ottla.broker.controller.writes import WRITES_AT_ONCE, creation_writes, partition_writes
from ottla.cluster.embedded import EmbeddedStore
from ottla.cluster.image import CLUSTER_WIDE, NO_LEADER, BrokerImage, Entity, PartitionImage, TopicImage, user_entity
from ottla.cluster.store import VersionConflict, Write
from ottla.config.broker import BrokerSettings
from ottla.config.live import LiveConfig
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import CONSUMER_OFFSETS, NO_TOPIC_ID, new_topic_id
from ottla.testing.clock import ManualClock

from .memory_store import MemoryStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EmbeddedStore]:
    opened = EmbeddedStore.open(tmp_path)
    asyncio.run(opened.register_broker(BrokerImage(1, None, ())))
    yield opened
    asyncio.run(opened.close())


def controller_of(store: EmbeddedStore) -> Controller:
    return Controller(store, LiveConfig(BrokerSettings()), 1, ManualClock())


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


def test_settings_of_users_and_their_clients_are_changed_one_by_one(store: EmbeddedStore) -> None:
    async def live() -> None:
        controller = controller_of(store)
        user, other = user_entity("a"), user_entity("b")
        client: Entity = (*user, ("clients", "c"))

        def refuse(_: Mapping[str, str]) -> Mapping[str, str]:
            raise ApiError(ErrorCode.INVALID_REQUEST, "no")

        refused = await controller.alter_entities({client: lambda _: {"x": "1"}, other: refuse})
        assert {entity: error.message for entity, error in refused.items()} == {other: "no"}
        await controller.alter_entities({user: lambda known: {**known, "y": "2"}})
        await controller.alter_entities({user: lambda known: {**known, "z": "3"}})
        assert dict(store.image.entity_configs) == {user: {"y": "2", "z": "3"}, client: {"x": "1"}}
        await controller.alter_entities({user: lambda _: {}, client: lambda _: {}})
        assert not store.image.entity_configs

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


def test_a_large_topic_comes_and_goes_with_the_controllers_help() -> None:
    async def live() -> None:
        store = MemoryStore(1, 2, 3, controller=1)
        config, clock = LiveConfig(BrokerSettings()), ManualClock()
        leading = LeadingController(store, config, 1, clock)
        leading.start()
        admin = Controller(store, config, 1, clock)
        (created,) = await admin.create_topics([NewTopic("a", 1500, 3)])
        assert created.refusal is None
        assert all(partition.leader != NO_LEADER for partition in store.image.topics["a"].partitions)
        (enlarged,) = await admin.create_partitions([MorePartitions("a", 2500)])
        assert enlarged.refusal is None
        leaders = Counter(partition.leader for partition in store.image.topics["a"].partitions)
        assert max(leaders.values()) - min(leaders.values()) <= 1
        assert max(len(writes) for writes in store.commits) <= WRITES_AT_ONCE
        await admin.delete_topics([("a", NO_TOPIC_ID)])
        assert not store.documents
        (again,) = await admin.create_topics([NewTopic("a", 1)])
        assert again.refusal is None
        await leading.stop()

    asyncio.run(live())


def test_a_large_topic_without_a_controller_is_told_as_late() -> None:
    async def live() -> None:
        store = MemoryStore(1, 2, 3)
        admin = Controller(store, LiveConfig(BrokerSettings()), 1, ManualClock())
        (created,) = await admin.create_topics([NewTopic("a", 1500, 3)], wait_ms=10)
        assert created.refusal is not None
        assert created.refusal.code == ErrorCode.REQUEST_TIMED_OUT
        await admin.delete_topics([("a", NO_TOPIC_ID)])
        (again,) = await admin.create_topics([NewTopic("a")])
        assert again.topic is not None  # nothing but its own document was there, and that is gone

    asyncio.run(live())


def test_many_topics_are_created_in_pieces_and_conflicts_cost_only_the_rest() -> None:
    async def live() -> None:
        store = MemoryStore(1, 2, 3)
        admin = Controller(store, LiveConfig(BrokerSettings()), 1, ManualClock())
        other = Controller(store, LiveConfig(BrokerSettings()), 2, ManualClock())

        def be_quicker() -> None:
            (topic,) = plan_topics([NewTopic("t-700")], store.image, BrokerSettings(), new_topic_id)
            assert topic.topic is not None
            store.write(creation_writes(topic.topic))

        store.before_commit = [lambda: None, be_quicker]
        outcomes = await admin.create_topics([NewTopic(f"t-{number}") for number in range(1000)])
        refused = {outcome.name: outcome.refusal.code for outcome in outcomes if outcome.refusal is not None}
        assert refused == {"t-700": ErrorCode.TOPIC_ALREADY_EXISTS}
        assert len(outcomes) == len(store.image.topics) == 1000
        assert await other.ensure_topics(["t-1", "u"]) == {}

    asyncio.run(live())


def test_partitions_are_moved_and_moves_given_up() -> None:
    async def live() -> None:
        store = MemoryStore(1, 2, 3, 4)
        admin = Controller(store, LiveConfig(BrokerSettings()), 1, ManualClock())
        await admin.create_topics([NewTopic("a", assignments=[(0, (1, 2)), (1, (2, 3))])])
        refusals = await admin.move_partitions(
            {
                ("a", 0): Move((3, 4)),
                ("a", 1): Move((9, 1)),
                ("a", 7): Move((1,)),
                ("b", 0): Move(None),
            }
        )
        assert {place: refusal.code for place, refusal in refusals.items()} == {
            ("a", 1): ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            ("a", 7): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ("b", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        assert store.image.topics["a"].partitions[0] == PartitionImage(1, 0, (3, 4, 1, 2), (1, 2), (3, 4), (1, 2))
        factor = await admin.move_partitions({("a", 1): Move((1,), allow_factor_change=False)})
        assert factor["a", 1].code == ErrorCode.INVALID_REPLICATION_FACTOR
        back = await admin.move_partitions({("a", 0): Move(None), ("a", 1): Move(None)})
        assert {place: refusal.code for place, refusal in back.items()} == {
            ("a", 1): ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
        }
        assert store.image.topics["a"].partitions[0] == PartitionImage(1, 0, (1, 2), (1, 2))

    asyncio.run(live())


def test_a_leader_cannot_take_in_who_was_just_sent_away() -> None:
    """It writes the partition's state alone; that it decided on an older picture shows in the version."""

    async def live() -> None:
        store = MemoryStore(1, 2, 3)
        admin = Controller(store, LiveConfig(BrokerSettings()), 1, ManualClock())
        await admin.create_topics([NewTopic("a", assignments=[(0, (1, 2))])])
        await admin.move_partitions({("a", 0): Move((1, 3))})
        moving = store.image.topics["a"].partitions[0]
        grown = partition_writes({("a", 0): replace(moving, isr=(1, 2, 3))}, store.image, store.version)
        await admin.move_partitions({("a", 0): Move(None)})
        with pytest.raises(VersionConflict):
            await store.commit(grown)
        assert store.image.topics["a"].partitions[0].isr == (1, 2)

    asyncio.run(live())


def test_moves_of_many_topics_stay_small_enough_for_one_commit() -> None:
    async def live() -> None:
        store = MemoryStore(1, 2, 3)
        admin = Controller(store, LiveConfig(BrokerSettings()), 1, ManualClock())
        await admin.create_topics([NewTopic(f"t{number}", assignments=[(0, (1, 2))]) for number in range(600)])
        store.commits.clear()
        assert not await admin.move_partitions({(f"t{number}", 0): Move((3, 2)) for number in range(600)})
        assert sum(len(writes) for writes in store.commits) == 1200
        assert max(len(writes) for writes in store.commits) <= WRITES_AT_ONCE

    asyncio.run(live())


def test_elections_on_request() -> None:
    async def live() -> None:
        store = MemoryStore(1, 2, 3)
        admin = Controller(store, LiveConfig(BrokerSettings()), 1, ManualClock())
        partitions = (
            PartitionImage(2, 0, (1, 2), (1, 2)),
            PartitionImage(1, 0, (1, 2), (1, 2)),
            PartitionImage(2, 0, (1, 2), (2,)),
            PartitionImage(NO_LEADER, 5, (9, 2), (9,)),
            PartitionImage(NO_LEADER, 5, (9,), (9,)),
        )
        store.write(creation_writes(TopicImage("a", new_topic_id(), partitions)))
        places = [("a", number) for number in range(6)]
        refusals = await admin.elect_leaders(ElectionType.PREFERRED, places[:3] + places[5:])
        assert {number: refusal.code for (_, number), refusal in refusals.items()} == {
            1: ErrorCode.ELECTION_NOT_NEEDED,
            2: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
            5: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        assert store.image.topics["a"].partitions[0] == PartitionImage(1, 1, (1, 2), (1, 2))
        refusals = await admin.elect_leaders(ElectionType.UNCLEAN, places[:1] + places[3:5])
        assert {number: refusal.code for (_, number), refusal in refusals.items()} == {
            0: ErrorCode.ELECTION_NOT_NEEDED,
            4: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        }
        assert store.image.topics["a"].partitions[3] == PartitionImage(2, 6, (9, 2), (2,))

    asyncio.run(live())
