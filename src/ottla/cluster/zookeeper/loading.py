"""Reading everything: all documents as they are after some change, however much is being written meanwhile.

Documents are read one by one while others write them, so what was read is a mixture of moments. The change log mends
it: the last change is noted first, and when all is read the changes since are laid over it in their order. A document
that was read after a change was made has a younger zxid than the change, and stays as it was read.
"""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

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
NODES_AT_ONCE = 500
CHANGES_AT_ONCE = 10
"""A change may be large."""
REQUESTS_AT_ONCE = 4


class Found(NamedTuple):
    data: bytes
    version: int
    zxid: int
    holds_others: bool = False


class Loaded(NamedTuple):
    documents: dict[str, Found]
    last_change: int


class Trimmed(Exception):
    """Changes that are needed are not there any more: they were too far behind."""


async def load(client: ZooKeeperClient, watch: Watch | None) -> Loaded:
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
    found = await _read_all(client, [change_path(number) for number in numbers], CHANGES_AT_ONCE)
    if len(found) != len(numbers):
        raise Trimmed
    return [(number, read_change(node.data), node.zxid) for number, node in zip(numbers, found.values(), strict=True)]


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
    found: dict[str, Found] = {}
    holders = ["/"]
    while holders:
        below = [path for holder in holders for path in await _below(client, holder)]
        level = await _read_all(client, [path for path in below if path not in NOT_DOCUMENTS and path != TOPICS])
        found.update((path, document) for path, document in level.items() if document.data)
        holders = [path for path, document in level.items() if document.holds_others]
    return found


async def _below(client: ZooKeeperClient, holder: str) -> list[str]:
    try:
        return [f"{holder.rstrip('/')}/{name}" for name in sorted(await client.children(holder))]
    except NoNode:
        return []


async def _read_all(client: ZooKeeperClient, paths: Sequence[str], at_once: int = NODES_AT_ONCE) -> dict[str, Found]:
    """Those that are there, in the order of the paths."""
    batches = [paths[start : start + at_once] for start in range(0, len(paths), at_once)]
    found: dict[str, Found] = {}
    for several in range(0, len(batches), REQUESTS_AT_ONCE):
        asked = batches[several : several + REQUESTS_AT_ONCE]
        for batch, answer in zip(asked, await asyncio.gather(*map(client.get_many, asked)), strict=True):
            for path, node in zip(batch, answer, strict=True):
                if node is not None:
                    data, stat = node
                    found[path] = Found(data, stat.version, stat.modified, stat.children > 0)
    return found
