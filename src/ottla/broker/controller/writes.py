"""Which documents a decision writes. Pure; `version` tells the version that a document has now."""

from collections.abc import Callable, Mapping

from ottla.cluster.documents import (
    broker_config_path,
    client_metrics_path,
    config_document,
    entity_config_path,
    group_config_path,
    partition_document,
    partition_path,
    topic_config_path,
    topic_document,
    topic_path,
)
from ottla.cluster.image import ClusterImage, Entity, PartitionImage, TopicImage
from ottla.cluster.store import ABSENT, Write

Version = Callable[[str], int]

WRITES_AT_ONCE = 400
"""What one commit comfortably holds. A topic that needs more comes and grows step by step."""


def creation_writes(topic: TopicImage) -> list[Write]:
    """Nothing of a new topic may exist yet, so a second creator of the same name fails.

    Partitions of a large topic get their leaders later, from the controller.
    """
    writes = [Write(topic_path(topic.name), topic_document(topic.topic_id, topic.partitions), ABSENT)]
    if topic.configs:
        writes.append(Write(topic_config_path(topic.name), config_document(topic.configs), ABSENT))
    if len(writes) + len(topic.partitions) <= WRITES_AT_ONCE:
        writes += _partition_writes(topic, first=0)
    return writes


def enlargement_writes(topic: TopicImage, before: int, version: Version) -> list[Write]:
    """The topic as it is to be, which had `before` partitions. Of many new ones the controller chooses the leaders."""
    path = topic_path(topic.name)
    writes = [Write(path, topic_document(topic.topic_id, topic.partitions), version(path))]
    if len(topic.partitions) - before < WRITES_AT_ONCE:
        writes += _partition_writes(topic, first=before)
    return writes


def deletion_writes(topic: TopicImage, version: Version) -> list[Write]:
    """All documents of the topic. If they are too many for one commit the store takes the topic out of the image first
    and sees to the rest, even if it is interrupted."""
    paths = [topic_path(topic.name), topic_config_path(topic.name)]
    paths += [partition_path(topic.name, number) for number in range(len(topic.partitions))]
    return [Write(path, None, known) for path in paths if (known := version(path)) != ABSENT]


def partition_writes(
    changed: Mapping[tuple[str, int], PartitionImage], image: ClusterImage, version: Version
) -> list[Write]:
    """Partitions of topics in the image that are to become these, each with its number.

    The topic's document is written if other brokers are to hold a partition, and then the partition's state as well,
    changed or not: its leader, which writes that document alone, must not take someone for in sync who has just left.
    """
    writes: list[Write] = []
    replaced: dict[str, dict[int, PartitionImage]] = {}
    for (name, number), partition in changed.items():
        if is_held_otherwise(partition, image.topics[name].partitions[number]):
            replaced.setdefault(name, {})[number] = partition
        path = partition_path(name, number)
        writes.append(Write(path, partition_document(partition, image.controller_epoch), version(path)))
    for name, partitions in replaced.items():
        topic, path = image.topics[name], topic_path(name)
        merged = [partitions.get(number, partition) for number, partition in enumerate(topic.partitions)]
        writes.append(Write(path, topic_document(topic.topic_id, merged), version(path)))
    return writes


def is_held_otherwise(one: PartitionImage, other: PartitionImage) -> bool:
    """Whether they differ in what the topic's document says of them."""
    return (one.replicas, one.adding, one.removing) != (other.replicas, other.adding, other.removing)


def topic_config_writes(topic: str, configs: Mapping[str, str], version: Version) -> list[Write]:
    return _config_writes(topic_config_path(topic), configs, version)


def broker_config_writes(broker: str, configs: Mapping[str, str], version: Version) -> list[Write]:
    return _config_writes(broker_config_path(broker), configs, version)


def group_config_writes(group: str, configs: Mapping[str, str], version: Version) -> list[Write]:
    return _config_writes(group_config_path(group), configs, version)


def client_metrics_writes(subscription: str, configs: Mapping[str, str], version: Version) -> list[Write]:
    return _config_writes(client_metrics_path(subscription), configs, version)


def entity_holder_writes(entity: Entity, version: Version) -> list[Write]:
    """What has to be there before settings of a user's client can be: a document of that user, be it an empty one.

    They go into a commit of their own, before the other: ZooKeeper's nodes hold one another.
    """
    path = entity_config_path(entity[:1])
    return [Write(path, config_document({}), ABSENT)] if len(entity) > 1 and version(path) == ABSENT else []


def entity_config_writes(entity: Entity, configs: Mapping[str, str], version: Version) -> list[Write]:
    """A user's document may hold those of its clients, so an empty one stays."""
    path = entity_config_path(entity)
    if not configs and entity[-1][0] == "users" and version(path) != ABSENT:
        return [Write(path, config_document({}), version(path))]
    return _config_writes(path, configs, version)


def _config_writes(path: str, configs: Mapping[str, str], version: Version) -> list[Write]:
    now = version(path)
    if configs:
        return [Write(path, config_document(configs), now)]
    return [Write(path, None, now)] if now != ABSENT else []


def _partition_writes(topic: TopicImage, *, first: int) -> list[Write]:
    # Most new partitions have the same state, and encoding it once makes thousands of them cheap.
    documents = {partition: partition_document(partition) for partition in set(topic.partitions[first:])}
    return [
        Write(partition_path(topic.name, number), documents[partition], ABSENT)
        for number, partition in enumerate(topic.partitions[first:], start=first)
    ]
