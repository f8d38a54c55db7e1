"""A restore: plan, topics, records, settings, groups, in this order. Run again after a kill, it goes on."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import NamedTuple

import msgspec

from ottla.client import admin
from ottla.client.admin import Resource, ResourceType
from ottla.client.cluster import Cluster
from ottla.client.groups import commit_offsets, delete_group, group_offsets
from ottla.client.mirrored import MirroredLog, TakesBatches, bounds_once_heard, takes_batches
from ottla.client.offsets import EARLIEST, LATEST, FoundOffset, list_offsets
from ottla.client.settings import client_settings
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import TopicPartition
from ottla.pipelines.backup import store
from ottla.pipelines.backup.manifest import BackupProblem, DamagedBackup, Manifest
from ottla.pipelines.backup.naming import map_topic, restore_group
from ottla.pipelines.backup.putting_back import PutDone, PutTask, put_back
from ottla.pipelines.backup.reading_back import CutTask, ObjectTask, check_object, find_cut
from ottla.pipelines.backup.restore_plan import (
    MIRROR_SOURCE,
    FoundTarget,
    Marker,
    PartitionRestore,
    RestorePlan,
    RestoreRequest,
    TopicRestore,
    chosen,
    cut_object,
    decide,
    name_of,
)
from ottla.pipelines.backup.running import OpenTasks, Watching
from ottla.pipelines.backup.store import Place
from ottla.pipelines.backup.translating import restore_groups
from ottla.pipelines.backup.work import Here, Tasks, run_all, side_by_side
from ottla.spark import loop
from ottla.spark.connections import shared_cluster

COMPACT = {"cleanup.policy": "compact"}
SETTLE_S_MAX = 30.0
SETTLE_PAUSE_S = 0.05


class RestoreOptions(NamedTuple):
    place: Place
    client: Mapping[str, str]
    """Settings of a producer in the target."""
    request: RestoreRequest
    until_ms: int | None = None
    until_offsets: Mapping[TopicPartition, int] = {}
    compression: str = "lz4"
    unchecked: bool = False
    """Objects are not all read before anything is made; each one's checksum is compared before it is written."""


class Restored(NamedTuple):
    plan: RestorePlan
    records: int
    problems: list[str]


def plan_restore(options: RestoreOptions, manifest: Manifest) -> RestorePlan:
    """Asks the target and the place, and changes nothing. BackupProblem says what stands in the way."""
    ends = _ends(options, manifest)
    _check_objects(options, manifest)
    cluster = _target(options)
    targets = {topic.name: options.request.target(topic.name) for topic in chosen(manifest, options.request)}
    there = loop.run(_found(cluster, [*targets.values()]))
    name = name_of(manifest, options.request, ends)
    markers = loop.run(_markers(cluster, name, there))
    takes = loop.run(takes_batches(cluster))
    return decide(
        manifest, options.request, ends=ends, there=there, markers=markers, brokers=len(cluster.brokers),
        now_ms=time.time_ns() // 1_000_000, takes_no_batches=None if takes is TakesBatches.YES else takes.value,
    )  # fmt: skip


def run_restore(options: RestoreOptions, plan: RestorePlan, open_tasks: OpenTasks, watching: Watching) -> Restored:
    cluster = _target(options)
    unwritten = [each for each in plan.partitions() if not each.done and not each.written]
    with _workers(open_tasks, sum(each.bytes for each in unwritten)) as tasks:
        if not options.unchecked:
            _check_content(options, [each for each in unwritten if not each.begun], tasks, watching)
        loop.run(_make_topics(cluster, plan))
        try:
            moved = _restore_records(options, plan, [each for each in unwritten if each.objects], tasks, watching)
        except DamagedBackup as error:
            names = ", ".join(sorted({each.target.topic for each in unwritten}))
            raise DamagedBackup(
                f"{error}. What was begun is not whole: {names}. Put the object back as it was and run the same "
                "command again, or delete these topics"
            ) from error
    ended = [each for each in unwritten if each.is_read_only]
    reached = {each.target: each.reached for each in plan.partitions() if each.reached is not None}
    reached |= loop.run(_end_logs(cluster, plan, ended, {each.target: each.position for each in moved}))
    for topic in plan.topics:
        loop.run(_settle(cluster, topic))
    problems = restore_groups(options.client, plan, reached)
    if not problems:
        loop.run(_forget(cluster, plan))
    return Restored(plan, sum(each.records for each in moved), problems)


def _target(options: RestoreOptions) -> Cluster:
    return shared_cluster(client_settings(options.client), patient=False)


