"""Throttles of moving replicas: which topic and broker settings hold them."""

from collections.abc import Iterable, Mapping, Sequence

from ottla.client import admin
from ottla.client.admin import Resource, ResourceType
from ottla.client.cluster import Cluster
from ottla.model.names import TopicPartition

LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"
LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
LOG_DIRS_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"

Replicas = Mapping[TopicPartition, Sequence[int]]


def throttled_replicas(plan: Replicas, current: Replicas) -> dict[str, dict[str, str]]:
    """The settings of each topic that tell whose traffic counts: all old replicas may send, the new ones receive."""
    sending: dict[str, list[str]] = {}
    receiving: dict[str, list[str]] = {}
    for (topic, number), replicas in sorted(plan.items()):
        old = current[TopicPartition(topic, number)]
        added = [broker for broker in replicas if broker not in old]
        if added:
            sending.setdefault(topic, []).extend(f"{number}:{broker}" for broker in old)
            receiving.setdefault(topic, []).extend(f"{number}:{broker}" for broker in added)
    return {
        topic: {LEADER_REPLICAS: ",".join(sending[topic]), FOLLOWER_REPLICAS: ",".join(receiving[topic])}
        for topic in sending
    }


def brokers_in(plan: Replicas, current: Replicas) -> list[int]:
    """Brokers that send or receive for this plan."""
    return sorted(
        {broker for replicas in plan.values() for broker in replicas}
        | {broker for partition in plan for broker in current[partition]}
    )


async def throttle_moves(cluster: Cluster, plan: Replicas, current: Replicas, bytes_per_s: int) -> None:
    for topic, settings in throttled_replicas(plan, current).items():
        await admin.alter_configs(cluster, Resource(ResourceType.TOPIC, topic), add=settings)
    rates = {LEADER_RATE: str(bytes_per_s), FOLLOWER_RATE: str(bytes_per_s)}
    for broker in brokers_in(plan, current):
        await admin.alter_configs(cluster, Resource(ResourceType.BROKER, str(broker)), add=rates)


async def throttle_directories(cluster: Cluster, brokers: Iterable[int], bytes_per_s: int) -> None:
    for broker in brokers:
        await admin.alter_configs(
            cluster, Resource(ResourceType.BROKER, str(broker)), add={LOG_DIRS_RATE: str(bytes_per_s)}
        )


async def clear(cluster: Cluster, brokers: Iterable[int], topics: Iterable[str]) -> None:
    """Take all of it away again."""
    for broker in brokers:
        await admin.alter_configs(
            cluster,
            Resource(ResourceType.BROKER, str(broker)),
            delete=[LEADER_RATE, FOLLOWER_RATE, LOG_DIRS_RATE],
        )
    for topic in topics:
        await admin.alter_configs(
            cluster, Resource(ResourceType.TOPIC, topic), delete=[LEADER_REPLICAS, FOLLOWER_REPLICAS]
        )
