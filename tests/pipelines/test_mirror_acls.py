"""Rules of access between two clusters that have an authorizer each."""

from collections.abc import Iterator

import pytest

from ottla.client import admin
from ottla.client.acls import create_acls, describe_acls
from ottla.client.cluster import Cluster
from ottla.client.settings import client_settings
from ottla.config.access import AUTHORIZERS
from ottla.model.acls import ALL_OPERATIONS, AclBinding, AclEntry, AclFilter, PatternType, Permission, ResourcePattern
from ottla.model.rights import Operation, Resource
from ottla.pipelines.mirror.spec import Flow
from ottla.pipelines.mirror.topics import keep_acls
from ottla.spark import loop
from ottla.spark.connections import shared_cluster
from ottla.testing import broker as started_broker

SETTINGS = {"authorizer.class.name": next(iter(AUTHORIZERS)), "super.users": "User:ANONYMOUS"}


@pytest.fixture
def ends() -> Iterator[tuple[Cluster, Cluster]]:
    with started_broker(SETTINGS) as east, started_broker(SETTINGS) as west:
        yield (
            shared_cluster(client_settings({"bootstrap.servers": east.bootstrap})),
            shared_cluster(client_settings({"bootstrap.servers": west.bootstrap})),
        )


def rule(name: str, operation: int, kind: PatternType = PatternType.LITERAL) -> AclBinding:
    pattern = ResourcePattern(Resource.TOPIC, name, kind)
    return AclBinding(pattern, AclEntry("User:alice", "*", int(operation), Permission.ALLOW))


def test_rules_are_copied_and_those_that_stay_behind_are_named(ends: tuple[Cluster, Cluster]) -> None:
    east, west = ends
    loop.run(admin.create_topic(east, "orders", partitions=1, replication_factor=1))
    for name in ("east.orders", "orders"):
        loop.run(admin.create_topic(west, name, partitions=1, replication_factor=1))
    prefixed = rule("ord", Operation.READ, PatternType.PREFIXED)
    writes, everything = rule("orders", Operation.WRITE), rule("orders", ALL_OPERATIONS)
    loop.run(create_acls(east, [writes, everything, prefixed, rule("other", Operation.READ)]))

    flow = Flow(source="east", target="west", heartbeats=False)
    said = loop.run(keep_acls(east, west, flow, ["east", "west"]))
    added = rule("east.orders", Operation.READ)
    assert loop.run(describe_acls(west, AclFilter(resource=Resource.TOPIC))) == [added]
    behind = {f"rule that stays behind: {each}" for each in (writes, prefixed)}
    assert set(said) == {f"rule added: {added}", *behind}
    assert set(loop.run(keep_acls(east, west, flow, ["east", "west"]))) == behind

    standby = Flow(source="east", target="west", names="keep", offsets="keep", heartbeats=False)
    loop.run(keep_acls(east, west, standby, ["east", "west"]))
    there = set(loop.run(describe_acls(west, AclFilter(resource=Resource.TOPIC))))
    assert there == {added, writes, everything}
