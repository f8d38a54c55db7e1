"""Stores that commit while connections break, sessions expire and the whole ensemble goes away: all from one seed."""

import asyncio
import random
from collections.abc import Callable

import pytest
from tests.simulation.zookeeper_model import ZooKeeperModel
from tests.unit.cluster.building import a_broker, creation, deletion
from tests.unit.cluster.test_zookeeper_store import documents
from tests.unit.cluster.worlds import until
from tests.virtual_time import run_virtually, virtual_loop

from ottla.cluster.documents import (
    broker_config_path,
    config_document,
    partition_document,
    partition_path,
    topic_config_path,
)
from ottla.cluster.image import ImageChange, PartitionImage
from ottla.cluster.store import ABSENT, CommitUncertain, NotController, Session, StoreError, VersionConflict, Write
from ottla.cluster.zookeeper import layout
from ottla.cluster.zookeeper import store as store_module
from ottla.cluster.zookeeper.store import ZooKeeperStore

SECONDS = 60
TOPICS = ("a", "b", "c")


class Cluster:
    """Three stores, what they saw, and what they were told of their commits."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.loop = virtual_loop()
        self.model = ZooKeeperModel(self.loop, latency=lambda: self.chance.random() * 0.02)
        self.stores: dict[str, ZooKeeperStore] = {}
        self.pictures: dict[str, list[tuple[object, ...]]] = {}
        self.acknowledged: set[str] = set()
        self.uncertain: set[str] = set()
        self.refused: set[str] = set()
        self.counter = 0

    async def open(self) -> None:
        for number, name in enumerate("xyz", start=1):
            store = await ZooKeeperStore.open(self.model.client(name, session_timeout_ms=3_000), 60)
            self.stores[name] = store
            self.pictures[name] = []
            store.subscribe(self._note(self.pictures[name]))
            await store.register_broker(a_broker(number))

    @staticmethod
    def _note(seen: list[tuple[object, ...]]) -> Callable[[ImageChange], None]:
        def note(change: ImageChange) -> None:
            picture = documents(change.new)
            if not seen or seen[-1] != picture:
                seen.append(picture)

        return note

    async def work(self, store: ZooKeeperStore, until_s: float) -> None:
        while self.loop.time() < until_s:
            await asyncio.sleep(self.chance.random() * 0.5)
            self.counter += 1
            token = str(self.counter)
            try:
                await store.commit(
                    [*self._something(store), self._token(store, token)], as_controller=self.chance.random() < 0.2
                )
                self.acknowledged.add(token)
                assert token in store.image.broker_configs, "who committed finds it in the image"
            except CommitUncertain:
                self.uncertain.add(token)
            except (StoreError, VersionConflict, NotController):
                self.refused.add(token)

    @staticmethod
    def _token(store: ZooKeeperStore, token: str) -> Write:
        """A document that nobody else writes: whether it is there tells whether the commit was made."""
        return Write(broker_config_path(token), config_document({"x": token}), ABSENT)

    def _something(self, store: ZooKeeperStore) -> list[Write]:
        name = self.chance.choice(TOPICS)
        topic = store.image.topics.get(name)
        if topic is None:
            return [] if name in store.image.deleting else creation(name, self.chance.randint(1, 3))
        if self.chance.random() < 0.2:
            return deletion(store, name)
        if self.chance.random() < 0.2:
            path = topic_config_path(name)
            return [Write(path, config_document({"n": str(self.counter)}), store.version(path))]
        number = self.chance.randrange(len(topic.partitions))
        path = partition_path(name, number)
        state = PartitionImage(self.chance.randint(1, 3), self.counter, (1, 2, 3), (1,))
        return [Write(path, partition_document(state), store.version(path))]

    async def trouble(self, until_s: float) -> None:
        while self.loop.time() < until_s:
            await asyncio.sleep(self.chance.random() * 6)
            name = self.chance.choice("xyz")
            kind = self.chance.randrange(5)
            if kind == 0:
                self.model.cut(name)
            elif kind == 1:
                self.model.expire(name)
            elif kind == 2:
                self.model.isolate(name)
                await asyncio.sleep(self.chance.random() * 6)
                self.model.heal(name)
            elif kind == 3:
                self.model.stop()
                await asyncio.sleep(self.chance.random() * 6)
                self.model.start()
            else:
                for each in "xyz":
                    self.model.cut(each)

    async def settle(self) -> None:
        stores = list(self.stores.values())
        await until(lambda: all(store.session is Session.CONNECTED for store in stores), 60)
        await until(lambda: all(set(store.image.brokers) == {1, 2, 3} for store in stores), 60)
        await until(lambda: len({(s.image.controller_id, s.image.controller_epoch) for s in stores}) == 1, 60)
        await until(lambda: stores[0].image.controller_id in (1, 2, 3), 60)
        await stores[0]._client.sync()
        await until(lambda: all(documents(store.image) == documents(stores[0].image) for store in stores), 60)


def check(cluster: Cluster, fresh: ZooKeeperStore) -> None:
    image = fresh.image
    there = set(image.broker_configs)
    assert cluster.acknowledged <= there, "what was acknowledged is there"
    assert not cluster.refused & there, "what was refused is not"
    assert there - cluster.acknowledged <= cluster.uncertain
    for store in cluster.stores.values():
        assert documents(store.image) == documents(image)
        for path in cluster.model.tree.paths():
            assert store.version(path) == fresh.version(path), path
    longest = max(cluster.pictures.values(), key=len)
    for seen in cluster.pictures.values():  # nobody saw what others did not, or in another order
        remaining = iter(longest)
        assert all(any(picture == other for other in remaining) for picture in seen[1:])


@pytest.mark.parametrize("kept", [400, 5])
@pytest.mark.parametrize("seed", range(6))
def test_nothing_acknowledged_is_lost_and_all_agree(seed: int, kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "CHANGES_KEPT", kept)
    monkeypatch.setattr(store_module, "CHANGES_TRIMMED_AT_ONCE", min(kept, 200))
    cluster = Cluster(seed)

    async def scenario() -> None:
        await cluster.open()
        until_s = cluster.loop.time() + SECONDS
        await asyncio.gather(
            cluster.trouble(until_s), *(cluster.work(store, until_s) for store in cluster.stores.values())
        )
        await cluster.settle()
        fresh = await ZooKeeperStore.open(cluster.model.client("fresh"), 20)
        check(cluster, fresh) if kept > 5 else check_newest(cluster, fresh)
        assert len(cluster.acknowledged) > 50
        assert len(cluster.model.tree.node(layout.CHANGES).children) <= max(2 * kept, 600)
        for store in (*cluster.stores.values(), fresh):
            await store.close()

    run_virtually(scenario(), cluster.loop)


def check_newest(cluster: Cluster, fresh: ZooKeeperStore) -> None:
    """Who has to read everything again sees fewer pictures than others, so only the last can be compared."""
    cluster.pictures = {name: seen[-1:] for name, seen in cluster.pictures.items()}
    check(cluster, fresh)
