"""Access control lists as documents: Kafka's layout in ZooKeeper, and what Kafka's own tools have left there."""

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.cluster.worlds import World, until

from ottla.cluster.acl_documents import acl_document, acl_path, acl_pattern, apply_acl_documents
from ottla.cluster.documents import change_of_documents
from ottla.cluster.image import ClusterImage, changes_between
from ottla.cluster.store import ABSENT, Write
from ottla.cluster.zookeeper.acl_editing import add_acls, read_acls, remove_acls
from ottla.cluster.zookeeper.acl_notices import KEPT_MAX, notice_of
from ottla.cluster.zookeeper.client import Create, Set, ZooKeeperClient
from ottla.cluster.zookeeper.store import ZooKeeperStore
from ottla.model.acls import ALL_OPERATIONS, AclBinding, AclEntry, AclFilter, PatternType, Permission, ResourcePattern
from ottla.model.rights import Operation, Resource

ORDERS = ResourcePattern(Resource.TOPIC, "orders")
READ = AclEntry("User:a", "*", Operation.READ, Permission.ALLOW)
WRITE = AclEntry("User:CN=b,O=c", "10.0.0.1", Operation.WRITE, Permission.DENY)


def test_documents_are_those_of_kafka() -> None:
    assert acl_path(ORDERS) == "/kafka-acl/Topic/orders"
    assert acl_path(ResourcePattern(Resource.TOPIC, "*")) == "/kafka-acl/Topic/*"
    prefixed = ResourcePattern(Resource.TRANSACTIONAL_ID, "x-", PatternType.PREFIXED)
    assert acl_path(prefixed) == "/kafka-acl-extended/prefixed/TransactionalId/x-"
    assert json.loads(acl_document([READ, WRITE])) == {
        "version": 1,
        "acls": [
            {"principal": "User:a", "permissionType": "Allow", "operation": "Read", "host": "*"},
            {"principal": "User:CN=b,O=c", "permissionType": "Deny", "operation": "Write", "host": "10.0.0.1"},
        ],
    }


@given(
    st.sampled_from(list(Resource)), st.text(min_size=1), st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED])
)
def test_a_path_tells_its_pattern_whatever_the_name(resource: Resource, name: str, type_: PatternType) -> None:
    pattern = ResourcePattern(resource, name, type_)
    try:
        name.encode()
    except UnicodeEncodeError:
        return  # no name on the wire
    path = acl_path(pattern)
    assert acl_pattern(path) == pattern
    node = path.rpartition("/")[2]
    assert node not in ("", ".", "..")
    assert path.count("/") == (5 if type_ is PatternType.PREFIXED else 3) - (type_ is PatternType.PREFIXED)


def test_a_document_that_cannot_be_read_denies_everything() -> None:
    for data in (b"{", b'{"acls":[{"principal":"User:a","permissionType":"Allow","operation":"Fly","host":"*"}]}'):
        acls, changed = apply_acl_documents({}, {acl_path(ORDERS): data})
        assert changed == (ORDERS,)
        assert acls[ORDERS] == (AclEntry("User:*", "*", ALL_OPERATIONS, Permission.DENY),)


def test_a_change_tells_the_patterns_that_differ() -> None:
    path = acl_path(ORDERS)
    first = change_of_documents(ClusterImage(), [(path, acl_document([READ])), ("/kafka-acl/Wat/x", b"{}")])
    assert (first.acls, dict(first.new.acls)) == ((ORDERS,), {ORDERS: (READ,)})
    same = change_of_documents(first.new, [(path, acl_document([READ, READ]))])
    assert (same.acls, same.new.acls) == ((), first.new.acls)
    gone = change_of_documents(first.new, [(path, None)])
    assert (gone.acls, dict(gone.new.acls)) == ((ORDERS,), {})
    assert changes_between(first.new, gone.new).acls == (ORDERS,)
    assert changes_between(first.new, first.new).acls == ()


