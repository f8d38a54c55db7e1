"""What has to be made, altered and moved in the target so that it keeps up with the source. Pure."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ottla.model.acls import ALL_OPERATIONS, AclBinding, PatternType, Permission, ResourcePattern
from ottla.model.names import TopicPartition
from ottla.model.rights import Operation, Resource
from ottla.pipelines.mirror.formats import Checkpoint
from ottla.pipelines.mirror.offset_map import OffsetMap


@dataclass(frozen=True)
class TopicWork:
    """Topics to make, with their partitions; topics that are there and want more."""

    make: Mapping[str, int]
    widen: Mapping[str, int]


def topic_work(wanted: Iterable[TopicPartition], there: Mapping[str, int]) -> TopicWork:
    """`wanted` are partitions of the target, `there` how many each of its topics has."""
    counts: dict[str, int] = {}
    for topic, partition in wanted:
        counts[topic] = max(counts.get(topic, 0), partition + 1)
    return TopicWork(
        {topic: count for topic, count in sorted(counts.items()) if topic not in there},
        {topic: count for topic, count in sorted(counts.items()) if topic in there and there[topic] < count},
    )


@dataclass(frozen=True)
class SettingsWork:
    set: Mapping[str, str]
    reset: Collection[str]

    def __bool__(self) -> bool:
        return bool(self.set or self.reset)


def settings_work(source: Mapping[str, str], target: Mapping[str, str], excluded: Collection[str]) -> SettingsWork:
    """From what was set for a topic itself at both ends (not defaults) to what must change in the target."""
    wanted = {name: value for name, value in source.items() if name not in excluded}
    return SettingsWork(
        {name: value for name, value in sorted(wanted.items()) if target.get(name) != value},
        sorted(name for name in target if name not in wanted and name not in excluded),
    )


class AclWork(NamedTuple):
    create: list[AclBinding]
    left_out: list[AclBinding]
    """Rules of the source that have no counterpart, to be told."""


def acl_work(
    source: Iterable[AclBinding], target: Iterable[AclBinding], names: Mapping[str, str], *, may_write: bool
) -> AclWork:
    """From the rules of both ends to what must be added. `names` are the mirrored topics, by their names in the source.

    As MirrorMaker 2 does it: rules for topics by name; nobody is allowed to write to a copy (ALLOW WRITE stays behind,
    ALLOW ALL becomes READ), and none is removed. With `may_write` they are copied as they are: the topic itself is
    read-only, and once it is promoted those who wrote to it go on.
    """
    there = set(target)
    create: list[AclBinding] = []
    left: list[AclBinding] = []
    for binding in source:
        (resource, name, kind), entry = binding
        copied: int | None = entry.operation
        if not may_write and entry.permission is Permission.ALLOW:
            if entry.operation == Operation.WRITE:
                copied = None
            elif entry.operation == ALL_OPERATIONS:
                copied = int(Operation.READ)
        if resource is not Resource.TOPIC or kind is not PatternType.LITERAL or name not in names or copied is None:
            if resource is Resource.TOPIC and (name in names or any(binding.pattern.covers(each) for each in names)):
                left.append(binding)
            continue
        wanted = AclBinding(ResourcePattern(resource, names[name], kind), entry._replace(operation=copied))
        if wanted not in there and wanted not in create:
            create.append(wanted)
    return AclWork(create, left)


def same_places(
    committed: Mapping[TopicPartition, int], now: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """What a group of a standby must be told so that it stands where it does in the source.

    A group may be ahead of what has been copied: then it stands at the end of that. Otherwise its members would find
    their offset out of range after a failover, and begin anew somewhere.
    """
    places = {at: min(offset, ends[at]) for at, offset in committed.items() if at in ends}
    return {at: place for at, place in places.items() if now.get(at) != place}


def left_out(source: Mapping[str, str], excluded: Collection[str]) -> list[str]:
    return sorted(name for name in source if name in excluded)


def checkpoints(
    group: str, committed: Mapping[TopicPartition, int], known: OffsetMap, *, whole: bool
) -> list[Checkpoint]:
    """Where a group of the source goes on in the target, for each partition that the flow has copied."""
    found = []
    for partition, offset in sorted(committed.items()):
        target = known.target_of(partition)
        place = known.translate(partition, offset, whole=whole)
        if target is not None and place is not None:
            found.append(Checkpoint(group, target.topic, target.partition, offset, place))
    return found


def forward_only(wanted: Iterable[Checkpoint], now: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """What is to be committed to a group of the target: never less than it has."""
    places = {TopicPartition(each.topic, each.partition): each.downstream for each in wanted}
    return {partition: place for partition, place in places.items() if now.get(partition, -1) < place}
