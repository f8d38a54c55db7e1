"""A cluster's metadata out of its store and into an empty one: ZooKeeper, or the file of a broker on its own."""

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.cluster.embedded import FILE_NAME, META_PROPERTIES, read_documents, write_documents
from ottla.cluster.metadata_file import cluster_of
from ottla.cluster.zookeeper.client import NoNode, ZooKeeperClient
from ottla.cluster.zookeeper.importing import LocalMetadata
from ottla.cluster.zookeeper.layout import CHANGES
from ottla.cluster.zookeeper.loading import load
from ottla.cluster.zookeeper.looking import SESSION_SECONDS_MAX, SESSION_TIMEOUT_MS, run_with_client
from ottla.cluster.zookeeper.store import ZooKeeperStore
from ottla.config.properties import parse_properties
from ottla.config.zookeeper import Ensemble
from ottla.model.errors import OttlaError

if TYPE_CHECKING:
    from ottla.cluster.zookeeper.kazoo_client import KazooZooKeeper

_NOBODY = -1
"""Instead of a broker that brings its metadata along."""


def copy_embedded(directory: Path) -> dict[str, bytes]:
    """Every document of a broker on its own, which must not run: the file is its alone."""
    path = directory / FILE_NAME
    if not path.exists():
        raise OttlaError(f"{path} does not exist: name the first of the broker's log.dirs, or its --data folder")
    return read_documents(path)


def restore_embedded(directory: Path, documents: Mapping[str, bytes]) -> None:
    """Beside data of the same cluster, or of none."""
    path = directory / FILE_NAME
    if path.exists():
        raise OttlaError(f"{path} exists: metadata is restored only where there is none. Move it away first")
    properties = directory / META_PROPERTIES
    if properties.exists():
        known = parse_properties(properties.read_text(encoding="utf-8")).get("cluster.id")
        if known and known != cluster_of(documents):
            raise OttlaError(f"{directory} belongs to cluster {known}, and the copy is of {cluster_of(documents)}")
    write_documents(path, documents)


def copy_zookeeper(ensemble: Ensemble) -> dict[str, bytes]:
    """Every document as of one moment, also while brokers write. Who runs and who is controller is not among them."""
    return run_with_client(ensemble, _copy)


async def _copy(client: "KazooZooKeeper") -> dict[str, bytes]:
    try:
        await client.children(CHANGES)
    except NoNode:
        raise OttlaError("there is no cluster in this ZooKeeper: check the path behind its address") from None
    return {path: found.data for path, found in (await load(client, None)).documents.items()}


async def restore_zookeeper(ensemble: Ensemble, documents: Mapping[str, bytes]) -> None:
    """Into a path where nothing is yet."""
    from ottla.cluster.zookeeper.kazoo_client import KazooZooKeeper  # noqa: PLC0415 - for the few who want it

    def client() -> ZooKeeperClient:
        hosts = ",".join(ensemble.hosts)
        return KazooZooKeeper(hosts, chroot=ensemble.chroot, session_timeout_ms=SESSION_TIMEOUT_MS)

    await restore_to(client, documents, ",".join(ensemble.hosts) + ensemble.chroot)


async def restore_to(client: Callable[[], ZooKeeperClient], documents: Mapping[str, bytes], where: str) -> None:
    """Through the store, as brokers write it; the cluster's id comes last, and no broker starts before it is there."""
    looking = client()
    await looking.start(lambda _: None, SESSION_SECONDS_MAX)
    try:
        there = [name for name in await looking.children("/") if name != "zookeeper"]
    finally:
        await looking.close()
    if there:
        raise OttlaError(
            f"ZooKeeper at {where} is not empty ({', '.join(sorted(there)[:5])}): metadata is restored only where "
            "there is none. Give another path behind the address"
        )
    with tempfile.TemporaryDirectory(prefix="ottla-metadata-") as folder:
        file = Path(folder) / FILE_NAME
        file.touch()
        local = LocalMetadata(file, _NOBODY, dict(documents))
        store = await ZooKeeperStore.open(client(), SESSION_SECONDS_MAX, local=local, where=where)
        await store.close()
