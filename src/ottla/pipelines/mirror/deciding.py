"""What has to be made, altered and moved in the target so that it keeps up with the source. Pure."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from ottla.model.names import TopicPartition
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
