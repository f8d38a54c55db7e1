"""How `ottla sql` prints rows: a table for people, JSON and CSV for programs."""

import base64
import csv
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import date, datetime
from decimal import Decimal
from typing import Any, ClassVar

from pyspark.sql import Row
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

WIDTH_WITHOUT_TERMINAL = 10_000
"""Nothing is cut where nobody looks."""


class Output:
    """Rows as they come. `LAID_OUT`: all of them are needed before the first can be printed."""

    LAID_OUT: ClassVar[bool] = False

    def __init__(self) -> None:
        self._words = Console(stderr=True, highlight=False)

    def status(self, what: str) -> AbstractContextManager[object]:
        """A sign of life on a terminal; nothing elsewhere."""
        return self._words.status(what)

    def show(self, columns: Sequence[str], rows: Iterator[Any]) -> int:
        """Print some rows; called again for those that come later. How many they were."""
        raise NotImplementedError

    def finish(self, rows: int, seconds: float) -> None:
        self._words.print(f"[dim]{rows:,} {'row' if rows == 1 else 'rows'}, {seconds:.1f} s[/dim]")


class TableOutput(Output):
    LAID_OUT = True

    def __init__(self) -> None:
        super().__init__()
        terminal = sys.stdout.isatty()
        self._console = Console(highlight=False, width=None if terminal else WIDTH_WITHOUT_TERMINAL)
        self._widths: list[int] = []

    def show(self, columns: Sequence[str], rows: Iterator[Any]) -> int:
        cells = [[_cell(value) for value in row] for row in rows]
        first = not self._widths
        titles = [Text(name, style="bold") for name in columns]
        self._widths = [
            max([width, title.cell_len, *(row[number].cell_len for row in cells)])
            for number, (width, title) in enumerate(zip(self._widths or [0] * len(titles), titles, strict=True))
        ]
        table = Table(box=box.SIMPLE_HEAD if first else None, show_header=first, pad_edge=True)
        for title, width in zip(titles, self._widths, strict=True):
            table.add_column(title, min_width=min(width, 40), overflow="fold")
        for row in cells:
            table.add_row(*row)
        if first or cells:
            self._console.print(table)
        return len(cells)


class JsonOutput(Output):
    def show(self, columns: Sequence[str], rows: Iterator[Any]) -> int:
        count = 0
        for row in rows:
            fields = {name: _nested(value) for name, value in zip(columns, row, strict=True)}
            print(json.dumps(fields, default=_plain, ensure_ascii=False), flush=True)
            count += 1
        return count


class CsvOutput(Output):
    def __init__(self) -> None:
        super().__init__()
        self._writer = csv.writer(sys.stdout, lineterminator="\n")
        self._begun = False

    def show(self, columns: Sequence[str], rows: Iterator[Any]) -> int:
        if not self._begun:
            self._writer.writerow(columns)
            self._begun = True
        count = 0
        for row in rows:
            self._writer.writerow([_csv_cell(value) for value in row])
            count += 1
        sys.stdout.flush()
        return count


OUTPUTS: dict[str, Callable[[], Output]] = {"table": TableOutput, "json": JsonOutput, "csv": CsvOutput}


def output_for(name: str) -> Output:
    return OUTPUTS[name]()


def _cell(value: Any) -> Text:
    if value is None:
        return Text("null", style="dim")
    if isinstance(value, str):
        return Text(value)
    return Text(
        str(_plain(value)) if _is_plain(value) else json.dumps(_nested(value), default=_plain, ensure_ascii=False)
    )


def _csv_cell(value: Any) -> Any:
    if value is None or isinstance(value, str | int | float):
        return value
    return _plain(value) if _is_plain(value) else json.dumps(_nested(value), default=_plain, ensure_ascii=False)


def _nested(value: Any) -> Any:
    """Rows inside rows as objects: to JSON they are tuples, which have no names."""
    if isinstance(value, Row):
        return {name: _nested(item) for name, item in value.asDict().items()}
    if isinstance(value, list):
        return [_nested(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _nested(item) for key, item in value.items()}
    return value


def _is_plain(value: Any) -> bool:
    return isinstance(value, bytes | bytearray | date | Decimal | bool | int | float)


def _plain(value: Any) -> Any:
    """What JSON has no form for: times as ISO 8601 and bytes as base64."""
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, bool | int | float):
        return value
    return str(value)
