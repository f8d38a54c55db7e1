"""Backups of places that the console was told of: listed as `ottla backup list` tells, taken, checked and restored.

What takes long is run as `ottla backup`, in a process of its own that goes on when the console ends. One at a time
works in a place.
"""

import asyncio
import shlex
import time
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ottla.console.asking import Ask, BadInput, Done
from ottla.console.commands import command
from ottla.console.pages.pipelines import refuse_brokers_users, refuse_limited
from ottla.console.starting import Job, last_event
from ottla.console.tools import Told, ToolFailed

KEPT_SECONDS = 60.0
KEPT_AFTER_JOB_SECONDS = 5.0
"""While something works in a place, and for a minute after that."""
SHOWN_MAX = 50
TOPICS_SHOWN_MAX = 200


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


class JobRow(NamedTuple):
    """What this console has started in a place, last."""

    what: str
    pid: int
    running: bool
    good: bool
    words: str


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
    job: JobRow | None = None


async def show(ask: Ask) -> dict[str, Any]:
    found = await ask.snapshot()
    sees: Callable[[str], bool] = ask.caller.sees
    if ask.caller.login is not None:  # the brokers say what they may see
        sees = {row.name for row in found.topics}.__contains__
    settings = ask.watched.settings
    rows = []
    for place in settings.backups:
        told = await ask.console.tools.told(["backup", "list", place, "--json"], _kept_seconds(ask, place))
        rows.append(place_row(place, told, found.cluster_id, sees)._replace(job=_job_row(ask, place)))
    return {
        "places": rows,
        "_ways": {(row.place, each.backup): _ways(ask, row.place, each.backup) for row in rows for each in row.backups},
        "_take": {place: command(ask, "ottla backup run", place) for place in settings.backups},
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


# What is done in a place


async def take(ask: Ask) -> Done:
    place = _place(ask)
    _refuse(ask, "take backups")
    more = []
    if topics := ask.fields.get("topics").strip():
        more += ["--topics", topics]
    if ask.fields.get("full"):
        more.append("--full")
    return await _start(ask, place, "a backup", ["run", place, *_brokers(ask), *more], _client(ask))


async def verify(ask: Ask) -> Done:
    place, backup = _place(ask), _backup(ask)
    _refuse(ask, "check backups")
    return await _start(ask, place, f"the check of {backup}", ["verify", place, backup])


async def preview_restore(ask: Ask) -> dict[str, Any]:
    """Asked of the command, which looks at the place and at the cluster. Changes nothing."""
    place, backup = _place(ask), _backup(ask)
    _refuse(ask, "restore backups")
    wanted = _restored(ask, place, backup)
    plan: dict[str, Any] = {}
    error = ""
    try:
        plan = await ask.console.tools.ask(["backup", *wanted, "--dry-run", "--json"], _client(ask) or {})
    except ToolFailed as failed:  # a topic has records, say: other names may do
        error = str(failed)
    topics = plan.get("topics", [])
    return {
        "place": place,
        "backup": backup,
        "error": error,
        "topics": topics[:TOPICS_SHOWN_MAX],
        "left_out": max(0, len(topics) - TOPICS_SHOWN_MAX),
        "records": sum(int(each["records"]) for each in topics),
        "groups": plan.get("groups", []),
        "notes": plan.get("notes", []),
        "_fields": {name: ask.fields.get(name) for name in ("place", "backup", "topics", "prefix", "no_groups")},
        "_command": command(ask, "ottla backup restore", place, *wanted[4:]),
    }


async def restore(ask: Ask) -> Done:
    place, backup = _place(ask), _backup(ask)
    ask.fields.confirmed(backup, "restore the backup")
    _refuse(ask, "restore backups")
    return await _start(ask, place, f"the restore of {backup}", _restored(ask, place, backup), _client(ask))


def _restored(ask: Ask, place: str, backup: str) -> list[str]:
    words = ["restore", place, *_brokers(ask), "--backup", backup]
    for option in ("topics", "prefix"):
        if value := ask.fields.get(option).strip():
            words += [f"--{option}", value]
    return [*words, *(["--no-groups"] if ask.fields.get("no_groups") else [])]


def _place(ask: Ask) -> str:
    """One that the console was told of, and no other."""
    place = ask.fields.need("place")
    if place not in ask.watched.settings.backups:
        raise BadInput(f"this console was not told of {place} with --backups")
    return place


def _backup(ask: Ask) -> str:
    name = ask.fields.need("backup")
    if name.startswith("-"):
        raise BadInput(f"there is no backup {name}")
    return name


def _refuse(ask: Ask, what: str) -> None:
    """Backups have records of all topics in them."""
    refuse_brokers_users(ask, what)
    refuse_limited(ask, what)


def _brokers(ask: Ask) -> list[str]:
    return ["--bootstrap-server", ask.watched.settings.bootstrap]


def _client(ask: Ask) -> Mapping[str, str] | None:
    own = {name: value for name, value in ask.watched.settings.client.items() if name != "bootstrap.servers"}
    return own or None


async def _start(
    ask: Ask, place: str, what: str, arguments: list[str], client: Mapping[str, str] | None = None
) -> Done:
    job = Job(what, ("backup", *arguments, "--json"), _log(ask, place), client=client)
    run = await asyncio.to_thread(ask.console.starter.start, job)
    ask.console.tools.forget(["backup", "list", place, "--json"])
    words = f"{what} is under way in process {run.pid}" if run.code is None else f"{what} is done"
    return Done(words, ask.link("/backups"), {"place": place, "pid": run.pid, "log": run.log}, place)


def _log(ask: Ask, place: str) -> Path:
    return Path(ask.watched.settings.state_dir, ".console", f"backup-{zlib.crc32(place.encode()):08x}.log")


def _kept_seconds(ask: Ask, place: str) -> float:
    """What a command has just changed is asked for sooner."""
    log = _log(ask, place)
    run = ask.console.starter.run_of(log)
    if run is None:
        return KEPT_SECONDS
    ended_s = time.time() - log.stat().st_mtime if run.code is not None and log.exists() else 0.0
    return KEPT_AFTER_JOB_SECONDS if ended_s < KEPT_SECONDS else KEPT_SECONDS


def _job_row(ask: Ask, place: str) -> JobRow | None:
    log = _log(ask, place)
    run = ask.console.starter.run_of(log)
    if run is None:
        return None
    said = last_event(log)
    good = run.code == 0
    words = progress_words(said) if run.code is None or said.get("event") == "done" else run.last_words[-500:]
    return JobRow(run.file, run.pid, run.code is None, good, words if ask.caller.sees_everything else "")


def progress_words(said: Mapping[str, Any]) -> str:
    """What a command of backups says of itself, in a line."""
    match said.get("event"):
        case "progress":
            share = 100 * int(said["bytes"]) // max(1, int(said["of"]))
            rate = f"{int(said['bytes_per_second']) / 1e6:.1f} MB a second, {said['seconds_left']} s left"
            return f"{said.get('what', '')}: {share} %, {int(said['records']):,} records, {rate}"
        case "done":
            problems = said.get("problems") or ()
            verdict = f"; {len(problems)} problems: {problems[0]}" if problems else ""
            return f"{int(said.get('records', 0)):,} records in {float(said.get('seconds', 0)):.1f} s{verdict}"
        case "note":
            return str(said.get("message", ""))
    return ""
