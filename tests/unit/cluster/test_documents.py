"""Images to documents and back, and images that follow what is written."""

import json
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.cluster.documents import (
    ProducerIdBlock,
    apply_documents,
    broker_config_path,
    cluster_id_document,
    config_document,
    entity_config_path,
    entity_of,
    partition_document,
    partition_path,
    producer_ids_document,
    read_producer_ids,
    topic_config_path,
    topic_document,
    topic_path,
)
from ottla.cluster.image import CLUSTER_WIDE, ClusterImage, Entity, PartitionImage, TopicImage, changes_between
from ottla.model.names import format_topic_id

ids = st.integers(0, 5)
partitions = st.builds(
    PartitionImage,
    leader=st.integers(-1, 5),
    leader_epoch=st.integers(0, 2**31 - 1),
    replicas=st.lists(ids, min_size=1, unique=True).map(tuple),
    isr=st.lists(ids, unique=True).map(tuple),
    late=st.lists(ids, unique=True, max_size=2).map(tuple),
)
topics = st.builds(
    TopicImage,
    name=st.text("abc._-", min_size=1, max_size=3),
    topic_id=st.uuids(version=4),
    partitions=st.lists(partitions, min_size=1, max_size=12).map(tuple),
    configs=st.dictionaries(st.text("abc.", min_size=1), st.text(), max_size=2),
)


def documents_of(topic: TopicImage) -> list[tuple[str, bytes | None]]:
    found: list[tuple[str, bytes | None]] = [
        (topic_path(topic.name), topic_document(topic.topic_id, topic.partitions)),
        (topic_config_path(topic.name), config_document(topic.configs)),
    ]
    found += [(partition_path(topic.name, n), partition_document(p)) for n, p in enumerate(topic.partitions)]
    return found


@given(st.lists(topics, unique_by=lambda topic: topic.name, max_size=5), st.randoms(use_true_random=False))
def test_an_image_comes_back_from_its_documents_in_any_order(written: list[TopicImage], random: object) -> None:
    documents = [document for topic in written for document in documents_of(topic)]
    random.shuffle(documents)  # type: ignore[attr-defined]
    image = apply_documents(ClusterImage(), documents)
    assert dict(image.topics) == {topic.name: topic for topic in written}
    assert dict(image.names_by_id) == {topic.topic_id: topic.name for topic in written}


def topic(name: str, count: int = 1) -> TopicImage:
    partition = PartitionImage(leader=1, leader_epoch=0, replicas=(1,), isr=(1,))
    return TopicImage(name, uuid.uuid4(), (partition,) * count)


def test_only_what_was_written_changes() -> None:
    first = apply_documents(ClusterImage(), documents_of(topic("a", 3)) + documents_of(topic("b")))
    moved = PartitionImage(leader=2, leader_epoch=4, replicas=(1,), isr=(2,))
    second = apply_documents(first, [(partition_path("a", 1), partition_document(moved))])
    assert second.topics["a"].partitions[1] == moved
    assert second.topics["a"].partitions[0] is first.topics["a"].partitions[0]
    assert second.topics["b"] is first.topics["b"]
    change = changes_between(first, second)
    assert (change.written, change.removed, change.broker_configs) == ((second.topics["a"],), (), False)


def test_more_partitions_keep_the_states_of_the_old_ones() -> None:
    before = topic("a", 2)
    new = PartitionImage(leader=1, leader_epoch=0, replicas=(1,), isr=(1,))
    image = apply_documents(
        apply_documents(ClusterImage(), documents_of(before)),
        [
            (topic_path("a"), topic_document(before.topic_id, (*before.partitions, new))),
            (partition_path("a", 2), partition_document(new)),
        ],
    )
    assert image.topics["a"].partitions == (*before.partitions, new)


