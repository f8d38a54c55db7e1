"""A run of a backup: plan, tasks, and at the end the manifest. A run that was cut short is gone on with."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

import msgspec

from ottla import __version__
from ottla.client.cluster import Cluster
from ottla.client.settings import client_settings
from ottla.pipelines.backup import asking, naming, store
from ottla.pipelines.backup.catalogue import read_catalogue
from ottla.pipelines.backup.manifest import BackupProblem, Kind, Manifest, encode_manifest
from ottla.pipelines.backup.planning import PartDone, Plan, finished, make_plan, matching, may_resume
from ottla.pipelines.backup.store import Place
from ottla.pipelines.backup.taking import TakeTask, take
from ottla.pipelines.backup.work import Tasks, run_all
from ottla.spark import loop
from ottla.spark.connections import shared_cluster

OpenTasks = Callable[[int], AbstractContextManager[Tasks]]
"""Who runs tasks that move about so many bytes."""


class Watching(Protocol):
    """Who is told how far a run is."""

    def begin(self, what: str, parts: int, bytes_: int) -> None: ...

    def moved(self, *, records: int, bytes_: int) -> None: ...

    def say(self, text: str) -> None: ...


class RunOptions(NamedTuple):
    place: Place
    client: Mapping[str, str]
    topics: str = ".*"
    groups: str = ".*"
    kind: Kind = "parquet"
    full: bool = False
    """From the beginning of every log, whatever earlier backups have."""
    only_changes: bool = False
    """No manifest if nothing has changed since the last one: for runs that follow each other."""


def run_backup(options: RunOptions, open_tasks: OpenTasks, watching: Watching) -> Manifest | None:
    """The manifest of the new backup; None where there was nothing new and that was asked for."""
    with store.alone(options.place):
        return _run(options, open_tasks, watching)


def _run(options: RunOptions, open_tasks: OpenTasks, watching: Watching) -> Manifest | None:
    cluster = shared_cluster(client_settings(options.client), patient=False)
    catalogue = read_catalogue(options.place)
    last = None if options.full else catalogue.last
    found = loop.run(asking.find_topics(cluster, matching(options.topics)))
    if not found:
        raise BackupProblem(f"no topic matches `{options.topics}`: see `ottla topics --list`")
    cluster_id = cluster.cluster_id or ""
    known = catalogue.last
    if known is not None and known.cluster_id != cluster_id:
        raise BackupProblem(
            f"{options.place} has backups of cluster {known.cluster_id}, and this is {cluster_id}: choose another place"
        )
    now_ms = time.time_ns() // 1_000_000
    wanted = make_plan(
        found, last, backup=naming.backup_id(now_ms), kind=options.kind, cluster_id=cluster_id,
        selection=options.topics, now_ms=now_ms,
    )  # fmt: skip
    plan, done = _resumed(options, wanted, catalogue.unfinished, watching)
    if plan is wanted:
        if options.only_changes and not plan.parts and last is not None and _is_same(cluster, options, plan, last):
            return None
        store.write(options.place, naming.plan_path(plan.id), msgspec.json.encode(plan))
    for text in plan.notes:
        watching.say(text)
    done += _read(options, plan, done, open_tasks, watching)
    return _finish(cluster, options, plan, done, watching)


def _resumed(
    options: RunOptions, wanted: Plan, unfinished: Mapping[str, Plan | None], watching: Watching
) -> tuple[Plan, list[PartDone]]:
    """The run that was cut short, if it is still the one that is wanted; others are cleared away."""
    chosen: Plan | None = None
    for backup, plan in sorted(unfinished.items(), reverse=True):
        if plan is not None and chosen is None and may_resume(plan, wanted):
            chosen = plan
            continue
        watching.say(f"{backup} was cut short and does not fit any more: what it left is deleted")
        clear_run(options.place, backup)
    if chosen is None:
        return wanted, []
    done = list(_done(options.place, chosen))
    watching.say(f"{chosen.id} was cut short: going on with it, {len(done)} of {len(chosen.parts)} parts are done")
    return chosen, done


def _done(place: Place, plan: Plan) -> Iterator[PartDone]:
    there = {stored.path for stored in store.listed(place, naming.run_folder(plan.id))}
    for part in plan.parts:
        path = naming.task_path(plan.id, part.number)
        if path in there:
            yield msgspec.json.decode(store.read(place, path), type=PartDone)


def clear_run(place: Place, backup: str) -> None:
    """Its plan goes last: until then it can be cleared again."""
    for folder in (f"{naming.DATA}/{backup}", naming.run_folder(backup)):
        for stored in sorted(store.listed(place, folder), reverse=True):
            if stored.path != naming.plan_path(backup):
                store.delete(place, stored.path)
    store.delete(place, naming.plan_path(backup))


def _read(
    options: RunOptions, plan: Plan, done: list[PartDone], open_tasks: OpenTasks, watching: Watching
) -> list[PartDone]:
    have = {each.number for each in done}
    parts = [part for part in plan.parts if part.number not in have]
    size = sum(part.estimated_bytes for part in parts)
    watching.begin(f"backup {plan.id}", len(parts), size)
    if not parts:
        return []
    tasks = [
        TakeTask(backup=plan.id, kind=plan.kind, place=options.place, client=dict(options.client), part=part)
        for part in parts
    ]
    estimated = {part.number: part.estimated_bytes for part in parts}
    results = []
    with open_tasks(size) as workers:
        for result in run_all(workers, take, tasks):
            results.append(result)
            records = sum(stored.records for stored in result.objects)
            watching.moved(records=records, bytes_=estimated[result.number])
    return results


def _finish(cluster: Cluster, options: RunOptions, plan: Plan, done: list[PartDone], watching: Watching) -> Manifest:
    """Groups after the records, the manifest after everything: without it there is no backup."""
    ids = loop.run(asking.topic_ids(cluster))
    replaced = [topic.name for topic in plan.topics if ids.get(topic.name) != topic.topic_id]
    if replaced:
        raise BackupProblem(f"{', '.join(replaced)} was deleted, or made anew, while it was read: run the backup again")
    topics = finished(plan, done)
    lost = [
        f"{topic.name}-{each.partition}: offsets {first} to {end - 1} were deleted while they were read"
        for topic in topics
        for each in topic.partitions
        for first, end in each.lost
    ]
    rights = loop.run(asking.find_rights(cluster))
    groups = loop.run(asking.find_groups(cluster, matching(options.groups, "--groups"), topics))
    for text in [*lost, *rights.notes]:
        watching.say(text)
    manifest = Manifest(
        id=plan.id, parent=plan.parent, kind=plan.kind, cluster_id=plan.cluster_id, selection=plan.selection,
        begun_ms=plan.begun_ms, taken_ms=time.time_ns() // 1_000_000, topics=topics, groups=groups, acls=rights.acls,
        quotas=rights.quotas, scram_users=rights.scram_users, notes=[*plan.notes, *lost, *rights.notes],
        version=__version__,
    )  # fmt: skip
    store.write(options.place, naming.manifest_path(manifest.id), encode_manifest(manifest))
    for stored in store.listed(options.place, naming.run_folder(plan.id)):
        store.delete(options.place, stored.path)  # the manifest says it all now
    return manifest


def _is_same(cluster: Cluster, options: RunOptions, plan: Plan, last: Manifest) -> bool:
    """Nothing to read, and settings, groups and rights are those of the last backup."""
    topics = finished(plan, [])
    if topics != last.topics:
        return False
    rights = loop.run(asking.find_rights(cluster))
    groups = loop.run(asking.find_groups(cluster, matching(options.groups, "--groups"), topics))
    known = (last.groups, last.acls, last.quotas, last.scram_users)
    return (groups, rights.acls, rights.quotas, rights.scram_users) == known
