"""JAAS, the format in which Java is told how to log in: lines in settings, and whole files.

    org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="b" user_a="b";

A file has such lines in sections: `KafkaServer { ... };`, or `listener.KafkaServer { ... };` for one listener.
Errors name places and never values: those are passwords.
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

FLAGS = ("required", "requisite", "sufficient", "optional")
_TOKEN = re.compile(
    r"""(?P<blank>\s+|//[^\n]*|/\*.*?\*/)"""
    r"""|(?P<quoted>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')"""
    r"""|(?P<word>[A-Za-z_$][A-Za-z0-9._$-]*)"""
    r"""|(?P<number>[0-9][A-Za-z0-9._$-]*)"""
    r"""|(?P<mark>[={};])""",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?P<octal>[0-3]?[0-7]{1,2})|\\(?P<other>.)", re.DOTALL)
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class JaasError(ValueError):
    """What is wrong, without any value."""


class LoginModule(NamedTuple):
    name: str
    """The class, with its package."""
    options: Mapping[str, str]

    @property
    def short_name(self) -> str:
        return self.name.rpartition(".")[2]

    def __repr__(self) -> str:
        return f"LoginModule({self.name})"  # no secrets


class _Token(NamedTuple):
    kind: str
    text: str
    line: int


def parse_line(text: str) -> LoginModule:
    """The value of a sasl.jaas.config: one login module. JaasError."""
    tokens = _Reader(text)
    module = _module(tokens)
    if not tokens.at_end:
        raise JaasError("JAAS config property contains more than one login module: one line, one `;` at its end")
    return module


def parse_file(text: str) -> dict[str, list[LoginModule]]:
    """The sections of a JAAS file. JaasError."""
    tokens = _Reader(text)
    sections: dict[str, list[LoginModule]] = {}
    while not tokens.at_end:
        name = tokens.take("word", "quoted")
        tokens.mark("{")
        modules = sections.setdefault(name, [])
        while not tokens.is_mark("}"):
            modules.append(_module(tokens))
        tokens.mark("}")
        tokens.mark(";")
    return sections


def _module(tokens: "_Reader") -> LoginModule:
    name = tokens.take("word", "quoted")
    flag = tokens.take("word")
    if flag.lower() not in FLAGS:
        raise JaasError(f"line {tokens.line}: behind the login module stands one of {', '.join(FLAGS)}")
    options: dict[str, str] = {}
    while not tokens.is_mark(";"):
        key = tokens.take("word")
        tokens.mark("=")
        options[key] = tokens.take("word", "quoted")
    tokens.mark(";")
    return LoginModule(name, options)


class _Reader:
    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._position = 0

    @property
    def at_end(self) -> bool:
        return self._position == len(self._tokens)

    @property
    def line(self) -> int:
        return self._tokens[max(0, self._position - 1)].line if self._tokens else 1

    def is_mark(self, mark: str) -> bool:
        return not self.at_end and self._tokens[self._position][:2] == ("mark", mark)

    def take(self, *kinds: str) -> str:
        if self.at_end:
            raise JaasError("it ends too early: is the `;` missing?")
        token = self._tokens[self._position]
        self._position += 1
        if token.kind == "number":
            raise JaasError(f"line {token.line}: a value that begins with a digit has to stand in quotes")
        if token.kind not in kinds:
            raise JaasError(f"line {token.line}: a {kinds[0]} is expected{_seen(token)}")
        return token.text

    def mark(self, mark: str) -> None:
        if not self.is_mark(mark):
            if self.at_end:
                raise JaasError(f"it ends too early: `{mark}` is missing")
            token = self._tokens[self._position]
            raise JaasError(f"line {token.line}: `{mark}` is expected{_seen(token)}")
        self._position += 1


def _seen(token: _Token) -> str:
    return f", not `{token.text}`" if token.kind == "mark" else ""  # anything else may be a password


def _tokens(text: str) -> Iterator[_Token]:
    position, line = 0, 1
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise JaasError(f"line {line}: a quote that is not closed, or a character that has to stand in quotes")
        kind, found = str(match.lastgroup), match.group()
        if kind == "quoted":
            yield _Token(kind, _ESCAPE.sub(_unescape, found[1:-1]), line)
        elif kind != "blank":
            yield _Token(kind, found, line)
        line += found.count("\n")
        position = match.end()


def _unescape(match: re.Match[str]) -> str:
    if match["octal"] is not None:
        return chr(int(match["octal"], 8))
    return _ESCAPES.get(match["other"], match["other"])
