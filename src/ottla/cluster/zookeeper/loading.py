"""Reading everything: all documents as they are after some change, however much is being written meanwhile.

Documents are read one by one while others write them, so what was read is a mixture of moments. The change log mends
it: the last change is noted first, and when all is read the changes since are laid over it in their order. A document
that was read after a change was made has a younger zxid than the change, and stays as it was read.
"""

import asyncio
import itertools
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, NamedTuple, TypeVar

from ottla.cluster.documents import partition_path, partitions_in, topic_path
from ottla.cluster.zookeeper.client import NoNode, Watch, ZooKeeperClient
from ottla.cluster.zookeeper.layout import (
    CHANGES,
    NOT_DOCUMENTS,
    TOPICS,
    Change,
    change_numbers,
    change_path,
    read_change,
)

NO_CHANGE = -1
BATCH = 1_000
"""How many requests are made before the first of them is waited for; the client bounds what is under way."""

T = TypeVar("T")
R = TypeVar("R")


class Found(NamedTuple):
    data: bytes
    version: int
    zxid: int


class Loaded(NamedTuple):
    documents: dict[str, Found]
    last_change: int


class Trimmed(Exception):
    """Changes that are needed are not there any more: they were too far behind."""


async def load(client: ZooKeeperClient, watch: Watch) -> Loaded:
    """Everything as it is after the change `last_change`. `watch` is left on the change log."""
    while True:
        await client.sync()
        before = max(change_numbers(await client.children(CHANGES)), default=NO_CHANGE)
        documents = await _documents(client)
        numbers = change_numbers(await client.children(CHANGES, watch))
        try:
            later = await read_changes(client, numbers_after(before, numbers))
        except Trimmed:
            continue
        for number, change, zxid in later:
            _lay_over(documents, change, zxid)
            before = number
        return Loaded(documents, before)


def numbers_after(last: int, numbers: list[int]) -> list[int]:
    """The changes still to be applied; Trimmed if some of them may be missing."""
    newer = [number for number in numbers if number > last]
    if newer and last not in numbers and not (last == NO_CHANGE and newer[0] == 0):
        raise Trimmed
    return newer


async def read_changes(client: ZooKeeperClient, numbers: Sequence[int]) -> list[tuple[int, Change, int]]:
    """Each with its number and zxid."""

    async def read(number: int) -> tuple[int, Change, int]:
        try:
            data, stat = await client.get(change_path(number))
        except NoNode:
            raise Trimmed from None
        return number, read_change(data), stat.created

    return await _for_all(read, numbers)


def _lay_over(documents: dict[str, Found], change: Change, zxid: int) -> None:
    for path, data, version in change.writes:
        known = documents.get(path)
        if known is not None and known.zxid >= zxid:
            continue
        if data is None:
            documents.pop(path, None)
        else:
            documents[path] = Found(data, version, zxid)


async def _documents(client: ZooKeeperClient) -> dict[str, Found]:
    documents = await _tree(client)
    topics = await _read_all(client, [topic_path(name) for name in sorted(await client.children(TOPICS))])
    states = [
        partition_path(path.removeprefix(topic_path("")), number)
        for path, topic in topics.items()
        for number in range(partitions_in(topic.data))
    ]
    return {**documents, **topics, **await _read_all(client, states)}


async def _tree(client: ZooKeeperClient) -> dict[str, Found]:
    """Every document except those of topics, of which is known where they are: these have to be looked for."""

    async def names(holder: str) -> list[str]:
        try:
            return [f"{holder.rstrip('/')}/{name}" for name in sorted(await client.children(holder))]
        except NoNode:
            return []

    found: dict[str, Found] = {}
    level = ["/"]
    while level:
        below = itertools.chain.from_iterable(await _for_all(names, level))
        level = [path for path in below if path not in NOT_DOCUMENTS and path != TOPICS]
        read = await _read_all(client, level)
        found.update((path, document) for path, document in read.items() if document.data)
    return found


async def _read_all(client: ZooKeeperClient, paths: Sequence[str]) -> dict[str, Found]:
    """Those that are there, in the order of the paths."""

    async def read(path: str) -> Found | None:
        try:
            data, stat = await client.get(path)
        except NoNode:
            return None
        return Found(data, stat.version, stat.modified)

    found = await _for_all(read, paths)
    return {path: document for path, document in zip(paths, found, strict=True) if document is not None}


async def _for_all(ask: Callable[[T], Coroutine[Any, Any, R]], keys: Sequence[T]) -> list[R]:
    answers: list[R] = []
    for start in range(0, len(keys), BATCH):
        answers += await asyncio.gather(*(ask(key) for key in keys[start : start + BATCH]))
    return answers
