"""Pruning: what a kept backup names stays, whoever wrote it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.pipelines.backup.samples import manifest, partition, stored, topic

from ottla.pipelines.backup.manifest import BackupProblem, Manifest
from ottla.pipelines.backup.naming import backup_id, backup_of_manifest, backup_of_path, manifest_path
from ottla.pipelines.backup.retention import choose, prune

DAY = 24 * 3600 * 1000


def increments(count: int, window: int) -> list[Manifest]:
    """Each has the objects of the runs before it that are still in the log."""
    found = []
    for number in range(count):
        objects = [
            stored(at * 10, at * 10 + 10, run=backup_id(at * DAY)) for at in range(max(0, number - window), number + 1)
        ]
        each = topic(partition(*objects, log_start=objects[0].start))
        found.append(manifest([each], backup=backup_id(number * DAY), taken_ms=number * DAY))
    return found


@given(st.integers(1, 12), st.integers(0, 5), st.integers(1, 12), st.one_of(st.none(), st.integers(0, 12)))
def test_no_kept_backup_loses_an_object(count: int, window: int, keep: int, days: int | None) -> None:
    manifests = increments(count, window)
    everything = {each.path for found in manifests for _, each in found.objects()}
    older_than_ms = None if days is None else days * DAY
    taken = {found.id: found.taken_ms for found in manifests}
    kept, dropped = choose(taken, keep=keep, older_than_ms=older_than_ms, now_ms=count * DAY)
    pruned = prune(manifests, dropped, everything)
    left = everything - set(pruned.delete)
    assert manifests[-1].id in kept
    assert sorted([*kept, *dropped]) == sorted(taken)
    assert len(kept) >= min(keep, count)
    for found in manifests:
        if found.id in kept:
            assert {each.path for _, each in found.objects()} <= left
    needed = {each.path for found in manifests if found.id in kept for _, each in found.objects()}
    assert left == needed, "and nothing is left that nobody needs"


def test_both_limits_have_to_agree() -> None:
    taken = {backup_id(day * DAY): day * DAY for day in range(10)}
    assert len(choose(taken, keep=3, older_than_ms=None, now_ms=10 * DAY)[0]) == 3
    assert len(choose(taken, keep=None, older_than_ms=5 * DAY, now_ms=10 * DAY)[0]) == 5
    assert len(choose(taken, keep=7, older_than_ms=5 * DAY, now_ms=10 * DAY)[0]) == 7
    assert len(choose(taken, keep=None, older_than_ms=0, now_ms=100 * DAY)[0]) == 1
    for keep, older in ((None, None), (0, None)):
        with pytest.raises(BackupProblem):
            choose(taken, keep=keep, older_than_ms=older, now_ms=0)


def test_runs_under_way_are_left_alone() -> None:
    (found,) = increments(1, 0)
    other = backup_id(5 * DAY)
    paths = [f"data/{other}/t/0/x.parquet", f"runs/{other}/plan.json", f"runs/{found.id}/plan.json", "data/else"]
    assert prune([found], [], paths, under_way=[other]).delete == [f"runs/{found.id}/plan.json"]
    assert prune([found], [], paths).delete == sorted(paths[:3])


@given(st.integers(0, 4_000_000_000_000), st.integers(0, 4_000_000_000_000))
def test_ids_sort_as_time_does(one: int, other: int) -> None:
    assert (backup_id(one) < backup_id(other)) == (one < other)
    assert backup_of_manifest(manifest_path(backup_id(one))) == backup_id(one)
    assert backup_of_path(f"data/{backup_id(one)}/t/0/x") == backup_id(one)
    assert backup_of_path("data/else") is None
