"""Backups of places that the console was told of, as `ottla backup list` tells; how to check and restore one."""

import shlex
from collections.abc import Callable
from typing import Any, NamedTuple

from ottla.console.asking import Ask
from ottla.console.commands import command
from ottla.console.tools import Told

KEPT_SECONDS = 60.0
SHOWN_MAX = 50


class BackupRow(NamedTuple):
    backup: str
    taken_ms: int
    full: bool
    format: str
    here: bool
    """Of the cluster that is looked at."""
    topics: tuple[str, ...]
    """That the caller may see."""
    groups: int
    records: int
    bytes: int
    new_bytes: int
    notes: tuple[str, ...]


class PlaceRow(NamedTuple):
    place: str
    known: bool
    """Whether anything was heard of it yet."""
    error: str
    damaged: tuple[str, ...]
    unfinished: tuple[str, ...]
    total: int
    backups: tuple[BackupRow, ...]
    """The newest of them, newest first."""


async def show(ask: Ask) -> dict[str, Any]:
    found = await ask.snapshot()
    sees: Callable[[str], bool] = ask.caller.sees
    if ask.caller.login is not None:  # the brokers say what they may see
        sees = {row.name for row in found.topics}.__contains__
    settings = ask.watched.settings
    rows = [
        place_row(place, await ask.console.tools.told(["backup", "list", place, "--json"], KEPT_SECONDS),
                  found.cluster_id, sees)
        for place in settings.backups
    ]  # fmt: skip
    return {
        "places": rows,
        "_ways": {(row.place, each.backup): _ways(ask, row.place, each.backup) for row in rows for each in row.backups},
        "_take": command(ask, "ottla backup run", (*settings.backups, "./backups")[0]),
        "_command": shlex.join(["ottla", "backup", "list", (*settings.backups, "./backups")[0]]),
    }


def _ways(ask: Ask, place: str, backup: str) -> list[str]:
    restore = command(ask, "ottla backup restore", place, "--backup", backup)
    return [
        shlex.join(["ottla", "backup", "list", place, "--topics", backup]),
        shlex.join(["ottla", "backup", "verify", place, backup]),
        f"{restore} --dry-run",
        restore,
    ]


def place_row(place: str, told: Told, cluster_id: str, sees: Callable[[str], bool]) -> PlaceRow:
    document = told.document if isinstance(told.document, dict) else {}
    manifests = sorted(document.get("backups", ()), key=lambda each: -int(each["taken_ms"]))
    return PlaceRow(
        place,
        told.document is not None or bool(told.error),
        told.error,
        tuple(str(each) for each in document.get("damaged", {}).values()),
        tuple(str(each) for each in document.get("unfinished", ())),
        len(manifests),
        tuple(_row(each, cluster_id, sees) for each in manifests[:SHOWN_MAX]),
    )


def _row(told: dict[str, Any], cluster_id: str, sees: Callable[[str], bool]) -> BackupRow:
    return BackupRow(
        str(told["backup"]), int(told["taken_ms"]), told.get("parent") is None, str(told.get("format", "")),
        told.get("cluster_id") == cluster_id, tuple(topic for topic in told.get("topics", ()) if sees(topic)),
        len(told.get("groups", ())), int(told.get("records", 0)), int(told.get("bytes", 0)),
        int(told.get("new_bytes", 0)), tuple(str(each) for each in told.get("notes", ())),
    )  # fmt: skip
