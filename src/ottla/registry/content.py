"""What is registered: a schema's text with its references, metadata and rules, and how one is told from another."""

import base64
import hashlib
import json
import uuid
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from ottla.registry.errors import Code, RegistryError

AVRO, JSON, PROTOBUF = "AVRO", "JSON", "PROTOBUF"
SCHEMA_TYPES = (JSON, PROTOBUF, AVRO)

NUMBER_MAX = 2**31 - 1
"""Of ids and versions: they are 32 bits wide in records and digests."""

_RULE_LISTS = ("migrationRules", "domainRules", "encodingRules")
_MIGRATION_MODES = {"UPGRADE", "DOWNGRADE", "UPDOWN"}
_DOMAIN_MODES = {"WRITE", "READ", "WRITEREAD"}
_RULE_TEXTS = ("name", "doc", "kind", "mode", "type", "expr", "onSuccess", "onFailure")


class Reference(NamedTuple):
    name: str
    subject: str
    version: int

    def document(self) -> dict[str, Any]:
        return {"name": self.name, "subject": self.subject, "version": self.version}


class Content(NamedTuple):
    """Two contents that are equal have one id."""

    text: str
    schema_type: str = AVRO
    references: tuple[Reference, ...] = ()
    metadata: dict[str, Any] | None = None
    rule_set: dict[str, Any] | None = None

    def digest(self) -> bytes:
        """MD5, because Confluent's records and guids have it; nothing is protected by it."""
        md5 = hashlib.md5(self.text.encode(), usedforsecurity=False)
        for reference in self.references:
            md5.update(reference.name.encode() + reference.subject.encode())
            md5.update(reference.version.to_bytes(4, "big", signed=True))
        if self.metadata is not None:
            md5.update(b"\x01" + _metadata_bytes(self.metadata))
        if self.rule_set is not None:
            md5.update(b"\x01" + _rule_set_bytes(self.rule_set))
        return md5.digest()

    @property
    def guid(self) -> str:
        return str(uuid.UUID(bytes=self.digest()))

    @property
    def md5(self) -> str:
        return base64.b64encode(self.digest()).decode()

    @property
    def identity(self) -> tuple[str, bytes]:
        return (self.schema_type, self.digest())

    def document(self) -> dict[str, Any]:
        """Its part of an answer or a record, in the order of those."""
        found: dict[str, Any] = {}
        if self.schema_type != AVRO:
            found["schemaType"] = self.schema_type
        if self.references:
            found["references"] = [reference.document() for reference in self.references]
        if self.metadata is not None:
            found["metadata"] = self.metadata
        if self.rule_set is not None:
            found["ruleSet"] = self.rule_set
        found["schema"] = self.text
        return found


def _metadata_bytes(metadata: Mapping[str, Any]) -> bytes:
    parts: list[str] = []
    for key, values in sorted(metadata.get("tags", {}).items()):
        parts += [key, *sorted(values)]
    for key, value in sorted(metadata.get("properties", {}).items()):
        parts += [key, value]
    return "".join([*parts, *sorted(metadata.get("sensitive", []))]).encode()


def _rule_set_bytes(rule_set: Mapping[str, Any]) -> bytes:
    parts: list[bytes] = []
    for name in _RULE_LISTS:
        for rule in rule_set.get(name, []):
            texts = [rule.get(key) or "" for key in ("name", "doc", "kind", "mode", "type")]
            texts += sorted(rule.get("tags", []))
            texts += [text for pair in sorted(rule.get("params", {}).items()) for text in pair]
            texts += [rule.get(key) or "" for key in ("expr", "onSuccess", "onFailure")]
            parts.append("".join(texts).encode() + (b"\x01" if rule.get("disabled") else b""))
    return b"".join([*parts, str(rule_set.get("enableAt", "")).encode()])


def read_content(document: Mapping[str, Any]) -> Content:
    """From the body of a request or the value of a record; 42201 or 42210 says what is wrong with it."""
    check_encodable(document)  # a record may come from elsewhere
    text = document.get("schema")
    if not isinstance(text, str):
        raise RegistryError(Code.INVALID_SCHEMA, "the field `schema` is missing; it is the schema's text")
    schema_type = document.get("schemaType") or AVRO
    if not isinstance(schema_type, str) or schema_type.upper() not in SCHEMA_TYPES:
        raise RegistryError(
            Code.INVALID_SCHEMA, f"Invalid schema type {schema_type}: it is one of {', '.join(sorted(SCHEMA_TYPES))}"
        )
    return Content(
        text,
        schema_type.upper(),
        read_references(document.get("references")),
        read_metadata(document.get("metadata")),
        read_rule_set(document.get("ruleSet")),
    )


def check_encodable(document: Mapping[str, Any]) -> None:
    """Half of a surrogate pair is no character: neither a record, a digest nor an answer could have it."""
    try:
        json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise RegistryError(
            Code.INVALID_SCHEMA, f"Invalid schema: \\u{ord(error.object[error.start]):04x} is half of a character"
        ) from None
    except RecursionError:
        raise RegistryError(Code.INVALID_SCHEMA, "Invalid schema: nested too deeply") from None


