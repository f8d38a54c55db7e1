"""Subjects and the contexts they are in: `orders-value` is in the default context, `:.team:orders-value` in `.team`."""

import unicodedata
from typing import NamedTuple

from ottla.registry.errors import Code, RegistryError

DEFAULT_CONTEXT = "."
SUBJECT_CHARACTERS_MAX = 1024
_RESERVED = {"__GLOBAL", "__EMPTY"}


class Qualified(NamedTuple):
    context: str
    name: str

    def __str__(self) -> str:
        return self.name if self.context == DEFAULT_CONTEXT else f":{self.context}:{self.name}"


def parse_subject(text: str) -> Qualified:
    """`:.:name` is `name`; a subject of another context keeps its prefix wherever it is shown."""
    if text.startswith(":."):
        context, colon, name = text[1:].partition(":")
        if colon:
            return Qualified(context, name)
        return Qualified(context, "")
    return Qualified(DEFAULT_CONTEXT, text)


def check_subject(text: str) -> Qualified:
    """For writes: a name that can be shown, stored and asked for again."""
    subject = parse_subject(text)
    bad = not subject.name or subject.name in _RESERVED or len(text) > SUBJECT_CHARACTERS_MAX
    if bad or any(unicodedata.category(character) == "Cc" for character in text):
        raise RegistryError(Code.INVALID_SUBJECT, f"The specified subject '{text[:100]}' is not a valid.")
    return subject


def context_of(subject: str) -> str:
    return parse_subject(subject).context


def in_context(context: str | None, subject: str) -> str:
    """The subject that a path under /contexts/{c} means; one that names a context itself stays."""
    if not context or context == DEFAULT_CONTEXT or subject.startswith(":."):
        return str(parse_subject(subject))
    return str(Qualified(_with_dot(context), subject))


def context_name(text: str) -> str:
    """`:.team:`, `.team` and `team` are the same."""
    return _with_dot(text.strip(":") or DEFAULT_CONTEXT)


def _with_dot(text: str) -> str:
    return text if text.startswith(".") else f".{text}"
