"""All of a store as one file, and back into an empty one: whole, or not at all."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.cluster.building import creation
from tests.unit.cluster.worlds import World

from ottla.cluster.documents import CLUSTER_ID_PATH, cluster_id_document
from ottla.cluster.embedded import EmbeddedStore
from ottla.cluster.image import ClusterImage
from ottla.cluster.metadata_copy import copy_embedded, restore_embedded, restore_to
from ottla.cluster.metadata_file import DamagedMetadata, decode_metadata, encode_metadata
from ottla.cluster.zookeeper.loading import load
from ottla.cluster.zookeeper.store import ZooKeeperStore
from ottla.model.errors import OttlaError

CLUSTER = {CLUSTER_ID_PATH: cluster_id_document("abc")}
WRITTEN = encode_metadata({**CLUSTER, "/x": b"\xff\x00", "/y": b"{}"})


@given(st.dictionaries(st.text(max_size=5), st.binary(max_size=8), max_size=5))
def test_a_file_is_read_as_it_was_written(documents: dict[str, bytes]) -> None:
    whole = {**documents, **CLUSTER}
    assert decode_metadata(encode_metadata(whole), "f") == whole


@given(st.integers(0, len(WRITTEN) - 1))
def test_one_that_was_cut_short_is_refused(length: int) -> None:
    with pytest.raises(DamagedMetadata):
        decode_metadata(WRITTEN[:length], "f")


async def _written(directory: Path) -> ClusterImage:
    store = EmbeddedStore.open(directory)
    await store.commit(creation("orders", 3))
    await store.close()
    return store.image


def _opened(directory: Path) -> ClusterImage:
    async def look() -> ClusterImage:
        store = EmbeddedStore.open(directory)
        await store.close()
        return store.image

    return asyncio.run(look())


def test_a_broker_on_its_own_gets_its_metadata_back(tmp_path: Path) -> None:
    image = asyncio.run(_written(tmp_path / "a"))
    documents = copy_embedded(tmp_path / "a")
    with pytest.raises(OttlaError, match="exists: metadata is restored only where there is none"):
        restore_embedded(tmp_path / "a", documents)
    restore_embedded(tmp_path / "b", documents)
    assert _opened(tmp_path / "b") == image
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "meta.properties").write_text("cluster.id=other\n")
    with pytest.raises(OttlaError, match="belongs to cluster other"):
        restore_embedded(tmp_path / "c", documents)
    with pytest.raises(OttlaError, match="does not exist"):
        copy_embedded(tmp_path / "d")


def test_zookeeper_gets_it_back_only_where_nothing_is(world: World, tmp_path: Path) -> None:
    image = asyncio.run(_written(tmp_path / "a"))
    documents = copy_embedded(tmp_path / "a")

    async def scenario() -> None:
        names = iter("abcdefgh")
        await restore_to(lambda: world.client(next(names)), documents, "zk:2181/x")
        store = await ZooKeeperStore.open(world.client("y"), 20)
        assert store.image.topics == image.topics
        assert store.image.cluster_id == image.cluster_id
        await store.close()
        looking = world.client("z")
        await looking.start(lambda _: None, 20)
        assert {path: found.data for path, found in (await load(looking, None)).documents.items()} == documents
        await looking.close()
        with pytest.raises(OttlaError, match="zk:2181/x is not empty"):
            await restore_to(lambda: world.client(next(names)), documents, "zk:2181/x")

    world.run(scenario())
