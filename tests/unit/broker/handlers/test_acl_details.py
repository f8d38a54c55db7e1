"""Answers from which something is left out, what is hidden from whom, and the access control lists' own APIs."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.broker.handlers.acl_world import ADMIN, ALICE, HOST, AclWorld, Closed, error_codes, secured
from tests.unit.broker.handlers.conftest import Harness
from tests.unit.broker.handlers.partition_requests import batch, to_bytes

from ottla.broker.handlers.context import Call, Raw
from ottla.broker.handlers.fetch import handle as handle_fetch
from ottla.broker.session import Principal, Session
from ottla.cluster.embedded import EmbeddedStore
from ottla.model.acls import ALL_OPERATIONS, AclEntry, PatternType, Permission, ResourcePattern
from ottla.model.errors import ErrorCode
from ottla.model.names import NO_TOPIC_ID
from ottla.model.rights import Operation, Resource
from ottla.protocol.apis import ApiKey
from ottla.protocol.codec import decode
from ottla.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.messages.describe_acls import DescribeAclsRequest
from ottla.protocol.messages.describe_cluster import DescribeClusterRequest
from ottla.protocol.messages.describe_groups import DescribeGroupsRequest
from ottla.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from ottla.protocol.messages.describe_transactions import DescribeTransactionsRequest
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.protocol.messages.list_groups import ListGroupsRequest
from ottla.protocol.messages.list_transactions import ListTransactionsRequest
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.offset_fetch import OffsetFetchRequest
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

_O, _R = Operation, Resource
TOPIC_FAILED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


@pytest.fixture
def world(tmp_path: Path) -> Iterator[AclWorld]:
    with secured(tmp_path / "broker") as world:
        world.create("a", "b")
        for kind in (0, 1):
            world.ask(FindCoordinatorRequest(key="g", key_type=kind), 1, ADMIN)
        yield world


def commit(world: AclWorld, group: str) -> None:
    topics = [
        OffsetCommitRequestTopic(name=name, partitions=[OffsetCommitRequestPartition(committed_offset=1)])
        for name in "ab"
    ]
    assert set(error_codes(world.ask(OffsetCommitRequest(group_id=group, topics=topics), 5, ADMIN))) == {0}


def produce(name: str, acks: int = 1) -> ProduceRequest:
    records = batch(-1, -1, epoch=-1, transactional=False)
    topic = TopicProduceData(name=name, partition_data=[PartitionProduceData(index=0, records=records)])
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[topic])


def test_of_all_topics_those_that_may_not_be_described_are_left_out(world: AclWorld) -> None:
    world.grant(_O.READ, _R.TOPIC, "a")
    for version in range(14):
        everything = MetadataRequest(topics=[] if version == 0 else None)
        assert [topic.name for topic in world.ask(everything, version).topics] == ["a"]
    described = world.ask(DescribeTopicPartitionsRequest(), 0)
    assert [(topic.name, topic.error_code) for topic in described.topics] == [("a", 0)]


def test_a_hidden_topic_is_not_told_to_exist(world: AclWorld) -> None:
    asked = MetadataRequest(topics=[MetadataRequestTopic(name="a"), MetadataRequestTopic(name="nowhere")])
    for version in range(9, 14):
        told = world.ask(asked, version).topics
        assert [(topic.error_code, topic.topic_id, topic.partitions) for topic in told] == [
            (TOPIC_FAILED, NO_TOPIC_ID, [])
        ] * 2
    by_id = MetadataRequest(
        topics=[MetadataRequestTopic(name=None, topic_id=world.harness.store.image.topics["a"].topic_id)]
    )
    (topic,) = world.ask(by_id, 12).topics
    assert (topic.error_code, topic.name) == (TOPIC_FAILED, None)


def test_a_topic_that_may_be_described_but_not_deleted_is_called_by_its_name(world: AclWorld) -> None:
    wanted = world.harness.store.image.topics["a"].topic_id
    asked = DeleteTopicsRequest(topics=[DeleteTopicState(name=None, topic_id=wanted)], timeout_ms=100)
    (hidden,) = world.ask(asked, 6).responses
    assert (hidden.name, hidden.topic_id, hidden.error_code) == (None, wanted, TOPIC_FAILED)
    world.grant(_O.DESCRIBE, _R.TOPIC, "a")
    (seen,) = world.ask(asked, 6).responses
    assert (seen.name, seen.error_code) == ("a", TOPIC_FAILED)
    world.grant(_O.DELETE, _R.TOPIC, "a")
    (gone,) = world.ask(asked, 6).responses
    assert (gone.name, gone.error_code) == ("a", 0)


def test_who_creates_a_topic_sees_its_settings_only_if_it_may(world: AclWorld) -> None:
    world.grant(_O.CREATE, _R.TOPIC, "n", type=PatternType.PREFIXED)
    for version in range(5, 8):
        new = CreatableTopic(name=f"n{version}", num_partitions=2, replication_factor=1)
        (made,) = world.ask(CreateTopicsRequest(topics=[new], timeout_ms=1000), version).topics
        assert (made.error_code, made.topic_config_error_code) == (0, TOPIC_FAILED)
        assert (made.configs, made.num_partitions, made.replication_factor) == (None, -1, -1)
    world.grant(_O.DESCRIBE_CONFIGS, _R.TOPIC, "*")
    new = CreatableTopic(name="n", num_partitions=2, replication_factor=1)
    (made,) = world.ask(CreateTopicsRequest(topics=[new], timeout_ms=1000), 7).topics
    assert (made.topic_config_error_code, made.num_partitions) == (0, 2)
    assert made.configs


def test_groups_that_may_not_be_described_are_left_out_of_the_list(world: AclWorld) -> None:
    for group in ("g1", "g2", "h"):
        commit(world, group)

    def listed() -> list[str]:
        return sorted(group.group_id for group in world.ask(ListGroupsRequest(), 5).groups)

    assert listed() == []
    world.grant(_O.READ, _R.GROUP, "g", type=PatternType.PREFIXED)
    assert listed() == ["g1", "g2"]
    world.grant(_O.DESCRIBE, _R.CLUSTER)
    assert listed() == ["g1", "g2", "h"]


def test_of_all_offsets_those_of_hidden_topics_are_left_out(world: AclWorld) -> None:
    commit(world, "g")
    world.grant(_O.DESCRIBE, _R.GROUP, "g")
    for version in range(2, 8):
        everything = OffsetFetchRequest(group_id="g", topics=None)
        world.grant(_O.DESCRIBE, _R.TOPIC, "b")
        assert [topic.name for topic in world.ask(everything, version).topics] == ["b"]


def test_a_group_with_members_of_hidden_topics_is_not_described(world: AclWorld) -> None:
    joins = ConsumerGroupHeartbeatRequest(
        group_id="g", member_id="m", subscribed_topic_names=["a"], topic_partitions=[], rebalance_timeout_ms=1000
    )
    assert world.ask(joins, 1, ADMIN).error_code == 0
    world.grant(_O.DESCRIBE, _R.GROUP, "g")
    asked = ConsumerGroupDescribeRequest(group_ids=["g"], include_authorized_operations=True)
    (refused,) = world.ask(asked, 1).groups
    assert (refused.error_code, refused.members) == (TOPIC_FAILED, [])
    assert "not authorized to describe" in refused.error_message
    world.grant(_O.DESCRIBE, _R.TOPIC, "a")
    (described,) = world.ask(asked, 1).groups
    assert (described.error_code, len(described.members)) == (0, 1)
    assert described.authorized_operations == 1 << _O.DESCRIBE


def test_transactions_show_the_partitions_that_may_be_described(world: AclWorld) -> None:
    for name in ("x", "y"):
        assert world.ask(InitProducerIdRequest(name, 1000), 4, ADMIN).error_code == 0

    def listed() -> list[str]:
        return [each.transactional_id for each in world.ask(ListTransactionsRequest(), 1).transaction_states]

    assert listed() == []
    world.grant(_O.DESCRIBE, _R.TRANSACTIONAL_ID, "x")
    assert listed() == ["x"]
    states = world.ask(DescribeTransactionsRequest(["x", "y"]), 0).transaction_states
    assert [state.error_code for state in states] == [0, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED]


def test_authorized_operations_are_those_of_the_client(world: AclWorld) -> None:
    asked = MetadataRequest(
        topics=[MetadataRequestTopic(name="a")],
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )
    world.grant(_O.READ, _R.TOPIC, "a")
    told = world.ask(asked, 9)
    assert told.topics[0].topic_authorized_operations == 1 << _O.READ | 1 << _O.DESCRIBE
    assert told.cluster_authorized_operations == 0, "who may not describe the cluster is told of nothing"
    world.grant(_O.ALTER, _R.CLUSTER)
    assert world.ask(asked, 9).cluster_authorized_operations == 1 << _O.ALTER | 1 << _O.DESCRIBE
    described = world.ask(DescribeClusterRequest(include_cluster_authorized_operations=True), 1)
    assert described.cluster_authorized_operations == 1 << _O.ALTER | 1 << _O.DESCRIBE
    world.grant(ALL_OPERATIONS, _R.GROUP, "g")
    groups = world.ask(DescribeGroupsRequest(["g"], include_authorized_operations=True), 5).groups
    assert groups[0].authorized_operations == 0b1101_0100_1000
    full = world.ask(asked, 9, ADMIN)
    assert (full.topics[0].topic_authorized_operations, full.cluster_authorized_operations) == (3576, 8096)


def test_a_produce_without_answer_that_is_refused_ends_the_connection(world: AclWorld) -> None:
    with pytest.raises(Closed):
        world.ask(produce("a", acks=0), 9)
    world.grant(_O.WRITE, _R.TOPIC, "a")
    assert world.ask(produce("a", acks=0), 9) is None


def test_hosts_denials_and_prefixes_count(world: AclWorld) -> None:
    def refused(host: str = HOST) -> list[int]:
        return list(error_codes(world.ask(produce("a"), 9, ALICE, host)))

    world.grant(_O.WRITE, _R.TOPIC, "a", host=HOST)
    assert (refused(), refused("10.9.9.9")) == ([0], [29])
    world.grant(_O.WRITE, _R.TOPIC, "a", principal="User:*", type=PatternType.PREFIXED, permission=Permission.DENY)
    assert refused() == [29]
    assert list(error_codes(world.ask(produce("a"), 9, ADMIN))) == [0], "nobody denies anything to a super user"


def test_a_session_of_fetches_ends_when_the_right_is_withdrawn_even_if_nothing_comes(world: AclWorld) -> None:
    """A partition without news is not read in a session; that it may not be read any more is news."""
    broker, session = world.broker, Session("PLAINTEXT", HOST)
    session.authenticated(Principal("User", "alice"))
    world.grant(_O.READ, _R.TOPIC, "a")

    def fetch(session_id: int, epoch: int) -> FetchResponse:
        topics = [FetchTopic(topic="a", partitions=[FetchPartition(partition_max_bytes=100)])] if not epoch else []
        request = FetchRequest(max_bytes=1000, session_id=session_id, session_epoch=epoch, topics=topics)
        raw = handle_fetch(broker, Call(ApiKey.FETCH, 12, "c", session), request)
        assert isinstance(raw, Raw)
        return decode(FetchResponse, 12, to_bytes(raw))

    first = fetch(0, 0)
    assert [code for code in error_codes(first) if code] == []
    assert fetch(first.session_id, 1).responses == []
    world.withdraw_all()
    assert [code for code in error_codes(fetch(first.session_id, 2)) if code] == [29]


# -- the lists' own APIs


def creation(**changes: Any) -> AclCreation:
    given = {
        "resource_type": 2, "resource_name": "t", "resource_pattern_type": 3, "principal": "User:b", "host": "*",
        "operation": 3, "permission_type": 3,
    }  # fmt: skip
    return AclCreation(**{**given, **changes})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"resource_name": ""}, "Resource name should not be empty"),
        ({"resource_type": 1}, "Invalid resourceType"),
        ({"resource_type": 99}, "Invalid resourceType"),
        ({"resource_pattern_type": 1}, "Invalid patternType"),
        ({"resource_pattern_type": 2}, "Invalid patternType"),
        ({"operation": 1}, "Invalid operation"),
        ({"operation": 0}, "Invalid operation"),
        ({"permission_type": 1}, "Invalid permissionType"),
        ({"principal": "alice"}, "no colon is present"),
        ({"host": ""}, "Host"),
        ({"resource_type": 4, "resource_name": "mine"}, "kafka-cluster"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused_and_the_others_are_added(
    world: AclWorld, changes: dict[str, Any], words: str
) -> None:
    asked = CreateAclsRequest([creation(**changes), creation(principal="User:CN=x,O=y")])
    refused, added = world.ask(asked, 3, ADMIN).results
    assert (refused.error_code, added.error_code) == (ErrorCode.INVALID_REQUEST, 0)
    assert words in refused.error_message
    assert list(world.harness.store.image.acls.values()) == [
        (AclEntry("User:CN=x,O=y", "*", Operation.READ, Permission.ALLOW),)
    ]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_rules_are_added_described_and_removed(world: AclWorld, version: int) -> None:
    wanted = [
        creation(),
        creation(),  # twice is no mistake
        creation(operation=4),
        creation(resource_name="t", resource_pattern_type=4, permission_type=2),
        creation(resource_type=3, resource_name="a/b c%2F", principal="User:c"),
    ]
    assert [each.error_code for each in world.ask(CreateAclsRequest(wanted), version, ADMIN).results] == [0] * 5
    everything = DescribeAclsRequest(1, None, 1, None, None, 1, 1)
    found = world.ask(everything, version, ADMIN)
    assert [
        (each.resource_type, each.resource_name, each.pattern_type, len(each.acls)) for each in found.resources
    ] == [(2, "t", 3, 2), (2, "t", 4, 1), (3, "a/b c%2F", 3, 1)]
    assert found.error_message is None
    only = DescribeAclsRequest(2, "table", 2, "User:b", None, 3, 2)
    assert [each.pattern_type for each in world.ask(only, version, ADMIN).resources] == [4]

    filters = [DeleteAclsFilter(2, "t", 3, None, None, 4, 1), DeleteAclsFilter(3, None, 1, None, None, 1, 1)]
    filters.append(DeleteAclsFilter(77, None, 1, None, None, 1, 1))
    one, other, senseless = world.ask(DeleteAclsRequest(filters), version, ADMIN).filter_results
    assert [(rule.resource_name, rule.operation) for rule in one.matching_acls] == [("t", 4)]
    assert [(rule.resource_name, rule.principal) for rule in other.matching_acls] == [("a/b c%2F", "User:c")]
    assert (senseless.error_code, senseless.matching_acls) == (ErrorCode.INVALID_REQUEST, [])
    left = world.ask(everything, version, ADMIN).resources
    assert [(each.resource_name, each.pattern_type) for each in left] == [("t", 3), ("t", 4)]


def test_rules_count_at_once_and_outlive_the_broker(tmp_path: Path) -> None:
    with secured(tmp_path / "b") as world:
        world.create("a")
        allow = creation(resource_name="a", principal=ALICE, operation=4)
        assert world.codes(produce("a"), 9) == [29]
        world.ask(CreateAclsRequest([allow]), 3, ADMIN)
        assert world.codes(produce("a"), 9) == []
        world.ask(DeleteAclsRequest([DeleteAclsFilter(2, "a", 3, None, None, 1, 1)]), 3, ADMIN)
        assert world.codes(produce("a"), 9) == [29]
        world.ask(CreateAclsRequest([allow]), 3, ADMIN)
    store = EmbeddedStore.open(tmp_path / "b")
    asyncio.run(store.close())
    assert dict(store.image.acls) == {
        ResourcePattern(Resource.TOPIC, "a"): (AclEntry(ALICE, "*", Operation.WRITE, Permission.ALLOW),)
    }


@pytest.mark.parametrize("version", [1, 2, 3])
def test_without_an_authorizer_there_are_no_lists(start: Callable[..., Harness], version: int) -> None:
    world = AclWorld(start())
    with world.runner:
        assert world.ask(DescribeAclsRequest(1, None, 1, None, None, 1, 1), version).error_code == 54
        assert list(error_codes(world.ask(CreateAclsRequest([creation()] * 2), version))) == [54, 54]
        refused = world.ask(DeleteAclsRequest([DeleteAclsFilter(2, "a", 3, None, None, 1, 1)]), version)
        assert list(error_codes(refused)) == [54]
        assert isinstance(world.ask(CreateAclsRequest([]), version), CreateAclsResponse)


def test_everybody_may_use_what_no_rule_is_about_if_the_setting_says_so(tmp_path: Path) -> None:
    with secured(tmp_path / "b", allow_everyone_if_no_acl_found="true") as world:
        world.create("a", "b")
        assert world.codes(produce("a"), 9) == []
        world.grant(_O.READ, _R.TOPIC, "a", principal="User:other")
        assert world.codes(produce("a"), 9) == [29], "somebody has rules there now"
        assert world.codes(produce("b"), 9) == []
