"""Documents and brokers for tests of stores."""

import uuid

from ottla.cluster.documents import (
    partition_document,
    partition_path,
    topic_config_path,
    topic_document,
    topic_path,
)
from ottla.cluster.image import BrokerImage, Endpoint, PartitionImage
from ottla.cluster.store import ABSENT, MetadataStore, Write

PARTITION = PartitionImage(leader=1, leader_epoch=0, replicas=(1,), isr=(1,))


def creation(name: str, partitions: int = 1) -> list[Write]:
    states = (PARTITION,) * partitions
    writes = [Write(topic_path(name), topic_document(uuid.uuid4(), states), ABSENT)]
    writes += [Write(partition_path(name, n), partition_document(p), ABSENT) for n, p in enumerate(states)]
    return writes


def deletion(store: MetadataStore, name: str) -> list[Write]:
    """As the controller writes it: everything that there is of the topic."""
    paths = [topic_path(name), topic_config_path(name)]
    paths += [partition_path(name, number) for number in range(len(store.image.topics[name].partitions))]
    writes = [Write(path, None, store.version(path)) for path in paths]
    return [write for write in writes if write.expected != ABSENT]


def state(store: MetadataStore, name: str, number: int, leader: int, epoch: int) -> Write:
    path = partition_path(name, number)
    partition = PartitionImage(leader=leader, leader_epoch=epoch, replicas=(1,), isr=(leader,))
    return Write(path, partition_document(partition), store.version(path))


def a_broker(number: int, incarnation: str = "", port: int = 9092) -> BrokerImage:
    endpoints = (Endpoint("PLAINTEXT", "127.0.0.1", port), Endpoint("SIX", "::1", port))
    return BrokerImage(number, "rack", endpoints, incarnation=incarnation or f"directory-{number}")
