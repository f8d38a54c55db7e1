"""What a standby follows beside records: where groups stand, where logs begin; and what is known of the source's ends.

Only of topics that are still its mirrors: a topic that was promoted belongs to its clients.
"""

import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

import msgspec

from ottla.client import admin
from ottla.client.admin import Resource, ResourceType
from ottla.client.cluster import Cluster
from ottla.client.groups import commit_offsets, group_offsets, list_groups
from ottla.client.mirrored import MirroredLog
from ottla.config.topic import PROMOTING
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import TopicPartition
from ottla.pipelines.mirror.deciding import same_places
from ottla.spark.copying.words import SETTING
from ottla.spark.reading import resolving
from ottla.spark.reading.options import Subscription

HAS_MEMBERS = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS})
LOOKS_MAX = 3_600

Ends = Mapping[TopicPartition, int]


class MirroredTopics(NamedTuple):
    sources: Mapping[str, str]
    """The topics, each with the value of its mirror.source."""
    partitions: Collection[TopicPartition]
    others: Collection[str] = ()
    """Topics of the same names that are not: they were promoted, or were born in the target."""

    @property
    def followed(self) -> list[TopicPartition]:
        """Without topics that are being promoted."""
        return [at for at in self.partitions if not self.sources[at.topic].startswith(PROMOTING)]


async def mirrored_topics(target: Cluster, wanted: Callable[[str], bool], cluster_id: str | None) -> MirroredTopics:
    """The topics of the target that are mirrors, of this cluster if it is known; also those being promoted."""
    listed = {topic.name: topic.partitions for topic in await admin.list_topics(target) if wanted(topic.name)}
    resources = [Resource(ResourceType.TOPIC, name) for name in sorted(listed)]
    found: dict[str, str] = {}
    for resource, configs in (await admin.describe_configs(target, resources)).items() if resources else ():
        value = next((config.value or "" for config in configs if config.name == SETTING), "")
        of = value.removeprefix(PROMOTING).rpartition("/")[0]
        if value and cluster_id in (None, of):
            found[resource.name] = value
    partitions = [TopicPartition(name, number) for name in found for number in listed[name]]
    return MirroredTopics(found, partitions, listed.keys() - found.keys())


async def copy_groups(source: Cluster, target: Cluster, wants: Callable[[str], bool], mirrored: MirroredTopics) -> None:
    """Put groups of the target that have no members where they stand in the source."""
    ours = set(mirrored.followed)
    if not ours:
        return
    # The groups first: what they had read when they were asked is below the ends that are asked for next, if copied.
    committed = {}
    for found in await list_groups(source):
        if wants(found.group_id):
            offsets = await group_offsets(source, found.group_id, stable=True)
            committed[found.group_id] = {at: offset.offset for at, offset in offsets.items() if at in ours}
    ends = await resolving.latest(target, ours, committed=False)
    for group, places in committed.items():
        if not places:
            continue
        now = {at: offset.offset for at, offset in (await group_offsets(target, group)).items()}
        moves = same_places(places, now, ends)
        if not moves:
            continue
        try:
            await commit_offsets(target, group, moves)
        except ApiError as error:
            if error.code not in HAS_MEMBERS:
                raise


async def follow_starts(source: Cluster, target: Cluster, mirrored: MirroredTopics) -> None:
    """Drop what the source has dropped."""
    partitions = mirrored.followed
    theirs, ours = await resolving.earliest(source, partitions), await resolving.earliest(target, partitions)
    for at, start in theirs.items():
        if at in ours and ours[at] < start:
            await MirroredLog(target, at, mirrored.sources[at.topic]).append(0, log_start_offset=start)


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What was last known of the source, kept for the moment when it does not answer any more."""

    at: float
    """When its ends were asked for."""
    whole_at: float | None
    """The last moment of which it is known that all that the source had then is in the target."""
    ends: dict[str, dict[str, int]]


class Looks:
    """Ends of the source at moments: by them it is known how old the state of the target is. Pure."""

    def __init__(self) -> None:
        self._looks: deque[tuple[float, Ends]] = deque(maxlen=LOOKS_MAX)
        self._whole_at: float | None = None

    def add(self, moment: float, source: Ends, target: Ends) -> Seen:
        self._looks.append((moment, dict(source)))
        while self._looks and all(target.get(at, 0) >= end for at, end in self._looks[0][1].items()):
            self._whole_at = self._looks.popleft()[0]
        ends: dict[str, dict[str, int]] = {}
        for at, end in source.items():
            ends.setdefault(at.topic, {})[str(at.partition)] = end
        return Seen(at=moment, whole_at=self._whole_at, ends=ends)


async def source_ends(
    source: Cluster, wanted: Callable[[str], bool], mirrored: MirroredTopics, *, committed: bool
) -> dict[TopicPartition, int]:
    """Of all that the source has for the flow, also of what has not come to the target yet: that is missing there."""
    found = await resolving.find_partitions(source, Subscription(pattern=".*"))
    ours = [at for at in found if wanted(at.topic) and at.topic not in mirrored.others]
    return await resolving.latest(source, ours, committed=committed)


async def look(
    source: Cluster, target: Cluster, wanted: Callable[[str], bool], mirrored: MirroredTopics, looks: Looks
) -> Seen:
    moment = time.time()
    ends = await source_ends(source, wanted, mirrored, committed=True)
    there = await resolving.latest(target, mirrored.partitions, committed=False)
    return looks.add(moment, ends, there)
