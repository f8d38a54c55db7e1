"""Metadata, DescribeCluster, DescribeTopicPartitions, DescribeLogDirs, ApiVersions, InitProducerId."""

import asyncio
import os
import uuid
from collections.abc import Callable

import pytest
from tests.unit.broker.handlers.conftest import Harness

from ottla.broker.controller.decisions import NewTopic
from ottla.model.errors import ErrorCode
from ottla.protocol.apis import ApiKey
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from ottla.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from ottla.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    RequestCursor,
    TopicRequest,
)
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

ALL_VERSIONS = range(14)


def create(harness: Harness, *topics: tuple[str, int]) -> None:
    wanted = [NewTopic(name, count) for name, count in topics]
    outcomes = asyncio.run(harness.broker.controller.create_topics(wanted))
    assert all(outcome.refusal is None for outcome in outcomes)


def ask(harness: Harness, version: int, *names: str, may_create: bool = False) -> MetadataResponse:
    topics = [MetadataRequestTopic(name=name) for name in names]
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=may_create)
    return harness.call(request, MetadataResponse, version)


def codes(response: MetadataResponse) -> dict[str | None, int]:
    return {topic.name: topic.error_code for topic in response.topics}


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_topic_and_its_broker(harness: Harness, version: int) -> None:
    create(harness, ("a", 2), ("b", 1))
    response = ask(harness, version, "a", "a")
    (topic,) = response.topics
    assert (topic.name, topic.error_code) == ("a", ErrorCode.NONE)
    assert [(p.partition_index, p.leader_id, p.replica_nodes, p.isr_nodes) for p in topic.partitions] == [
        (0, 1, [1], [1]),
        (1, 1, [1], [1]),
    ]
    assert [(b.node_id, b.host, b.port) for b in response.brokers] == [(1, "outside.example", 9092)]
    if version >= 1:
        assert (response.controller_id, response.brokers[0].rack) == (1, "rack-a")
    if version >= 2:
        assert response.cluster_id == harness.store.image.cluster_id
    if version >= 7:
        assert topic.partitions[0].leader_epoch == 0
    if version >= 10:
        assert topic.topic_id == harness.store.image.topics["a"].topic_id


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_all_topics_and_none(harness: Harness, version: int) -> None:
    create(harness, ("a", 1), ("b", 1))
    empty = harness.call(MetadataRequest(topics=[]), MetadataResponse, version)
    assert set(codes(empty)) == ({"a", "b"} if version == 0 else set())
    if version >= 1:
        everything = harness.call(MetadataRequest(topics=None), MetadataResponse, version)
        assert set(codes(everything)) == {"a", "b"}


def test_the_listener_decides_which_address_is_told(harness: Harness) -> None:
    create(harness, ("a", 1))
    request = MetadataRequest(topics=None)
    inside = harness.call(request, MetadataResponse, 13, listener="INSIDE")
    assert [(b.host, b.port) for b in inside.brokers] == [("::1", 19092)]
    for version, code in ((13, ErrorCode.LISTENER_NOT_FOUND), (5, ErrorCode.LEADER_NOT_AVAILABLE)):
        nowhere = harness.call(request, MetadataResponse, version, listener="OTHER")
        partition = nowhere.topics[0].partitions[0]
        assert (nowhere.brokers, partition.error_code, partition.leader_id) == ([], code, -1)