def read_references(given: Any) -> tuple[Reference, ...]:
    if given is None:
        return ()
    try:
        found = tuple(Reference(str(each["name"]), str(each["subject"]), int(each["version"])) for each in given)
    except (TypeError, KeyError, ValueError, OverflowError):
        raise RegistryError(
            Code.INVALID_SCHEMA, "`references` is a list of objects with name, subject and version"
        ) from None
    for each in found:
        if not -1 <= each.version <= NUMBER_MAX:
            raise RegistryError(
                Code.INVALID_SCHEMA, f"the version of reference {each.name[:100]} is from 1 to {NUMBER_MAX}, or -1"
            )
    return found


def read_metadata(given: Any) -> dict[str, Any] | None:
    """Sorted, so that equal ones are equal texts; what is empty is left out."""
    if given is None:
        return None
    if not isinstance(given, dict):
        raise RegistryError(Code.INVALID_SCHEMA, "`metadata` is an object with tags, properties and sensitive")
    tags, properties, sensitive = (given.get(name) or empty for name, empty in _METADATA_PARTS)
    well_formed = (
        isinstance(tags, dict)
        and isinstance(properties, dict)
        and isinstance(sensitive, list)
        and all(_are_texts(values) for values in tags.values())
        and _are_texts(list(properties.values()))
        and _are_texts(sensitive)
    )
    if not well_formed:
        raise RegistryError(
            Code.INVALID_SCHEMA, "of `metadata`, tags are lists of texts, properties texts, sensitive a list of texts"
        )
    found = {
        "tags": {key: sorted(set(values)) for key, values in sorted(tags.items())},
        "properties": dict(sorted(properties.items())),
        "sensitive": sorted(set(sensitive)),
    }
    return {key: value for key, value in found.items() if value}


_METADATA_PARTS: tuple[tuple[str, Any], ...] = (("tags", {}), ("properties", {}), ("sensitive", []))


def _are_texts(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def read_rule_set(given: Any) -> dict[str, Any] | None:
    """Rules are run by clients and only kept here; what no client could run is refused."""
    if given is None:
        return None
    if not isinstance(given, dict):
        raise RegistryError(
            Code.INVALID_RULES, "`ruleSet` is an object with migrationRules, domainRules, encodingRules"
        )
    found: dict[str, Any] = {}
    for kind in _RULE_LISTS:
        rules = given.get(kind)
        if not rules:
            continue
        if not isinstance(rules, list):
            raise RegistryError(Code.INVALID_RULES, f"`{kind}` is a list of rules")
        found[kind] = [_read_rule(rule, kind) for rule in rules]
        name, count = Counter(rule["name"] for rule in found[kind]).most_common(1)[0]
        if count > 1:
            raise RegistryError(Code.INVALID_RULES, f"Found rule with duplicate name '{name}'")
    if given.get("enableAt") is not None:
        found["enableAt"] = given["enableAt"]
    return found


def _read_rule(rule: Any, kind: str) -> dict[str, Any]:
    if not isinstance(rule, dict):
        raise RegistryError(Code.INVALID_RULES, "a rule is an object")
    for key in _RULE_TEXTS:
        if rule.get(key) is not None and not isinstance(rule[key], str):
            raise RegistryError(Code.INVALID_RULES, f"`{key}` of a rule is a text")
    tags, params = rule.get("tags") or [], rule.get("params") or {}
    if not _are_texts(tags) or not isinstance(params, dict) or not _are_texts(list(params.values())):
        raise RegistryError(Code.INVALID_RULES, "of a rule, `tags` is a list of texts, `params` an object of texts")
    name = rule.get("name") or ""
    if not name or not (name[0].isalpha() or name[0] == "_") or not all(c.isalnum() or c in "_-" for c in name):
        raise RegistryError(Code.INVALID_RULES, f"the name of a rule is letters, digits and _, not '{name}'")
    if not rule.get("type"):
        raise RegistryError(Code.INVALID_RULES, f"Missing type of rule '{name}'")
    mode = rule.get("mode") or "WRITEREAD"
    allowed = _MIGRATION_MODES if kind == "migrationRules" else _DOMAIN_MODES
    if mode not in allowed:
        raise RegistryError(Code.INVALID_RULES, f"{kind} can only be {', '.join(sorted(allowed))}, not {mode}")
    found = {"name": name, "doc": rule.get("doc"), "kind": rule.get("kind") or "TRANSFORM", "mode": mode}
    found |= {"type": rule["type"], "tags": sorted(rule.get("tags") or []), "params": rule.get("params")}
    found |= {key: rule.get(key) for key in ("expr", "onSuccess", "onFailure")}
    found = {key: value for key, value in found.items() if value}
    return found | {"disabled": bool(rule.get("disabled", False))}


def merge_metadata(first: dict[str, Any] | None, second: dict[str, Any] | None) -> dict[str, Any] | None:
    """The second counts where both speak."""
    if first is None or second is None:
        return second if first is None else first
    merged: dict[str, Any] = {key: {**first.get(key, {}), **second.get(key, {})} for key in ("tags", "properties")} | {
        "sensitive": sorted({*first.get("sensitive", []), *second.get("sensitive", [])})
    }
    return read_metadata(merged)


def merge_rule_sets(first: dict[str, Any] | None, second: dict[str, Any] | None) -> dict[str, Any] | None:
    if first is None or second is None:
        return second if first is None else first
    merged: dict[str, Any] = {**first, **second}
    for kind in _RULE_LISTS:
        newer = second.get(kind, [])
        names = {rule["name"] for rule in newer}
        merged[kind] = [rule for rule in first.get(kind, []) if rule["name"] not in names] + newer
    return {key: value for key, value in merged.items() if value}
