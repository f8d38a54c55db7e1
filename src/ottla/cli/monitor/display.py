"""What `ottla monitor` shows: a live table on a terminal, lines elsewhere, JSON lines for scripts."""

import re
import sys
import time
from contextlib import AbstractContextManager
from typing import Any, Protocol, Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ottla.cli.common.output import print_json
from ottla.monitoring.endtoend.monitor import EndToEnd
from ottla.monitoring.lag.book import GroupLag
from ottla.monitoring.lag.documents import group_status
from ottla.monitoring.lag.figures import caught_up_s, oldest_s
from ottla.monitoring.lag.rules import Status
from ottla.monitoring.lag.watching import Watch
from ottla.monitoring.serving import Monitor

STYLES = {Status.OK: "green", Status.WARN: "yellow"}
LINE_EVERY_SECONDS = 10
GROUPS_SHOWN = 20


class Display(Protocol):
    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def show(self, monitor: Monitor) -> None: ...


def choose_display(*, json: bool) -> Display:
    if json:
        return JsonLines()
    return LiveTable() if sys.stdout.isatty() else TextLines()


class JsonLines(AbstractContextManager["JsonLines"]):
    def __exit__(self, *_: object) -> None:
        sys.stdout.flush()

    def show(self, monitor: Monitor) -> None:
        print_json(
            {
                "time": int(time.time() * 1000),
                "lag": [
                    group_status(watch.settings.name, group, group.group, everything=False)
                    for watch in monitor.watches
                    for group in watch.judged
                ],
                "end_to_end": [end.summary() for end in monitor.ends],
            }
        )
        sys.stdout.flush()


class TextLines(AbstractContextManager["TextLines"]):
    """For logs: how the records do every ten seconds, and each group whose state has changed and was the same at two
    looks: from one alone, and its first commit, every group seems to have stopped."""

    def __init__(self) -> None:
        self._judged: dict[str, tuple[GroupLag, ...]] = {}
        self._seen: dict[tuple[str, str], Status] = {}
        self._told: dict[tuple[str, str], Status] = {}
        self._last = 0.0

    def __exit__(self, *_: object) -> None:
        sys.stdout.flush()

    def show(self, monitor: Monitor) -> None:
        now = time.time()
        for watch in monitor.watches:
            if self._judged.get(watch.settings.name) is not watch.judged:  # another look
                self._judged[watch.settings.name] = watch.judged
                for group in watch.judged:
                    self._show_change(watch.settings.name, group)
        if now - self._last >= LINE_EVERY_SECONDS:
            self._last = now
            for end in (each for each in monitor.ends if each.write.good + each.write.bad):
                counts = end.counts
                print(
                    f"{end.settings.name}: write {percent(end.produce_availability(now))}, "
                    f"read {percent(end.consume_availability(now))}, produced {counts['produced']:,}, "
                    f"lost {counts['lost']}, duplicated {counts['duplicated']}, delayed {counts['delayed']}",
                    flush=True,
                )

    def _show_change(self, cluster: str, group: GroupLag) -> None:
        key, status = (cluster, group.group), group.status
        if self._seen.get(key) is status and self._told.get(key, Status.OK) is not status:
            self._told[key] = status
            print(
                f"{cluster}: group {group.group} is {state_text(group).plain}, {group.total_lag:,} unread", flush=True
            )
        self._seen[key] = status


class LiveTable:
    def __init__(self) -> None:
        self._live = Live(console=Console(), refresh_per_second=4)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.__exit__(None, None, None)

    def show(self, monitor: Monitor) -> None:
        self._live.update(screen(monitor))


def write_svg(console: Console, path: str, title: str) -> None:
    """What a console has recorded, as a picture that loads nothing from other servers."""
    text = console.export_svg(title=title)
    with open(path, "w", encoding="utf-8") as file:
        file.write(re.sub(r"@font-face\s*\{[^}]*\}\s*|<!--.*?-->\s*", "", text))


def screen(monitor: Monitor) -> Group:
    parts: list[Any] = []
    for end in monitor.ends:
        parts += [*end_tables(end), Text()]
    for watch in monitor.watches:
        parts += [group_table(watch), Text()]
    return Group(*parts[:-1])


