"""What a restore does: which topics become which, with which offsets and settings, and why it may not. Pure."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from ottla.config.topic import RESTORING
from ottla.model.errors import ApiError
from ottla.model.names import TopicPartition, check_topic_name
from ottla.pipelines.backup.manifest import (
    AclBackup,
    BackupProblem,
    GroupBackup,
    Manifest,
    PartitionBackup,
    StoredObject,
    TopicBackup,
)
from ottla.pipelines.backup.naming import restore_name
from ottla.pipelines.backup.planning import matching

NEVER = str(2**63 - 1)
BATCH_ROOM = 1024
"""What a record's batch has around it, with a good margin."""
BATCH_BYTES_MIN = 1_048_588
RETENTION = ("retention.ms", "retention.bytes", "cleanup.policy")
HELD: Mapping[str, str] = {
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "cleanup.policy": "delete",
    "message.timestamp.type": "CreateTime",
    "message.timestamp.before.max.ms": NEVER,
    "message.timestamp.after.max.ms": NEVER,
}
"""While records come in: nothing is deleted or compacted, and old times are taken as they are."""
MIRROR_SOURCE = "mirror.source"
_TOPIC, _LITERAL = 2, 3


class RestoreRequest(NamedTuple):
    topics: str = ".*"
    rename: Mapping[str, str] = {}
    prefix: str = ""
    groups: str = ".*"
    replication_factor: int | None = None
    hold_retention: bool = False

    def target(self, topic: str) -> str:
        return self.rename.get(topic, f"{self.prefix}{topic}")


class FoundTarget(NamedTuple):
    """A topic that the target has: where each of its partitions begins and ends."""

    partitions: Sequence[tuple[int, int]]
    source: str = ""
    """Its mirror.source."""

    @property
    def is_empty(self) -> bool:
        return all(start >= end for start, end in self.partitions)


Way = Literal["batches", "offsets", "counted", "mapped"]
"""batches: as they were, byte for byte. offsets: written anew, every record at the offset that it had. Both of them are
Ottla's own way, and the topic is read-only meanwhile. counted: through Produce, which counts to the same offsets where
none is missing. mapped: through Produce, in transactions, with a note of where each record went."""
READ_ONLY: tuple[Way, ...] = ("batches", "offsets")


class Marker(msgspec.Struct, frozen=True, kw_only=True):
    """Beside the position of each partition that is restored: what it is becoming."""

    restore: str
    source: str
    way: Way
    end: int
    reached: int | None = None
    """Where the log ended when all was in and before anybody else wrote; of the ways that make the topic read-only."""
    done: bool = False


class PartitionRestore(msgspec.Struct, frozen=True, kw_only=True):
    source: TopicPartition
    target: TopicPartition
    start: int
    end: int
    way: Way
    objects: list[StoredObject]
    begun: bool = False
    written: bool = False
    """All is in, and clients may write behind it by now."""
    reached: int | None = None
    """Where the log ended then."""
    done: bool = False

    @property
    def same(self) -> bool:
        """Records get the offsets that they had."""
        return self.way != "mapped"

    @property
    def is_read_only(self) -> bool:
        return self.way in READ_ONLY

    @property
    def records(self) -> int:
        """Exact unless the end lies inside the last object."""
        return sum(stored.records for stored in self.objects)

    @property
    def bytes(self) -> int:
        return sum(stored.bytes for stored in self.objects)


