"""Reading a mapping into a msgspec struct so that every mistake in it is found, not only the first."""

import re
from collections.abc import Mapping
from typing import Any, Literal, TypeVar, get_args, get_origin

import msgspec

from ottla.pipelines.registry import hint

S = TypeVar("S")
Problem = tuple[str, str]
"""A place such as `sinks[0].format`, and what is wrong there."""

_WORDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "nothing",
}
_EXPECTED = re.compile(r"Expected `(?P<wanted>[^`]+)`, got `(?P<found>[^`]+)`")
_PATH = re.compile(r" - at (?:key in )?`\$(?P<path>[^`]*)`$")


def at(place: str, key: str) -> str:
    return f"{place}.{key}" if place else key


def read_struct(value: Any, struct: type[S], place: str, kind: str) -> tuple[S | None, list[Problem]]:
    """The struct, or None and all that is wrong. `kind` says in messages whose keys these are."""
    if not isinstance(value, Mapping):
        return None, [(place, f"{kind} is a mapping of keys and values, not {_found(value)}")]
    fields = {known.encode_name: known for known in msgspec.structs.fields(struct)}  # type: ignore[arg-type]
    problems = [
        (at(place, str(key)), f"{kind} has no key `{key}`{hint(str(key), sorted(fields))}")
        for key in value
        if key not in fields
    ]
    for key, known in fields.items():
        if key not in value:
            if known.required:
                problems.append((place, f"{kind} wants the key `{key}`"))
            continue
        problems.extend(_wrong_value(value[key], known.type, at(place, key)))
    if problems:
        return None, problems
    try:
        return msgspec.convert(value, struct), []
    except msgspec.ValidationError as error:
        return None, [in_words(error, place)]


def in_words(error: msgspec.ValidationError, place: str) -> Problem:
    """What msgspec says, with the place in our spelling and types that people know."""
    text = str(error)
    path = _PATH.search(text)
    if path is not None:
        text = text[: path.start()]
        place = (place + path["path"].replace("[...]", "")).lstrip(".")
    return place, _EXPECTED.sub(lambda found: f"wants {_names(found['wanted'])}, not {_names(found['found'])}", text)


def _wrong_value(value: Any, wanted: Any, place: str) -> list[Problem]:
    try:
        msgspec.convert(value, wanted)
    except msgspec.ValidationError as error:
        choices = _choices(wanted)
        if isinstance(value, str) and choices and value not in choices:
            return [(place, f"`{value}` cannot stand here{hint(value, choices)}")]
        return [in_words(error, place)]
    return []


def _choices(wanted: Any) -> list[str]:
    """The words of a Literal, also inside `Annotated` and beside None."""
    if get_origin(wanted) is Literal:
        return [str(word) for word in get_args(wanted)]
    return [word for part in get_args(wanted) if get_origin(part) is not None for word in _choices(part)]


def _names(types: str) -> str:
    return " or ".join(_WORDS.get(name.strip(), name.strip()) for name in types.split("|"))


def _found(value: Any) -> str:
    if value is None:
        return "nothing"
    return {str: "text", list: "a list", bool: "true or false"}.get(type(value), f"`{value}`")
