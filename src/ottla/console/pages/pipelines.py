"""Pipelines, as their drivers tell: graph, speed, lag, where a batch spends its time, what failed."""

import asyncio
import shlex
from pathlib import Path
from typing import Any, NamedTuple

from ottla.console.asking import Ask, BadInput, Done
from ottla.console.clusters import ClusterSettings
from ottla.console.commands import line
from ottla.console.pipeline_status import DriverStatus
from ottla.console.starting import Run, arguments, files_of, pipeline_job, pipeline_log
from ottla.console.tools import PAGE_SECONDS_MAX, Told
from ottla.model.errors import ApiError, ErrorCode

KEPT_SECONDS = 10.0
SECONDS_EACH = 10.0
"""To ask about a file starts a process: many files are asked about the more seldom."""


class FileRow(NamedTuple):
    """A file of the folder of pipelines, as `ottla pipeline status` tells of it."""

    file: str
    pipeline: str
    state: str
    running: bool
    url: str
    """Where its driver answers, if it runs."""
    pid: int | None
    error: str
    run: Run | None
    """If this console has started it."""


async def show(ask: Ask) -> dict[str, Any]:
    files = await _files(ask)
    drivers = await drivers_of(ask, files)
    found = await ask.snapshot()
    lags = {row.group: row for row in found.groups}
    shown: list[dict[str, Any]] = [
        {
            "url": driver.url,
            "error": driver.error,
            "pipelines": [pipeline_row(each, lags) for each in driver.pipelines],
        }
        for driver in drivers
    ]
    queries = [query for driver in shown for pipeline in driver["pipelines"] for query in pipeline["queries"]]
    return {
        "drivers": shown,
        "files": files,
        "_lags": {query["group"]: ask.watched.history.lag_of(query["group"]) for query in queries},
        "_starts": {row.file: _start_line(ask, row.file) for row in files},
        "_command": line("ottla", "", "pipeline", "status", "PIPELINE.yaml"),
    }


def pipeline_row(told: dict[str, Any], lags: dict[str, Any]) -> dict[str, Any]:
    return {
        "pipeline": str(told.get("pipeline", "")),
        "version": told.get("version"),
        "state": str(told.get("state", "")),
        "queries": [_query(each, lags) for each in told.get("queries", ()) if isinstance(each, dict)],
    }


def _query(told: dict[str, Any], lags: dict[str, Any]) -> dict[str, Any]:
    """Without guessing: what an older driver does not tell is left out."""
    parts = told.get("batch_parts")
    group = lags.get(str(told.get("group", "")))
    graph = told.get("graph")
    return {
        "query": str(told.get("query", "")),
        "state": str(told.get("state", "")),
        "group": str(told.get("group", "")),
        "batch": told.get("batch"),
        "rows_per_second": _number(told.get("rows_per_second")),
        "batch_seconds": _number(told.get("batch_seconds")),
        "batch_parts": {str(name): _number(value) or 0.0 for name, value in parts.items()}
        if isinstance(parts, dict)
        else {},
        "lag": _number(told.get("lag")),
        "waiting_s": group.waiting_s if group is not None else None,
        "input_rows": _number(told.get("input_rows")),
        "dead_letters": _number(told.get("dead_letters")) or 0,
        "dead_letter_topic": str(told.get("dead_letter_topic") or ""),
        "late_rows": _number(told.get("late_rows")) or 0,
        "state_rows": _number(told.get("state_rows")) or 0,
        "watermark": told.get("watermark"),
        "restarts": _number(told.get("restarts")) or 0,
        "error": str(told.get("error") or ""),
        "graph": _graph(graph) if isinstance(graph, dict) else [],
    }


def _graph(told: dict[str, Any]) -> list[list[str]]:
    """From left to right: where rows come from, tables among it, what happens to them, where they go."""
    columns = (("sources", "tables"), ("steps",), ("sinks",))
    return [[str(node) for part in column for node in told.get(part, ())] for column in columns]


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def known_files(ask: Ask) -> list[FileRow]:
    """As far as anything was told of them; nobody is asked."""
    tools = ask.console.tools
    return [_file_row(ask, path, tools.known(_status_of(ask, path))) for path in _paths(ask).values()]