class TopicRestore(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    target: str
    replication_factor: int
    exists: bool
    meanwhile: dict[str, str]
    """Settings while records come in."""
    finally_: dict[str, str]
    reset: list[str]
    """Settings that go back to the target's defaults."""
    partitions: list[PartitionRestore]

    @property
    def begun(self) -> bool:
        return bool(self.partitions) and all(partition.begun for partition in self.partitions)

    @property
    def same(self) -> bool:
        return all(partition.same for partition in self.partitions)

    @property
    def exact(self) -> bool:
        """Byte for byte."""
        return bool(self.partitions) and all(partition.way == "batches" for partition in self.partitions)


class RestorePlan(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    backup: str
    topics: list[TopicRestore]
    groups: list[GroupBackup]
    notes: list[str]

    @property
    def mirror_source(self) -> str:
        """Of topics while their batches come in as they were: so nobody else writes to them."""
        return mirror_source(self.name)

    @property
    def needs_map(self) -> bool:
        return any(not partition.same for topic in self.topics for partition in topic.partitions)

    def partitions(self) -> list[PartitionRestore]:
        return [partition for topic in self.topics for partition in topic.partitions]


def mirror_source(restore: str) -> str:
    return f"{RESTORING}{restore}"


def chosen(manifest: Manifest, request: RestoreRequest) -> list[TopicBackup]:
    wanted = matching(request.topics)
    topics = [topic for topic in manifest.topics if wanted.fullmatch(topic.name)]
    unknown = sorted(set(request.rename) - {topic.name for topic in topics})
    if unknown:
        raise BackupProblem(f"--rename names {', '.join(unknown)}, which this restore does not have")
    if not topics:
        raise BackupProblem(f"no topic of backup {manifest.id} matches `{request.topics}`: see `ottla backup list`")
    return topics


def name_of(manifest: Manifest, request: RestoreRequest, ends: Mapping[TopicPartition, int]) -> str:
    """The same for the same topics, names and ends: so a restore that was cut short is known again."""
    pairs = [(topic.name, request.target(topic.name)) for topic in chosen(manifest, request)]
    return restore_name(manifest.id, repr((pairs, sorted(ends.items()))))


def cut_object(partition: PartitionBackup, until_ms: int) -> StoredObject | None:
    """The object in which the first record later than a time lies; None if there is none."""
    return next((stored for stored in partition.objects if stored.max_timestamp > until_ms), None)


def decide(
    manifest: Manifest,
    request: RestoreRequest,
    *,
    ends: Mapping[TopicPartition, int],
    there: Mapping[str, FoundTarget],
    markers: Mapping[TopicPartition, Marker],
    brokers: int,
    now_ms: int,
    takes_no_batches: str | None,
) -> RestorePlan:
    """`ends` are earlier ends than the backup's, `there` and `markers` what the target has, `takes_no_batches` why it
    does not take batches as they are. BackupProblem says all that stands in the way."""
    topics = chosen(manifest, request)
    name = name_of(manifest, request, ends)
    problems = _wrong_names(topics, request)
    notes: list[str] = []
    plans = []
    for topic in topics:
        target = request.target(topic.name)
        found = there.get(target)
        known = [markers.get(TopicPartition(target, each.partition)) for each in topic.partitions]
        ours = [marker for marker in known if marker is not None and marker.restore == name]
        problems += _in_the_way(topic, target, found, begun=len(ours) == len(topic.partitions))
        plan = _topic(topic, target, request, ends, found, ours, brokers, notes)
        if not plan.begun:
            anew = _why_anew(topic, ends, found, takes_no_batches)
            if manifest.kind == "raw" and anew is not None:
                notes.append(f"{target}: batches are written anew, not as they were: {anew}")
            as_it_was = manifest.kind == "raw" and anew is None
            way = "batches" if as_it_was else _way(topic, found, takes_no_batches)
            plan = _with_way(plan, topic, way)
        plans.append(_read_only(plan, mirror_source(name), found))
        notes += _vanishing(topic, target, request, now_ms)
    if problems:
        raise BackupProblem("nothing was restored:\n" + "\n".join(f"  - {problem}" for problem in problems))
    wanted = matching(request.groups, "--groups")
    names = {topic.name for topic in topics}
    groups = [
        GroupBackup(group=group.group, offsets=[each for each in group.offsets if each.topic in names])
        for group in manifest.groups
        if wanted.fullmatch(group.group) and any(each.topic in names for each in group.offsets)
    ]
    return RestorePlan(name=name, backup=manifest.id, topics=plans, groups=groups, notes=notes)


def _wrong_names(topics: Sequence[TopicBackup], request: RestoreRequest) -> list[str]:
    problems = []
    targets: dict[str, str] = {}
    for topic in topics:
        target = request.target(topic.name)
        if target in targets:
            problems.append(f"{topic.name} and {targets[target]} would both become {target}: rename one of them")
        targets[target] = topic.name
        try:
            check_topic_name(target)
        except ApiError as error:
            problems.append(f"{topic.name} cannot become `{target}`: {error}")
    return problems


def _in_the_way(topic: TopicBackup, target: str, found: FoundTarget | None, *, begun: bool) -> list[str]:
    if found is None:
        return []
    if not begun and not found.is_empty:
        records = sum(end - start for start, end in found.partitions)
        what = f"the target has a topic {target} with records ({records} offsets)"
        return [f"{what}: restore {topic.name} under another name (--rename, --prefix), or delete the topic first"]
    if found.source and not begun:
        what = f"the target's topic {target} is a read-only mirror (mirror.source={found.source})"
        return [f"{what}: restore {topic.name} under another name (--rename, --prefix), or delete the topic first"]
    if len(found.partitions) != len(topic.partitions):
        what = f"the target has an empty topic {target} with {len(found.partitions)} partitions"
        return [f"{what}, and the backup has {len(topic.partitions)}: delete it, or restore under another name"]
    return []


def _topic(
    topic: TopicBackup,
    target: str,
    request: RestoreRequest,
    ends: Mapping[TopicPartition, int],
    found: FoundTarget | None,
    ours: Sequence[Marker],
    brokers: int,
    notes: list[str],
) -> TopicRestore:
    replicas = min(request.replication_factor or topic.replication_factor, max(brokers, 1))
    if replicas < topic.replication_factor:
        notes.append(f"{target} gets {replicas} replicas; {topic.name} had {topic.replication_factor}")
    settings = dict(topic.configs)
    if settings.pop(MIRROR_SOURCE, None):
        notes.append(f"{topic.name} was a read-only mirror: {target} will be an ordinary topic")
    in_sync = settings.get("min.insync.replicas", "1")
    if in_sync.isdigit() and int(in_sync) > replicas:
        notes.append(f"{target} goes without min.insync.replicas={in_sync}: it has {replicas} replicas")
        del settings["min.insync.replicas"]
    if request.hold_retention:
        settings |= {name: HELD[name] for name in RETENTION}
    largest = max((stored.batch_bytes_max for each in topic.partitions for stored in each.objects), default=0)
    allowed = settings.get("max.message.bytes", "")
    room = max(largest + BATCH_ROOM, BATCH_BYTES_MIN, int(allowed) if allowed.isdigit() else 0)
    meanwhile = {**settings, **HELD, "max.message.bytes": str(room)}
    begun = len(ours) == len(topic.partitions)
    partitions = []
    for number, each in enumerate(topic.partitions):
        source = TopicPartition(topic.name, each.partition)
        end = min(each.end, ends.get(source, each.end))
        partitions.append(
            PartitionRestore(
                source=source, target=TopicPartition(target, each.partition), start=each.log_start, end=end,
                way=ours[number].way if begun else "mapped",
                objects=[stored for stored in each.objects if stored.start < end], begun=begun,
                reached=ours[number].reached if begun else None, done=begun and ours[number].done,
            )
        )  # fmt: skip
    return TopicRestore(
        source=topic.name, target=target, replication_factor=replicas, exists=found is not None, meanwhile=meanwhile,
        finally_=settings, reset=sorted(meanwhile.keys() - settings.keys()), partitions=partitions,
    )  # fmt: skip


def _why_anew(
    topic: TopicBackup, ends: Mapping[TopicPartition, int], found: FoundTarget | None, takes_none: str | None
) -> str | None:
    """What keeps batches from coming back as they were; None if nothing does. Batches can only come as a whole log:
    one that is cut may end inside a transaction, of which nobody would write the end."""
    if takes_none is not None:
        return f"the target does not take them, {takes_none}"
    if any(ends.get(TopicPartition(topic.name, each.partition), each.end) < each.end for each in topic.partitions):
        return "only a part of them is wanted"
    if any(each.lost for each in topic.partitions):
        return "retention deleted some while the backup was taken"
    if any(stored.kind != "raw" for each in topic.partitions for stored in each.objects):
        return "an earlier backup that is part of this one has them as Parquet"
    if found is not None and any(end for _, end in found.partitions):
        return "the target's topic had records before"
    return None


def _way(topic: TopicBackup, found: FoundTarget | None, takes_none: str | None) -> Way | None:
    """The way of all its partitions; None if each has its own."""
    is_new = found is None or not any(end for _, end in found.partitions)
    if not is_new:
        return "mapped"
    if all(each.is_dense for each in topic.partitions):
        return "counted"
    return "offsets" if takes_none is None else None


def _with_way(plan: TopicRestore, topic: TopicBackup, way: Way | None) -> TopicRestore:
    ways: list[Way] = [way or ("counted" if each.is_dense else "mapped") for each in topic.partitions]
    partitions = [msgspec.structs.replace(each, way=way) for each, way in zip(plan.partitions, ways, strict=True)]
    return msgspec.structs.replace(plan, partitions=partitions)


def _read_only(plan: TopicRestore, source: str, found: FoundTarget | None) -> TopicRestore:
    """The setting goes when all is in: where it is gone, it is."""
    if not any(each.is_read_only for each in plan.partitions):
        return plan
    written = plan.begun and found is not None and found.source != source
    return msgspec.structs.replace(
        plan,
        partitions=[msgspec.structs.replace(each, written=written) for each in plan.partitions],
        meanwhile={**plan.meanwhile, MIRROR_SOURCE: source},
        reset=sorted({*plan.reset, MIRROR_SOURCE}),
    )


def _vanishing(topic: TopicBackup, target: str, request: RestoreRequest, now_ms: int) -> list[str]:
    """Retention goes on where it was: who restores to look at old records wants to know."""
    held = topic.configs.get("retention.ms", str(7 * 24 * 3600 * 1000))
    times = [stored.max_timestamp for each in topic.partitions for stored in each.objects if stored.records]
    deletes = "delete" in topic.configs.get("cleanup.policy", "delete")
    limited = deletes and held.isdigit()  # -1 is no limit
    if request.hold_retention or not limited or not times or min(times) > now_ms - int(held):
        return []
    what = f"{target} has records older than retention.ms={held}"
    return [f"{what}: the target deletes them after the restore, as the source would. --hold-retention keeps them"]


def renamed_acls(acls: Sequence[AclBackup], request: RestoreRequest, topics: Sequence[str]) -> list[AclBackup]:
    """Rules about a restored topic by its name are about its new name; all others stay as they are."""
    return [
        msgspec.structs.replace(rule, name=request.target(rule.name))
        if rule.resource == _TOPIC and rule.pattern == _LITERAL and rule.name in topics
        else rule
        for rule in acls
    ]
