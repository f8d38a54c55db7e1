"""The records of `_schemas`, in the bytes that Confluent's registry writes: compaction compares keys byte by byte."""

import json
from typing import Any, NamedTuple

from ottla.registry.content import Content

SCHEMA, CONFIG, MODE = "SCHEMA", "CONFIG", "MODE"
DELETE_SUBJECT, CLEAR_SUBJECT, NOOP, CONTEXT, ASSOC = "DELETE_SUBJECT", "CLEAR_SUBJECT", "NOOP", "CONTEXT", "ASSOC"

_TENANT = "default"


class RegistryRecord(NamedTuple):
    key: dict[str, Any]
    value: dict[str, Any] | None

    def key_bytes(self) -> bytes:
        return _dump(self.key)

    def value_bytes(self) -> bytes | None:
        return None if self.value is None else _dump(self.value)


def _dump(document: Any) -> bytes:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()


def read_record(key: bytes | None, value: bytes | None) -> RegistryRecord | None:
    """None where the key is not one of ours: a newer registry's, or somebody else's."""
    try:
        found = json.loads(key or b"")
        content = None if value is None else json.loads(value)
    except ValueError:
        return None
    if not isinstance(found, dict) or not isinstance(found.get("keytype"), str):
        return None
    if content is not None and not isinstance(content, dict):
        return None
    return RegistryRecord(found, content)


def schema_key(subject: str, version: int) -> dict[str, Any]:
    return {"keytype": SCHEMA, "subject": subject, "version": version, "magic": 1}


def schema_record(subject: str, version: int, schema_id: int, content: Content, *, deleted: bool) -> RegistryRecord:
    value = {"subject": subject, "version": version, "id": schema_id, "md5": content.md5}
    return RegistryRecord(schema_key(subject, version), value | content.document() | {"deleted": deleted})


def schema_tombstone(subject: str, version: int) -> RegistryRecord:
    return RegistryRecord(schema_key(subject, version), None)


def config_record(subject: str | None, config: dict[str, Any] | None) -> RegistryRecord:
    value = None if config is None else ({"subject": subject} if subject else {}) | config
    return RegistryRecord({"keytype": CONFIG, "subject": subject, "magic": 0}, value)


def mode_record(subject: str | None, mode: str | None) -> RegistryRecord:
    value = None if mode is None else ({"subject": subject} if subject else {}) | {"mode": mode}
    return RegistryRecord({"keytype": MODE, "subject": subject, "magic": 0}, value)


def delete_subject_record(subject: str, version: int) -> RegistryRecord:
    key = {"keytype": DELETE_SUBJECT, "subject": subject, "magic": 0}
    return RegistryRecord(key, {"subject": subject, "version": version})


def context_record(context: str, *, gone: bool = False) -> RegistryRecord:
    key = {"keytype": CONTEXT, "tenant": _TENANT, "context": context, "magic": 0}
    return RegistryRecord(key, None if gone else {"tenant": _TENANT, "context": context})


def association_record(association: dict[str, Any], *, gone: bool = False) -> RegistryRecord:
    key = {
        "keytype": ASSOC,
        "tenant": _TENANT,
        **{name: association[name] for name in ("resourceNamespace", "resourceName", "resourceType")},
        "associationType": association["associationType"],
        "subject": association["subject"],
        "magic": 0,
    }
    return RegistryRecord(key, None if gone else association)


NOOP_RECORD = RegistryRecord({"keytype": NOOP, "magic": 0}, None)
