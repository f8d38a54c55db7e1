"""A broker that was on its own joins ZooKeeper and brings its metadata along.

    /cluster/import   there while documents are being brought in: by which broker, of which cluster

The cluster's id is written last, in one step with the removal of this note: a cluster without an id is not complete,
and no broker starts with it except the one that brings the rest. Then the file is renamed. So it can be cut short
anywhere, and the next start of that broker goes on with it.
"""

import os
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec
from msgspec import Struct

from ottla.cluster.documents import CLUSTER_ID_PATH, read_cluster_id
from ottla.cluster.embedded import FILE_NAME, IMPORTED_SUFFIX, read_documents
from ottla.cluster.store import ABSENT, Document, VersionConflict, Write
from ottla.model.errors import OttlaError

IMPORT_PATH = "/cluster/import"


class _Import(Struct):
    cluster_id: str
    broker: int
    version: int = 1


class Target(Protocol):
    """The part of a store that this needs."""

    def read(self, path: str) -> Document | None: ...
    def version(self, path: str) -> int: ...
    async def commit(self, writes: list[Write]) -> None: ...


class LocalMetadata(NamedTuple):
    """What a broker brings: every document of its own store, and where they come from."""

    file: Path
    broker: int
    documents: dict[str, bytes]

    @property
    def cluster_id(self) -> str:
        return read_cluster_id(self.documents[CLUSTER_ID_PATH])


def find_local_metadata(directory: str, broker: int) -> LocalMetadata | None:
    """The metadata of a broker that was on its own so far, if there is any in this directory."""
    file = Path(directory) / FILE_NAME
    return LocalMetadata(file, broker, read_documents(file)) if file.exists() else None


async def import_metadata(target: Target, local: LocalMetadata, where: str) -> None:
    """Write everything that is not there yet. OttlaError if ZooKeeper holds another cluster."""
    known = target.read(CLUSTER_ID_PATH)
    if known is not None:
        _check_same(read_cluster_id(known.data), local, where)
    else:
        await _note(target, local, where)
        rest = [path for path in local.documents if path != CLUSTER_ID_PATH and target.version(path) == ABSENT]
        if rest:
            await target.commit([Write(path, local.documents[path], ABSENT) for path in rest])
        await target.commit(
            [
                Write(CLUSTER_ID_PATH, local.documents[CLUSTER_ID_PATH], ABSENT),
                Write(IMPORT_PATH, None, target.version(IMPORT_PATH)),
            ]
        )
    _set_aside(local.file)


def check_complete(target: Target, where: str) -> None:
    """A cluster that another broker is bringing in is not for us yet."""
    note = target.read(IMPORT_PATH)
    if note is not None:
        by = msgspec.json.decode(note.data, type=_Import)
        raise OttlaError(
            f"ZooKeeper at {where}: broker {by.broker} is bringing in its metadata, or was interrupted doing so. "
            f"Start broker {by.broker} first, and this one when that is done"
        )


async def _note(target: Target, local: LocalMetadata, where: str) -> None:
    note = target.read(IMPORT_PATH)
    if note is None:
        made = msgspec.json.encode(_Import(local.cluster_id, local.broker))
        try:
            await target.commit([Write(IMPORT_PATH, made, ABSENT)])
        except VersionConflict:
            note = target.read(IMPORT_PATH)
    if note is not None and msgspec.json.decode(note.data, type=_Import).cluster_id != local.cluster_id:
        check_complete(target, where)


def _check_same(cluster_id: str, local: LocalMetadata, where: str) -> None:
    if cluster_id != local.cluster_id:
        raise OttlaError(
            f"ZooKeeper at {where} holds cluster {cluster_id}, but {local.file} is the metadata of cluster "
            f"{local.cluster_id}. To start a cluster with this broker's data, give zookeeper.connect a path that "
            "is not used yet; to make the broker a new member of the other cluster, give it empty log.dirs"
        )


def _set_aside(file: Path) -> None:
    file.rename(file.with_name(file.name + IMPORTED_SUFFIX))
    descriptor = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
