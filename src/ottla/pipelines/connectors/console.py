"""A table on the terminal for each batch. What was printed stays printed: a batch that is replayed prints again."""

import sys
from typing import Annotated, ClassVar

from msgspec import Meta
from pyspark.sql import DataFrame
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ottla.pipelines.connectors.base import Batch, Written
from ottla.pipelines.connectors.options import ConnectorOptions
from ottla.spark.moments import in_utc


class ConsoleSinkOptions(ConnectorOptions, frozen=True, kw_only=True):
    console: Annotated[bool, Meta(description="`console: true`")] = True
    rows: Annotated[
        int, Meta(description="So many rows of a batch are shown, and it is said if there are more", ge=1)
    ] = 20
    truncate: Annotated[
        int, Meta(description="Longer values are cut to so many characters; 0 leaves them whole", ge=0)
    ] = 60


class ConsoleSink:
    """Prints on the driver; empty batches print nothing."""

    KIND: ClassVar[str] = "console"
    Options: ClassVar[type[ConsoleSinkOptions]] = ConsoleSinkOptions

    def __init__(self, options: ConsoleSinkOptions) -> None:
        self.options = options

    def problems(self) -> list[str]:
        return [] if self.options.console else ["console: write `console: true`, or leave the sink out"]

    def write(self, frame: DataFrame, batch: Batch) -> Written:
        limit = self.options.rows
        found = frame.limit(limit + 1).collect()
        if not found:
            return Written(rows=0)
        shown, more = found[:limit], len(found) > limit
        title = f"{batch.pipeline}, batch {batch.id}: " + (f"the first {limit} rows" if more else _count(len(shown)))
        table = Table()
        for column in frame.columns:
            table.add_column(column, overflow="fold")
        for row in in_utc(shown, frame.schema):
            table.add_row(*[self._cell(value) for value in row])
        console = Console(file=sys.stdout)
        console.print(Text(title, style="bold"))
        console.print(table)
        return Written(rows=None if more else len(shown))

    def _cell(self, value: object) -> Text:
        """Text, so that what looks like markup in the data stays as it is."""
        if value is None:
            return Text("null", style="dim")
        if isinstance(value, bytes | bytearray):
            value = bytes(value).decode("utf-8", errors="backslashreplace")
        text, longest = str(value), self.options.truncate
        return Text(text[: longest - 1] + "…" if 0 < longest < len(text) else text)


def _count(rows: int) -> str:
    return "1 row" if rows == 1 else f"{rows} rows"
