"""MirrorMaker's properties and flags as mirrors; what they cannot be is said."""

import pytest

from ottla.config.properties import parse_properties
from ottla.pipelines.mirror.mirror_maker import WrongProperties, from_flags, from_properties

MM2 = """
clusters = east, west
east.bootstrap.servers = e1:9092,e2:9092
west.bootstrap.servers = w:9092
west.security.protocol = SSL
client.id = mm
east->west.enabled = true
east->west.topics = orders.*, payments
west->east.enabled = false
topics.exclude = .*\\\\.tmp
groups = shop.*
sync.group.offsets.enabled = true
sync.group.offsets.interval.seconds = 5
emit.heartbeats.interval.seconds = 2
replication.factor = 1
tasks.max = 4
sync.topic.acls.enabled = true
east.consumer.fetch.min.bytes = 5
replicaton.factor = 3
"""


def test_mm2_properties() -> None:
    mirror, notes = from_properties(parse_properties(MM2), "mm2")
    (flow,) = mirror.flows
    assert (flow.source, flow.target, flow.names, flow.group_offsets) == ("east", "west", "prefix", "write")
    assert (flow.topics, flow.exclude, flow.groups) == (["orders.*", "payments"], (r".*\.tmp",), ["shop.*"])
    assert (flow.group_interval, flow.heartbeat_interval, flow.replication_factor) == ("5 seconds", "2 seconds", 1)
    assert flow.acls is (parse_properties(MM2).get("sync.topic.acls.enabled", "true") == "true")
    assert mirror.clusters["east"].bootstrap == "e1:9092,e2:9092"
    assert mirror.clusters["west"].client == {"client.id": "mm", "security.protocol": "SSL"}
    assert notes == [
        "east.consumer.fetch.min.bytes is not known here",
        "replicaton.factor is not known here",
        "tasks.max has no effect: Spark has as many tasks as --master gives it cores",
    ]


def test_switches_and_policies() -> None:
    base = parse_properties(MM2) | {"sync.group.offsets.enabled": "false"}
    assert from_properties(base, "m").mirror.flows[0].group_offsets == "checkpoints"
    assert from_properties(base | {"emit.checkpoints.enabled": "false"}, "m").mirror.flows[0].group_offsets == "off"
    identity = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
    both = base | {"replication.policy.class": identity, "west->east.enabled": "true"}
    assert [flow.names for flow in from_properties(both, "m").mirror.flows] == ["keep", "keep"]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"clusters": "east"}, "`clusters` names"),
        ({"west.bootstrap.servers": ""}, "`west.bootstrap.servers` is missing"),
        ({"east->west.enabled": "false"}, "no flow is enabled"),
        ({"replication.policy.class": "com.example.Mine"}, "class of the JVM"),
        ({"replication.policy.separator": "_"}, "by a dot"),
        ({"offset-syncs.topic.location": "target"}, "to the source only"),
        ({"emit.heartbeats.enabled": "yes"}, "true or false"),
        ({"topics": "(", "east->west.topics": "("}, "not a regular expression"),
    ],
)
def test_what_cannot_be(changes: dict[str, str], text: str) -> None:
    with pytest.raises(WrongProperties, match=text.replace("(", r"\(")):
        from_properties(parse_properties(MM2) | changes, "mm2")


def test_mm1_flags() -> None:
    consumer = {"bootstrap.servers": "s:1", "group.id": "copy", "auto.offset.reset": "earliest", "fetch.x": "1"}
    mirror, notes = from_flags(consumer, {"bootstrap.servers": "t:1", "compression.type": "zstd"}, "a,b.*")
    (flow,) = mirror.flows
    assert (mirror.name, flow.names, flow.start, flow.topics, flow.compression) == (
        "copy", "keep", "earliest", ["a", "b.*"], "zstd",
    )  # fmt: skip
    assert (flow.heartbeats, flow.settings, flow.group_offsets) == (False, False, "off")
    assert notes == ["fetch.x of --consumer.config is not known here"]
    with pytest.raises(WrongProperties, match=r"--producer\.config has no bootstrap"):
        from_flags(consumer, {}, "a")
