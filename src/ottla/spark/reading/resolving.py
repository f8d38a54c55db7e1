"""What the options of a read mean in a cluster now: which partitions, from where, and up to where."""

import re
from collections.abc import Iterable, Mapping
from uuid import UUID

from ottla.client.cluster import Cluster, error_code, raise_for
from ottla.client.groups import group_offsets
from ottla.client.offsets import EARLIEST, LATEST, FoundOffset, list_offsets
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import TopicPartition
from ottla.spark.errors import DataLoss, InvalidOption
from ottla.spark.reading.offsets import missing_and_surplus
from ottla.spark.reading.options import Bound, BoundKind, ReadOptions, Subscription

Partitions = dict[TopicPartition, UUID]
"""Partitions with the ids of their topics: a topic that is made again has another id."""


async def find_partitions(cluster: Cluster, subscription: Subscription) -> Partitions:
    """The partitions that a subscription means now. Topics that do not exist have none."""
    if subscription.pattern is not None:
        return await _matching(cluster, subscription.pattern)
    wanted = sorted({*subscription.topics, *(partition.topic for partition in subscription.partitions)})

    async def attempt() -> Partitions:
        found: Partitions = {}
        for topic in (await cluster.metadata(wanted)).topics:
            if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                continue
            raise_for(topic.error_code, f"topic `{topic.name}`: {error_code(topic.error_code).name}")
            for partition in topic.partitions:
                found[TopicPartition(topic.name or "", partition.partition_index)] = topic.topic_id
        return found

    found = await cluster.retrying(attempt)
    if subscription.partitions:
        return {partition: found[partition] for partition in subscription.partitions if partition in found}
    return found


async def _matching(cluster: Cluster, pattern: str) -> Partitions:
    matches = re.compile(pattern).fullmatch
    response = await cluster.retrying(lambda: cluster.metadata(None))
    return {
        TopicPartition(topic.name or "", partition.partition_index): topic.topic_id
        for topic in response.topics
        if not topic.is_internal and not topic.error_code and matches(topic.name or "")
        for partition in topic.partitions
    }


def topic_ids(partitions: Partitions) -> dict[str, UUID]:
    """The ids of topics by name; brokers before Kafka 2.8 know none."""
    return {partition.topic: topic_id for partition, topic_id in partitions.items() if topic_id.int}


def check_all_there(subscription: Subscription, found: Partitions) -> None:
    """A query that starts names topics that exist: a name that is spelt wrong would otherwise be silent for ever."""
    topics = {partition.topic for partition in found}
    if missing := [topic for topic in subscription.topics if topic not in topics]:
        names = ", ".join(f"`{topic}`" for topic in missing)
        raise InvalidOption(
            f"there is no topic {names}: make it first, or find topics as they come by subscribePattern"
        )
    if lacking := [str(partition) for partition in subscription.partitions if partition not in found]:
        raise InvalidOption(f"assign names partitions that do not exist: {', '.join(lacking)}")


async def earliest(cluster: Cluster, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    return _known(await _ask(cluster, dict.fromkeys(partitions, EARLIEST), committed=False))


async def latest(
    cluster: Cluster, partitions: Iterable[TopicPartition], *, committed: bool
) -> dict[TopicPartition, int]:
    """Up to where the partitions can be read; those that are deleted meanwhile are left out."""
    return _known(await _ask(cluster, dict.fromkeys(partitions, LATEST), committed=committed))


async def resolve(
    cluster: Cluster, bound: Bound, partitions: Partitions, options: ReadOptions
) -> dict[TopicPartition, int]:
    """The offsets that a bound means, for all partitions."""
    committed = options.consumer.fetch.committed
    if bound.kind in (BoundKind.OFFSETS, BoundKind.TIMESTAMPS):
        problem = missing_and_surplus(bound.offsets, partitions, bound.option)
        if problem is not None:
            raise InvalidOption(problem)
    match bound.kind:
        case BoundKind.EARLIEST:
            return await earliest(cluster, partitions)
        case BoundKind.LATEST:
            return await latest(cluster, partitions, committed=committed)
        case BoundKind.GROUP:
            return await _from_group(cluster, partitions, options)
        case BoundKind.OFFSETS:
            special = {partition: offset for partition, offset in bound.offsets.items() if offset < 0}
            resolved = _known(await _ask(cluster, special, committed=committed))
            return {**bound.offsets, **resolved}
        case BoundKind.TIMESTAMP:
            return await _at_times(cluster, bound, dict.fromkeys(partitions, bound.timestamp_ms), committed)
        case BoundKind.TIMESTAMPS:
            return await _at_times(cluster, bound, bound.offsets, committed)


async def _from_group(cluster: Cluster, partitions: Partitions, options: ReadOptions) -> dict[TopicPartition, int]:
    """Where the group stands; partitions that it does not know are read from their beginning: nothing is missed."""
    assert options.group is not None
    committed = await group_offsets(cluster, options.group, stable=True)
    unknown = [partition for partition in partitions if partition not in committed]
    known = {partition: committed[partition].offset for partition in partitions if partition in committed}
    return {**known, **await earliest(cluster, unknown)}


async def _at_times(
    cluster: Cluster, bound: Bound, times: Mapping[TopicPartition, int], committed: bool
) -> dict[TopicPartition, int]:
    found = await _ask(cluster, times, committed=committed)
    too_young = [partition for partition, answer in found.items() if answer.offset is None]
    if too_young and not bound.latest_if_none:
        raise InvalidOption(
            f"{bound.option}: {too_young[0]} has no record at or after {times[too_young[0]]}; "
            "startingOffsetsByTimestampStrategy=latest would start at its end"
        )
    ends = await latest(cluster, too_young, committed=committed)
    return {**_known(found), **ends}


async def check_within_log(
    cluster: Cluster, offsets: Mapping[TopicPartition, int], bound: Bound, options: ReadOptions
) -> dict[TopicPartition, int]:
    """Offsets that somebody wrote down may lie outside the log: an error, or moved into it where loss is allowed."""
    if bound.kind not in (BoundKind.OFFSETS, BoundKind.GROUP):
        return dict(offsets)
    firsts = await earliest(cluster, offsets)
    ends = await latest(cluster, offsets, committed=options.consumer.fetch.committed)
    inside: dict[TopicPartition, int] = {}
    for partition, offset in offsets.items():
        first, end = firsts.get(partition, offset), ends.get(partition, offset)
        inside[partition] = min(max(offset, first), end)
        if inside[partition] != offset and options.fail_on_data_loss:
            raise DataLoss(
                f"{bound.option} is {offset} for {partition}, which can be read from {first} up to {end}. "
                "Change it, or set failOnDataLoss=false to take what is there"
            )
    return inside


async def _ask(
    cluster: Cluster, times: Mapping[TopicPartition, int], *, committed: bool
) -> dict[TopicPartition, FoundOffset]:
    if not times:
        return {}
    found: dict[TopicPartition, FoundOffset] = {}
    for partition, answer in (await list_offsets(cluster, times, committed=committed)).items():
        if isinstance(answer, FoundOffset):
            found[partition] = answer
        elif answer is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise ApiError(answer, f"{partition} did not say its offsets: {answer.name}")
    return found


def _known(found: Mapping[TopicPartition, FoundOffset]) -> dict[TopicPartition, int]:
    return {partition: answer.offset for partition, answer in found.items() if answer.offset is not None}
