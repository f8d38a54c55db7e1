"""What `ottla pipeline run` shows: a live table on a terminal, lines elsewhere, JSON lines for scripts."""

import sys
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING, Any, Protocol, Self

from rich.console import Console
from rich.live import Live
from rich.table import Table

from ottla.cli.common.output import complain, note, print_json, warn

if TYPE_CHECKING:
    from ottla.pipelines.runner.supervisor import Event

COLUMNS = ("pipeline", "state", "batch", "rows", "rows/s", "time", "lag", "kept", "late", "dead")
"""`kept` is the number of rows in the state of windows, joins and the like."""
ONLY_QUERY = "main"
WIDTH_OF_FILES = 160


class Display(Protocol):
    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def tell(self, event: "Event") -> None: ...

    def show(self, status: dict[str, Any]) -> None: ...


def choose_display(*, json: bool) -> Display:
    if json:
        return JsonLines()
    return LiveTable() if sys.stdout.isatty() else TextLines()


class JsonLines(AbstractContextManager["JsonLines"]):
    """`{"event": "progress", ...}` for each query that has moved, and one line for everything that happens."""

    def __init__(self) -> None:
        self._shown: dict[tuple[str, str], Any] = {}

    def __exit__(self, *_: object) -> None:
        sys.stdout.flush()

    def tell(self, event: "Event") -> None:
        print_json({"event": event.what, "pipeline": event.pipeline, "query": event.query, "message": event.message})
        sys.stdout.flush()

    def show(self, status: dict[str, Any]) -> None:
        for pipeline in status["pipelines"]:
            for query in pipeline["queries"]:
                key = (pipeline["pipeline"], query["query"])
                if self._shown.get(key) != query:
                    self._shown[key] = query
                    print_json({"event": "progress", "time": status["time"], "pipeline": key[0], **query})
        sys.stdout.flush()


class TextLines(AbstractContextManager["TextLines"]):
    """For logs: what happens, and a line whenever a query has moved on."""

    def __init__(self) -> None:
        self._batches: dict[tuple[str, str], int] = {}

    def __exit__(self, *_: object) -> None:
        sys.stdout.flush()

    def tell(self, event: "Event") -> None:
        _say(event)

    def show(self, status: dict[str, Any]) -> None:
        for pipeline in status["pipelines"]:
            for query in pipeline["queries"]:
                key = (pipeline["pipeline"], query["query"])
                if query["batch"] is None or self._batches.get(key) == query["batch"]:
                    continue
                self._batches[key] = query["batch"]
                cells = dict(zip(COLUMNS[2:], query_cells(query)[1:], strict=True))
                words = ", ".join(f"{name} {value}" for name, value in cells.items())
                print(f"{key[0]} {key[1]}: {words}", flush=True)


class LiveTable:
    def __init__(self) -> None:
        self._stack = ExitStack()
        self._live = Live(console=Console(), refresh_per_second=4)

    def __enter__(self) -> Self:
        self._stack.enter_context(self._live)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def tell(self, event: "Event") -> None:
        if event.what not in ("started", "done", "stopped"):
            self._live.console.print(f"{event.pipeline}: {event.what} {event.message}", markup=False, highlight=False)

    def show(self, status: dict[str, Any]) -> None:
        self._live.update(status_table(status))


def wide_console() -> Console:
    """A terminal as wide as it is; a file has no width that cells would have to fit."""
    return Console(width=None if sys.stdout.isatty() else WIDTH_OF_FILES)


def status_table(status: dict[str, Any]) -> Table:
    table = Table(*COLUMNS, box=None, pad_edge=False)
    for pipeline in status["pipelines"]:
        for query in pipeline["queries"]:
            version = f" ({pipeline['version']})" if pipeline["version"] else ""
            which = "" if query["query"] == ONLY_QUERY else f" {query['query']}"
            table.add_row(f"{pipeline['pipeline']}{which}{version}", *query_cells(query))
    return table


def query_cells(query: dict[str, Any]) -> list[str]:
    return [
        query["state"],
        "-" if query["batch"] is None else str(query["batch"]),
        f"{query['input_rows']:,}",
        f"{query['rows_per_second']:,.0f}",
        f"{query['batch_seconds']:.2f} s",
        "-" if query["lag"] is None else f"{query['lag']:,}",
        f"{query['state_rows']:,}" if query["state_rows"] else "-",
        str(query["late_rows"]),
        str(query["dead_letters"]),
    ]


def _say(event: "Event") -> None:
    where = f"{event.pipeline} {event.query}" if event.query else event.pipeline
    text = f"{where} {event.what}" + (f": {event.message}" if event.message else "")
    {"failed": complain, "restarts": warn, "warning": warn}.get(event.what, note)(text)
