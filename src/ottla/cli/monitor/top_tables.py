"""What `ottla top` shows."""

import sys
from typing import Any

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from ottla.cli.monitor.display import duration, write_svg
from ottla.monitoring.top.view import GroupRow, View

WIDTH_OF_FILES = 120
LOW_SHARE = 0.15
COLOURS = {"OK": "green", "WARN": "yellow"}


def tables(view: View, rows: int) -> Group:
    parts: list[Any] = [_brokers(view), Text(), _topics(view, rows)]
    if view.groups:
        parts += [Text(), _groups(view, rows)]
    if view.requests:
        parts += [Text(), _requests(view, rows)]
    if view.pipelines:
        parts += [Text(), _pipelines(view, rows)]
    parts += [Text(failure, "red") for failure in view.failures]
    return Group(*parts)


def print_view(view: View, rows: int, svg: str | None) -> None:
    console = Console(width=None if sys.stdout.isatty() else WIDTH_OF_FILES, record=svg is not None, highlight=False)
    console.print(tables(view, rows))
    if svg is not None:
        write_svg(console, svg, "ottla top")


def _table(*columns: str, left: int = 1) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for position, column in enumerate(columns):
        table.add_column(column, justify="left" if position < left else "right")
    return table


def _brokers(view: View) -> Table:
    table = _table("broker", "address", "rack", "leads", "replicas", "out of sync", "free disk", left=3)
    for row in view.brokers:
        away = row.address == "away"
        name = f"{row.broker} *" if row.is_controller else str(row.broker)
        free = "-" if row.free_share is None else f"{100 * row.free_share:.0f} %"
        table.add_row(
            Text(name, "red" if away else ""),
            Text(row.address, "red" if away else ""),
            row.rack or "-",
            str(row.leaders),
            str(row.replicas),
            Text(str(row.out_of_sync), "red" if row.out_of_sync else ""),
            Text(free, "red" if row.free_share is not None and row.free_share < LOW_SHARE else ""),
        )
    return table


def _topics(view: View, rows: int) -> Table:
    table = _table("topic", "records/s", "log ends", "partitions", "under-replicated", "without leader")
    for row in view.topics[:rows]:
        table.add_row(
            row.topic,
            _number(row.records_per_second),
            f"{row.records:,}",
            str(row.partitions),
            Text(str(row.under_replicated), "yellow" if row.under_replicated else ""),
            Text(str(row.leaderless), "red" if row.leaderless else ""),
        )
    _more(table, len(view.topics), rows)
    return table


def _groups(view: View, rows: int) -> Table:
    table = _table("group", "state", "lag", "oldest unread", "caught up in", "members", "lag over time")
    for row in view.groups[:rows]:
        table.add_row(
            row.group,
            _state(row),
            f"{row.lag:,}",
            duration(row.oldest_s),
            duration(row.caught_up_s, otherwise="never"),
            str(row.members),
            row.spark,
        )
    _more(table, len(view.groups), rows)
    return table


def _state(row: GroupRow) -> Text:
    words = row.worst if row.status == "ERR" else row.status
    if row.complete or words in ("OK", "STOP"):  # for silence, how many commits there were makes no difference
        return Text(words, COLOURS.get(row.status, "red"))
    return Text(f"{words}?", "dim")  # too early to be sure


def _requests(view: View, rows: int) -> Table:
    table = _table("request", "per second", "errors/s", "median", "99 %")
    for row in view.requests[:rows]:
        table.add_row(
            row.request,
            _number(row.per_second),
            Text(_number(row.errors_per_second), "yellow" if row.errors_per_second else ""),
            _ms(row.p50_ms),
            _ms(row.p99_ms),
        )
    _more(table, len(view.requests), rows)
    return table


def _pipelines(view: View, rows: int) -> Table:
    table = _table("pipeline", "query", "state", "rows/s", "batch", "lag", "dead letters", left=3)
    for row in view.pipelines[:rows]:
        lag = row.get("lag")
        table.add_row(
            str(row.get("pipeline", "")),
            str(row.get("query", "")),
            str(row.get("state", "")),
            _number(row.get("rows_per_second")),
            f"{row.get('batch_seconds') or 0.0:.2f} s",
            "-" if lag is None else f"{lag:,}",
            str(row.get("dead_letters", 0)),
        )
    _more(table, len(view.pipelines), rows)
    return table


def _more(table: Table, count: int, rows: int) -> None:
    if count > rows:
        table.add_row(Text(f"... and {count - rows} more", "dim"))


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}" if value >= 10 or value == 0 else f"{value:.1f}"


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f} ms"
