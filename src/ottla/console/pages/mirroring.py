"""Mirrors: the flows of those that run, and of those whose files the console was told of, which it can switch.

A flow is paused, resumed and promoted by the command that does it on a command line, in a process of its own.
"""

import shlex
from typing import Any, NamedTuple

from ottla.console.asking import Ask, BadInput, Done
from ottla.console.commands import line
from ottla.console.pages.pipelines import pipeline_row, refuse_brokers_users, refuse_limited
from ottla.console.tools import ASK_SECONDS_MAX, PAGE_SECONDS_MAX

KEPT_SECONDS = 10.0


class FlowRow(NamedTuple):
    """A flow of a mirror's file, as `ottla mirror status` tells of it."""

    file: str
    flow: str
    pipeline: str
    state: str
    paused: bool
    standby: bool
    lag_records: int | None
    lag_seconds: float | None
    lag_error: str
    rows_per_second: float | None
    error: str


async def show(ask: Ask) -> dict[str, Any]:
    """Flows are pipelines too: their drivers tell how far they are."""
    drivers = await ask.console.pipelines.of(ask.watched.settings)
    found = await ask.snapshot()
    lags = {row.group: row for row in found.groups}
    rows, failures, waiting = await _of_files(ask, PAGE_SECONDS_MAX)
    known = {row.pipeline for row in rows}
    flows = [
        {"url": driver.url, **pipeline_row(each, lags)}
        for driver in drivers
        for each in driver.pipelines
        if is_mirror(each) and str(each.get("pipeline", "")) not in known
    ]
    return {
        "flows": flows,
        "drivers": len(drivers),
        "of_files": rows,
        "files": list(ask.watched.settings.mirrors),
        "waiting": waiting,
        "failures": [f"{driver.url}: {driver.error}" for driver in drivers if driver.error] + failures,
        "_ways": {row.pipeline: {way: _line(ask, way, row) for way in ("pause", "resume", "promote")} for row in rows},
        "_command": line("ottla", "", "mirror", "status", (*ask.watched.settings.mirrors, "mirror.yaml")[0]),
    }


async def _of_files(ask: Ask, patience_s: float) -> tuple[list[FlowRow], list[str], list[str]]:
    """Rows, what went wrong, and the files that nothing is known of yet."""
    rows: list[FlowRow] = []
    failures, waiting = [], []
    for file in ask.watched.settings.mirrors:
        told = await ask.console.tools.told(_arguments(ask, "status", file), KEPT_SECONDS, patience_s)
        if told.error:
            failures.append(f"{file}: {told.error}")
        elif isinstance(told.document, list):
            rows += [flow_row(file, each) for each in told.document if isinstance(each, dict)]
        else:
            waiting.append(file)
    return rows, failures, waiting


def flow_row(file: str, told: dict[str, Any]) -> FlowRow:
    pipeline = pipeline_row(told, {})
    query = pipeline["queries"][0] if pipeline["queries"] else {}
    return FlowRow(
        file, str(told.get("flow", "")), pipeline["pipeline"], pipeline["state"],
        bool(told.get("paused")), bool(told.get("standby")), told.get("lag_records"), told.get("lag_seconds"),
        str(told.get("lag_error") or ""), query.get("rows_per_second") if told.get("running") else None,
        query.get("error", ""),
    )  # fmt: skip


def _arguments(ask: Ask, way: str, file: str, *more: str) -> list[str]:
    return ["mirror", way, file, *more, "--state-dir", ask.watched.settings.state_dir, "--json"]


def _line(ask: Ask, way: str, row: FlowRow) -> str:
    return shlex.join(["ottla", *_arguments(ask, way, row.file, "--flow", row.flow)[:-1]])


async def pause(ask: Ask) -> Done:
    return await _switch(ask, "pause", "is paused: it rests after the batch that runs")


async def resume(ask: Ask) -> Done:
    return await _switch(ask, "resume", "goes on")


async def promote(ask: Ask) -> Done:
    return await _switch(ask, "promote", "is promoted")


async def _switch(ask: Ask, way: str, words: str) -> Done:
    name = ask.fields.need("flow")
    ask.fields.confirmed(name, f"{way} the flow")
    refuse_brokers_users(ask, f"{way} a flow")
    refuse_limited(ask, f"{way} a flow")
    row = await _row(ask, name)
    if way == "promote" and not row.standby:
        raise BadInput(f"{name} has no `offsets: keep`: its topics can be written to as they are")
    found = await ask.console.tools.do(
        _arguments(ask, way, row.file, "--flow", row.flow), _arguments(ask, "status", row.file)
    )
    if way == "promote":
        words += "".join(f": {promoted_words(each)}" for each in found)
    return Done(f"{name} {words}", ask.link("/mirroring"), {"flows": found}, name)


async def _row(ask: Ask, name: str) -> FlowRow:
    """Of the files that the console was told of, and of no others."""
    rows, failures, _ = await _of_files(ask, ASK_SECONDS_MAX)
    for row in rows:
        if row.pipeline == name and row.flow:
            return row
    said = f" ({'; '.join(failures)})" if failures else ""
    raise BadInput(f"no file that this console was told of with --mirror has the flow {name}{said}")


def promoted_words(told: dict[str, Any]) -> str:
    """What was replicated and what was not, in a line."""
    missing, ago = told.get("missing_records"), told.get("seen_seconds_ago")
    words = [", ".join(told.get("topics", ()))]
    if missing is None:
        words.append("what the source had beyond that is not known")
    elif told.get("source_answers"):
        words.append(f"{missing:,} records were not replicated")
    else:
        words.append(f"{missing:,} records that the source had {ago or 0:.1f} s before were not replicated")
    if told.get("aborted_transactions"):
        words.append(f"{told['aborted_transactions']} open transactions are aborted")
    return "; ".join(words)


def is_mirror(told: dict[str, Any]) -> bool:
    """What its sink says; without a graph, the name that flows are given."""
    for query in told.get("queries", ()):
        graph = query.get("graph") if isinstance(query, dict) else None
        if isinstance(graph, dict):
            return any(str(sink).startswith("mirror") for sink in graph.get("sinks", ()))
    return "->" in str(told.get("pipeline", ""))