def end_tables(end: EndToEnd) -> list[Any]:
    now = time.time()
    levels = Table("sli", "last minute", "all", "objective", "budget left", "burn 1 h", box=None, pad_edge=False)
    for name, level in (("write", end.write), ("read", end.read)):
        recent, all_ = level.recent(now).ratio, level.in_window(now).ratio
        left = level.budget_left(now)
        levels.add_row(
            name,
            _coloured(recent, level.objective.ratio),
            _coloured(all_, level.objective.ratio),
            f"{100 * level.objective.ratio:g} %",
            Text(f"{100 * left:.1f} %", "green" if left > 0 else "red"),
            f"{level.burn_rate(3_600, now):.1f}",
        )
    counts = end.counts
    words = ", ".join(f"{name} {counts[name]:,}" for name in ("produced", "consumed", "lost", "duplicated", "delayed"))
    delays = end.read_delays.summary(now)
    shown = f", end to end {delays['50th']:.1f} ms (99 %: {delays['99th']:.1f} ms)" if delays else ""
    partitions = Table("partition", "leader", "write, last minute", box=None, pad_edge=False)
    for number, place in sorted(end.leaders.places.items()):
        ratio = end.partition_availability(number, now) if number in end.by_partition else None
        leader = "none" if place.leader is None else str(place.leader)
        partitions.add_row(str(number), leader, _coloured(ratio, end.settings.objective.ratio))
    parts: list[Any] = [
        Text(f"{end.settings.name}: topic {end.settings.topic}", "bold"),
        levels,
        Text(words + shown),
        partitions,
    ]
    if end.last_error:
        parts.append(Text(f"last error: {end.last_error}", "dim"))
    return parts


def group_table(watch: Watch) -> Table:
    table = Table(
        "group", "status", "lag", "oldest unread", "caught up in", "members", "window", box=None, pad_edge=False,
        title=f"consumer groups of {watch.settings.name}", title_justify="left", title_style="bold",
    )  # fmt: skip
    found = sorted(watch.judged, key=lambda each: (-each.status, -each.total_lag))
    for group in found[:GROUPS_SHOWN]:
        table.add_row(
            group.group, state_text(group), *lag_cells(group), str(group.members), f"{100 * group.complete:.0f} %"
        )
    if len(found) > GROUPS_SHOWN:
        table.add_row(f"... and {len(found) - GROUPS_SHOWN} more")
    return table


def state_text(group: GroupLag) -> Text:
    """Of a group that is ERR, what its worst partition is."""
    worst = max((each.status for each in group.partitions), default=Status.OK)
    words = group.status.name if worst <= Status.WARN else f"{group.status.name} ({worst.name})"
    return Text(words, STYLES.get(group.status, "red"))


def lag_cells(group: GroupLag) -> list[str]:
    return [f"{group.total_lag:,}", duration(oldest_s(group)), duration(caught_up_s(group), otherwise="never")]


def duration(seconds: float | None, otherwise: str = "?") -> str:
    if seconds is None:
        return otherwise
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7_200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3_600:.1f} h"


def percent(ratio: float | None) -> str:
    return "-" if ratio is None else f"{100 * ratio:.3f} %"


def _coloured(ratio: float | None, objective: float) -> Text:
    return Text(percent(ratio), "dim" if ratio is None else "green" if ratio >= objective else "red")


def once_lines(summary: dict[str, Any], faults: list[str]) -> list[str]:
    lines = [f"{summary['name']}: topic {summary['topic']}, {len(summary['partitions'])} partitions"]
    for sli in ("write", "read"):
        level = summary[sli]
        lines.append(f"  {sli:5}  {percent(level['ratio'])}  ({level['good']:,} good, {level['bad']:,} bad)")
    counted = ", ".join(
        f"{name} {summary[name]:,}" for name in ("produced", "consumed", "lost", "duplicated", "delayed")
    )
    lines.append(f"  {counted}")
    delays = summary["read_delay_ms"]
    if delays:
        lines.append(
            f"  end to end: {delays['50th']:.1f} ms, 99 %: {delays['99th']:.1f} ms, at most {delays['max']:.1f} ms"
        )
    if summary["topics"]["done"]:
        made, gone = summary["topics"]["creation_ms"], summary["topics"]["deletion_ms"]
        lines.append(f"  a topic was known to all brokers after {made:.0f} ms, and gone after {gone:.0f} ms")
    lines += [f"  FAULT: {fault}" for fault in faults]
    lines.append(f"  the objective is {'NOT ' if faults else ''}kept: {100 * summary['write']['objective']:g} %")
    return lines
