"""Mirrors: the flows of those that run, and of those whose files the console was told of, which it can switch.

A flow is paused, resumed, promoted and turned round by the command that does it on a command line, in a process of its
own. A mirror is started as a pipeline is, and goes on when the console ends.
"""

import asyncio
import shlex
from pathlib import Path
from typing import Any, NamedTuple

from ottla.console.asking import Ask, BadInput, Done
from ottla.console.commands import line
from ottla.console.pages.pipelines import pipeline_row, refuse_brokers_users, refuse_limited
from ottla.console.starting import Job, Run
from ottla.console.tools import ASK_SECONDS_MAX, PAGE_SECONDS_MAX

KEPT_SECONDS = 10.0
BACK = "-back"
"""What `ottla mirror failback` puts behind the name of the file that it writes beside the other."""
BACKS_MAX = 8
WAYS = ("pause", "resume", "promote", "failback")


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
    running: bool
    url: str
    """Where its driver answers, if it runs."""


class MirrorFile(NamedTuple):
    file: str
    name: str
    running: bool
    """Whether any of its flows does."""
    run: Run | None
    """If this console has started it."""


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
        "files": [_file_row(ask, file, rows) for file in files_of(ask)],
        "waiting": waiting,
        "failures": [f"{driver.url}: {driver.error}" for driver in drivers if driver.error] + failures,
        "_ways": {row.pipeline: {way: _line(ask, way, row) for way in WAYS} for row in rows},
        "_starts": {file: shlex.join(["ottla", *_start_arguments(ask, file)]) for file in files_of(ask)},
        "_command": line("ottla", "", "mirror", "status", (*ask.watched.settings.mirrors, "mirror.yaml")[0]),
    }


def files_of(ask: Ask) -> list[str]:
    """Those that the console was told of, and those that a failback wrote beside them."""
    found: list[str] = []
    for told in ask.watched.settings.mirrors:
        file = Path(told)
        for _ in range(BACKS_MAX):
            if str(file) not in found:
                found.append(str(file))
            file = file.with_name(f"{file.stem}{BACK}.yaml")
            if not file.is_file():
                break
    return found


def _file_row(ask: Ask, file: str, rows: list[FlowRow]) -> MirrorFile:
    run = ask.console.starter.run_of(_log(ask, file))
    if run is not None and not ask.caller.sees_everything:
        run = run._replace(last_words="")
    return MirrorFile(file, Path(file).name, any(row.running for row in rows if row.file == file), run)


async def _of_files(ask: Ask, patience_s: float) -> tuple[list[FlowRow], list[str], list[str]]:
    """Rows, what went wrong, and the files that nothing is known of yet."""
    rows: list[FlowRow] = []
    failures, waiting = [], []
    for file in files_of(ask):
        told = await ask.console.tools.told(_arguments(ask, "status", file), KEPT_SECONDS, patience_s)
        if told.error:
            failures.append(f"{file}: {told.error}")
        elif isinstance(told.document, list):
            found = [flow_row(file, each) for each in told.document if isinstance(each, dict)]
            known = {row.pipeline for row in rows}  # turned round twice, a flow is the one that it was
            rows += [row for row in found if row.pipeline not in known]
        else:
            waiting.append(file)
    return rows, failures, waiting


def flow_row(file: str, told: dict[str, Any]) -> FlowRow:
    pipeline = pipeline_row(told, {})
    query = pipeline["queries"][0] if pipeline["queries"] else {}
    running = bool(told.get("running"))
    return FlowRow(
        file, str(told.get("flow", "")), pipeline["pipeline"], pipeline["state"],
        bool(told.get("paused")), bool(told.get("standby")), told.get("lag_records"), told.get("lag_seconds"),
        str(told.get("lag_error") or ""), query.get("rows_per_second") if running else None,
        query.get("error", ""), running, str(told.get("http", "")) if running else "",
    )  # fmt: skip


def _arguments(ask: Ask, way: str, file: str, *more: str) -> list[str]:
    return ["mirror", way, file, *more, "--state-dir", ask.watched.settings.state_dir, "--json"]


def _start_arguments(ask: Ask, file: str) -> list[str]:
    return ["mirror", file, "--state-dir", ask.watched.settings.state_dir]


def _log(ask: Ask, file: str) -> Path:
    return Path(ask.watched.settings.state_dir, ".console", f"mirror-{Path(file).name}.log")


