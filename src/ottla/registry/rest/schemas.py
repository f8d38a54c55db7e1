"""/schemas: by id and by guid. /compatibility: would it be taken? /contexts."""

from typing import Any

from ottla.registry import decisions
from ottla.registry.content import SCHEMA_TYPES, Content
from ottla.registry.errors import schema_not_found, subject_not_found, version_not_found
from ottla.registry.rest.asking import Asked, Text
from ottla.registry.state import LATEST, Version
from ottla.registry.subjects import context_name, in_context

ID_MAX = 2**31 - 1


async def types(asked: Asked) -> Any:
    return list(SCHEMA_TYPES)


async def by_id(asked: Asked) -> Any:
    context, schema_id, content = _content(asked)
    found = await _answer(asked, context, content)
    if asked.flag("fetchMaxId"):
        found["maxId"] = asked.registry.state.max_id(context)
    named = asked.text("subject")
    if named:
        subject = asked.registry.state.alias(in_context(asked.context, named))
        places = asked.registry.state.places(context, schema_id, deleted=True)
        own = [each for each in places if each.subject == subject]
        if own:
            found |= {"subject": subject, "version": own[-1].version}
    return found


async def text_by_id(asked: Asked) -> Any:
    context, _, content = _content(asked)
    return Text((await _answer(asked, context, content))["schema"])


async def subjects_of_id(asked: Asked) -> Any:
    return asked.page(sorted({each.subject for each in _places(asked)}))


async def versions_of_id(asked: Asked) -> Any:
    return asked.page([{"subject": each.subject, "version": each.version} for each in _places(asked)])


async def by_guid(asked: Asked) -> Any:
    places = asked.registry.state.by_guid(asked.params["guid"].lower())
    if not places:
        raise schema_not_found(asked.params["guid"])
    context, schema_id = places[0]
    content = asked.registry.state.content(context, schema_id)
    assert content is not None
    return await _answer(asked, context, content)


async def ids_of_guid(asked: Asked) -> Any:
    places = asked.registry.state.by_guid(asked.params["guid"].lower())
    if not places:
        raise schema_not_found(asked.params["guid"])
    return [{"context": context, "id": schema_id} for context, schema_id in places]


def _places(asked: Asked) -> list[Version]:
    context, schema_id, _ = _content(asked)
    found = asked.registry.state.places(context, schema_id, deleted=asked.flag("deleted"))
    named = asked.text("subject")
    if named:
        found = [each for each in found if each.subject == in_context(asked.context, named)]
    return found


def _content(asked: Asked) -> tuple[str, int, Content]:
    text = asked.params["id"]
    if not (text.isascii() and text.isdigit()) or int(text) > ID_MAX:
        raise schema_not_found(text[:50])
    schema_id, state = int(text), asked.registry.state
    for context in _contexts(asked):
        content = state.content(context, schema_id)
        if content is not None:
            return context, schema_id, content
    raise schema_not_found(text)


def _contexts(asked: Asked) -> list[str]:
    """Where to look: the one that is named; with an unqualified subject also where that subject is."""
    named = asked.text("subject")
    if not named or named.startswith(":.") or asked.context is not None:
        return [asked.id_context]
    others = [
        context
        for context in asked.registry.state.contexts()
        if in_context(context, named) in asked.registry.state.subjects
    ]
    return list(dict.fromkeys([asked.id_context, *others]))


async def _answer(asked: Asked, context: str, content: Content) -> dict[str, Any]:
    form = asked.text("format")
    if form:
        parsed = await asked.registry.parse(content, context)
        content_text = await asked.registry.in_thread(lambda: parsed.formatted(form))
        return {**content.document(), "schema": content_text, "guid": content.guid}
    return {**content.document(), "guid": content.guid}


async def check(asked: Asked) -> Any:
    """Against one version, or against those that the level of the subject asks for."""
    subject, state = asked.subject, asked.registry.state
    body = await asked.body()
    level, policy = decisions.level_for(state, subject)
    stored = await asked.registry.read(subject, body, normalize=asked.flag("normalize"))
    if "version" in asked.params:
        number = decisions.read_version(asked.params["version"])
        one = state.version(subject, number)
        if one is None and number != LATEST:
            raise version_not_found(number) if state.versions(subject) else subject_not_found(subject)
        versions = [] if one is None else [one]
    else:
        versions = decisions.compared_with(state, subject, stored.content)
    reasons = await asked.registry.compare(stored.parsed, versions, level, policy)
    answer: dict[str, Any] = {"is_compatible": not reasons}
    return answer | ({"messages": reasons} if asked.flag("verbose") else {})


# Contexts.


async def list_contexts(asked: Asked) -> Any:
    prefix = asked.text("contextPrefix")
    return asked.page([name for name in asked.registry.state.contexts() if name.startswith(prefix)])


async def delete_context(asked: Asked) -> Any:
    context = context_name(asked.params["context"])

    def decide() -> Any:
        return None, decisions.delete_context(asked.registry.state, context)

    await asked.write(decide)
    return None
