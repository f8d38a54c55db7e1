"""A pipeline as a SQL file: a comment at the top says in YAML what SQL cannot, each statement after it is a step.

    -- ottla:
    --   name: big-orders
    --   sources: {orders: {topic: orders, format: json, schema: "id STRING, amount DOUBLE"}}
    --   sinks: [{topic: orders.big, key: id, format: json}]

    -- as: priced
    SELECT *, amount * 1.2 AS gross FROM orders;

    -- step: {expect: {rule: "gross < 1e6", otherwise: dead_letter}}

    SELECT * FROM input WHERE gross > 100;

A comment `-- as: NAME` or `-- name: NAME` before a statement is that step's; `-- step: {...}` is a step of another
kind. Other comments are comments.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ottla.pipelines.errors import InvalidPipeline

ReadYaml = Callable[[str, int], tuple[Any, dict[str, int]]]

_HEADER = re.compile(r"--\s*ottla:\s*$")
_NOTE = re.compile(r"--\s*(?P<key>as|name|step):\s*(?P<value>\S.*?)\s*$")
_PIECE = re.compile(
    r"""--[^\n]*|/\*.*?\*/|'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`[^`]*`|;|[^-/'"`;]+|.""", re.DOTALL
)


@dataclass(frozen=True)
class _Statement:
    text: str
    line: int


def read_sql(path: Path, text: str, read_yaml: ReadYaml) -> tuple[Any, dict[str, int]]:
    """The same document that a YAML file would give, and the line of each place."""
    header, first, rest, rest_line = _split_header(path, text)
    values, lines = read_yaml(header, first)
    if not isinstance(values, dict):
        raise InvalidPipeline(str(path), [f"line {first}: after `-- ottla:` come `--   key: value` lines"])
    if "steps" in values:
        raise InvalidPipeline(str(path), [f"line {lines['steps']}, steps: here the statements are the steps"])
    steps: list[Any] = []
    named: dict[str, str] = {}
    for piece in _statements(rest, rest_line):
        note = _NOTE.match(piece.text) if piece.text.startswith("--") else None
        if note and note["key"] == "step":
            step, inner = read_yaml(note["value"], piece.line)
            lines.update({f"steps[{len(steps)}].{place}": line for place, line in inner.items()})
        elif note:
            named[note["key"]] = note["value"]
            continue
        else:
            step = {"sql": piece.text, **named}
        lines[f"steps[{len(steps)}]"] = piece.line
        steps.append(step)
        named = {}
    return {**values, "steps": steps}, lines


def _split_header(path: Path, text: str) -> tuple[str, int, str, int]:
    lines = text.splitlines()
    start = next((number for number, line in enumerate(lines) if line.strip()), 0)
    if not lines or not _HEADER.match(lines[start].strip()):
        raise InvalidPipeline(str(path), ["a SQL pipeline begins with a comment `-- ottla:` that names its sources"])
    end = start + 1
    while end < len(lines) and lines[end].startswith("--"):
        end += 1
    header = "\n".join(line[2:] for line in lines[start + 1 : end])
    return header, start + 2, "\n".join(lines[end:]), end + 1


def _statements(text: str, line: int) -> list[_Statement]:
    """Statements between semicolons (not those inside quotes), and the comments that say something."""
    found: list[_Statement] = []
    current, begun = "", line

    def finish() -> None:
        nonlocal current
        if current.strip():
            found.append(_Statement(current.strip(), begun))
        current = ""

    for piece in _PIECE.findall(text):
        if piece == ";":
            finish()
        elif _NOTE.fullmatch(piece) and not current.strip():
            found.append(_Statement(piece, line))
        elif not piece.startswith(("--", "/*")):
            if not current.strip() and piece.strip():
                begun = line + piece[: len(piece) - len(piece.lstrip())].count("\n")
            current += piece
        line += piece.count("\n")
    finish()
    return found
