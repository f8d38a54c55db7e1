"""The error codes in a response, wherever they stand in it."""

from typing import NamedTuple

from ottla.protocol.schema import Message


class _Places(NamedTuple):
    """Where the error codes of a message are: its own, and in parts of it."""

    own: bool
    parts: tuple[tuple[str, bool, "_Places"], ...]
    """Field, whether it is an array, and the places in each part."""


_known: dict[type[Message], _Places] = {}


def errors_in(response: Message) -> list[int]:
    """The codes that are not 0."""
    found: list[int] = []
    _collect(response, _places(type(response)), found)
    return found


def _collect(message: Message, places: _Places, found: list[int]) -> None:
    if places.own and message.error_code:  # type: ignore[attr-defined]
        found.append(message.error_code)  # type: ignore[attr-defined]
    for name, is_array, inside in places.parts:
        value = getattr(message, name)
        if value is None:
            continue
        for part in value if is_array else (value,):
            _collect(part, inside, found)


def _places(cls: type[Message]) -> _Places:
    known = _known.get(cls)
    if known is None:
        own = any(field.name == "error_code" for field in cls.FIELDS)
        parts = [
            (field.name, field.array, _places(field.kind)) for field in cls.FIELDS if not isinstance(field.kind, str)
        ]
        known = _known[cls] = _Places(own, tuple(part for part in parts if part[2].own or part[2].parts))
    return known
