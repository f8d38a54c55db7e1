"""What backups a place has: complete ones by their manifests, runs that were cut short, damaged manifests."""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from ottla.pipelines.backup import naming, store
from ottla.pipelines.backup.manifest import (
    BackupProblem,
    DamagedBackup,
    Manifest,
    MissingObject,
    decode_manifest,
)
from ottla.pipelines.backup.planning import Plan
from ottla.pipelines.backup.store import Place


class Catalogue(NamedTuple):
    manifests: list[Manifest]
    """The oldest first."""
    damaged: Mapping[str, str]
    """Why a manifest cannot be read, by backup."""
    unfinished: Mapping[str, Plan | None]
    """Runs without a manifest; None where even the plan was cut short."""

    @property
    def last(self) -> Manifest | None:
        return self.manifests[-1] if self.manifests else None


def read_catalogue(place: Place) -> Catalogue:
    manifests: list[Manifest] = []
    damaged: dict[str, str] = {}
    for stored in store.listed(place, naming.MANIFESTS):
        backup = naming.backup_of_manifest(stored.path)
        if backup is None:
            continue
        try:
            manifests.append(decode_manifest(store.read(place, stored.path), stored.path))
        except MissingObject:
            continue  # somebody has pruned it since it was listed
        except DamagedBackup as error:
            damaged[backup] = str(error)
    complete = {manifest.id for manifest in manifests} | damaged.keys()
    runs = {naming.backup_of_path(stored.path) for stored in store.listed(place, naming.RUNS)} - complete - {None}
    plans = {backup: _plan(place, backup) for backup in sorted(run for run in runs if run is not None)}
    return Catalogue(manifests, damaged, plans)


def choose(catalogue: Catalogue, place: Place, backup: str | None, at_ms: int | None = None) -> Manifest:
    """The one that is named, the newest that was taken by a time, or the newest of all."""
    if backup is not None and backup in catalogue.damaged:
        raise DamagedBackup(catalogue.damaged[backup])
    found = [
        manifest
        for manifest in catalogue.manifests
        if (backup is None or manifest.id == backup) and (at_ms is None or manifest.taken_ms <= at_ms)
    ]
    if found and backup is None and at_ms is None and any(name > found[-1].id for name in catalogue.damaged):
        raise DamagedBackup(f"{catalogue.damaged[max(catalogue.damaged)]}. Name an older backup to take that one")
    if found:
        return found[-1]
    if backup is not None:
        raise BackupProblem(f"{place} has no backup `{backup}`: see `ottla backup list`")
    if catalogue.damaged:
        raise DamagedBackup("; ".join(catalogue.damaged.values()))
    when = "" if at_ms is None else " that was taken by then"
    raise BackupProblem(f"{place} has no backup{when}: make one with `ottla backup run`, or check the place")


def _plan(place: Place, backup: str) -> Plan | None:
    try:
        return msgspec.json.decode(store.read(place, naming.plan_path(backup)), type=Plan)
    except (DamagedBackup, msgspec.DecodeError, UnicodeDecodeError):
        return None