async def as_kafkas_tool(client: ZooKeeperClient, path: str, document: bytes) -> None:
    """Kafka writes the list, and then a notice of it."""
    holders = ["/".join(path.split("/")[:depth]) for depth in range(2, path.count("/") + 1)]
    for holder in holders:
        if await client.exists(holder) is None:
            await client.multi([Create(holder, b"")])
    known = await client.exists(path)
    await client.multi([Create(path, document) if known is None else Set(path, document, known.version)])
    await client.multi([notice_of("/kafka-acl-changes", b"TOPIC:orders")])


def test_lists_that_kafka_left_are_read_and_changed(world: World) -> None:
    async def scenario() -> None:
        tool = world.client("tool")
        await tool.start(lambda _event: None, 20)
        for holder in ("/kafka-acl-changes",):
            await tool.multi([Create(holder, b"")])
        await as_kafkas_tool(tool, acl_path(ORDERS), acl_document([READ]))
        store, other = [await ZooKeeperStore.open(world.client(name), 20) for name in "ab"]
        assert dict(store.image.acls) == {ORDERS: (READ,)}
        write = Write(acl_path(ORDERS), acl_document([READ, WRITE]), store.version(acl_path(ORDERS)))
        await store.commit([write])
        await until(lambda: other.image.acls.get(ORDERS) == (READ, WRITE))
        slashed = ResourcePattern(Resource.GROUP, "a/b", PatternType.PREFIXED)
        await other.commit([Write(acl_path(slashed), acl_document([READ]), ABSENT)])
        await until(lambda: slashed in store.image.acls)
        for each in (store, other):
            await each.close()
        await tool.close()

    world.run(scenario())


def test_what_kafkas_tool_changes_meanwhile_is_heard_of(world: World) -> None:
    async def scenario() -> None:
        tool = world.client("tool")
        await tool.start(lambda _event: None, 20)
        stores = [await ZooKeeperStore.open(world.client(name), 20) for name in "ab"]
        heard: list[tuple[ResourcePattern, ...]] = []
        stores[1].subscribe(lambda change: heard.append(change.acls))
        for entries in ([READ], [READ, WRITE], [WRITE]):
            await as_kafkas_tool(tool, acl_path(ORDERS), acl_document(entries))
            expected = tuple(entries)
            await until(lambda: all(store.image.acls.get(ORDERS) == expected for store in stores))  # noqa: B023
        assert heard.count((ORDERS,)) >= 2
        for store in stores:
            await store.close()
        await tool.close()

    world.run(scenario())


def test_a_tool_that_edits_lists_in_zookeeper_minds_others(world: World) -> None:
    async def scenario() -> None:
        tool = world.client("tool")
        await tool.start(lambda _event: None, 20)
        everything = ResourcePattern(Resource.GROUP, "*")
        await add_acls(tool, [AclBinding(ORDERS, READ), AclBinding(everything, WRITE)])  # there is nothing at all yet
        store = await ZooKeeperStore.open(world.client("a"), 20)
        await add_acls(tool, [AclBinding(ORDERS, READ), AclBinding(ORDERS, WRITE)])
        await until(lambda: store.image.acls.get(ORDERS) == (READ, WRITE))
        await remove_acls(tool, [AclFilter(Resource.TOPIC, "orders", PatternType.MATCH, "User:a")])
        await remove_acls(tool, [AclFilter(Resource.GROUP)])
        await until(lambda: dict(store.image.acls) == {ORDERS: (WRITE,)})
        assert dict(await read_acls(tool)) == {ORDERS: (WRITE,)}
        await store.close()
        await tool.close()

    world.run(scenario())


@pytest.mark.parametrize("many", [KEPT_MAX + 50])
def test_old_notices_are_dropped(model_world: World, many: int) -> None:
    async def scenario() -> None:
        store = await ZooKeeperStore.open(model_world.client("a"), 20)
        notices = store._acl_notices
        client = notices._client
        for _ in range(many):
            await client.multi([notice_of("/kafka-acl-changes", b"TOPIC:orders")])
        notices.forget()
        assert await notices.came()
        assert not await notices.came()
        await notices.trim()
        assert len(await client.children("/kafka-acl-changes")) == KEPT_MAX
        await asyncio.sleep(0)
        await store.close()

    model_world.run(scenario())
