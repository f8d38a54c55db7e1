"""What is allowed with topics: pure decisions."""

import uuid
from collections.abc import Sequence

import pytest

from ottla.broker.controller.decisions import (
    PARTITIONS_PER_REQUEST_MAX,
    MorePartitions,
    NewTopic,
    automatic_topic,
    plan_deletions,
    plan_partitions,
    plan_topics,
)
from ottla.cluster.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from ottla.config.broker import BrokerSettings
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import CONSUMER_OFFSETS, NO_TOPIC_ID

SETTINGS = BrokerSettings(num_partitions=3)


def topic(name: str, partitions: int = 1, replicas: tuple[int, ...] = (1,)) -> TopicImage:
    return TopicImage(name, uuid.uuid4(), (PartitionImage(replicas[0], 0, replicas, replicas),) * partitions)


def cluster(*topics: TopicImage, brokers: Sequence[int] = (1,)) -> ClusterImage:
    image = ClusterImage(brokers={broker: BrokerImage(broker, None, ()) for broker in brokers})
    return image.with_topics(topics)


def plan_one(new: NewTopic, image: ClusterImage | None = None) -> TopicImage:
    (outcome,) = plan_topics([new], image or cluster(), SETTINGS, uuid.uuid4)
    if outcome.refusal is not None:
        raise outcome.refusal
    assert outcome.topic is not None
    return outcome.topic


def test_defaults_come_from_the_settings() -> None:
    planned = plan_one(NewTopic("a", configs=[("retention.ms", "5")]))
    assert planned.partitions == (PartitionImage(1, 0, (1,), (1,)),) * 3
    assert planned.configs == {"retention.ms": "5"}


def test_an_assignment_is_taken_as_given() -> None:
    planned = plan_one(NewTopic("a", assignments=[(1, [2, 1]), (0, [1, 2])]), cluster(brokers=(1, 2)))
    assert [partition.replicas for partition in planned.partitions] == [(1, 2), (2, 1)]
    assert [partition.leader for partition in planned.partitions] == [1, 2]


