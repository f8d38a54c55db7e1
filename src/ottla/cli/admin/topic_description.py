"""What `kafka-topics --describe` shows: which topics and partitions pass its filters, in Kafka's layout or as JSON."""

import argparse
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ottla.client.admin import ConfigSource, PartitionDescription, TopicDescription
from ottla.client.replicas import Reassignment
from ottla.model.names import NO_TOPIC_ID, TopicPartition, format_topic_id
from ottla.protocol.messages.describe_configs import DescribeConfigsResourceResult

Settings = Sequence[DescribeConfigsResourceResult]
_PARTITION_FILTERS = (
    "under_replicated_partitions",
    "unavailable_partitions",
    "under_min_isr_partitions",
    "at_min_isr_partitions",
)


class TopicView(NamedTuple):
    """One topic as it will be shown: with or without its own line, with these of its partitions."""

    topic: TopicDescription
    with_summary: bool
    partitions: list[PartitionDescription]
    overrides: Mapping[str, str]

    def print(self) -> None:
        name = self.topic.name
        if self.with_summary:
            topic_id = self.topic.topic_id
            print(
                f"Topic: {name}",
                *([f"TopicId: {format_topic_id(topic_id)}"] if topic_id != NO_TOPIC_ID else []),
                f"PartitionCount: {len(self.topic.partitions)}",
                f"ReplicationFactor: {self._replication_factor()}",
                f"Configs: {','.join(f'{key}={value}' for key, value in self.overrides.items())}",
                sep="\t",
            )
        for partition in self.partitions:
            print(
                f"\tTopic: {name}",
                f"Partition: {partition.partition}",
                f"Leader: {'none' if partition.leader is None else partition.leader}",
                f"Replicas: {_numbers(partition.replicas)}",
                f"Isr: {_numbers(partition.isr)}",
                f"Elr: {_numbers(partition.eligible_leaders)}",
                f"LastKnownElr: {_numbers(partition.last_eligible_leaders)}",
                *([f"Adding Replicas: {_numbers(partition.adding)}"] if partition.adding is not None else []),
                *([f"Removing Replicas: {_numbers(partition.removing)}"] if partition.removing is not None else []),
                sep="\t",
            )

    def as_json(self) -> dict[str, object]:
        return {
            "topic": self.topic.name,
            "topic_id": format_topic_id(self.topic.topic_id),
            "internal": self.topic.internal,
            "partition_count": len(self.topic.partitions),
            "replication_factor": self._replication_factor(),
            "configs": dict(self.overrides),
            "partitions": [partition._asdict() for partition in self.partitions],
        }

    def _replication_factor(self) -> int:
        return len(self.topic.partitions[0].replicas) if self.topic.partitions else 0


def with_moves(topic: TopicDescription, moves: Mapping[TopicPartition, Reassignment]) -> TopicDescription:
    """The topic with what is known of moves under way."""
    partitions = []
    for partition in topic.partitions:
        move = moves.get(TopicPartition(topic.name, partition.partition))
        partitions.append(partition if move is None else partition._replace(adding=move.adding, removing=move.removing))
    return topic._replace(partitions=partitions)


def partition_filters(args: argparse.Namespace) -> list[str]:
    return [name for name in _PARTITION_FILTERS if getattr(args, name)]


def select(
    topics: Sequence[TopicDescription],
    configs: Mapping[str, Settings],
    live_brokers: frozenset[int],
    args: argparse.Namespace,
) -> list[TopicView]:
    """The topics and partitions that the options ask for; a topic of which nothing would show is left out."""
    filters = partition_filters(args)
    views: list[TopicView] = []
    for topic in topics:
        settings = configs.get(topic.name, ())
        overrides = {s.name: s.value or "" for s in settings if s.config_source != ConfigSource.DEFAULT_CONFIG}
        if args.topics_with_overrides:
            if overrides:
                views.append(TopicView(topic, True, [], overrides))
            continue
        minimum = next((int(s.value or 1) for s in settings if s.name == "min.insync.replicas"), 1)
        shown = [
            partition
            for partition in topic.partitions
            if not filters or any(_passes(partition, name, minimum, live_brokers) for name in filters)
        ]
        if shown or not filters:
            views.append(TopicView(topic, not filters, shown, overrides))
    return views


def _passes(partition: PartitionDescription, name: str, min_isr: int, live_brokers: frozenset[int]) -> bool:
    if name == "under_replicated_partitions":
        # Replicas that are only just being added are not missed yet.
        return len(partition.isr) < len(partition.replicas) - len(partition.adding or ())
    if name == "unavailable_partitions":
        return partition.leader is None or partition.leader not in live_brokers
    if name == "under_min_isr_partitions":
        return partition.leader is None or len(partition.isr) < min_isr
    return len(partition.isr) == min_isr


def _numbers(brokers: Sequence[int] | None) -> str:
    return "N/A" if brokers is None else ",".join(str(broker) for broker in brokers)