def _ends(options: RestoreOptions, manifest: Manifest) -> dict[TopicPartition, int]:
    """Earlier ends than the backup's: by offset as they are given, by time after a look into the objects."""
    known = {
        TopicPartition(topic.name, each.partition): each
        for topic in chosen(manifest, options.request)
        for each in topic.partitions
    }
    unknown = [str(at) for at in options.until_offsets if at not in known]
    if unknown:
        raise BackupProblem(f"--until-offset names {', '.join(unknown)}, which this restore does not have")
    ends = dict(options.until_offsets)
    if options.until_ms is None:
        return ends
    cuts = [
        CutTask(place=options.place, at=at, stored=stored, until_ms=options.until_ms)
        for at, each in known.items()
        if (stored := cut_object(each, options.until_ms)) is not None
    ]
    for at, offset in run_all(Here(), find_cut, cuts):
        if offset is not None:
            ends[at] = min(offset, ends.get(at, offset))
    return ends


def _check_objects(options: RestoreOptions, manifest: Manifest) -> None:
    """All are there with their sizes: the plan can say that without reading them."""
    stored = {each.path: each.bytes for each in store.listed(options.place, "data")}
    wrong = [
        f"{each.path} is missing" if each.path not in stored else f"{each.path} has {stored[each.path]} bytes"
        for topic in chosen(manifest, options.request)
        for partition in topic.partitions
        for each in partition.objects
        if stored.get(each.path) != each.bytes
    ]
    if wrong:
        more = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        raise DamagedBackup(f"nothing was restored: {wrong[0]}{more}. See `ottla backup verify`")


async def _found(cluster: Cluster, wanted: list[str]) -> dict[str, FoundTarget]:
    listed = {topic.name: topic.partitions for topic in await admin.list_topics(cluster) if topic.name in wanted}
    places = [TopicPartition(name, number) for name, numbers in listed.items() for number in numbers]
    starts = await list_offsets(cluster, dict.fromkeys(places, EARLIEST)) if places else {}
    ends = await list_offsets(cluster, dict.fromkeys(places, LATEST)) if places else {}
    settings = await admin.topic_settings(cluster, [*listed])
    return {
        name: FoundTarget(
            [
                (_offset(starts[TopicPartition(name, number)]), _offset(ends[TopicPartition(name, number)]))
                for number in numbers
            ],
            settings[name].get(MIRROR_SOURCE, ""),
        )
        for name, numbers in listed.items()
    }


def _offset(found: FoundOffset | ErrorCode) -> int:
    if not isinstance(found, FoundOffset):
        raise BackupProblem(f"the target does not say where its topics end: {found.name}. Try again")
    return found.offset or 0


async def _markers(cluster: Cluster, name: str, there: Mapping[str, FoundTarget]) -> dict[TopicPartition, Marker]:
    """Of a restore of this name that was begun before."""
    found: dict[TopicPartition, Marker] = {}
    for topic, target in there.items():
        for number in range(len(target.partitions)):
            at = TopicPartition(topic, number)
            committed = (await group_offsets(cluster, restore_group(name, at))).get(at)
            if committed is not None and committed.metadata:
                with suppress(msgspec.DecodeError):
                    found[at] = msgspec.json.decode(committed.metadata, type=Marker)
    return found


async def _make_topics(cluster: Cluster, plan: RestorePlan) -> None:
    """Topics with their settings for the time of the restore, and in each partition the mark that it is ours."""
    if plan.needs_map:
        await _make(cluster, map_topic(plan.name), 1, admin.BROKER_DEFAULT, COMPACT)
    for topic in plan.topics:
        if all(partition.begun for partition in topic.partitions):
            continue
        if not topic.exists:
            await _make(cluster, topic.target, len(topic.partitions), topic.replication_factor, topic.meanwhile)
        await admin.alter_configs(cluster, Resource(ResourceType.TOPIC, topic.target), add=topic.meanwhile)
        for partition in topic.partitions:
            await _mark(cluster, plan, partition, position=partition.start)
    for partition in plan.partitions():
        if partition.is_read_only and not partition.written:
            await bounds_once_heard(cluster, partition.target, plan.mirror_source)


async def _make(cluster: Cluster, name: str, partitions: int, replicas: int, configs: Mapping[str, str]) -> None:
    try:
        await admin.create_topic(cluster, name, partitions=partitions, replication_factor=replicas, configs=configs)
    except ApiError as error:
        if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            raise

    async def is_there() -> None:
        await cluster.leader(TopicPartition(name, partitions - 1))

    await cluster.retrying(partial(_known, is_there))


async def _known(look: Callable[[], object]) -> None:
    """A topic that was just made is not known to every broker at once."""
    try:
        await look()  # type: ignore[misc]
    except ApiError as error:
        if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise
        raise ApiError(ErrorCode.LEADER_NOT_AVAILABLE, str(error)) from error


async def _mark(
    cluster: Cluster, plan: RestorePlan, partition: PartitionRestore, *, position: int, done: bool = False
) -> None:
    text = _marker(plan, partition, done=done)
    group = restore_group(plan.name, partition.target)
    refused = await commit_offsets(cluster, group, {partition.target: position}, metadata={partition.target: text})
    for at, code in refused.items():
        raise ApiError(code, f"group `{group}` took no offset for {at}: {code.name}")