async def _files(ask: Ask) -> list[FileRow]:
    paths = _paths(ask).values()
    kept_s = max(KEPT_SECONDS, SECONDS_EACH * len(paths))
    return [
        _file_row(ask, path, await ask.console.tools.told(_status_of(ask, path), kept_s, PAGE_SECONDS_MAX / len(paths)))
        for path in paths
    ]


def _paths(ask: Ask) -> dict[str, Path]:
    return files_of(ask.watched.settings.pipeline_files)


def _status_of(ask: Ask, path: Path) -> list[str]:
    return ["pipeline", "status", str(path), "--state-dir", ask.watched.settings.state_dir, "--json"]


def _file_row(ask: Ask, path: Path, told: Told) -> FileRow:
    rows = told.document if isinstance(told.document, list) else []
    row = rows[0] if rows and isinstance(rows[0], dict) else {}
    run = ask.console.starter.run_of(pipeline_log(path, Path(ask.watched.settings.state_dir)))
    running = bool(row.get("running"))
    if run is not None and not ask.caller.sees_everything:
        run = run._replace(last_words="")  # there may be records in it
    return FileRow(
        path.name, str(row.get("pipeline", "")), str(row.get("state", "")), running,
        str(row.get("http", "")) if running else "", row.get("pid") if running else None, told.error, run,
    )  # fmt: skip


def with_started(ask: Ask, files: list[FileRow]) -> ClusterSettings:
    """Drivers of pipelines that run here are asked like those that the console was told of."""
    settings = ask.watched.settings
    told = {url.rstrip("/").removesuffix("/status").rstrip("/") for url in settings.pipelines}
    more = dict.fromkeys(row.url for row in files if row.url.startswith(("http://", "https://")))
    return settings._replace(pipelines=(*settings.pipelines, *(url for url in more if url.rstrip("/") not in told)))


async def drivers_of(ask: Ask, files: list[FileRow]) -> list[DriverStatus]:
    """One that was started here and does not answer any more has ended: that is no news of a driver."""
    told = ask.watched.settings.pipelines
    return [
        each for each in await ask.console.pipelines.of(with_started(ask, files)) if not each.error or each.url in told
    ]


def _start_line(ask: Ask, file: str) -> str:
    settings = ask.watched.settings
    return shlex.join(["ottla", *arguments(Path(settings.pipeline_files, file), Path(settings.state_dir))])


async def start(ask: Ask) -> Done:
    name = ask.fields.need("file")
    ask.fields.confirmed(name, "start the pipeline")
    refuse_brokers_users(ask, "start pipelines")
    refuse_limited(ask, "start pipelines")
    path = _paths(ask).get(name)
    if path is None:
        raise BadInput(f"there is no {name} in a folder that this console was told of with --pipeline-files")
    settings = ask.watched.settings
    job = pipeline_job(path, Path(settings.state_dir), settings.bootstrap)
    run = await asyncio.to_thread(ask.console.starter.start, job)
    ask.console.tools.forget(_status_of(ask, path))
    words = f"{name} is started in process {run.pid}; what it says is in {run.log}"
    return Done(words, ask.link("/pipelines"), {"file": name, "pid": run.pid, "log": run.log}, name)


async def stop(ask: Ask) -> Done:
    name = ask.fields.need("pipeline")
    ask.fields.confirmed(name, "stop the pipeline")
    refuse_brokers_users(ask, "stop pipelines")
    url = await ask.console.pipelines.stop(with_started(ask, await _files(ask)), name)
    return Done(f"the driver at {url} stops {name}", ask.link("/pipelines"), {"pipeline": name}, name)


def refuse_brokers_users(ask: Ask, what: str) -> None:
    """It would be done with rights that are not theirs."""
    if ask.caller.login is not None:
        words = f"no ACL says who may {what}: sign in as a user of the console's file"
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, words)


def refuse_limited(ask: Ask, what: str) -> None:
    """It could be done to any topic."""
    if not ask.caller.sees_everything:
        words = f"only who sees every topic may {what}, and this role sees some"
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, words)