def test_a_topic_that_comes_back_under_its_name_is_another_topic() -> None:
    old, new = topic("a", 4), topic("a", 1)
    first = apply_documents(ClusterImage(), documents_of(old))
    gone = apply_documents(first, [(path, None) for path, _ in documents_of(old)])
    assert (dict(gone.topics), dict(gone.names_by_id)) == ({}, {})
    second = apply_documents(first, documents_of(new))
    assert second.topics["a"] == new
    assert dict(second.names_by_id) == {new.topic_id: "a"}
    assert changes_between(first, second).removed == (old,)


def test_broker_settings_and_cluster_id() -> None:
    image = apply_documents(
        ClusterImage(),
        [
            ("/cluster/id", cluster_id_document("abc")),
            (broker_config_path(CLUSTER_WIDE), config_document({"x": "1"})),
            (broker_config_path("1"), config_document({"x": "2"})),
            ("/something/else", b"not even json"),
        ],
    )
    assert image.cluster_id == "abc"
    assert dict(image.broker_configs) == {CLUSTER_WIDE: {"x": "1"}, "1": {"x": "2"}}
    assert dict(apply_documents(image, [(broker_config_path("1"), None)]).broker_configs) == {CLUSTER_WIDE: {"x": "1"}}


def test_documents_look_as_kafka_wrote_them() -> None:
    one = topic("a", 2)
    assert topic_path("a") == "/brokers/topics/a"
    assert partition_path("a", 1) == "/brokers/topics/a/partitions/1/state"
    assert broker_config_path(CLUSTER_WIDE) == "/config/brokers/<default>"
    assert json.loads(topic_document(one.topic_id, one.partitions)) == {
        "version": 3,
        "topic_id": format_topic_id(one.topic_id),
        "partitions": {"0": [1], "1": [1]},
        "adding_replicas": {},
        "removing_replicas": {},
    }
    assert json.loads(partition_document(one.partitions[0])) == {
        "version": 1,
        "controller_epoch": 0,
        "leader": 1,
        "leader_epoch": 0,
        "isr": [1],
    }
    block = ProducerIdBlock(broker=1, first=1000, last=1999)
    assert json.loads(producer_ids_document(block)) == {
        "version": 1,
        "broker": 1,
        "block_start": "1000",
        "block_end": "1999",
    }
    assert read_producer_ids(producer_ids_document(block)) == block


@pytest.mark.parametrize(
    ("entity", "path"),
    [
        ((("users", "alice"),), "/config/users/alice"),
        ((("users", None),), "/config/users/<default>"),
        ((("users", "<default>"),), "/config/users/%3Cdefault%3E"),
        ((("users", "a b*~ü"), ("clients", None)), "/config/users/a%20b%2A%7E%C3%BC/clients/<default>"),
        ((("users", ".."),), "/config/users/%2E%2E"),
        ((("users", "a.b"),), "/config/users/a.b"),
        ((("clients", "x/y"),), "/config/clients/x%2Fy"),
        ((("ips", "::1"),), "/config/ips/%3A%3A1"),
    ],
)
def test_settings_of_users_clients_and_addresses_are_where_kafka_has_them(entity: Entity, path: str) -> None:
    assert entity_config_path(entity) == path
    assert entity_of(path) == entity


def test_what_is_not_an_entity_is_passed_over() -> None:
    for path in ("/config/users/a/clients", "/config/users/a/other/b", "/config/users/a/clients/b/clients/c", "/x"):
        assert entity_of(path) is None


@pytest.mark.parametrize("written", [b'{"secret":"1"}', b"", b"{", b'{"version":1,"config":{"a":1}}'])
def test_what_others_write_about_a_user_stops_nobody(written: bytes, caplog: pytest.LogCaptureFixture) -> None:
    alice, bob = entity_config_path((("users", "alice"),)), entity_config_path((("users", "bob"),))
    token = "/delegation_token/tokens/t"
    known = config_document({"producer_byte_rate": "1"})
    image = apply_documents(ClusterImage(), [(alice, written), (bob, known), (token, written)])
    assert dict(image.entity_configs) == {(("users", "bob"),): {"producer_byte_rate": "1"}}
    assert not image.tokens
    assert "The settings of users alice cannot be read" in caplog.text
    assert f"The delegation token at {token} cannot be read" in caplog.text