def _line(ask: Ask, way: str, row: FlowRow) -> str:
    return shlex.join(["ottla", *_arguments(ask, way, row.file, "--flow", row.flow)[:-1]])


async def pause(ask: Ask) -> Done:
    return await _switch(ask, "pause", "is paused: it rests after the batch that runs")


async def resume(ask: Ask) -> Done:
    return await _switch(ask, "resume", "goes on")


async def promote(ask: Ask) -> Done:
    return await _switch(ask, "promote", "is promoted")


async def fail_back(ask: Ask) -> Done:
    """After a promotion: what was the source becomes the standby, by a file that is written and shown from then on."""
    more = ["--discard"] if ask.fields.get("discard") else []
    return await _switch(ask, "failback", "is turned round", *more)


async def _switch(ask: Ask, way: str, words: str, *more: str) -> Done:
    name = ask.fields.need("flow")
    ask.fields.confirmed(name, f"{way} the flow")
    refuse_brokers_users(ask, f"{way} a flow")
    refuse_limited(ask, f"{way} a flow")
    row = await _row(ask, name)
    if way in ("promote", "failback") and not row.standby:
        raise BadInput(f"{name} has no `offsets: keep`: its topics can be written to as they are")
    found = await ask.console.tools.do(
        _arguments(ask, way, row.file, "--flow", row.flow, *more), _arguments(ask, "status", row.file)
    )
    if way == "promote":
        words += "".join(f": {promoted_words(each)}" for each in found)
    if way == "failback":
        words += f": {returned_words(found)}"
    flows = found["flows"] if isinstance(found, dict) else found
    return Done(f"{name} {words}", ask.link("/mirroring"), {"flows": flows}, name)


async def start(ask: Ask) -> Done:
    """All flows of a file, on Spark."""
    name = ask.fields.need("file")
    ask.fields.confirmed(name, "start the mirror")
    refuse_brokers_users(ask, "start mirrors")
    refuse_limited(ask, "start mirrors")
    file = next((each for each in files_of(ask) if Path(each).name == name), None)
    if file is None:
        raise BadInput(f"this console was not told of a mirror {name} with --mirror")
    job = Job(name, tuple(_start_arguments(ask, file)), _log(ask, file))
    run = await asyncio.to_thread(ask.console.starter.start, job)
    ask.console.tools.forget(_arguments(ask, "status", file))
    words = f"{name} is started in process {run.pid}; what it says is in {run.log}"
    return Done(words, ask.link("/mirroring"), {"file": name, "pid": run.pid, "log": run.log}, name)


async def stop(ask: Ask) -> Done:
    name = ask.fields.need("flow")
    ask.fields.confirmed(name, "stop the flow")
    refuse_brokers_users(ask, "stop mirrors")
    refuse_limited(ask, "stop mirrors")
    rows, failures, _ = await _of_files(ask, ASK_SECONDS_MAX)
    row = next((row for row in rows if row.pipeline == name and row.url), None)
    if row is None:
        raise BadInput(f"no flow {name} runs here" + (f" ({'; '.join(failures)})" if failures else ""))
    await ask.console.pipelines.stop(ask.watched.settings._replace(pipelines=(row.url,)), name)
    ask.console.tools.forget(_arguments(ask, "status", row.file))
    return Done(f"{name} ends after the batch that runs", ask.link("/mirroring"), {"flow": name}, name)


async def _row(ask: Ask, name: str) -> FlowRow:
    """Of the files that the console was told of, and of no others."""
    rows, failures, _ = await _of_files(ask, ASK_SECONDS_MAX)
    for row in rows:
        if row.pipeline == name and row.flow:
            return row
    said = f" ({'; '.join(failures)})" if failures else ""
    raise BadInput(f"no file that this console was told of with --mirror has the flow {name}{said}")


def returned_words(told: dict[str, Any]) -> str:
    """What becomes of the old active cluster's topics, in a line."""
    flows = told.get("flows", ())
    topics = [topic for flow in flows for topic in flow.get("topics", ())]
    lost = sum(int(tail["records"]) for flow in flows for tail in flow.get("discarded", ()))
    words = f"{', '.join(topics)} will be copied back by {Path(str(told.get('file', ''))).name}: start it"
    return f"{words}; {lost:,} records are discarded" if lost else words


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
