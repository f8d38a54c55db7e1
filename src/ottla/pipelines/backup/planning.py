"""What a run reads: from where the last backup ended up to where each partition can be read now, in parts. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple

import msgspec

from ottla.model.names import TopicPartition
from ottla.pipelines.backup.manifest import (
    BackupProblem,
    GroupBackup,
    GroupOffset,
    Kind,
    Manifest,
    PartitionBackup,
    StoredObject,
    TopicBackup,
    partition_sum,
)

OBJECT_BYTES = 32 << 20
"""About as many bytes of the log go into one task, which writes one object of them."""
OFFSETS_PER_TASK = 200_000
"""Where nobody says how large a partition is."""
OFFSETS_PER_TASK_MIN = 1_000
SMALL_OBJECT_BYTES = 1 << 20
SMALL_OBJECTS_MAX = 16
"""So many small objects at the end of a partition are read anew as one, with what is new: runs that follow each other
quickly would leave millions."""
SMALL_BYTES = 48 << 20
"""Less than this is read and written sooner than Spark starts."""


class FoundPartition(NamedTuple):
    """A partition of the source, now."""

    log_start: int
    end: int
    leader_epoch: int = -1
    bytes: int | None = None


class FoundTopic(NamedTuple):
    name: str
    topic_id: str
    replication_factor: int
    configs: Mapping[str, str]
    partitions: Sequence[FoundPartition]


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """Offsets of one partition that one task reads."""

    number: int
    topic: str
    partition: int
    start: int
    end: int
    opens: bool
    """The first part of its partition takes a batch that begins before `start`; others leave it to the one before."""
    estimated_bytes: int


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Of one run; `topics` have what earlier runs have stored already."""

    id: str
    parent: str | None
    kind: Kind
    cluster_id: str
    selection: str
    begun_ms: int
    topics: list[TopicBackup]
    parts: list[Part]
    notes: list[str] = []

    @property
    def estimated_bytes(self) -> int:
        return sum(part.estimated_bytes for part in self.parts)


