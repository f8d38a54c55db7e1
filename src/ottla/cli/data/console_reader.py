"""How console-producer makes records of lines: Kafka's line reader with its properties."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from ottla.cli.common.output import CommandError

LINE_READERS = ("LineMessageReader", "ConsoleProducer$LineMessageReader")
_KNOWN = frozenset(
    {
        "parse.key", "key.separator", "parse.headers", "headers.delimiter", "headers.separator",
        "headers.key.separator", "ignore.error", "null.marker", "topic",
    }
)  # fmt: skip


class UnreadableLine(CommandError):
    """A line does not have the parts that were asked for."""


class ParsedLine(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


def check_reader_class(class_name: str) -> None:
    if not any(class_name in (name, f"kafka.tools.{name}", f"org.apache.kafka.tools.{name}") for name in LINE_READERS):
        raise CommandError(
            f"there is no line reader {class_name}: Java classes cannot be loaded here. "
            "There is org.apache.kafka.tools.LineMessageReader; for another, write it in Python and name it as "
            "module:function or module:Class (docs/tools.md)"
        )


class LineReader:
    """`headers<TAB>key<TAB>value`, each part only where it is asked for."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        for name in properties:
            if name not in _KNOWN:
                raise CommandError(f"the line reader has no property {name}; it has {', '.join(sorted(_KNOWN))}")

        def asked(name: str) -> bool:
            return properties.get(name, "false").strip().lower() == "true"

        self._parse_key = asked("parse.key")
        self._parse_headers = asked("parse.headers")
        self._ignore_error = asked("ignore.error")
        self._key_separator = properties.get("key.separator", "\t")
        self._headers_delimiter = properties.get("headers.delimiter", "\t")
        self._headers_separator = properties.get("headers.separator", ",")
        self._headers_key_separator = properties.get("headers.key.separator", ":")
        self._null = properties.get("null.marker")
        self._check_separators()
        try:
            self._split_headers = re.compile(self._headers_separator).split
        except re.error as error:
            raise CommandError(f"headers.separator is not a regular expression: {error}") from error

    def _check_separators(self) -> None:
        header_marks = {
            "headers.delimiter": self._headers_delimiter,
            "headers.separator": self._headers_separator,
            "headers.key.separator": self._headers_key_separator,
        }
        names = list(header_marks)
        pairs: list[tuple[str, str, str | None, str]] = [
            (a, b, header_marks[a], header_marks[b]) for i, a in enumerate(names) for b in names[i + 1 :]
        ]
        pairs += [("null.marker", name, self._null, value) for name, value in header_marks.items()]
        pairs.append(("null.marker", "key.separator", self._null, self._key_separator))
        for first, second, one, other in pairs:
            if one == other:
                raise CommandError(f"{first} and {second} may not be equal")
        for name, mark in (*header_marks.items(), ("key.separator", self._key_separator)):
            if not mark:
                raise CommandError(f"{name} may not be empty")

    def parse(self, line: str, number: int) -> ParsedLine:
        at = 0
        headers_text = key_text = None
        if self._parse_headers:
            headers_text = self._until(line, at, self._headers_delimiter, "headers delimiter", number)
            at += 0 if headers_text is None else len(headers_text) + len(self._headers_delimiter)
        if self._parse_key:
            key_text = self._until(line, at, self._key_separator, "key separator", number)
            at += 0 if key_text is None else len(key_text) + len(self._key_separator)
        headers = [] if headers_text is None or headers_text == self._null else self._headers(headers_text, number)
        return ParsedLine(self._bytes(key_text), self._bytes(line[at:]), headers)

    def _until(self, line: str, start: int, mark: str, name: str, number: int) -> str | None:
        found = line.find(mark, start)
        if found < 0:
            if self._ignore_error:
                return None
            raise UnreadableLine(f"no {name} found on line number {number}: '{line}'")
        return line[start:found]

    def _headers(self, text: str, number: int) -> list[tuple[str, bytes | None]]:
        headers: list[tuple[str, bytes | None]] = []
        for pair in self._split_headers(text):
            name, mark, value = pair.partition(self._headers_key_separator)
            if not mark:
                if not self._ignore_error:
                    raise UnreadableLine(f"no header key separator found in pair '{pair}' on line number {number}")
                headers.append((pair, None))
                continue
            if name == self._null:
                raise UnreadableLine(f"a header's name cannot be null, as '{name}' on line number {number} asks")
            headers.append((name, self._bytes(value)))
        return headers

    def _bytes(self, text: str | None) -> bytes | None:
        return None if text is None or text == self._null else text.encode("utf-8", "surrogateescape")
