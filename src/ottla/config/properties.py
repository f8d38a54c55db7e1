"""Reads Java's .properties format, the format of server.properties."""

import re
from collections.abc import Iterator

from ottla.config.setting import ConfigError

_LINE_END = re.compile(r"\r\n|\r|\n")
_BLANK = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def parse_properties(text: str) -> dict[str, str]:
    """Names and values; of a name given twice the last one counts, as in Java."""
    found: dict[str, str] = {}
    problems: list[str] = []
    for number, line in _logical_lines(text):
        name, value = _split(line)
        try:
            found[_unescape(name)] = _unescape(value)
        except ValueError as error:
            problems.append(f"line {number}: {error}")
    if problems:
        raise ConfigError(problems)
    return found


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their continuations joined; comments and blank lines left out."""
    pending: str | None = None
    first = 0
    for number, raw in enumerate(_LINE_END.split(text), start=1):
        line = raw.lstrip(_BLANK)
        if pending is None:
            if not line or line[0] in "#!":
                continue
            first, pending = number, ""
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:  # an even number is that many escaped backslashes, not a continuation
            pending += line[:-1]
            continue
        yield first, pending + line
        pending = None
    if pending is not None:
        yield first, pending


def _split(line: str) -> tuple[str, str]:
    """Cut at the first '=', ':' or blank that is not escaped."""
    position = 0
    while position < len(line) and line[position] not in "=:" + _BLANK:
        position += 2 if line[position] == "\\" else 1
    name, rest = line[:position], line[position:].lstrip(_BLANK)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANK)
    return name, rest


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character != "\\":
            out.append(character)
            continue
        escaped = text[position : position + 1]
        position += 1
        if escaped == "u":
            digits = text[position : position + 4]
            if not re.fullmatch(r"[0-9a-fA-F]{4}", digits):
                raise ValueError(f"\\u{digits} is not a unicode escape of four digits")
            out.append(chr(int(digits, 16)))
            position += 4
        else:
            out.append(_ESCAPES.get(escaped, escaped))
    # Java writes a character beyond 16 bits as two escapes; together they are one character.
    return "".join(out).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
