"""What is written when a client asks for a change: from the state and the request to records, or to a refusal. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ottla.registry import records
from ottla.registry.compatibility.levels import DEFAULT_LEVEL, POLICIES, level_of
from ottla.registry.content import (
    NUMBER_MAX,
    PROTOBUF,
    Content,
    merge_metadata,
    merge_rule_sets,
    read_metadata,
    read_rule_set,
)
from ottla.registry.errors import Code, RegistryError, subject_not_found, version_not_found
from ottla.registry.limits import LIMITS, SchemaLimits
from ottla.registry.records import RegistryRecord
from ottla.registry.schemas.parsed import Referenced
from ottla.registry.state import GLOBAL, LATEST, RegistryState, Version, places_of
from ottla.registry.subjects import DEFAULT_CONTEXT, check_subject, context_of

MODES = ("READWRITE", "READONLY", "READONLY_OVERRIDE", "FORWARD", "IMPORT")


class Registration(NamedTuple):
    """What a client wants registered, read and in its stored form."""

    subject: str
    content: Content
    schema_id: int = -1
    version: int = 0


class Registered(NamedTuple):
    version: Version
    records: list[RegistryRecord]
    """Empty if it was there already."""


def read_version(text: str) -> int:
    """`latest`, -1, or a number from 1 on."""
    if text in ("latest", "-1"):
        return LATEST
    try:
        number = int(text)
    except ValueError:
        number = 0
    if not 1 <= number <= NUMBER_MAX:
        raise RegistryError(
            Code.INVALID_VERSION,
            f"The specified version '{text[:50]}' is not a valid version id. Allowed values are between [1, 2^31-1] "
            'and the string "latest"',
        )
    return number


def resolve_references(
    state: RegistryState, content: Content, context: str, limits: SchemaLimits = LIMITS
) -> list[Referenced]:
    """The texts of all that a schema names, directly or not; what is named comes before who names it."""
    found: dict[str, str] = {}
    size = len(content.text)

    def visit(one: Content, where: str, above: tuple[tuple[str, int], ...]) -> None:
        nonlocal size
        for reference, place in zip(one.references, places_of(one.references, where), strict=True):
            if place in above:
                raise RegistryError(Code.INVALID_SCHEMA, f"the references of {place[0]} lead back to it")
            target = state.version(*place, deleted=True)
            if target is None:
                raise RegistryError(
                    Code.INVALID_SCHEMA,
                    f'No schema reference found for subject "{place[0]}" and version {reference.version}',
                )
            if len(above) > limits.depth_max:
                raise RegistryError(Code.TOO_LARGE, f"references go deeper than {limits.depth_max} levels")
            if reference.name in found:
                continue
            visit(target.content, context_of(target.subject), (*above, place))
            size += len(target.content.text)
            found[reference.name] = target.content.text
            if len(found) > limits.references_max or size > limits.schema_bytes_max:
                raise RegistryError(
                    Code.TOO_LARGE,
                    f"a schema has at most {limits.references_max} references, and {limits.schema_bytes_max} bytes "
                    "with them",
                )

    visit(content, context, ())
    return [Referenced(name, text) for name, text in found.items()]


def check_size(content: Content, limits: SchemaLimits = LIMITS) -> None:
    if len(content.text.encode()) > limits.schema_bytes_max:
        raise RegistryError(Code.TOO_LARGE, f"a schema has at most {limits.schema_bytes_max} bytes here")


def check_may_write(state: RegistryState, subject: str) -> str:
    mode = state.mode(subject)
    if mode in ("READONLY", "READONLY_OVERRIDE", "FORWARD"):
        raise RegistryError(Code.NOT_PERMITTED, f"Subject {subject} is in {mode.lower().replace('_', '-')} mode")
    return mode


def completed(state: RegistryState, subject: str, content: Content) -> Content:
    """With the metadata and rules of the version before, where the request has none, and what the config sets."""
    config = state.config(subject)
    latest = state.version(subject, LATEST)
    before = latest.content if latest is not None else None
    metadata = content.metadata if content.metadata is not None else (before.metadata if before else None)
    rules = content.rule_set if content.rule_set is not None else (before.rule_set if before else None)
    metadata = merge_metadata(merge_metadata(config.get("defaultMetadata"), metadata), config.get("overrideMetadata"))
    rules = merge_rule_sets(merge_rule_sets(config.get("defaultRuleSet"), rules), config.get("overrideRuleSet"))
    return content._replace(metadata=metadata, rule_set=rules)


def find_version(
    state: RegistryState, subject: str, content: Content, same: Sequence[int] = (), *, deleted: bool = False
) -> Version | None:
    """The newest version with this content; `same` are ids that mean the same in other words."""
    newest_first = list(reversed(state.versions(subject, deleted=deleted)))
    for each in newest_first:
        if each.content.identity == content.identity:
            return each
    for each in newest_first:
        one = each.content
        if one.schema_type != content.schema_type or one.references != content.references:
            continue
        alike = one.text == content.text or (content.schema_type == PROTOBUF and each.schema_id in same)
        plain = content.metadata is None and content.rule_set is None
        if alike and (plain or (one.metadata == content.metadata and one.rule_set == content.rule_set)):
            return each
    return None


def compared_with(state: RegistryState, subject: str, content: Content) -> list[Version]:
    """The versions that a new one has to follow: those of its compatibility group, if there are groups."""
    group = state.config(subject).get("compatibilityGroup")
    versions = state.versions(subject)
    if not group:
        return versions

    def value(metadata: Mapping[str, Any] | None) -> Any:
        return (metadata or {}).get("properties", {}).get(group)

    return [each for each in versions if value(each.content.metadata) == value(content.metadata)]


def level_for(state: RegistryState, subject: str) -> tuple[str, str]:
    config = state.config(subject)
    return config.get("compatibilityLevel", DEFAULT_LEVEL), config.get("compatibilityPolicy", "STRICT")


def register(state: RegistryState, wanted: Registration, same: Sequence[int], now_ms: int) -> Registered:
    """That it is compatible has been seen to. Ids are counted by context, versions by subject, both without gaps."""
    check_subject(wanted.subject)
    mode = check_may_write(state, wanted.subject)
    if mode == "IMPORT":
        return _import(state, wanted, now_ms)
    if wanted.schema_id >= 0:
        raise RegistryError(Code.NOT_PERMITTED, f"Subject {wanted.subject} is not in import mode")
    existing = find_version(state, wanted.subject, wanted.content, same)
    if existing is not None:
        return Registered(existing, [])
    number = state.next_version(wanted.subject)
    if wanted.version > 0 and wanted.version != number:
        raise RegistryError(
            Code.INVALID_SCHEMA, f"Version is not one more than previous version: {wanted.version}, not {number}"
        )
    context = context_of(wanted.subject)
    hidden = find_version(state, wanted.subject, wanted.content, same, deleted=True)
    content = hidden.content if hidden is not None else wanted.content
    schema_id = state.id_of(context, content) or state.next_id(context)
    return _registered(state, wanted.subject, number, schema_id, content, now_ms)


def _import(state: RegistryState, wanted: Registration, now_ms: int) -> Registered:
    if wanted.schema_id < 0:
        raise RegistryError(Code.NOT_PERMITTED, f"Subject {wanted.subject} is in import mode: a schema needs its id")
    context = context_of(wanted.subject)
    taken = state.content(context, wanted.schema_id)
    if taken is not None and taken.identity != wanted.content.identity:
        raise RegistryError(Code.ID_TAKEN, f"Overwrite new schema with id {wanted.schema_id} is not permitted.")
    existing = find_version(state, wanted.subject, wanted.content)
    if existing is not None and existing.schema_id == wanted.schema_id and wanted.version in (0, existing.version):
        return Registered(existing, [])
    number = wanted.version if wanted.version > 0 else state.next_version(wanted.subject)
    return _registered(state, wanted.subject, number, wanted.schema_id, wanted.content, now_ms)


def _registered(
    state: RegistryState, subject: str, number: int, schema_id: int, content: Content, now_ms: int
) -> Registered:
    version = Version(subject, number, schema_id, content, deleted=False, ts=now_ms)
    found = [records.schema_record(subject, number, schema_id, content, deleted=False)]
    context = context_of(subject)
    if context not in state.contexts():
        found.insert(0, records.context_record(context))
    return Registered(version, found)


def delete_version(
    state: RegistryState, subject: str, number: int, *, permanent: bool
) -> tuple[int, list[RegistryRecord]]:
    check_may_write(state, subject)
    if not state.versions(subject, deleted=True):
        raise subject_not_found(subject)
    version = state.version(subject, number, deleted=permanent or number != LATEST)
    if version is None:
        raise version_not_found("latest" if number == LATEST else number)
    if permanent:
        if not version.deleted:
            raise RegistryError(
                Code.VERSION_NOT_SOFT_DELETED,
                f"Subject '{subject}' Version {version.version} was not deleted first before being permanently deleted",
            )
        _check_not_referenced(state, version)
        return version.version, [records.schema_tombstone(subject, version.version)]
    if version.deleted:
        raise RegistryError(
            Code.VERSION_SOFT_DELETED,
            f"Subject '{subject}' Version {version.version} was soft deleted. Set permanent=true to delete permanently",
        )
    _check_not_referenced(state, version)
    gone = records.schema_record(subject, version.version, version.schema_id, version.content, deleted=True)
    return version.version, [gone]


def delete_subject(state: RegistryState, subject: str, *, permanent: bool) -> tuple[list[int], list[RegistryRecord]]:
    check_may_write(state, subject)
    every, live = state.versions(subject, deleted=True), state.versions(subject)
    if not every:
        raise subject_not_found(subject)
    if permanent and live:
        raise RegistryError(
            Code.SUBJECT_NOT_SOFT_DELETED,
            f"Subject '{subject}' was not deleted first before being permanently deleted",
        )
    if not permanent and not live:
        raise RegistryError(
            Code.SUBJECT_SOFT_DELETED,
            f"Subject '{subject}' was soft deleted. Set permanent=true to delete permanently",
        )
    for version in every if permanent else live:
        _check_not_referenced(state, version)
    settings = [records.config_record(subject, None)] if subject in state.configs else []
    settings += [records.mode_record(subject, None)] if subject in state.modes else []
    if permanent:
        tombstones = [records.schema_tombstone(subject, each.version) for each in every]
        return [each.version for each in every], [*tombstones, *settings]
    numbers = [each.version for each in live]
    return numbers, [records.delete_subject_record(subject, numbers[-1]), *settings]


def _check_not_referenced(state: RegistryState, version: Version) -> None:
    users = state.referenced_by(version.subject, version.version)
    if users:
        raise RegistryError(
            Code.REFERENCE_EXISTS,
            f"One or more references exist to the schema {{magic=1,keytype=SCHEMA,subject={version.subject},"
            f"version={version.version}}}: {users[0].subject} version {users[0].version}",
        )


CONFIG_KEYS = (
    "alias", "normalize", "validateFields", "validateRules", "compatibilityLevel", "compatibilityPolicy",
    "compatibilityGroup", "defaultMetadata", "overrideMetadata", "defaultRuleSet", "overrideRuleSet",
)  # fmt: skip


def set_config(state: RegistryState, subject: str, request: Mapping[str, Any]) -> tuple[dict[str, Any], RegistryRecord]:
    """What is not named stays as it was. The answer has `compatibility`, the record `compatibilityLevel`."""
    wanted = dict(request)
    if "compatibility" in wanted:
        wanted["compatibilityLevel"] = wanted.pop("compatibility")
    unknown = [key for key in wanted if key not in CONFIG_KEYS]
    if unknown:
        raise RegistryError(
            Code.INVALID_LEVEL, f"unknown in a config: {', '.join(unknown)}; known: {', '.join(CONFIG_KEYS)}"
        )
    if wanted.get("compatibilityLevel") is not None:
        wanted["compatibilityLevel"] = level_of(wanted["compatibilityLevel"])
    policy = wanted.get("compatibilityPolicy")
    if policy is not None and policy not in POLICIES:
        raise RegistryError(Code.INVALID_LEVEL, f"compatibilityPolicy is one of {', '.join(POLICIES)}")
    for key in ("normalize", "validateFields", "validateRules"):
        if wanted.get(key) is not None and not isinstance(wanted[key], bool):
            raise RegistryError(Code.INVALID_LEVEL, f"{key} is true or false")
    for key in ("defaultMetadata", "overrideMetadata"):
        if wanted.get(key) is not None:
            wanted[key] = read_metadata(wanted[key])
    for key in ("defaultRuleSet", "overrideRuleSet"):
        if wanted.get(key) is not None:
            wanted[key] = read_rule_set(wanted[key])
    _check_not_overridden(state, subject)
    merged = {**state.configs.get(subject, {}), **wanted}
    config = {key: merged[key] for key in CONFIG_KEYS if merged.get(key) is not None}
    return config, records.config_record(subject or None, config)


def delete_config(state: RegistryState, subject: str) -> tuple[dict[str, Any], RegistryRecord]:
    if subject not in state.configs and subject != GLOBAL:
        raise config_not_found(subject)
    _check_not_overridden(state, subject)
    return state.configs.get(subject, {}), records.config_record(subject or None, None)


def config_not_found(subject: str) -> RegistryError:
    return RegistryError(
        Code.CONFIG_NOT_FOUND, f"Subject '{subject}' does not have subject-level compatibility configured"
    )


def mode_not_found(subject: str) -> RegistryError:
    return RegistryError(Code.MODE_NOT_FOUND, f"Subject '{subject}' does not have subject-level mode configured")


def _check_not_overridden(state: RegistryState, subject: str) -> None:
    if state.mode(subject) in ("READONLY", "READONLY_OVERRIDE"):
        raise RegistryError(Code.NOT_PERMITTED, f"Subject {subject or 'null'} is in read-only mode")


def set_mode(state: RegistryState, subject: str, mode: Any, *, force: bool) -> tuple[str, RegistryRecord]:
    if mode not in MODES:
        raise RegistryError(Code.INVALID_MODE, f"Invalid mode. Valid values are {', '.join(MODES)}")
    if mode == "IMPORT" and not force and state.mode(subject) != "IMPORT":
        holding = (
            state.versions(subject) if subject else [each for name in state.subjects for each in state.versions(name)]
        )
        if holding:
            raise RegistryError(
                Code.NOT_PERMITTED, "Cannot import since found existing subjects; force=true imports beside them"
            )
    return mode, records.mode_record(subject or None, mode)


def delete_mode(state: RegistryState, subject: str, *, recursive: bool) -> tuple[str, list[RegistryRecord]]:
    if subject not in state.modes:
        raise mode_not_found(subject)
    found = [records.mode_record(subject or None, None)]
    if recursive:
        inside = [name for name in state.modes if name != subject and (subject == GLOBAL or name.startswith(subject))]
        found += [records.mode_record(name, None) for name in sorted(inside)]
    return state.modes[subject], found


def delete_context(state: RegistryState, context: str) -> list[RegistryRecord]:
    if context == DEFAULT_CONTEXT or context not in state.contexts():
        raise RegistryError(Code.SUBJECT_NOT_FOUND, f"Context '{context}' not found.")
    inside = [name for name in state.subjects if context_of(name) == context]
    if inside:
        raise RegistryError(Code.CONTEXT_NOT_EMPTY, f"The specified context '{context}' is not empty: {inside[0]}")
    return [records.context_record(context, gone=True)]