class PartDone(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    objects: list[StoredObject]
    lost: list[tuple[int, int]] = []


def make_plan(
    found: Sequence[FoundTopic],
    last: Manifest | None,
    *,
    backup: str,
    kind: Kind,
    cluster_id: str,
    selection: str,
    now_ms: int,
) -> Plan:
    """An increment behind `last`; topics that it does not know, or that are others by now, from their beginning."""
    topics: list[TopicBackup] = []
    parts: list[Part] = []
    notes: list[str] = []
    for topic in found:
        before = None if last is None else last.topic(topic.name)
        if before is not None and before.topic_id != topic.topic_id:
            notes.append(f"{topic.name} was deleted and made anew since the last backup: it is read from its beginning")
            before = None
        begun = []
        for number, now in enumerate(topic.partitions):
            known = _known(before, number)
            if known is not None and known.end > now.end:
                notes.append(f"{topic.name}-{number} has become shorter since the last backup: it is read anew")
                known = None
            if known is not None and now.log_start > known.end:
                gone = f"offsets {known.end} to {now.log_start - 1}"
                notes.append(f"{topic.name}-{number}: {gone} were deleted before any backup read them")
            kept = _begin(number, now, known)
            begun.append(kept)
            reached = max([kept.log_start, *(stored.end for stored in kept.objects), *(end for _, end in kept.lost)])
            parts += _parts(TopicPartition(topic.name, number), now, reached, len(parts))
        topics.append(
            TopicBackup(
                name=topic.name, topic_id=topic.topic_id, replication_factor=topic.replication_factor,
                configs=dict(topic.configs), partitions=begun,
            )
        )  # fmt: skip
    return Plan(
        id=backup, parent=None if last is None else last.id, kind=kind, cluster_id=cluster_id, selection=selection,
        begun_ms=now_ms, topics=topics, parts=parts, notes=notes,
    )  # fmt: skip


def _known(before: TopicBackup | None, number: int) -> PartitionBackup | None:
    return None if before is None or number >= len(before.partitions) else before.partitions[number]


def _begin(number: int, now: FoundPartition, known: PartitionBackup | None) -> PartitionBackup:
    """What is stored of the partition already, without what its log does not have any more."""
    start = min(now.log_start, now.end)
    objects = [] if known is None else [stored for stored in known.objects if stored.end > start]
    if known is not None and now.end > known.end:
        objects = objects[: len(objects) - _small_at_the_end(objects)]
    lost = [] if known is None else [gap for gap in known.lost if gap[1] > start]
    return PartitionBackup(
        partition=number, log_start=start, end=now.end, leader_epoch=now.leader_epoch, objects=objects, lost=lost
    )


def _small_at_the_end(objects: Sequence[StoredObject]) -> int:
    """How many are to be read anew: none while they are few."""
    small = list(takewhile(lambda stored: stored.bytes < SMALL_OBJECT_BYTES, reversed(objects)))
    return len(small) if len(small) >= SMALL_OBJECTS_MAX else 0


def _parts(at: TopicPartition, now: FoundPartition, start: int, number: int) -> list[Part]:
    offsets = max(0, now.end - min(now.log_start, now.end))
    each = None if now.bytes is None or not offsets else now.bytes / offsets
    step = OFFSETS_PER_TASK if each is None else max(OFFSETS_PER_TASK_MIN, int(OBJECT_BYTES / max(each, 1)))
    return [
        Part(
            number=number + index, topic=at.topic, partition=at.partition, start=first,
            end=min(first + step, now.end), opens=first == start,
            estimated_bytes=int((min(first + step, now.end) - first) * (each if each is not None else 100)),
        )
        for index, first in enumerate(range(start, now.end, step))
    ]  # fmt: skip


def may_resume(plan: Plan, wanted: Plan) -> bool:
    """Whether a run that was cut short can be gone on with: the same question, asked of the same topics."""
    ids = {topic.name: topic.topic_id for topic in wanted.topics}
    same = (plan.kind, plan.selection, plan.parent, plan.cluster_id) == (
        wanted.kind, wanted.selection, wanted.parent, wanted.cluster_id,
    )  # fmt: skip
    return same and all(ids.get(topic.name) == topic.topic_id for topic in plan.topics)


def finished(plan: Plan, done: Iterable[PartDone]) -> list[TopicBackup]:
    """The topics of the plan with what was read of them."""
    by_number = {each.number: each for each in done}
    missing = [part.number for part in plan.parts if part.number not in by_number]
    if missing:
        raise BackupProblem(f"{len(missing)} parts of {plan.id} have not been read: run it again")
    new: dict[TopicPartition, list[PartDone]] = {}
    for part in plan.parts:
        new.setdefault(TopicPartition(part.topic, part.partition), []).append(by_number[part.number])
    return [
        msgspec.structs.replace(
            topic,
            partitions=[
                _with(partition, new.get(TopicPartition(topic.name, partition.partition), []))
                for partition in topic.partitions
            ],
        )
        for topic in plan.topics
    ]


def _with(partition: PartitionBackup, done: Sequence[PartDone]) -> PartitionBackup:
    objects = [*partition.objects, *(stored for each in done for stored in each.objects)]
    lost = [*partition.lost, *(gap for each in done for gap in each.lost)]
    return msgspec.structs.replace(partition, objects=objects, lost=lost, sha256=partition_sum(objects))


def clamped(
    group: str, committed: Mapping[TopicPartition, GroupOffset], topics: Sequence[TopicBackup]
) -> GroupBackup | None:
    """A group's offsets in these topics. It may have read on since the ends were noted: what is behind them is not in
    this backup. None for a group that has nothing here."""
    ends = {TopicPartition(topic.name, each.partition): each.end for topic in topics for each in topic.partitions}
    kept = [
        msgspec.structs.replace(found, offset=min(found.offset, ends[at]))
        for at, found in sorted(committed.items())
        if at in ends
    ]
    return GroupBackup(group=group, offsets=kept) if kept else None


def matching(pattern: str, option: str = "--topics") -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise BackupProblem(f"{option}: `{pattern}` is not a regular expression: {error}") from None