@pytest.mark.parametrize(
    ("new", "code"),
    [
        (NewTopic("a b"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic(""), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic("x" * 250), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic("__cluster_metadata"), ErrorCode.INVALID_REQUEST),
        (NewTopic("there"), ErrorCode.TOPIC_ALREADY_EXISTS),
        (NewTopic("with.dot"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic("a", partitions=0), ErrorCode.INVALID_PARTITIONS),
        (NewTopic("a", partitions=-2), ErrorCode.INVALID_PARTITIONS),
        (NewTopic("a", replication_factor=0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic("a", replication_factor=2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic("a", configs=[("retention.ms", "soon")]), ErrorCode.INVALID_CONFIG),
        (NewTopic("a", configs=[("retention", "1")]), ErrorCode.INVALID_CONFIG),
        (NewTopic("a", configs=[("retention.ms", None)]), ErrorCode.INVALID_CONFIG),
        (NewTopic("a", 1, -1, [(0, [1])]), ErrorCode.INVALID_REQUEST),
        (NewTopic("a", -1, 1, [(0, [1])]), ErrorCode.INVALID_REQUEST),
        (NewTopic("a", assignments=[(0, [])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("a", assignments=[(0, [1, 1])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("a", assignments=[(0, [7])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("a", assignments=[(0, [1]), (0, [1])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("a", assignments=[(1, [1])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_what_cannot_be_is_refused_with_kafkas_code(new: NewTopic, code: ErrorCode) -> None:
    with pytest.raises(ApiError) as caught:
        plan_one(new, cluster(topic("there"), topic("with_dot")))
    assert caught.value.code == code
    assert caught.value.message


def test_replica_lists_must_be_of_one_length() -> None:
    with pytest.raises(ApiError) as caught:
        plan_one(NewTopic("a", assignments=[(0, [1, 2]), (1, [1])]), cluster(brokers=(1, 2)))
    assert caught.value.code == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_one_refusal_does_not_stop_the_others() -> None:
    wanted = [NewTopic("ok"), NewTopic("no", partitions=0), NewTopic("twice"), NewTopic("twice"), NewTopic("o.k")]
    outcomes = plan_topics([*wanted, NewTopic("o_k")], cluster(), SETTINGS, uuid.uuid4)
    assert [(o.name, o.refusal.code if o.refusal else None) for o in outcomes] == [
        ("ok", None),
        ("no", ErrorCode.INVALID_PARTITIONS),
        ("twice", ErrorCode.INVALID_REQUEST),
        ("o.k", None),
        ("o_k", ErrorCode.INVALID_TOPIC_EXCEPTION),
    ]


def test_a_request_has_a_limit() -> None:
    with pytest.raises(ApiError) as caught:
        plan_topics([NewTopic("a", 9_999), NewTopic("b")], cluster(), SETTINGS, uuid.uuid4)
    assert caught.value.code == ErrorCode.POLICY_VIOLATION
    with pytest.raises(ApiError):
        plan_partitions([MorePartitions("a", PARTITIONS_PER_REQUEST_MAX + 2)], cluster(topic("a")))


def test_more_partitions() -> None:
    image = cluster(topic("a", 2, (2, 1)), brokers=(1, 2))
    outcomes = plan_partitions([MorePartitions("a", 4)], image)
    grown = outcomes[0].topic
    assert grown is not None
    assert grown.partitions[:2] == image.topics["a"].partitions
    assert [len(partition.replicas) for partition in grown.partitions] == [2, 2, 2, 2]
    assert grown.topic_id == image.topics["a"].topic_id


@pytest.mark.parametrize(
    ("more", "code"),
    [
        (MorePartitions("none", 2), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (MorePartitions("a", 2), ErrorCode.INVALID_PARTITIONS),
        (MorePartitions("a", 1), ErrorCode.INVALID_PARTITIONS),
        (MorePartitions("a", -1), ErrorCode.INVALID_PARTITIONS),
        (MorePartitions("a", 4, [[1]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (MorePartitions("a", 3, [[9]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_what_is_no_increase_is_refused(more: MorePartitions, code: ErrorCode) -> None:
    (outcome,) = plan_partitions([more], cluster(topic("a", 2)))
    assert outcome.refusal is not None
    assert outcome.refusal.code == code


def test_deletions_by_name_and_id() -> None:
    a, b, c = topic("a"), topic("b"), topic("c")
    unknown = uuid.uuid4()
    deletions = plan_deletions(
        [
            ("a", NO_TOPIC_ID),
            (None, b.topic_id),
            ("b", NO_TOPIC_ID),
            ("nope", NO_TOPIC_ID),
            (None, unknown),
            (None, NO_TOPIC_ID),
            ("c", c.topic_id),
            ("c", NO_TOPIC_ID),
            ("c", NO_TOPIC_ID),
        ],
        cluster(a, b, c),
    )
    assert [d.topic for d in deletions if d.topic] == [a, b]
    assert [(d.name, d.refusal.code) for d in deletions if d.refusal] == [
        ("b", ErrorCode.INVALID_REQUEST),
        ("nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (None, ErrorCode.UNKNOWN_TOPIC_ID),
        (None, ErrorCode.INVALID_REQUEST),
        ("c", ErrorCode.INVALID_REQUEST),
        ("c", ErrorCode.INVALID_REQUEST),
    ]


def test_the_offsets_topic_gets_what_settings_say_and_brokers_allow() -> None:
    new = automatic_topic(CONSUMER_OFFSETS, cluster(), BrokerSettings(offsets_topic_num_partitions=7))
    assert (new.partitions, new.replication_factor) == (7, 1)
    assert ("cleanup.policy", "compact") in new.configs
    assert automatic_topic("other", cluster(), SETTINGS) == NewTopic("other")
