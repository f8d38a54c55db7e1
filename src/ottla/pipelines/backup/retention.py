"""Which backups go, and which objects then belong to none. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from ottla.pipelines.backup.manifest import BackupProblem, Manifest
from ottla.pipelines.backup.naming import backup_of_path


class Pruning(NamedTuple):
    keep: list[str]
    drop: list[str]
    delete: list[str]
    """Objects and notes that nobody needs when the manifests of `drop` are gone."""


def choose(
    taken: Mapping[str, int], *, keep: int | None, older_than_ms: int | None, now_ms: int
) -> tuple[list[str], list[str]]:
    """(kept, dropped) of backups with the times they were taken at. With both limits a backup goes only if both say so;
    the newest always stays."""
    if keep is None and older_than_ms is None:
        raise BackupProblem("say which backups may go: --keep N, --older-than 30d, or both")
    if keep is not None and keep < 1:
        raise BackupProblem("--keep wants at least 1: the newest backup stays")
    ordered = sorted(taken, key=lambda backup: (taken[backup], backup), reverse=True)
    kept = []
    for place, backup in enumerate(ordered):
        beyond = keep is not None and place >= keep
        old = older_than_ms is not None and now_ms - taken[backup] > older_than_ms
        goes = (keep is None or beyond) and (older_than_ms is None or old) and place > 0
        if not goes:
            kept.append(backup)
    return sorted(kept), sorted(set(ordered) - set(kept))


def prune(
    manifests: Sequence[Manifest],
    drop: Collection[str],
    stored: Iterable[str],
    *,
    under_way: Collection[str] = (),
) -> Pruning:
    """`stored` are all paths of the place. What a kept manifest names stays, whichever run wrote it, and so does what a
    run has written that is `under_way`, or was cut short and may be gone on with."""
    kept = [manifest for manifest in manifests if manifest.id not in drop]
    needed = {each.path for manifest in kept for _, each in manifest.objects()}
    delete = [
        path
        for path in stored
        if (run := backup_of_path(path)) is not None and run not in under_way and path not in needed
    ]
    return Pruning(sorted(manifest.id for manifest in kept), sorted(drop), sorted(delete))
