"""Sets of partitions by topic id: what a member has, should have, or gives up."""

from collections.abc import Iterable, Iterator, Mapping
from uuid import UUID

from ottla.protocol.consumer_group_records import TopicPartitions

Assignment = Mapping[UUID, frozenset[int]]
"""Topics without partitions are left out, so that equal assignments are equal."""

NOTHING: Assignment = {}


def assignment_of(partitions: Iterable[tuple[UUID, int]]) -> Assignment:
    found: dict[UUID, set[int]] = {}
    for topic_id, partition in partitions:
        found.setdefault(topic_id, set()).add(partition)
    return {topic_id: frozenset(numbers) for topic_id, numbers in found.items()}


def pairs(assignment: Assignment) -> Iterator[tuple[UUID, int]]:
    for topic_id, partitions in assignment.items():
        for partition in partitions:
            yield topic_id, partition


def from_record(topics: Iterable[TopicPartitions]) -> Assignment:
    return assignment_of((topic.topic_id, partition) for topic in topics for partition in topic.partitions)


def to_record(assignment: Assignment) -> list[TopicPartitions]:
    return [
        TopicPartitions(topic_id, sorted(partitions))
        for topic_id, partitions in sorted(assignment.items(), key=lambda item: item[0].int)
    ]


def is_subset(part: Assignment, whole: Assignment) -> bool:
    return all(partitions <= whole.get(topic_id, frozenset()) for topic_id, partitions in part.items())


def overlaps(one: Assignment, other: Assignment) -> bool:
    return any(partitions & other.get(topic_id, frozenset()) for topic_id, partitions in one.items())