def _marker(plan: RestorePlan, partition: PartitionRestore, *, done: bool = False) -> str:
    marker = Marker(
        restore=plan.name, source=partition.source.topic, way=partition.way, end=partition.end,
        reached=partition.reached, done=done,
    )  # fmt: skip
    return msgspec.json.encode(marker).decode()


@contextmanager
def _workers(open_tasks: OpenTasks, size: int) -> Iterator[Tasks]:
    if not size:
        yield Here()
        return
    with open_tasks(size) as tasks:
        yield tasks


def _check_content(
    options: RestoreOptions, partitions: Sequence[PartitionRestore], tasks: Tasks, watching: Watching
) -> None:
    """Everything is read once before anything is made: damage must not leave topics behind of which a part is there."""
    wanted = [
        ObjectTask(place=options.place, at=each.source, stored=stored) for each in partitions for stored in each.objects
    ]
    watching.begin("check", len(wanted), sum(task.stored.bytes for task in wanted))
    try:
        for stored in run_all(tasks, check_object, wanted):
            watching.moved(records=stored.records, bytes_=stored.bytes)
    except DamagedBackup as error:
        raise DamagedBackup(f"nothing was restored: {error}. See `ottla backup verify`") from error


def _restore_records(
    options: RestoreOptions, plan: RestorePlan, partitions: Sequence[PartitionRestore], tasks: Tasks, watching: Watching
) -> "list[_Moved]":
    """Partitions side by side, the objects of each one after the other."""
    size = sum(each.bytes for each in partitions)
    watching.begin(f"restore {plan.name}", sum(len(each.objects) for each in partitions), size)
    jobs = [partial(_restore_partition, options, plan, each, tasks, watching) for each in partitions]
    return [*side_by_side(tasks, jobs)]


def _restore_partition(
    options: RestoreOptions,
    plan: RestorePlan,
    partition: PartitionRestore,
    tasks: Tasks,
    watching: Watching,
    ending: threading.Event,
) -> "_Moved":
    records, position = 0, 0
    for stored in partition.objects:
        if ending.is_set():
            break
        task = PutTask(
            place=options.place, client=dict(options.client), stored=stored, source=partition.source,
            target=partition.target, start=partition.start, end=partition.end,
            group=restore_group(plan.name, partition.target), marker=_marker(plan, partition),
            map_topic=map_topic(plan.name), compression=options.compression, way=partition.way,
            mirror_source=plan.mirror_source, follows=position,
        )  # fmt: skip
        done: PutDone = tasks.one(put_back, task)
        records += done.records
        position = done.position
        watching.moved(records=done.records, bytes_=stored.bytes)
    return _Moved(partition.target, records, position)


class _Moved(NamedTuple):
    target: TopicPartition
    records: int
    position: int
    """Of the ways that make the topic read-only: where its log ends."""


async def _end_logs(
    cluster: Cluster,
    plan: RestorePlan,
    partitions: Sequence[PartitionRestore],
    positions: Mapping[TopicPartition, int],
) -> dict[TopicPartition, int]:
    """Logs begin where they began, and end behind what was put there: else the topics stay as they are, read-only.

    Where they end is noted before anybody else may write: groups that stood behind the last record stand there.
    """
    reached = {}
    for each in partitions:
        log = MirroredLog(cluster, each.target, plan.mirror_source)
        end = max(each.start, positions.get(each.target, 0))
        if each.way == "batches":
            end = max([each.start, *(stored.last + 1 for stored in each.objects)])
        bounds = await log.append(0)
        given_up_at = time.monotonic() + SETTLE_S_MAX
        while bounds != (each.start, end):
            # A leader drops only what its followers have: one that was just elected learns that with their next fetch.
            bounds = await log.append(each.start if bounds.end < each.start else 0, log_start_offset=each.start)
            if bounds.end != end or time.monotonic() > given_up_at:
                raise BackupProblem(
                    f"{each.target} has the offsets from {bounds.start} to {bounds.end}, and in the backup those from "
                    f"{each.start} to {end}. Run the same command again, or delete the topic and restore it anew"
                )
            await asyncio.sleep(SETTLE_PAUSE_S)
        reached[each.target] = end
        await _mark(cluster, plan, msgspec.structs.replace(each, reached=end), position=end)
    return reached


async def _settle(cluster: Cluster, topic: TopicRestore) -> None:
    """The settings of the backup: retention and compaction go on from here."""
    await admin.alter_configs(
        cluster, Resource(ResourceType.TOPIC, topic.target), add=topic.finally_, delete=topic.reset
    )


async def _forget(cluster: Cluster, plan: RestorePlan) -> None:
    """Marked as done before the map goes, so that whoever is killed here does not want to read it again."""
    for partition in plan.partitions():
        await _mark(cluster, plan, partition, position=partition.end, done=True)
    if plan.needs_map:
        with suppress(ApiError):
            await admin.delete_topic(cluster, map_topic(plan.name))
    for partition in plan.partitions():
        with suppress(ApiError):
            await delete_group(cluster, restore_group(plan.name, partition.target))