def test_topics_by_id(harness: Harness) -> None:
    create(harness, ("a", 1))
    unknown = uuid.uuid4()
    topics = [
        MetadataRequestTopic(topic_id=harness.store.image.topics["a"].topic_id, name=None),
        MetadataRequestTopic(topic_id=unknown, name=None),
    ]
    response = harness.call(MetadataRequest(topics=topics), MetadataResponse, 12)
    assert codes(response) == {"a": ErrorCode.NONE, None: ErrorCode.UNKNOWN_TOPIC_ID}
    assert [topic.topic_id for topic in response.topics if topic.error_code] == [unknown]
    refused = harness.call(MetadataRequest(topics=topics), MetadataResponse, 11)
    assert [topic.error_code for topic in refused.topics] == [ErrorCode.INVALID_REQUEST] * 2


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_an_unknown_topic_comes_into_being_if_allowed(start: Callable[..., Harness], version: int) -> None:
    harness = start(num_partitions="3")
    if version >= 4:
        assert codes(ask(harness, version, "new")) == {"new": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert not harness.store.image.topics
    response = ask(harness, version, "new", "bad name", "__transaction_state", may_create=True)
    assert codes(response) == {
        "new": ErrorCode.NONE,
        "bad name": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "__transaction_state": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert len(response.topics[0].partitions) == 3
    assert harness.partitions.get(("new", 2)).log.end_offset == 0


def test_the_broker_has_the_last_word_on_creation(start: Callable[..., Harness]) -> None:
    harness = start(auto_create_topics_enable="false")
    assert codes(ask(harness, 9, "new", may_create=True)) == {"new": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_the_offsets_topic_comes_with_its_own_settings(harness: Harness) -> None:
    (topic,) = ask(harness, 9, "__consumer_offsets", may_create=True).topics
    assert (len(topic.partitions), topic.is_internal) == (50, True)


def test_operations_are_told_when_asked_for(harness: Harness) -> None:
    create(harness, ("a", 1))
    request = MetadataRequest(
        topics=None, include_cluster_authorized_operations=True, include_topic_authorized_operations=True
    )
    response = harness.call(request, MetadataResponse, 9)
    # Kafka without an authorizer: every operation that fits the resource, as bits.
    assert (response.topics[0].topic_authorized_operations, response.cluster_authorized_operations) == (3576, 8096)
    assert ask(harness, 9, "a").topics[0].topic_authorized_operations == -(2**31)


@pytest.mark.parametrize("version", range(3))
def test_the_cluster_is_described(harness: Harness, version: int) -> None:
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    response = harness.call(request, DescribeClusterResponse, version)
    assert (response.error_code, response.cluster_id) == (ErrorCode.NONE, harness.store.image.cluster_id)
    assert (response.controller_id, response.cluster_authorized_operations) == (1, 8096)
    assert [(b.broker_id, b.host, b.rack, b.is_fenced) for b in response.brokers] == [
        (1, "outside.example", "rack-a", False)
    ]


def test_controllers_are_not_described(harness: Harness) -> None:
    for kind, code in ((2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (9, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)):
        response = harness.call(DescribeClusterRequest(endpoint_type=kind), DescribeClusterResponse, 1)
        assert response.error_code == code


def describe_pages(harness: Harness, limit: int, *names: str) -> list[list[tuple[str | None, int]]]:
    """Follow the cursor to the end."""
    pages, cursor = [], None
    while True:
        request = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name) for name in names], response_partition_limit=limit, cursor=cursor
        )
        response = harness.call(request, DescribeTopicPartitionsResponse, 0)
        pages.append([(topic.name, p.partition_index) for topic in response.topics for p in topic.partitions])
        if response.next_cursor is None:
            return pages
        cursor = RequestCursor(
            topic_name=response.next_cursor.topic_name, partition_index=response.next_cursor.partition_index
        )


def test_partitions_come_in_pages(harness: Harness) -> None:
    create(harness, ("b", 3), ("a", 2), ("c", 1))
    everything = [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("b", 2), ("c", 0)]
    for limit in (1, 2, 3, 4, 6, 2000, -1):
        pages = describe_pages(harness, limit)
        assert [entry for page in pages for entry in page] == everything
        assert all(len(page) <= max(limit, 1) for page in pages)
    assert describe_pages(harness, 2, "b", "a") == [[("a", 0), ("a", 1)], [("b", 0), ("b", 1)], [("b", 2)]]


def test_pages_have_the_brokers_limit(start: Callable[..., Harness]) -> None:
    harness = start(max_request_partition_size_limit="2")
    create(harness, ("a", 3))
    assert [len(page) for page in describe_pages(harness, 100)] == [2, 1]


def test_unknown_topics_and_senseless_cursors(harness: Harness) -> None:
    create(harness, ("a", 1))
    request = DescribeTopicPartitionsRequest(topics=[TopicRequest(name="no"), TopicRequest(name="a b")])
    response = harness.call(request, DescribeTopicPartitionsResponse, 0)
    assert {topic.name: topic.error_code for topic in response.topics} == {
        "no": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "a b": ErrorCode.INVALID_TOPIC_EXCEPTION,
    }
    for cursor in (RequestCursor(topic_name="other"), RequestCursor(topic_name="a", partition_index=-1)):
        request = DescribeTopicPartitionsRequest(topics=[TopicRequest(name="a")], cursor=cursor)
        response = harness.call(request, DescribeTopicPartitionsResponse, 0)
        assert [topic.error_code for topic in response.topics] == [ErrorCode.INVALID_REQUEST]


@pytest.mark.parametrize("version", range(1, 6))
def test_directories_with_their_partitions(harness: Harness, version: int) -> None:
    create(harness, ("a", 2), ("b", 1))
    response = harness.call(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse, version)
    (directory,) = response.results
    assert (directory.error_code, directory.log_dir) == (ErrorCode.NONE, harness.config.static.data_dirs[0])
    held = {(t.name, p.partition_index): p.partition_size for t in directory.topics for p in t.partitions}
    assert held == {("a", 0): 0, ("a", 1): 0, ("b", 0): 0}
    if version >= 4:
        assert 0 < directory.usable_bytes <= directory.total_bytes
    some = DescribeLogDirsRequest(topics=[DescribableLogDirTopic(topic="a", partitions=[1, 7])])
    (directory,) = harness.call(some, DescribeLogDirsResponse, version).results
    assert [(t.name, [p.partition_index for p in t.partitions]) for t in directory.topics] == [("a", [1])]


def test_a_directory_that_failed_says_so(harness: Harness) -> None:
    harness.logs.dirs[0].path = os.path.join(harness.logs.dirs[0].path, "gone")
    (directory,) = harness.call(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse, 4).results
    assert directory.error_code == ErrorCode.KAFKA_STORAGE_ERROR


@pytest.mark.parametrize("version", range(5))
def test_versions_are_told(harness: Harness, version: int) -> None:
    request = ApiVersionsRequest(client_software_name="some-client", client_software_version="1.0")
    response = harness.call(request, ApiVersionsResponse, version)
    told = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
    assert response.error_code == ErrorCode.NONE
    assert told[ApiKey.METADATA] == (0, 13)
    assert told[ApiKey.PRODUCE] == (0, 13)
    assert ApiKey.ALTER_PARTITION not in told
    if version >= 3:  # finalized features must come with an epoch, or Java clients leave them aside
        finalized = {feature.name: feature.max_version_level for feature in response.finalized_features}
        assert (finalized["transaction.version"], response.finalized_features_epoch >= 0) == (2, True)
    supported = {feature.name for feature in response.supported_features}
    assert ("transaction.version" in supported) == (version >= 4)


def test_a_client_must_name_itself_properly(harness: Harness) -> None:
    request = ApiVersionsRequest(client_software_name="-bad-", client_software_version="1.0")
    assert harness.call(request, ApiVersionsResponse, 3).error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("version", range(6))
def test_producers_get_ids_of_their_own(harness: Harness, version: int) -> None:
    request = InitProducerIdRequest(transactional_id=None)
    first, second = (harness.call(request, InitProducerIdResponse, version) for _ in range(2))
    assert (first.error_code, first.producer_id, first.producer_epoch) == (ErrorCode.NONE, 0, 0)
    assert second.producer_id == 1


def test_an_id_of_nothing_is_refused(harness: Harness) -> None:
    for wrong in (InitProducerIdRequest(transactional_id=""), InitProducerIdRequest(None, 0, 5, -1)):
        assert harness.call(wrong, InitProducerIdResponse, 4).error_code == ErrorCode.INVALID_REQUEST
