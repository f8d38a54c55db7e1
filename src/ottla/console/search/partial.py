"""Of JSON only the fields that a search asks for: the others are passed over and never become objects.

Pure: bytes in, values out.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from ottla.console.search.paths import Path, find

Candidates = Callable[[bytes], Sequence[Iterable[Any]] | None]
"""From the bytes of a document to the values that each path leads to; None: it is no document."""


def candidates_of(paths: Sequence[Path]) -> Candidates:
    """Where every path begins with a name, only these names are read of an object."""
    firsts = [path[0] for path in paths if path]
    names = sorted({first for first in firsts if isinstance(first, str)})
    if len(firsts) != len(paths) or any(not isinstance(first, str) for first in firsts):
        return _whole(paths)
    ids = {name: f"field_{number}" for number, name in enumerate(names)}
    fields = [(own, Any, msgspec.field(default=msgspec.UNSET)) for own in ids.values()]
    try:
        asked = msgspec.defstruct("Asked", fields, rename={own: name for name, own in ids.items()})
        decode = msgspec.json.Decoder(asked).decode
    except ValueError:  # a name with quotes or control characters in it
        return _whole(paths)
    wanted = [(ids[str(path[0])], path[1:]) for path in paths]
    whole = _whole(paths)

    def read(data: bytes) -> Sequence[Iterable[Any]] | None:
        try:
            found = decode(data)
        except msgspec.ValidationError:  # JSON, and no object
            return whole(data)
        except (ValueError, RecursionError):
            return None
        return [
            () if (value := getattr(found, own)) is msgspec.UNSET else find(value, rest) if rest else (value,)
            for own, rest in wanted
        ]

    return read


def _whole(paths: Sequence[Path]) -> Candidates:
    decode = msgspec.json.Decoder().decode

    def read(data: bytes) -> Sequence[Iterable[Any]] | None:
        try:
            document = decode(data)
        except (ValueError, RecursionError):
            return None
        return [find(document, path) for path in paths]

    return read
