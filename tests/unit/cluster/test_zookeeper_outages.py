"""A store whose real ZooKeeper is killed, comes back, and stands still."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.cluster.building import a_broker, creation
from tests.unit.cluster.worlds import until

from ottla.cluster.store import CommitUncertain, Session, StoreError
from ottla.cluster.zookeeper.kazoo_client import KazooZooKeeper
from ottla.cluster.zookeeper.store import ZooKeeperStore
from ottla.testing.zookeeper import ZooKeeperEnsemble, zookeeper

SESSION_MS_MAX = 5_000


@pytest.fixture
def ensemble(tmp_path: Path) -> Iterator[ZooKeeperEnsemble]:
    with zookeeper(data_dir=tmp_path, settings={"maxSessionTimeout": SESSION_MS_MAX}) as started:
        yield started


async def opened(ensemble: ZooKeeperEnsemble, timeout_ms: int = 4_000) -> tuple[ZooKeeperStore, list[Session]]:
    store = await ZooKeeperStore.open(KazooZooKeeper(ensemble.connect, session_timeout_ms=timeout_ms), 20)
    seen: list[Session] = []
    store.on_session(seen.append)
    return store, seen


def test_the_session_outlives_a_server_that_is_killed_and_started(ensemble: ZooKeeperEnsemble) -> None:
    async def scenario() -> bool:
        store, seen = await opened(ensemble, timeout_ms=20_000)
        assert store.session_timeout_ms == SESSION_MS_MAX  # what the server allows, not what was asked for
        await store.register_broker(a_broker(1))
        await until(lambda: store.image.controller_id == 1)
        epoch = store.image.brokers[1].epoch
        ensemble.kill()
        await until(lambda: seen == [Session.SUSPENDED])
        with pytest.raises(StoreError):
            await store.commit(creation("never"))
        await asyncio.to_thread(ensemble.start)
        await until(lambda: seen[-1] is Session.CONNECTED, 60)
        if Session.LOST in seen:  # the server took longer to come back than a session lasts
            await store.close()
            return False
        assert store.image.brokers[1].epoch == epoch
        await store.commit(creation("then"), as_controller=True)
        await store.close()
        return True

    assert any(asyncio.run(scenario()) for _ in range(5))


def test_a_server_that_stands_still_is_noticed_and_survived(ensemble: ZooKeeperEnsemble) -> None:
    async def scenario() -> None:
        store, seen = await opened(ensemble)
        await store.register_broker(a_broker(1))
        ensemble.pause()
        stuck = asyncio.ensure_future(store.commit(creation("t")))
        await until(lambda: seen == [Session.SUSPENDED], 30)
        with pytest.raises(CommitUncertain):
            await stuck
        ensemble.resume()
        await until(lambda: store.session is Session.CONNECTED, 60)
        await until(lambda: 1 in store.image.brokers and store.image.controller_id == 1)
        if "t" not in store.image.topics:
            await store.commit(creation("t"))
        await store.close()

    asyncio.run(scenario())
