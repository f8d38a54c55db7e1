"""A broker on its own joins ZooKeeper with what it has: completely, once, and never over another cluster."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from uuid import UUID

import pytest
from tests.unit.cluster.building import PARTITION, creation
from tests.unit.cluster.worlds import ModelWorld, World

from ottla.cluster.documents import (
    PRODUCER_IDS_PATH,
    ProducerIdBlock,
    broker_config_path,
    config_document,
    producer_ids_document,
    topic_config_path,
)
from ottla.cluster.embedded import FILE_NAME, EmbeddedStore
from ottla.cluster.image import ClusterImage
from ottla.cluster.store import ABSENT, Write
from ottla.cluster.zookeeper.importing import IMPORT_PATH, find_local_metadata
from ottla.cluster.zookeeper.store import ZooKeeperStore
from ottla.model.errors import OttlaError

BLOCK = producer_ids_document(ProducerIdBlock(1, 0, 999))


async def _write(directory: Path, partitions: int) -> ClusterImage:
    store = EmbeddedStore.open(directory)
    await store.commit([*creation("big", partitions), *creation("small", 2)])
    await store.commit([Write(topic_config_path("small"), config_document({"retention.ms": "7"}), ABSENT)])
    await store.commit([Write(broker_config_path("1"), config_document({"x": "1"}), ABSENT)])
    await store.commit([Write(PRODUCER_IDS_PATH, BLOCK, ABSENT)])
    await store.close()
    return store.image


def broker_on_its_own(directory: Path, partitions: int = 4) -> ClusterImage:
    """Writes the file of such a broker."""
    return asyncio.run(_write(directory, partitions))


async def opened(world: World, name: str, directory: Path | None = None) -> ZooKeeperStore:
    local = None if directory is None else find_local_metadata(str(directory), 1)
    return await ZooKeeperStore.open(world.client(name), 20, local=local, where="zk:2181/x")


def test_everything_comes_along_and_the_file_is_set_aside(world: World, tmp_path: Path) -> None:
    image = broker_on_its_own(tmp_path)

    async def scenario() -> None:
        store = await opened(world, "a", tmp_path)
        assert store.image == image
        document = store.read(PRODUCER_IDS_PATH)
        assert document is not None
        assert document.data == BLOCK
        assert store.version(IMPORT_PATH) == ABSENT
        assert os.listdir(tmp_path) == [FILE_NAME + ".imported"]
        await store.commit(creation("new"))
        await store.close()
        again = await opened(world, "a", tmp_path)
        assert set(again.image.topics) == {"big", "small", "new"}
        await again.close()

    world.run(scenario())


def test_another_clusters_zookeeper_is_refused_in_words(model_world: ModelWorld, tmp_path: Path) -> None:
    broker_on_its_own(tmp_path)

    async def scenario() -> None:
        other = await opened(model_world, "b")
        with pytest.raises(OttlaError, match=r"zk:2181/x holds cluster .* give zookeeper.connect a path"):
            await opened(model_world, "a", tmp_path)
        assert not other.image.topics
        assert (tmp_path / FILE_NAME).exists()
        await other.close()

    model_world.run(scenario())


class _Cut(Exception):
    """The process dies here."""


@pytest.mark.parametrize("commits_done", range(4))
def test_it_can_be_cut_short_anywhere(
    model_world: ModelWorld, tmp_path: Path, commits_done: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = broker_on_its_own(tmp_path, partitions=900)
    whole = ZooKeeperStore._commit_piece
    left = commits_done

    async def commit_piece(
        store: ZooKeeperStore, writes: list[Write], ids: Mapping[str, UUID], *, as_controller: bool
    ) -> None:
        nonlocal left
        if left == 0:
            raise _Cut
        left -= 1
        await whole(store, writes, ids, as_controller=as_controller)

    async def scenario() -> None:
        with monkeypatch.context() as patched:
            patched.setattr(ZooKeeperStore, "_commit_piece", commit_piece)
            with pytest.raises(_Cut):
                await opened(model_world, "a", tmp_path)
        assert (tmp_path / FILE_NAME).exists()
        if commits_done:
            with pytest.raises(OttlaError, match="Start broker 1 first"):
                await opened(model_world, "b")
        store = await opened(model_world, "a", tmp_path)
        assert store.image == image
        assert store.image.topics["big"].partitions == (PARTITION,) * 900
        other = await opened(model_world, "b")
        assert other.image == image
        await store.close()
        await other.close()

    model_world.run(scenario())


def test_a_crash_before_the_file_is_set_aside_does_no_harm(model_world: ModelWorld, tmp_path: Path) -> None:
    image = broker_on_its_own(tmp_path)
    content = (tmp_path / FILE_NAME).read_bytes()

    async def scenario() -> None:
        store = await opened(model_world, "a", tmp_path)
        await store.commit(creation("new"))
        await store.close()
        (tmp_path / FILE_NAME).write_bytes(content)
        again = await opened(model_world, "a", tmp_path)
        assert set(again.image.topics) == {*image.topics, "new"}
        assert not (tmp_path / FILE_NAME).exists()
        await again.close()

    model_world.run(scenario())


def test_afterwards_the_broker_does_not_start_on_its_own(tmp_path: Path) -> None:
    broker_on_its_own(tmp_path)
    (tmp_path / FILE_NAME).rename(tmp_path / (FILE_NAME + ".imported"))
    with pytest.raises(OttlaError, match="was moved to ZooKeeper"):
        EmbeddedStore.open(tmp_path)
    assert not (tmp_path / FILE_NAME).exists()


def test_a_member_of_a_cluster_does_not_start_on_its_own(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=1\ncluster.id=abc\nnode.id=1\n")
    with pytest.raises(OttlaError, match="belongs to cluster abc"):
        EmbeddedStore.open(tmp_path)
    assert not (tmp_path / FILE_NAME).exists()
