"""What commands print: results on stdout, words for people on stderr, JSON for scripts."""

import json
import sys
from collections.abc import Iterable, Sequence

from ottla.model.errors import OttlaError


class CommandError(OttlaError):
    """A command cannot do what was asked; the message says why and what to do."""


def note(text: str) -> None:
    """Something worth knowing that is not the result."""
    print(f"note: {text}", file=sys.stderr)


def warn(text: str) -> None:
    print(f"warning: {text}", file=sys.stderr)


def complain(text: str) -> None:
    print(f"error: {text}", file=sys.stderr)


def print_json(value: object) -> None:
    """One JSON document, one line."""
    print(json.dumps(value, separators=(",", ":"), default=str))


def print_columns(rows: Iterable[Sequence[object]], *, gap: int = 1, minimum: Sequence[int] = ()) -> None:
    """Rows as left-aligned columns, each as wide as its longest cell: the layout scripts cut with awk."""
    texts = [[str(cell) for cell in row] for row in rows]
    if not texts:
        return
    floor = [*minimum, *([0] * (len(texts[0]) - len(minimum)))]
    # Nothing follows the last column, so it needs no room for its longest cell.
    widths = [*(max(floor[i], *(len(row[i]) for row in texts)) for i in range(len(texts[0]) - 1)), floor[-1]]
    for row in texts:
        print((" " * gap).join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)))
