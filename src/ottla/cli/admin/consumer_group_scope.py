"""Which groups and which partitions the options of `kafka-consumer-groups` mean."""

import argparse
from collections.abc import Sequence

from ottla.cli.common.output import CommandError
from ottla.client import admin, groups
from ottla.client.cluster import Cluster
from ottla.model.names import TopicPartition

# Groups that have only ever committed offsets have no protocol type.
CONSUMER_PROTOCOL_TYPES = ("consumer", "")


async def group_ids(cluster: Cluster, args: argparse.Namespace) -> list[str]:
    if not args.all_groups:
        return list(dict.fromkeys(args.group))
    listed = await groups.list_groups(cluster)
    return [group.group_id for group in listed if group.protocol_type in CONSUMER_PROTOCOL_TYPES]


async def partitions_of(cluster: Cluster, arguments: Sequence[str]) -> tuple[list[TopicPartition], list[str]]:
    """The partitions that `--topic news:0,1 --topic mail` means, and the topics that do not exist."""
    named: list[TopicPartition] = []
    whole: list[str] = []
    for argument in arguments:
        if ":" in argument:
            named.extend(parse_topic_partitions(argument))
        else:
            whole.append(argument)
    found = {topic.name: topic.partitions for topic in await admin.list_topics(cluster)} if whole else {}
    for topic in whole:
        named.extend(TopicPartition(topic, number) for number in found.get(topic, []))
    return sorted(dict.fromkeys(named)), [topic for topic in whole if topic not in found]


def parse_topic_partitions(argument: str) -> list[TopicPartition]:
    """`news:0,2` as partitions 0 and 2 of news."""
    topic, _, numbers = argument.partition(":")
    try:
        partitions = [TopicPartition(topic, int(number)) for number in numbers.split(",")]
    except ValueError:
        partitions = []
    if not topic or not partitions or any(partition.partition < 0 for partition in partitions):
        raise CommandError(f"--topic wants topic or topic:0,1,2, not `{argument}`")
    return partitions
