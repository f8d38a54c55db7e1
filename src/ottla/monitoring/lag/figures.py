"""Lag as metrics: Burrow's names, burrow_exporter's, and seconds. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ottla.monitoring import metrics
from ottla.monitoring.figures import Figure
from ottla.monitoring.lag.book import GroupLag, PartitionLag

Rows = list[tuple[tuple[str, ...], float]]
EXPORTED_STATUS_SHIFT = 1


class Judged(NamedTuple):
    """What is told of one cluster. Nothing in it changes, so it may be read in a thread."""

    cluster: str
    groups: Sequence[GroupLag]
    ends: Mapping[str, Sequence[int]]
    """Of each topic's partitions."""


def lag_figures(clusters: Iterable[Judged]) -> list[Figure]:
    found = list(clusters)
    groups = [(each.cluster, group) for each in found for group in each.groups]
    ends: Rows = [
        ((each.cluster, topic, str(number)), end)
        for each in found
        for topic, ends_of_topic in each.ends.items()
        for number, end in enumerate(ends_of_topic)
    ]
    by_group = [((cluster, group.group), group) for cluster, group in groups]
    by_partition = [
        ((cluster, group.group, each.topic, str(each.partition)), each)
        for cluster, group in groups
        for each in group.partitions
    ]
    totals: Rows = [(labels, group.total_lag) for labels, group in by_group]
    lags: Rows = [(labels, each.current_lag) for labels, each in by_partition]
    # As Burrow does: offset and status of a partition are told when its window is full.
    full = [(labels, each) for labels, each in by_partition if each.complete >= 1.0 and each.end is not None]
    offsets: Rows = [(labels, each.end.offset) for labels, each in by_partition if each.end is not None]
    full_offsets: Rows = [(labels, each.end.offset) for labels, each in full if each.end is not None]
    oldest: Rows = [(labels, age) for labels, group in by_group if (age := oldest_s(group)) is not None]
    waiting: Rows = [(labels, age) for labels, each in by_partition if (age := age_s(each)) is not None]
    return [
        (metrics.GROUP_LAG, totals),
        (metrics.GROUP_STATUS, [(labels, int(group.status)) for labels, group in by_group]),
        (metrics.PARTITION_LAG, lags),
        (metrics.PARTITION_OFFSET, full_offsets),
        (metrics.PARTITION_STATUS, [(labels, int(each.status)) for labels, each in full]),
        (metrics.TOPIC_END, ends),
        (metrics.EXPORTED_GROUP_LAG, totals),
        (metrics.EXPORTED_GROUP_STATUS, [(labels, group.status + EXPORTED_STATUS_SHIFT) for labels, group in by_group]),
        (metrics.EXPORTED_PARTITION_LAG, lags),
        (
            metrics.EXPORTED_PARTITION_STATUS,
            [(labels, each.status + EXPORTED_STATUS_SHIFT) for labels, each in by_partition],
        ),
        (metrics.EXPORTED_PARTITION_OFFSET, offsets),
        (metrics.EXPORTED_TOPIC_END, ends),
        (metrics.LAG_EXPORTER_END, ends),
        (metrics.LAG_EXPORTER_OFFSET, offsets),
        (metrics.LAG_EXPORTER_LAG, lags),
        (metrics.LAG_EXPORTER_MAX_LAG, [(labels, max_lag(group)) for labels, group in by_group]),
        (metrics.LAG_EXPORTER_SECONDS, waiting),
        (metrics.LAG_MILLIS, [(labels, 1000 * age) for labels, age in waiting]),
        (metrics.LAG_EXPORTER_MAX_SECONDS, oldest),
        (metrics.GROUP_WAITING, oldest),
        (
            metrics.GROUP_CAUGHT_UP,
            [(labels, left) for labels, group in by_group if (left := caught_up_s(group)) is not None],
        ),
        (metrics.GROUP_MEMBERS, [(labels, group.members) for labels, group in by_group]),
    ]


def age_s(partition: PartitionLag) -> float | None:
    """Age of a partition's oldest unread record; 0 where nothing is unread."""
    return partition.waiting_s if partition.current_lag > 0 else 0.0


def oldest_s(group: GroupLag) -> float | None:
    """Age of the oldest unread record of a group; None while one of its partitions cannot tell."""
    ages = [age_s(each) for each in group.partitions]
    known = [age for age in ages if age is not None]
    return max(known, default=0.0) if len(known) == len(ages) else None


def max_lag(group: GroupLag) -> int:
    return max((each.current_lag for each in group.partitions), default=0)


def caught_up_s(group: GroupLag) -> float | None:
    """Until the last of its partitions has caught up; None if one never will."""
    left = [each.caught_up_s for each in group.partitions]
    known = [each for each in left if each is not None]
    return max(known, default=0.0) if len(known) == len(left) else None
