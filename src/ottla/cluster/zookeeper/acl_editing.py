"""Access control lists changed in ZooKeeper itself, as Kafka's tools did before brokers took requests for it.

A list is written if it is still what it was when it was read; then a notice tells the brokers, Kafka's or ours.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ottla.cluster.acl_documents import ACL_PATHS, acl_document, acl_path, acl_pattern, apply_acl_documents
from ottla.cluster.zookeeper.acl_notices import notice_of
from ottla.cluster.zookeeper.client import (
    BadVersion,
    Create,
    Delete,
    NodeExists,
    NoNode,
    Operation,
    Set,
    ZooKeeperClient,
)
from ottla.cluster.zookeeper.layout import ACL_CHANGES, holders_of
from ottla.model.acls import (
    RESOURCE_WORDS,
    AclBinding,
    AclEntry,
    AclFilter,
    PatternType,
    ResourcePattern,
)

NODES_AT_ONCE = 200


async def read_acls(client: ZooKeeperClient) -> Mapping[ResourcePattern, tuple[AclEntry, ...]]:
    """All lists that there are."""
    paths = [f"{start}{word}" for start in ACL_PATHS for word in RESOURCE_WORDS.values()]
    nodes = [f"{path}/{name}" for path in paths for name in sorted(await _children(client, path))]
    documents: dict[str, bytes | None] = {}
    for start in range(0, len(nodes), NODES_AT_ONCE):
        some = nodes[start : start + NODES_AT_ONCE]
        for path, found in zip(some, await client.get_many(some), strict=True):
            if found is not None and found[0]:
                documents[path] = found[0]
    return apply_acl_documents({}, documents)[0]


async def add_acls(client: ZooKeeperClient, wanted: Iterable[AclBinding]) -> None:
    by_pattern: dict[ResourcePattern, list[AclEntry]] = {}
    for pattern, entry in wanted:
        by_pattern.setdefault(pattern, []).append(entry)
    for pattern, added in by_pattern.items():
        await _edit(client, pattern, added=added)


async def remove_acls(client: ZooKeeperClient, wanted: Sequence[AclFilter]) -> None:
    for pattern, entries in (await read_acls(client)).items():
        removed = [entry for entry in entries if any(each.matches(AclBinding(pattern, entry)) for each in wanted)]
        if removed:
            await _edit(client, pattern, removed=removed)


async def _edit(
    client: ZooKeeperClient,
    pattern: ResourcePattern,
    *,
    added: Sequence[AclEntry] = (),
    removed: Sequence[AclEntry] = (),
) -> None:
    path = acl_path(pattern)
    await _create_holders(client, path)
    while True:
        try:
            data, stat = await client.get(path)
            version: int | None = stat.version
        except NoNode:
            data, version = b"", None
        before = apply_acl_documents({}, {path: data})[0].get(pattern, ()) if data else ()
        after = tuple(dict.fromkeys([*(entry for entry in before if entry not in removed), *added]))
        if after == before:
            return
        try:
            await client.multi([_operation(path, after, version)])
        except (BadVersion, NodeExists, NoNode):
            continue  # somebody was faster: look again
        await client.multi([_notice(pattern)])
        return


def _operation(path: str, entries: tuple[AclEntry, ...], version: int | None) -> Operation:
    if version is None:
        return Create(path, acl_document(entries))
    return Set(path, acl_document(entries), version) if entries else Delete(path, version)


def _notice(pattern: ResourcePattern) -> Create:
    kind = pattern.resource.name
    if pattern.type is PatternType.LITERAL:
        return notice_of(ACL_CHANGES[0], f"{RESOURCE_WORDS[pattern.resource]}:{pattern.name}".encode())
    told = {"version": 1, "resourceType": kind, "name": pattern.name, "patternType": pattern.type.name}
    return notice_of(ACL_CHANGES[1], msgspec.json.encode(told))


async def _create_holders(client: ZooKeeperClient, path: str) -> None:
    for holder in (*holders_of(path), *ACL_CHANGES):
        if await client.exists(holder) is None:
            try:
                await client.multi([Create(holder, b"")])
            except NodeExists:
                continue


async def _children(client: ZooKeeperClient, path: str) -> list[str]:
    try:
        return [name for name in await client.children(path) if acl_pattern(f"{path}/{name}") is not None]
    except NoNode:
        return []
