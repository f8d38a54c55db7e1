"""Deleting what `retention` says may go: manifests first, so that no backup is left with an object missing."""

from ottla.pipelines.backup import naming, store
from ottla.pipelines.backup.catalogue import read_catalogue
from ottla.pipelines.backup.manifest import DamagedBackup
from ottla.pipelines.backup.retention import Pruning, choose, prune
from ottla.pipelines.backup.store import Place


def prune_place(
    place: Place,
    *,
    keep: int | None,
    older_than_ms: int | None,
    now_ms: int,
    unfinished: bool = False,
    dry_run: bool = False,
) -> Pruning:
    with store.alone(place):
        catalogue = read_catalogue(place)
        if catalogue.damaged:
            raise DamagedBackup(
                f"nothing was deleted: {'; '.join(catalogue.damaged.values())}. What a damaged manifest needs is not "
                "known: bring it back, or delete it if nobody needs it"
            )
        taken = {manifest.id: manifest.taken_ms for manifest in catalogue.manifests}
        _, drop = choose(taken, keep=keep, older_than_ms=older_than_ms, now_ms=now_ms)
        under_way = [] if unfinished else [*catalogue.unfinished]
        paths = [stored.path for stored in store.listed(place)]
        found = prune(catalogue.manifests, drop, paths, under_way=under_way)
        if not dry_run:
            for backup in found.drop:
                store.delete(place, naming.manifest_path(backup))
            for path in found.delete:
                store.delete(place, path)
    return found
