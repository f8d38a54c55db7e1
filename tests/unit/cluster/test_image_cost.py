"""A change costs what it changes: the same memory and the same calls, however many topics there are."""

import tracemalloc
import uuid
from collections.abc import Callable

import pytest
from tests.unit.counting import calls_of

from ottla.cluster.documents import change_of_documents, partition_document, partition_path, topic_document, topic_path
from ottla.cluster.image import ClusterImage, ImageChange, PartitionImage, TopicImage

PARTITIONS = 10
BEFORE = PartitionImage(leader=1, leader_epoch=0, replicas=(1, 2), isr=(1, 2))
AFTER = PartitionImage(leader=2, leader_epoch=1, replicas=(1, 2), isr=(2,))


def image_of(topics: int) -> ClusterImage:
    return ClusterImage().with_topics(
        TopicImage(f"topic-{n}", uuid.UUID(int=n), (BEFORE,) * PARTITIONS) for n in range(topics)
    )


def one_state(image: ClusterImage) -> ImageChange:
    return change_of_documents(image, [(partition_path("topic-7", 3), partition_document(AFTER))])


def one_topic(image: ClusterImage) -> ImageChange:
    return change_of_documents(image, [(topic_path("new"), topic_document(uuid.UUID(int=1 << 64), (BEFORE,)))])


def no_topic(image: ClusterImage) -> ImageChange:
    return change_of_documents(image, [(topic_path("topic-7"), None)])


def bytes_and_calls(change: Callable[[ClusterImage], ImageChange], image: ClusterImage) -> tuple[int, int]:
    """The most memory it takes, and how many functions it calls."""
    change(image)  # whatever is made once is made now
    tracemalloc.start()
    try:
        kept = change(image)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept.topics
    return most, calls_of(lambda: change(image))


@pytest.mark.parametrize("change", [one_state, one_topic, no_topic])
def test_many_topics_cost_a_change_no_more_than_few(change: Callable[[ClusterImage], ImageChange]) -> None:
    few_bytes, few_calls = bytes_and_calls(change, image_of(100))
    many_bytes, many_calls = bytes_and_calls(change, image_of(20_000))
    assert many_calls == few_calls
    assert many_bytes < 3 * few_bytes  # one more level of the tree, where a copy would take two hundred times as much


def test_what_did_not_change_is_shared() -> None:
    image = image_of(500)
    change = one_state(image)
    assert [topic.name for topic in change.written] == ["topic-7"]
    assert change.new.topics["topic-7"].partitions[3] == AFTER
    assert all(change.new.topics[name] is topic for name, topic in image.topics.items() if name != "topic-7")
    assert image.topics["topic-7"].partitions[3] == BEFORE


def test_a_document_that_says_nothing_new_changes_nothing() -> None:
    image = image_of(3)
    change = change_of_documents(image, [(partition_path("topic-1", 0), partition_document(BEFORE))])
    assert change.new is image
    assert not change.topics
