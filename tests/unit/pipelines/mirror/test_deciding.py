"""Names, loops, what is made and altered, whose offsets move: without a broker."""

from typing import Any

import pytest

from ottla.model.names import TopicPartition
from ottla.pipelines.mirror import naming
from ottla.pipelines.mirror.deciding import checkpoints, forward_only, settings_work, topic_work
from ottla.pipelines.mirror.formats import Checkpoint, Heartbeat, OffsetSync
from ottla.pipelines.mirror.offset_map import Entry, OffsetMap
from ottla.pipelines.mirror.spec import Flow, read_mirror
from ottla.spark.writing.copied import Run

CLUSTERS = ["east", "north", "west"]


def flow(**changes: Any) -> Flow:
    values = {"from": "east", "to": "west"} | changes
    mirror, problems = read_mirror(
        {"name": "m", "clusters": {name: {"bootstrap": "b:1"} for name in CLUSTERS}, "flows": [values]}
    )
    assert mirror is not None, problems
    assert not problems
    return mirror.flows[0]


@pytest.mark.parametrize(
    ("changes", "topic", "taken"),
    [
        ({}, "orders", True),
        ({}, "north.orders", True),
        ({}, "west.orders", False),
        ({}, "north.west.orders", False),
        ({}, "sales.west.orders", True),  # `sales` is no cluster, so this is a name and no way
        ({}, "__consumer_offsets", False),
        ({}, "mm2-offset-syncs.west.internal", False),
        ({}, "north.checkpoints.internal", False),
        ({}, "ottla-offset-map.north.internal", False),
        ({}, "heartbeats", True),
        ({}, "west.heartbeats", False),
        ({"heartbeats": False}, "heartbeats", False),
        ({"topics": ["a.*", "b"]}, "b", True),
        ({"topics": ["a.*", "b"]}, "bb", False),
        ({"topics": ["a.*", "b"]}, "heartbeats", True),
        ({"exclude": ["a.*"]}, "abc", False),
        ({"topics": "a|b"}, "a", True),
    ],
)
def test_which_topics_are_taken(changes: dict[str, Any], topic: str, taken: bool) -> None:
    assert naming.takes(flow(**changes), topic, CLUSTERS) is taken


def test_names_at_the_other_end() -> None:
    assert naming.remote_name(flow(), "orders", CLUSTERS) == "east.orders"
    assert naming.remote_name(flow(names="keep"), "orders", CLUSTERS) == "orders"
    assert naming.remote_name(flow(names="keep"), "north.heartbeats", CLUSTERS) == "east.north.heartbeats"
    assert naming.refused_loops(flow(), ["west.a", "a", "west.__x", "north.west.b"], CLUSTERS) == [
        "north.west.b", "west.__x", "west.a",
    ]  # fmt: skip


def test_groups() -> None:
    assert naming.wants_group(flow(), "shop")
    assert not naming.wants_group(flow(), "console-consumer-1")
    assert not naming.wants_group(flow(), "ottla.m.east-west.records")
    assert not naming.wants_group(flow(groups=["a.*"]), "b")


def test_topics_to_make_and_to_widen() -> None:
    wanted = [TopicPartition("a", 0), TopicPartition("a", 2), TopicPartition("b", 1), TopicPartition("c", 0)]
    work = topic_work(wanted, {"b": 1, "c": 5})
    assert (work.make, work.widen) == ({"a": 3}, {"b": 2})


def test_settings_follow_and_go() -> None:
    work = settings_work({"retention.ms": "1", "min.insync.replicas": "2", "x": "y"}, {"x": "y", "old": "1"},
                         ["min.insync.replicas"])  # fmt: skip
    assert (work.set, work.reset) == ({"retention.ms": "1"}, ["old"])
    assert not settings_work({"a": "1"}, {"a": "1", "min.insync.replicas": "1"}, ["min.insync.replicas"])


def test_groups_move_only_forward() -> None:
    known = OffsetMap()
    here, there = TopicPartition("o", 0), TopicPartition("east.o", 0)
    known.add([Entry(here, there, [Run(0, 10, 5)])])
    points = checkpoints("g", {here: 3, TopicPartition("other", 0): 1}, known, whole=True)
    assert points == [Checkpoint("g", "east.o", 0, 3, 13)]
    assert forward_only(points, {}) == {there: 13}
    assert forward_only(points, {there: 13}) == {}
    assert forward_only(points, {there: 20}) == {}


def test_bytes_of_mirror_makers_topics() -> None:
    beat = Heartbeat("A", "BC", 1)
    assert (beat.key(), beat.value()) == (b"\x00\x01A\x00\x02BC", b"\x00\x00" + b"\x00" * 7 + b"\x01")
    point = Checkpoint("g", "A.t", 2, 3, 4, "m")
    assert point.key() == b"\x00\x01g\x00\x03A.t\x00\x00\x00\x02"
    assert point.value() == b"\x00\x00" + b"\x00" * 7 + b"\x03" + b"\x00" * 7 + b"\x04" + b"\x00\x01m"
    sync = OffsetSync("t", 1, 5, 6)
    assert sync.key() == b"\x00\x01t\x00\x00\x00\x01"
    assert sync.value() == b"\x00" * 7 + b"\x05" + b"\x00" * 7 + b"\x06"


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"flows": []}, "flows: there is none"),
        ({"flows": [{"from": "east", "to": "wst"}]}, "flows[0].to: there is no cluster `wst`"),
        ({"flows": [{"from": "east", "to": "east"}]}, "from one cluster to another"),
        ({"flows": [{"from": "east", "to": "west", "topics": "("}]}, "is not a regular expression"),
        ({"flows": [{"from": "east", "to": "west", "names": "keep", "provenance": False}]}, "leave it on"),
        ({"flows": [{"from": "east", "to": "west", "topic": "a"}]}, "a flow has no key `topic`"),
        ({"flows": [{"from": "east", "to": "west"}] * 2}, "there is a flow from `east` to `west` already"),
        ({"flows": [{"from": "east", "to": "west", "group_interval": "soon"}]}, "flows[0].group_interval"),
        ({"name": "a.b"}, "name: wants letters"),
        ({"errors": {"dead_letter": "d"}}, "no dead letters"),
    ],
)
def test_what_a_file_may_not_say(changes: dict[str, Any], text: str) -> None:
    values = {
        "name": "m",
        "clusters": {"east": {"bootstrap": "e:1"}, "west": {"bootstrap": "w:1"}},
        "flows": [{"from": "east", "to": "west"}],
    }
    _, problems = read_mirror(values | changes)
    assert text in "\n".join(f"{place}: {said}" for place, said in problems)
