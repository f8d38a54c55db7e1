"""`verify`: everything is read back, and compared with what the manifests say."""

from collections.abc import Sequence
from typing import NamedTuple

from ottla.pipelines.backup.manifest import Manifest, wrong_partition
from ottla.pipelines.backup.reading_back import ObjectTask, verify_object
from ottla.pipelines.backup.running import OpenTasks, Watching
from ottla.pipelines.backup.store import Place
from ottla.pipelines.backup.work import run_all


class Verification(NamedTuple):
    backups: list[str]
    objects: int
    records: int
    bytes: int
    problems: list[str]


def verify(place: Place, manifests: Sequence[Manifest], open_tasks: OpenTasks, watching: Watching) -> Verification:
    """Objects that several backups share are read once."""
    problems = [
        f"{manifest.id}: {text}"
        for manifest in manifests
        for topic in manifest.topics
        for partition in topic.partitions
        for text in wrong_partition(topic.name, partition)
    ]
    tasks: dict[str, ObjectTask] = {}
    for manifest in manifests:
        for at, stored in manifest.objects():
            known = tasks.setdefault(stored.path, ObjectTask(place=place, at=at, stored=stored))
            if known.stored != stored:
                problems.append(f"{manifest.id}: {stored.path} is not what another backup says of it")
    size = sum(task.stored.bytes for task in tasks.values())
    watching.begin("verify", len(tasks), size)
    records = read = 0
    with open_tasks(size) as workers:
        for found in run_all(workers, verify_object, [*tasks.values()]):
            problems += found.problems
            records += found.records
            read += found.bytes
            watching.moved(records=found.records, bytes_=tasks[found.path].stored.bytes)
    return Verification([manifest.id for manifest in manifests], len(tasks), records, read, problems)
