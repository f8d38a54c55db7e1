"""/subjects: versions registered, looked up, listed and deleted."""

from typing import Any

from ottla.registry import decisions
from ottla.registry.content import Content
from ottla.registry.errors import schema_not_found, subject_not_found, version_not_found
from ottla.registry.rest.asking import Asked, Text, formatted
from ottla.registry.state import LATEST, Version, shown
from ottla.registry.subjects import DEFAULT_CONTEXT, Qualified, context_of, parse_subject

SCHEMAS_AT_ONCE_MAX = 1000


async def list_subjects(asked: Asked) -> Any:
    state = asked.registry.state
    only, also = asked.flag("deletedOnly"), asked.flag("deleted")
    names = []
    for name in sorted(state.subjects):
        if not _under(asked, name):
            continue
        live = bool(state.versions(name))
        if (not live) if only else (live or also):
            names.append(name)
    return asked.page(names)


def _under(asked: Asked, name: str) -> bool:
    """`:*:` is every context; without a prefix it is the default one, or that of the path."""
    prefix = asked.text("subjectPrefix", ":*:" if asked.context is None else "")
    if prefix.startswith(":*:"):
        return parse_subject(name).name.startswith(prefix[3:])
    if asked.context is not None and not prefix.startswith(":."):
        prefix = str(Qualified(asked.context, prefix))
    if not prefix.startswith(":.") and context_of(name) != DEFAULT_CONTEXT:
        return False
    return name.startswith(prefix)


async def look_up(asked: Asked) -> Any:
    subject, deleted = asked.subject, asked.flag("deleted")
    body = await asked.body()
    if not asked.registry.state.versions(subject, deleted=deleted):
        raise subject_not_found(subject)
    found = await asked.registry.look_up(subject, body, normalize=asked.flag("normalize"), deleted=deleted)
    if found is None:
        raise schema_not_found()
    return await _shown(asked, found)


async def delete_subject(asked: Asked) -> Any:
    subject, permanent = asked.subject, asked.flag("permanent")
    return await asked.write(lambda: decisions.delete_subject(asked.registry.state, subject, permanent=permanent))


async def list_versions(asked: Asked) -> Any:
    state, subject = asked.registry.state, asked.subject
    only, negative = asked.flag("deletedOnly"), asked.flag("deletedAsNegative")
    also = asked.flag("deleted") or negative
    found = [each for each in state.versions(subject, deleted=only or also) if each.deleted or not only]
    if not found:
        raise subject_not_found(subject)
    return asked.page([-each.version if each.deleted and negative else each.version for each in found])


async def register(asked: Asked) -> Any:
    """The text comes back only where another form of it was asked for: clients keep the one that they sent."""
    version = await asked.registry.register(asked.subject, await asked.body(), normalize=asked.flag("normalize"))
    if asked.request.headers.get("confluent-accept-unknown-properties", "").lower() != "true":
        return {"id": version.schema_id}  # clients of old break on what they do not know
    answer = await _shown(asked, version)
    return answer if asked.text("format") else {key: value for key, value in answer.items() if key != "schema"}


async def get_version(asked: Asked) -> Any:
    return await _shown(asked, _version(asked))


async def get_version_text(asked: Asked) -> Any:
    return Text(await formatted(asked, _version(asked)))


async def delete_version(asked: Asked) -> Any:
    subject, number, permanent = asked.subject, decisions.read_version(asked.params["version"]), asked.flag("permanent")
    return await asked.write(
        lambda: decisions.delete_version(asked.registry.state, subject, number, permanent=permanent)
    )


async def referenced_by(asked: Asked) -> Any:
    version = _version(asked, deleted=True)
    users = asked.registry.state.referenced_by(version.subject, version.version)
    return asked.page(sorted({each.schema_id for each in users}))


async def latest_with_metadata(asked: Asked) -> Any:
    """The newest version that has all these properties."""
    subject, deleted = asked.subject, asked.flag("deleted")
    wanted = dict(zip(asked.texts("key"), asked.texts("value"), strict=False))
    versions = asked.registry.state.versions(subject, deleted=deleted)
    if not versions:
        raise subject_not_found(subject)
    for each in reversed(versions):
        properties = (each.content.metadata or {}).get("properties", {})
        if all(properties.get(key) == value for key, value in wanted.items()):
            return await _shown(asked, each)
    raise schema_not_found()


async def list_schemas(asked: Asked) -> Any:
    state, deleted, kind = asked.registry.state, asked.flag("deleted"), asked.text("ruleType")
    aliases = _aliases(asked) if asked.flag("aliases") else {}
    found: list[Version] = []
    for name in sorted(state.subjects):
        if _under(asked, name) or any(_under(asked, alias) for alias in aliases.get(name, ())):
            versions = [each for each in state.versions(name, deleted=deleted) if _has_rule(each, kind)]
            found += versions[-1:] if asked.flag("latestOnly") else versions
    return [
        shown(each) | ({"aliases": aliases[each.subject]} if each.subject in aliases else {})
        for each in asked.page(found, SCHEMAS_AT_ONCE_MAX)
    ]


def _aliases(asked: Asked) -> dict[str, list[str]]:
    """Other names of subjects, by subject."""
    found: dict[str, list[str]] = {}
    for name, config in sorted(asked.registry.state.configs.items()):
        if config.get("alias"):
            found.setdefault(config["alias"], []).append(name)
    return found


def _has_rule(version: Version, kind: str) -> bool:
    """Whether one of its rules is of the type; every version has one of no type."""
    rules = [rule for each in (version.content.rule_set or {}).values() if isinstance(each, list) for rule in each]
    return not kind or any(rule.get("type") == kind for rule in rules)


def _version(asked: Asked, *, deleted: bool = False) -> Version:
    subject, number = asked.subject, decisions.read_version(asked.params["version"])
    state = asked.registry.state
    deleted = deleted or asked.flag("deleted")
    found = state.version(subject, number, deleted=deleted)
    if found is None:
        if not state.versions(subject, deleted=deleted):
            raise subject_not_found(subject)
        raise version_not_found("latest" if number == LATEST else number)
    return found


async def _shown(asked: Asked, version: Version) -> dict[str, Any]:
    if not asked.text("format"):
        return shown(version)
    content: Content = version.content._replace(text=await formatted(asked, version))
    return shown(version) | {"schema": content.text}
