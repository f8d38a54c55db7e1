"""Spark's `name TYPE, name TYPE`, read without Spark: the names, and types that do not exist."""

import difflib
import re
from collections.abc import Iterator

TYPES = frozenset(
    {
        "array", "bigint", "binary", "boolean", "byte", "char", "character", "date", "dec", "decimal", "double",
        "float", "geography", "geometry", "int", "integer", "interval", "long", "map", "numeric", "real", "short",
        "smallint", "string", "struct", "time", "timestamp", "timestamp_ltz", "timestamp_ntz", "tinyint", "varchar",
        "variant", "void",
    }
)  # fmt: skip
"""All that Spark's parser knows, in small letters; a test asks it."""

_OTHER_WORDS = {
    "bool": "BOOLEAN", "bytes": "BINARY", "datetime": "TIMESTAMP", "dict": "MAP<STRING, ...>", "float64": "DOUBLE",
    "int32": "INT", "int64": "BIGINT", "json": "VARIANT", "list": "ARRAY<...>", "number": "DECIMAL(38, 18)",
    "object": "STRUCT<...>", "str": "STRING", "text": "STRING", "uuid": "STRING",
}  # fmt: skip
"""What other systems call it."""

# What may stand between a type and the next comma. It says nothing about names or types.
_AFTER_TYPE = frozenset(
    {"not", "null", "comment", "collate", "default", "generated", "to", "without", "with", "time", "zone"}
)
_TOKEN = re.compile(
    r"\s*(?:(?P<word>[A-Za-z_][A-Za-z0-9_]*)|`(?P<quoted>(?:[^`]|``)+)`|(?P<text>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
    r"|(?P<number>\d+)|(?P<mark>[<>(),:]))"
)
DEPTH_MAX = 50


class NotUnderstood(Exception):
    """Spark's own parser must be asked."""


class UnknownType(Exception):
    """The message names it, and what may have been meant."""


def column_names(text: str) -> list[str]:
    """The columns that a schema names."""
    tokens = _Tokens(text)
    names = list(_fields(tokens, 0))
    if tokens.peek() or not names:
        raise NotUnderstood
    return names


def check_type(text: str) -> None:
    tokens = _Tokens(text)
    _type(tokens, 0)
    if tokens.peek():
        raise NotUnderstood


class _Tokens:
    def __init__(self, text: str) -> None:
        self._found: list[tuple[str, str]] = []
        at = 0
        stripped = text.rstrip()
        while at < len(stripped):
            match = _TOKEN.match(stripped, at)
            if match is None:
                raise NotUnderstood
            kind = match.lastgroup or ""
            self._found.append((kind, match[kind]))
            at = match.end()
        self._next = 0

    def peek(self, *marks: str) -> str:
        """The next token, if it is one of `marks`; any, if none are named."""
        if self._next == len(self._found):
            return ""
        token = self._found[self._next][1]
        return token if not marks or token in marks else ""

    def take(self, *kinds: str) -> str:
        if self._next == len(self._found) or self._found[self._next][0] not in kinds:
            raise NotUnderstood
        self._next += 1
        return self._found[self._next - 1][1]


def _fields(tokens: _Tokens, depth: int) -> Iterator[str]:
    while True:
        yield tokens.take("word", "quoted")
        if tokens.peek(":"):
            tokens.take("mark")
        _type(tokens, depth)
        while (word := tokens.peek()) and word not in (",", ">"):
            if word.lower() not in _AFTER_TYPE and not word.startswith(("'", '"')):
                raise NotUnderstood
            tokens.take("word", "text")
        if not tokens.peek(","):
            return
        tokens.take("mark")


def _type(tokens: _Tokens, depth: int) -> None:
    if depth > DEPTH_MAX:
        raise NotUnderstood
    name = tokens.take("word")
    if name.lower() not in TYPES:
        raise UnknownType(f"there is no type `{name}`{_meant(name.lower())}")
    if name.lower() == "interval":
        while tokens.peek() and not tokens.peek(",", ">"):
            tokens.take("word")
    elif tokens.peek("("):
        while tokens.take("mark", "number", "word") != ")":
            pass
    elif tokens.peek("<"):
        tokens.take("mark")
        if name.lower() == "struct":
            if not tokens.peek(">"):
                list(_fields(tokens, depth + 1))
        else:
            _type(tokens, depth + 1)
            while tokens.peek(","):
                tokens.take("mark")
                _type(tokens, depth + 1)
        if tokens.take("mark") != ">":
            raise NotUnderstood


def _meant(name: str) -> str:
    close = [_OTHER_WORDS[name]] if name in _OTHER_WORDS else difflib.get_close_matches(name, sorted(TYPES), n=1)
    return f": did you mean `{close[0].upper()}`?" if close else f"; there is: {', '.join(sorted(TYPES)).upper()}"
