"""Standbys without a broker: which rules and places are copied, how old the copy is, what is turned round."""

from typing import Any

import pytest

from ottla.model.acls import ALL_OPERATIONS, AclBinding, AclEntry, PatternType, Permission, ResourcePattern
from ottla.model.names import TopicPartition
from ottla.model.rights import Operation, Resource
from ottla.pipelines.durations import bytes_of
from ottla.pipelines.mirror.deciding import acl_work, same_places
from ottla.pipelines.mirror.failing_back import Tail, reversed_file, tails
from ottla.pipelines.mirror.following import Looks
from ottla.pipelines.mirror.promoting import missing
from ottla.pipelines.mirror.spec import read_mirror

A, B = TopicPartition("a", 0), TopicPartition("b", 0)


def rule(
    name: str,
    operation: int,
    *,
    permission: Permission = Permission.ALLOW,
    kind: PatternType = PatternType.LITERAL,
    resource: Resource = Resource.TOPIC,
) -> AclBinding:
    return AclBinding(ResourcePattern(resource, name, kind), AclEntry("User:alice", "*", int(operation), permission))


def test_rules_as_mirror_maker_copies_them() -> None:
    source = [
        rule("orders", Operation.READ), rule("orders", Operation.WRITE), rule("orders", ALL_OPERATIONS),
        rule("orders", Operation.WRITE, permission=Permission.DENY), rule("other", Operation.READ),
        rule("ord", Operation.READ, kind=PatternType.PREFIXED), rule("*", Operation.DESCRIBE),
        rule("orders", Operation.READ, resource=Resource.GROUP),
    ]  # fmt: skip
    work = acl_work(source, [rule("east.orders", Operation.READ)], {"orders": "east.orders"}, may_write=False)
    assert work.create == [rule("east.orders", Operation.WRITE, permission=Permission.DENY)]
    assert work.left_out == [source[1], source[5], source[6]]
    as_they_are = acl_work(source, [], {"orders": "orders"}, may_write=True)
    assert as_they_are.create == source[:4]
    assert as_they_are.left_out == [source[5], source[6]]


def test_groups_of_a_standby_stand_where_they_do_in_the_source_but_not_behind_its_end() -> None:
    assert same_places({A: 5, B: 9}, {}, {A: 10, B: 7}) == {A: 5, B: 7}
    assert same_places({A: 5, B: 9}, {A: 8, B: 7}, {A: 10, B: 7}) == {A: 5}
    assert same_places({A: 5}, {}, {}) == {}


def test_how_old_a_copy_is() -> None:
    looks = Looks()
    assert looks.add(1.0, {A: 10, B: 0}, {A: 8}).whole_at is None
    assert looks.add(2.0, {A: 12, B: 0}, {A: 11}).whole_at == 1.0
    assert looks.add(3.0, {A: 12, B: 1}, {A: 12}).whole_at == 2.0
    seen = looks.add(4.0, {A: 12, B: 1}, {A: 12, B: 1})
    assert (seen.whole_at, seen.ends) == (4.0, {"a": {"0": 12}, "b": {"0": 1}})
    assert missing({A: 10}, {A: 12, B: 1}) == 3
    assert missing({A: 13, B: 1}, {A: 12, B: 1}) == 0


def test_the_way_back() -> None:
    flow = {"from": "east", "to": "west", "offsets": "keep", "names": "keep"}
    values = {"name": "m", "clusters": {}, "flows": [flow, {"from": "west", "to": "north"}]}
    assert reversed_file(values, ["east-west"])["flows"] == [{**flow, "from": "west", "to": "east"}]
    assert tails({A: 10}, {A: 12, B: 3}) == [
        Tail(partition="a-0", first=10, records=2), Tail(partition="b-0", first=0, records=3),
    ]  # fmt: skip
    assert tails({A: 10}, {A: 10}) == []


@pytest.mark.parametrize(("text", "size"), [("20 MB", 20_000_000), (5, 5), ("1.5 kib", 1_536), ("7", 7)])
def test_amounts_of_bytes(text: str | int, size: int) -> None:
    assert bytes_of(text) == size


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"names": "prefix"}, "wants `names: keep`"),
        ({"compression": "lz4"}, "flows[0].compression: means nothing with `offsets: keep`"),
        ({"provenance": True}, "flows[0].provenance: means nothing"),
        ({"start": "latest"}, "flows[0].start: means nothing"),
        ({"heartbeats": False}, "flows[0].heartbeats: means nothing"),
        ({"group_offsets": "checkpoints"}, "offsets are the same at both ends"),
        ({"throttle": "fast"}, "flows[0].throttle: `fast` is not an amount of bytes"),
        ({"throttle": 0}, "flows[0].throttle: `0` is not an amount of bytes"),
    ],
)
def test_what_a_standby_may_not_say(changes: dict[str, Any], text: str) -> None:
    _, problems = read_mirror(a_mirror(changes))
    assert text in "\n".join(f"{place}: {said}" for place, said in problems)


def test_a_standby_has_neither_heartbeats_nor_provenance() -> None:
    mirror, problems = read_mirror(a_mirror({"throttle": "1 MB", "limits": {"max_records": 7}}))
    assert mirror is not None
    assert not problems
    (flow,) = mirror.flows
    assert (flow.is_standby, flow.heartbeats, flow.provenance, flow.bytes_per_second) == (True, False, False, 1_000_000)
    assert flow.limits is not None
    assert flow.limits.max_records == 7


def a_mirror(changes: dict[str, Any]) -> dict[str, Any]:
    flow = {"from": "east", "to": "west", "names": "keep", "offsets": "keep"}
    clusters = {"east": {"bootstrap": "e:1"}, "west": {"bootstrap": "w:1"}}
    return {"name": "m", "clusters": clusters, "flows": [flow | changes]}
