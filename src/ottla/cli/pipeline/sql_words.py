"""Spark's exceptions as a person wants to read them: one sentence, and where in the SQL it is about."""

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from ottla.cli.pipeline.sql_text import no_such_topic

_STATE = re.compile(r"\s*SQLSTATE: \w+.*", re.DOTALL)
_CONDITION = re.compile(r"^\[[A-Z0-9_.]+\]\s*")
_PLACE = re.compile(r"line (?P<line>\d+), pos (?P<column>\d+)")
_RAISED = re.compile(r"^(?:\w+\.)*(?P<kind>[A-Z]\w+): (?P<text>.+)$", re.MULTILINE)


class ErrorText(NamedTuple):
    """What an exception of PySpark says about itself."""

    text: str
    condition: str | None = None
    parameters: dict[str, str] | None = None
    start: int | None = None
    """Where in the SQL it is, as offsets of the first and the last character."""
    stop: int | None = None


def in_words(told: ErrorText, sql: str, topics: Collection[str], as_text: Sequence[str] = ()) -> str:
    """`as_text` are the topics of the query whose values are read as text, without fields."""
    if told.condition == "TABLE_OR_VIEW_NOT_FOUND" and told.parameters:
        name = told.parameters.get("relationName", "").replace("`", "")
        return _pointing(no_such_topic(name, topics), sql, told.start, told.stop)
    if told.condition == "INVALID_IDENTIFIER" and told.parameters:
        name = told.parameters.get("ident", "")
        return f"write `{name}` in backticks (and the whole SQL in single quotes, for the shell)"
    sentence = _sentence(told.text)
    if as_text and (told.condition or "").startswith("UNRESOLVED_COLUMN"):
        sentence += (
            f" Values of {as_text[0]} are read as text: --format {as_text[0]}=json makes columns of their fields."
        )
    if told.start is not None:
        return _pointing(sentence, sql, told.start, told.stop)
    place = _PLACE.search(told.text)
    if place is None:
        return sentence
    start = _offset(sql, int(place["line"]), int(place["column"]))
    return _pointing(sentence, sql, start, start)


def _sentence(text: str) -> str:
    """The first sentence of Spark's, or of what was raised in Python below it, which says more."""
    raised = list(_RAISED.finditer(text)) if "Traceback (most recent call last)" in text else []
    if raised:
        return raised[-1]["text"]
    first = _STATE.sub("", text.strip())
    sentence = _CONDITION.sub("", first).strip()
    return " ".join(sentence.split()) or "Spark gave no reason"


def _offset(sql: str, line: int, column: int) -> int:
    lines = sql.splitlines(keepends=True)
    return min(len(sql), sum(len(part) for part in lines[: line - 1]) + column)


def _pointing(sentence: str, sql: str, start: int | None, stop: int | None) -> str:
    """The sentence, and below it the line of SQL with a mark."""
    if start is None:
        return sentence
    begin = sql.rfind("\n", 0, start) + 1
    end = sql.find("\n", start)
    line = sql[begin : len(sql) if end < 0 else end]
    last = min(stop if stop is not None else start, begin + len(line) - 1)
    mark = " " * (start - begin) + "^" * max(1, last - start + 1)
    return f"{sentence}\n  {line}\n  {mark}"
