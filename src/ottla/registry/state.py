"""What the records of `_schemas` add up to. Only replay changes it, live and at start alike."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ottla.registry import records
from ottla.registry.content import Content, Reference, read_content
from ottla.registry.errors import RegistryError
from ottla.registry.records import RegistryRecord
from ottla.registry.subjects import DEFAULT_CONTEXT, context_of, in_context

GLOBAL = ""
LATEST = -1


@dataclass(slots=True)
class Version:
    subject: str
    version: int
    schema_id: int
    content: Content
    deleted: bool
    ts: int


@dataclass(slots=True)
class _Id:
    content: Content
    places: set[tuple[str, int]] = field(default_factory=set)


class RegistryState:
    def __init__(self) -> None:
        self.subjects: dict[str, dict[int, Version]] = {}
        self.configs: dict[str, dict[str, Any]] = {}
        """By subject; `:.team:` is a context's, GLOBAL everybody's."""
        self.modes: dict[str, str] = {}
        self.associations: dict[tuple[str, ...], dict[str, Any]] = {}
        self.unread = 0
        """Records that could not be understood: of a newer registry, perhaps."""
        self._contexts: set[str] = {DEFAULT_CONTEXT}
        self._ids: dict[str, dict[int, _Id]] = {}
        self._by_identity: dict[tuple[str, tuple[str, bytes]], int] = {}
        self._by_guid: dict[str, set[tuple[str, int]]] = {}
        self._referenced: dict[tuple[str, int], set[tuple[str, int]]] = {}
        self._max_ids: dict[str, int] = {}

    # Records.

    def replay(self, record: RegistryRecord, ts: int) -> None:
        try:
            self._replay(record.key, record.value, ts)
        except (KeyError, TypeError, ValueError, RegistryError):
            self.unread += 1

    def _replay(self, key: dict[str, Any], value: dict[str, Any] | None, ts: int) -> None:
        match key["keytype"]:
            case records.SCHEMA:
                self._forget(key["subject"], int(key["version"]))
                if value is not None:
                    self._know(value, ts)
            case records.CONFIG:
                config = None if value is None else {k: v for k, v in value.items() if k != "subject"}
                _put(self.configs, key.get("subject") or GLOBAL, config)
            case records.MODE:
                _put(self.modes, key.get("subject") or GLOBAL, None if value is None else value["mode"])
            case records.DELETE_SUBJECT:
                if value is not None:
                    self._soft_delete(key["subject"], int(value["version"]))
            case records.CLEAR_SUBJECT:
                self.configs.pop(key["subject"], None)
                self.modes.pop(key["subject"], None)
            case records.CONTEXT:
                (self._contexts.discard if value is None else self._contexts.add)(key["context"])
            case records.ASSOC:
                _put(self.associations, tuple(str(key[name]) for name in ASSOCIATION_KEY), value)
            case records.NOOP:
                pass
            case _:
                self.unread += 1

    def _know(self, value: dict[str, Any], ts: int) -> None:
        content = read_content(value)
        subject, version, schema_id = value["subject"], int(value["version"]), int(value["id"])
        deleted = bool(value.get("deleted", False))
        context = context_of(subject)
        self._contexts.add(context)
        self.subjects.setdefault(subject, {})[version] = Version(subject, version, schema_id, content, deleted, ts)
        known = self._ids.setdefault(context, {}).setdefault(schema_id, _Id(content))
        known.places.add((subject, version))
        self._by_identity.setdefault((context, content.identity), schema_id)
        self._by_guid.setdefault(content.guid, set()).add((context, schema_id))
        self._max_ids[context] = max(self._max_ids.get(context, 0), schema_id)
        for place in places_of(content.references, context):
            self._referenced.setdefault(place, set()).add((subject, version))

    def _forget(self, subject: str, version: int) -> None:
        versions = self.subjects.get(subject, {})
        gone = versions.pop(version, None)
        if not versions:
            self.subjects.pop(subject, None)
        if gone is None:
            return
        context = context_of(subject)
        ids = self._ids[context]
        known = ids[gone.schema_id]
        known.places.discard((subject, version))
        if not known.places:
            del ids[gone.schema_id]
            self._by_identity.pop((context, gone.content.identity), None)
            self._by_guid.get(gone.content.guid, set()).discard((context, gone.schema_id))
        for place in places_of(gone.content.references, context):
            self._referenced.get(place, set()).discard((subject, version))

    def _soft_delete(self, subject: str, up_to: int) -> None:
        for each in self.subjects.get(subject, {}).values():
            if each.version <= up_to:
                each.deleted = True

    # Questions.

    def versions(self, subject: str, *, deleted: bool = False) -> list[Version]:
        """Oldest first."""
        found = self.subjects.get(subject, {})
        return [found[number] for number in sorted(found) if deleted or not found[number].deleted]

    def version(self, subject: str, number: int, *, deleted: bool = False) -> Version | None:
        if number == LATEST:
            found = self.versions(subject, deleted=deleted)
            return found[-1] if found else None
        one = self.subjects.get(subject, {}).get(number)
        return one if one is not None and (deleted or not one.deleted) else None

    def next_version(self, subject: str) -> int:
        return max(self.subjects.get(subject, {}), default=0) + 1

    def next_id(self, context: str) -> int:
        return self._max_ids.get(context, 0) + 1

    def max_id(self, context: str) -> int:
        return self._max_ids.get(context, 0)

    def id_of(self, context: str, content: Content) -> int | None:
        return self._by_identity.get((context, content.identity))

    def content(self, context: str, schema_id: int) -> Content | None:
        known = self._ids.get(context, {}).get(schema_id)
        return None if known is None else known.content

    def places(self, context: str, schema_id: int, *, deleted: bool = False) -> list[Version]:
        known = self._ids.get(context, {}).get(schema_id)
        found = [self.subjects[subject][version] for subject, version in sorted(known.places)] if known else []
        return [each for each in found if deleted or not each.deleted]

    def by_guid(self, guid: str) -> list[tuple[str, int]]:
        return sorted(self._by_guid.get(guid, ()))

    def referenced_by(self, subject: str, version: int) -> list[Version]:
        """Versions that name this one and are not deleted."""
        found = (self.subjects[name][number] for name, number in sorted(self._referenced.get((subject, version), ())))
        return [each for each in found if not each.deleted]

    def contexts(self) -> list[str]:
        return sorted(self._contexts)

    def config(self, subject: str) -> dict[str, Any]:
        """What counts for a subject: its own, its context's, everybody's, in this order, setting by setting."""
        merged: dict[str, Any] = {}
        for scope in reversed(scopes_of(subject)):
            merged |= self.configs.get(scope, {})
        return merged

    def mode(self, subject: str) -> str:
        found = next((self.modes[scope] for scope in scopes_of(subject) if scope in self.modes), "READWRITE")
        everybody = self.modes.get(GLOBAL)
        return everybody if everybody == "READONLY_OVERRIDE" else found

    def alias(self, subject: str) -> str:
        return self.configs.get(subject, {}).get("alias") or subject


ASSOCIATION_KEY = ("resourceNamespace", "resourceName", "resourceType", "associationType", "subject")


def scopes_of(subject: str) -> list[str]:
    context = context_of(subject)
    return [subject, *([f":{context}:"] if context != DEFAULT_CONTEXT else []), GLOBAL]


def places_of(references: Iterable[Reference], context: str) -> list[tuple[str, int]]:
    """Subject and version of each; a subject without a context is in that of the schema that names it."""
    return [(in_context(context, each.subject), each.version) for each in references]


def _put(table: "dict[Any, Any]", key: Any, value: Any) -> None:
    if value is None:
        table.pop(key, None)
    else:
        table[key] = value


def shown(version: Version) -> dict[str, Any]:
    """A version as clients know it; what is empty is absent."""
    found: dict[str, Any] = {
        "subject": version.subject,
        "version": version.version,
        "id": version.schema_id,
        "guid": version.content.guid,
        **version.content.document(),
        "ts": version.ts,
    }
    return found | ({"deleted": True} if version.deleted else {})


def shown_config(config: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in config.items() if value is not None}
