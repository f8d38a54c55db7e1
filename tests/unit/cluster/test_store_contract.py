"""What every MetadataStore does, whether its documents lie in SQLite, in a model of ZooKeeper, or in a real one."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cluster.building import a_broker, creation, deletion, state
from tests.unit.cluster.worlds import World, until

from ottla.cluster.documents import (
    PRODUCER_IDS_PATH,
    ProducerIdBlock,
    broker_config_path,
    config_document,
    entity_config_path,
    group_config_path,
    producer_ids_document,
    topic_config_path,
    topic_path,
)
from ottla.cluster.embedded import EmbeddedStore
from ottla.cluster.image import Entity, ImageChange, user_entity
from ottla.cluster.store import ABSENT, MetadataStore, Session, VersionConflict, Write
from ottla.cluster.zookeeper.store import ZooKeeperStore

Opening = Callable[[], AbstractAsyncContextManager[MetadataStore]]
Scenario = Callable[[Opening], Coroutine[Any, Any, None]]
Run = Callable[[Scenario], None]


@pytest.fixture(params=["embedded", "model", "real"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Run]:
    """Runs a scenario, which may open the store, and open it again when it is closed."""
    if request.param == "embedded":

        @asynccontextmanager
        async def embedded() -> Any:
            store = EmbeddedStore.open(tmp_path)
            yield store
            await store.close()

        yield lambda scenario: asyncio.run(scenario(embedded))
        return
    world: World = request.getfixturevalue("model_world" if request.param == "model" else "real_world")

    @asynccontextmanager
    async def shared() -> Any:
        store = await ZooKeeperStore.open(world.client("a"), 20)
        yield store
        await store.close()

    yield lambda scenario: world.run(scenario(shared))


def test_a_change_is_in_the_image_and_there_after_reopening(run: Run) -> None:
    async def scenario(opening: Opening) -> None:
        block = producer_ids_document(ProducerIdBlock(1, 0, 999))
        async with opening() as store:
            seen: list[ImageChange] = []
            unsubscribe = store.subscribe(seen.append)
            before = store.image
            await store.commit(creation("a", 3))
            (change,) = seen
            assert change.old is before
            assert change.new is store.image
            assert change.written == (store.image.topics["a"],)
            unsubscribe()
            await store.commit([Write(PRODUCER_IDS_PATH, block, ABSENT)])
            await store.commit([Write(topic_config_path("a"), config_document({"x": "1"}), ABSENT)])
            await store.commit([Write(group_config_path("g/ä"), config_document({"y": "2"}), ABSENT)])
            assert len(seen) == 1
            image = store.image
        async with opening() as again:
            assert again.image == image
            assert len(again.image.topics["a"].partitions) == 3
            assert again.image.topics["a"].configs == {"x": "1"}
            assert again.image.group_configs == {"g/ä": {"y": "2"}}
            document = again.read(PRODUCER_IDS_PATH)
            assert document is not None
            assert (document.data, document.version) == (block, 0)
            assert again.version(topic_path("a")) == 0

    run(scenario)


def test_settings_of_users_and_their_clients_hold_one_another(run: Run) -> None:
    async def scenario(opening: Opening) -> None:
        user = user_entity("a/b c*~")
        client: Entity = (*user, ("clients", None))
        async with opening() as store:
            seen: list[ImageChange] = []
            store.subscribe(seen.append)
            for entity, configs in ((user, {}), (client, {"producer_byte_rate": "1"}), (user, {"SCRAM-SHA-256": "x"})):
                path = entity_config_path(entity)
                await store.commit([Write(path, config_document(configs), store.version(path))])
            assert [change.entities for change in seen] == [(), (client,), (user,)]
            expected = {user: {"SCRAM-SHA-256": "x"}, client: {"producer_byte_rate": "1"}}
            assert dict(store.image.entity_configs) == expected
        async with opening() as again:
            assert dict(again.image.entity_configs) == expected
            path = entity_config_path(client)
            await again.commit([Write(path, None, again.version(path))])
            assert dict(again.image.entity_configs) == {user: {"SCRAM-SHA-256": "x"}}

    run(scenario)


def test_the_cluster_id_is_made_once(run: Run) -> None:
    async def scenario(opening: Opening) -> None:
        async with opening() as store:
            cluster_id = store.image.cluster_id
        async with opening() as again:
            assert again.image.cluster_id == cluster_id
        assert len(cluster_id) == 22

    run(scenario)


def test_versions_guard_every_document(run: Run) -> None:
    async def scenario(opening: Opening) -> None:
        async with opening() as store:
            path = broker_config_path("1")
            await store.commit([Write(path, config_document({"x": "1"}), ABSENT)])
            await store.commit([Write(path, config_document({"x": "2"}), 0)])
            with pytest.raises(VersionConflict, match="version 1, not 0"):
                await store.commit([*creation("a"), Write(path, config_document({"x": "3"}), 0)])
            assert "a" not in store.image.topics
            assert store.version(topic_path("a")) == ABSENT
            assert store.image.broker_configs["1"] == {"x": "2"}
            with pytest.raises(VersionConflict):
                await store.commit([Write(path, None, ABSENT)])
            await store.commit([Write(path, None, 1)])
            assert store.version(path) == ABSENT
            assert "1" not in store.image.broker_configs

    run(scenario)


def test_of_two_that_want_the_same_document_one_wins(run: Run) -> None:
    async def scenario(opening: Opening) -> None:
        async with opening() as store:
            both = (store.commit(creation("a")), store.commit(creation("a")))
            results = await asyncio.gather(*both, return_exceptions=True)
            assert [type(result) for result in results] == [type(None), VersionConflict]
            topic = store.image.topics["a"]
        async with opening() as again:
            assert again.image.topics["a"] == topic

    run(scenario)


def test_a_topic_lives_changes_and_goes(run: Run) -> None:
    async def scenario(opening: Opening) -> None:
        async with opening() as store:
            await store.commit(creation("a", 3))
            await store.commit([state(store, "a", 1, leader=2, epoch=5), state(store, "a", 2, leader=3, epoch=1)])
            assert [each.leader for each in store.image.topics["a"].partitions] == [1, 2, 3]
            await store.commit([Write(topic_config_path("a"), config_document({"x": "1"}), ABSENT)])
            seen: list[ImageChange] = []
            store.subscribe(seen.append)
            old = store.image.topics["a"]
            await store.commit(deletion(store, "a"))
            assert not store.image.topics
            assert not store.image.names_by_id
            assert [change.removed for change in seen] == [(old,)]
            await store.commit(creation("a", 1))
            image = store.image
        async with opening() as again:
            assert again.image == image

    run(scenario)


def test_a_topic_is_not_deleted_without_the_settings_that_it_has(run: Run) -> None:
    async def scenario(opening: Opening) -> None:
        async with opening() as store:
            await store.commit(creation("a"))
            believed = deletion(store, "a")
            await store.commit([Write(topic_config_path("a"), config_document({"x": "1"}), ABSENT)])
            with pytest.raises(VersionConflict):
                await store.commit(believed)
            await store.commit(deletion(store, "a"))
            assert not store.image.topics

    run(scenario)


def test_a_document_of_a_new_kind_is_kept_beside_the_others(run: Run) -> None:
    async def scenario(opening: Opening) -> None:
        async with opening() as store:
            await store.commit([Write("/something/alice/other/x", b'{"rate":"1"}', ABSENT)])
            await store.commit([Write("/entirely/new", b"{}", ABSENT)])
        async with opening() as again:
            document = again.read("/something/alice/other/x")
            assert document is not None
            assert document.data == b'{"rate":"1"}'
            assert again.version("/entirely/new") == 0
            assert again.version("/entirely") == ABSENT

    run(scenario)


def test_a_caller_that_goes_away_leaves_store_and_image_in_step(run: Run) -> None:
    async def scenario(opening: Opening) -> None:
        async with opening() as store:
            task = asyncio.create_task(store.commit(creation("a")))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await store.commit(creation("b"))
            assert set(store.image.topics) == {"a", "b"}
        async with opening() as again:
            assert set(again.image.topics) == {"a", "b"}

    run(scenario)


def test_a_broker_alone_becomes_the_controller_and_is_forgotten_when_it_leaves(run: Run) -> None:
    async def scenario(opening: Opening) -> None:
        async with opening() as store:
            assert store.session is Session.CONNECTED
            await store.register_broker(a_broker(7))
            registered = store.image.brokers[7]
            assert registered.endpoints == a_broker(7).endpoints
            assert registered.epoch > 0
            await until(lambda: store.image.controller_id == 7)
            await store.commit(creation("a"), as_controller=True)
        async with opening() as again:
            assert not again.image.brokers
            await again.register_broker(a_broker(7))
            assert again.image.brokers[7].rack == "rack"

    run(scenario)
