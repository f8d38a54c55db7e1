"""Paths into documents: `$.order.lines[0].sku`, `$["odd name"]`, `[*]` for every item. No code, no recursion.

Pure: reads no clock and does no I/O.
"""

import json
from collections.abc import Iterator
from typing import Any, Final

STEPS_MAX = 50
CANDIDATES_MAX = 10_000
"""Values that one path may lead to in one document: `[*]` after `[*]` multiplies them."""


class _Each:
    """`[*]`: every item of a list, every value of an object."""

    def __repr__(self) -> str:
        return "EACH"


EACH: Final = _Each()
Step = str | int | _Each
Path = tuple[Step, ...]


class BadPath(ValueError):
    """What was expected, and at which place of the text."""

    def __init__(self, position: int, expected: str) -> None:
        self.position, self.expected = position, expected
        super().__init__(f"at character {position + 1}: expected {expected}")


_NAME_ENDS = frozenset(" \t\r\n.[]=!<>~:\"'")


def read_path(text: str, position: int) -> tuple[Path, int]:
    """The path that begins with `$` at `position`, and where it ends."""
    steps: list[Step] = []
    position += 1
    while position < len(text) and text[position] in ".[":
        if len(steps) == STEPS_MAX:
            raise BadPath(position, f"a path of at most {STEPS_MAX} steps")
        read = _read_name if text[position] == "." else _read_bracket
        step, position = read(text, position + 1)
        steps.append(step)
    return tuple(steps), position


def _read_name(text: str, position: int) -> tuple[Step, int]:
    end = position
    while end < len(text) and text[end] not in _NAME_ENDS:
        end += 1
    name = text[position:end]
    if not name:
        raise BadPath(position, 'the name of a field after `.`, such as $.order (an odd one as $["a.b"])')
    return (EACH if name == "*" else name), end


def _read_bracket(text: str, position: int) -> tuple[Step, int]:
    step: Step
    if text.startswith('"', position):
        step, end = read_quoted(text, position)
    else:
        end = position
        while end < len(text) and text[end] not in "] \t\r\n":
            end += 1
        inside = text[position:end]
        if inside == "*":
            step = EACH
        elif inside.removeprefix("-").isascii() and inside.removeprefix("-").isdigit() and len(inside) < 10:
            step = int(inside)
        else:
            raise BadPath(position, 'a number, * or a "name in quotes" between [ and ]')
    if not text.startswith("]", end):
        raise BadPath(end, "`]`")
    return step, end + 1


def read_quoted(text: str, position: int) -> tuple[str, int]:
    """The text between quotes, with JSON's escapes, and where it ends."""
    end = position + 1
    while end < len(text) and text[end] != '"':
        end += 2 if text[end] == "\\" else 1
    if end >= len(text):
        raise BadPath(len(text), f'the closing " of what begins at character {position + 1}')
    try:
        found = json.loads(text[position : end + 1], strict=False)
        found.encode()
    except ValueError:
        raise BadPath(position, 'a text in quotes in which \\ is written \\\\ and " is written \\"') from None
    return str(found), end + 1


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def write_path(path: Path) -> str:
    parts = ["$"]
    for step in path:
        if isinstance(step, str):
            plain = step and step != "*" and not _NAME_ENDS.intersection(step) and step.isprintable()
            parts.append(f".{step}" if plain and "\\" not in step else f"[{quoted(step)}]")
        else:
            parts.append("[*]" if isinstance(step, _Each) else f"[{step}]")
    return "".join(parts)


def find(document: Any, path: Path) -> Iterator[Any]:
    """The values that the path leads to, in order, at most CANDIDATES_MAX of them."""
    found = [document]
    for step in path:
        if isinstance(step, str):
            found = [each[step] for each in found if isinstance(each, dict) and step in each]
        elif isinstance(step, int):
            found = [each[step] for each in found if isinstance(each, list) and -len(each) <= step < len(each)]
        else:
            found = _spread(found)
        if not found:
            break
    return iter(found)


def _spread(found: list[Any]) -> list[Any]:
    inner: list[Any] = []
    for each in found:
        if isinstance(each, list):
            inner += each[:CANDIDATES_MAX]
        elif isinstance(each, dict):
            inner += list(each.values())[:CANDIDATES_MAX]
        if len(inner) >= CANDIDATES_MAX:
            return inner[:CANDIDATES_MAX]
    return inner
