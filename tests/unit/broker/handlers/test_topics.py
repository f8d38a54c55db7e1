"""CreateTopics, DeleteTopics, CreatePartitions."""

import uuid
from collections.abc import Callable

import pytest
from tests.unit.broker.handlers.conftest import Harness

from ottla.model.errors import ErrorCode
from ottla.model.names import NO_TOPIC_ID
from ottla.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from ottla.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState


def create(
    harness: Harness, *topics: CreatableTopic, version: int = 7, validate_only: bool = False
) -> CreateTopicsResponse:
    request = CreateTopicsRequest(topics=list(topics), timeout_ms=1000, validate_only=validate_only)
    return harness.call(request, CreateTopicsResponse, version)


def plain(name: str, partitions: int = -1, factor: int = -1, **configs: str) -> CreatableTopic:
    settings = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
    return CreatableTopic(name=name, num_partitions=partitions, replication_factor=factor, configs=settings)


@pytest.mark.parametrize("version", range(2, 8))
def test_a_created_topic_can_be_used_at_once(harness: Harness, version: int) -> None:
    (result,) = create(harness, plain("a", 3, 1, retention_ms="5"), version=version).topics
    assert (result.name, result.error_code, result.error_message) == ("a", ErrorCode.NONE, None)
    assert harness.partitions.get(("a", 2)).log.config.retention_ms == 5
    if version >= 5:
        assert (result.num_partitions, result.replication_factor) == (3, 1)
        assert result.configs is not None
        told = {config.name: (config.value, config.config_source) for config in result.configs}
        assert told["retention.ms"] == ("5", 1)
        assert told["segment.bytes"] == ("1073741824", 5)
        assert list(told) == sorted(told)
    if version >= 7:
        assert result.topic_id == harness.store.image.topics["a"].topic_id


def test_refusals_stand_beside_successes(harness: Harness) -> None:
    response = create(
        harness,
        plain("ok"),
        plain("bad name"),
        plain("many", 0),
        plain("copies", 1, 3),
        plain("setting", retention_ms="x"),
        CreatableTopic(
            name="assigned",
            num_partitions=-1,
            replication_factor=-1,
            assignments=[CreatableReplicaAssignment(partition_index=0, broker_ids=[7])],
        ),
    )
    assert {topic.name: topic.error_code for topic in response.topics} == {
        "ok": ErrorCode.NONE,
        "bad name": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "many": ErrorCode.INVALID_PARTITIONS,
        "copies": ErrorCode.INVALID_REPLICATION_FACTOR,
        "setting": ErrorCode.INVALID_CONFIG,
        "assigned": ErrorCode.INVALID_REPLICA_ASSIGNMENT,
    }
    assert all(topic.error_message for topic in response.topics if topic.error_code)
    assert set(harness.store.image.topics) == {"ok"}
    (again,) = create(harness, plain("ok")).topics
    assert again.error_code == ErrorCode.TOPIC_ALREADY_EXISTS


def test_validate_only_tells_and_does_nothing(harness: Harness) -> None:
    (result,) = create(harness, plain("a", 2), validate_only=True).topics
    assert (result.error_code, result.num_partitions) == (ErrorCode.NONE, 2)
    assert not harness.store.image.topics


def test_too_many_partitions_refuse_the_whole_request(harness: Harness) -> None:
    response = create(harness, plain("a", 10_000), plain("b", 1))
    assert [topic.error_code for topic in response.topics] == [ErrorCode.POLICY_VIOLATION] * 2


@pytest.mark.parametrize("version", range(1, 7))
def test_a_deleted_topic_is_gone_at_once(harness: Harness, version: int) -> None:
    create(harness, plain("a"), plain("b"))
    request = DeleteTopicsRequest(topic_names=["a", "nope"])
    if version >= 6:
        topic_id = harness.store.image.topics["a"].topic_id
        request = DeleteTopicsRequest(
            topics=[DeleteTopicState(topic_id=topic_id), DeleteTopicState(name="nope", topic_id=NO_TOPIC_ID)]
        )
    response = harness.call(request, DeleteTopicsResponse, version)
    assert [(r.name, r.error_code) for r in response.responses] == [
        ("a", ErrorCode.NONE),
        ("nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert set(harness.store.image.topics) == {"b"}
    assert harness.partitions.find("a", 0) is None


def test_an_unknown_id_is_answered_without_a_name(harness: Harness) -> None:
    request = DeleteTopicsRequest(topics=[DeleteTopicState(topic_id=uuid.uuid4())])
    (result,) = harness.call(request, DeleteTopicsResponse, 6).responses
    assert (result.name, result.error_code) == (None, ErrorCode.UNKNOWN_TOPIC_ID)


@pytest.mark.parametrize(("version", "code"), [(2, ErrorCode.INVALID_REQUEST), (3, ErrorCode.TOPIC_DELETION_DISABLED)])
def test_deleting_can_be_switched_off(start: Callable[..., Harness], version: int, code: ErrorCode) -> None:
    harness = start(delete_topic_enable="false")
    create(harness, plain("a"))
    (result,) = harness.call(DeleteTopicsRequest(topic_names=["a"]), DeleteTopicsResponse, version).responses
    assert result.error_code == code
    assert "a" in harness.store.image.topics


@pytest.mark.parametrize("version", range(4))
def test_more_partitions_can_be_used_at_once(harness: Harness, version: int) -> None:
    create(harness, plain("a", 1))
    request = CreatePartitionsRequest(
        topics=[
            CreatePartitionsTopic(name="a", count=3, assignments=None),
            CreatePartitionsTopic(name="nope", count=3, assignments=None),
        ]
    )
    response = harness.call(request, CreatePartitionsResponse, version)
    assert [(r.name, r.error_code) for r in response.results] == [
        ("a", ErrorCode.NONE),
        ("nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert harness.partitions.get(("a", 2)).log.end_offset == 0
    fewer = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="a", count=2, assignments=None)])
    (result,) = harness.call(fewer, CreatePartitionsResponse, version).results
    assert result.error_code == ErrorCode.INVALID_PARTITIONS
