"""Schemas: subjects, versions, what changed between them, and whether a new one would fit before it is registered."""

import json
from typing import Any
from urllib.parse import quote

from ottla.console import paging
from ottla.console.asking import Ask, BadInput, Done
from ottla.console.commands import line
from ottla.console.registries import subjects
from ottla.registry.client import RegistryClient
from ottla.registry.differences import differences
from ottla.registry.errors import RegistryError

TYPES = ("AVRO", "JSON", "PROTOBUF")
LEVELS = (
    "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE", "NONE",
)  # fmt: skip
SUBJECT_NOT_FOUND = 40401


async def list_subjects(ask: Ask) -> dict[str, Any]:
    settings = ask.watched.settings
    if ask.console.registries.of(settings, ask.caller) is None:
        return {"registry": None, "items": [], "_page": None, "level": None, "_command": None}
    names, level = await ask.console.registries.ask(ask, lambda client: (subjects(client), _global_level(client)))
    page = paging.cut(names, ask.fields.mapping(), text=str, keys={"subject": str}, sort="subject")
    return {
        "registry": settings.registry,
        "items": page.items,
        **page.facts(),
        "level": level,
        "_page": page,
        "_types": TYPES,
        "_command": line("ottla", "", "schema", "list"),
    }


def _global_level(client: RegistryClient) -> str:
    return str(client.get("/config").get("compatibilityLevel", ""))


async def show(ask: Ask) -> dict[str, Any]:
    subject = ask.fields.need("subject")
    wanted = ask.fields.get("version") or "latest"
    if wanted != "latest" and not wanted.isdigit():
        raise BadInput(f"a version is a number, or latest; not `{wanted}`")
    return await ask.console.registries.ask(ask, lambda client: _show(client, subject, wanted))


def _show(client: RegistryClient, subject: str, wanted: str) -> dict[str, Any]:
    versions = client.versions(subject)
    schema = client.version(subject, wanted)
    before = max((each for each in versions if each < schema.version), default=None)
    changes: list[str] = []
    if before is not None:
        old = client.version(subject, before)
        changes = _differences(schema.schema_type, old.text, schema.text)
    return {
        "subject": subject,
        "versions": versions,
        "version": schema.version,
        "schema_id": schema.schema_id,
        "type": schema.schema_type,
        "text": _pretty(schema.schema_type, schema.text),
        "before": before,
        "changes": changes,
        "level": _level(client, subject),
        "references": [name for name, _ in schema.references],
        "_types": TYPES,
        "_levels": LEVELS,
        "_command": line("ottla", "", "schema", "get", subject, "--version", str(schema.version)),
    }


def _level(client: RegistryClient, subject: str) -> str:
    found = client.get(f"/config/{quote(subject, safe='')}", {"defaultToGlobal": "true"})
    return str(found.get("compatibilityLevel", ""))


def _differences(kind: str, old: str, new: str) -> list[str]:
    try:
        return differences(kind, old, new)
    except (ValueError, RecursionError):
        return ["the two cannot be compared"]


def _pretty(kind: str, text: str) -> str:
    if kind == "PROTOBUF":
        return text
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


async def check(ask: Ask) -> dict[str, Any]:
    """Whether a schema could be registered, and what it would change. Changes nothing."""
    subject, text, kind = _said(ask)
    return await ask.console.registries.ask(ask, lambda client: _check(client, subject, text, kind))


def _said(ask: Ask) -> tuple[str, str, str]:
    subject = ask.fields.need("subject", "the subject")
    text = ask.fields.need("schema", "the schema's text")
    kind = ask.fields.get("type") or "AVRO"
    if kind not in TYPES:
        raise BadInput(f"type is one of {', '.join(TYPES)}, not `{kind}`")
    return subject, text, kind


def _check(client: RegistryClient, subject: str, text: str, kind: str) -> dict[str, Any]:
    document: dict[str, Any] = {
        "subject": subject,
        "type": kind,
        "schema": text,
        "new": False,
        "compatible": True,
        "messages": [],
        "changes": [],
        "_command": line("ottla", "", "schema", "register", subject, "schema.avsc"),
    }
    try:
        latest = client.latest(subject)
    except RegistryError as error:
        if error.code != SUBJECT_NOT_FOUND:
            raise
        return document | {"new": True}
    body: dict[str, Any] = {"schema": text} | ({} if kind == "AVRO" else {"schemaType": kind})
    path = f"/compatibility/subjects/{quote(subject, safe='')}/versions"
    told = client.call("POST", path, {"verbose": "true"}, body)
    changes = (
        _differences(kind, latest.text, text) if latest.schema_type == kind else [f"~ {latest.schema_type} → {kind}"]
    )
    return document | {
        "compatible": bool(told.get("is_compatible")),
        "messages": [str(each) for each in told.get("messages") or ()],
        "changes": changes,
    }


async def register(ask: Ask) -> Done:
    subject, text, kind = _said(ask)
    made = await ask.console.registries.ask(ask, lambda client: client.register(subject, text, kind))
    words = f"{subject} is registered with id {made.schema_id}"
    return Done(words, ask.link("/schema", subject=subject), {"id": made.schema_id}, subject)


async def set_level(ask: Ask) -> Done:
    subject = ask.fields.need("subject", "the subject")
    level = ask.fields.need("level", "the level")
    if level not in LEVELS:
        raise BadInput(f"a level is one of {', '.join(LEVELS)}, not `{level}`")
    await ask.console.registries.ask(
        ask,
        lambda client: client.call("PUT", f"/config/{quote(subject, safe='')}", None, {"compatibility": level}),
    )
    return Done(f"{subject} wants {level} from now on", ask.link("/schema", subject=subject), {"level": level}, subject)


async def delete(ask: Ask) -> Done:
    """So that it is not used any more; records that were written with it can still be read."""
    subject = ask.fields.need("subject", "the subject")
    ask.fields.confirmed(subject, "delete the subject")
    await ask.console.registries.ask(ask, lambda client: client.call("DELETE", f"/subjects/{quote(subject, safe='')}"))
    return Done(f"{subject} is deleted", ask.link("/schemas"), {}, subject)
