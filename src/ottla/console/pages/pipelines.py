"""Pipelines, as their drivers tell: graph, speed, lag, where a batch spends its time, what failed."""

from typing import Any

from ottla.console.asking import Ask, Done
from ottla.console.commands import line
from ottla.model.errors import ApiError, ErrorCode


async def show(ask: Ask) -> dict[str, Any]:
    drivers = await ask.console.pipelines.of(ask.watched.settings)
    found = await ask.snapshot()
    lags = {row.group: row for row in found.groups}
    return {
        "drivers": [
            {
                "url": driver.url,
                "error": driver.error,
                "pipelines": [_pipeline(each, lags) for each in driver.pipelines],
            }
            for driver in drivers
        ],
        "_command": line("ottla", "", "pipeline", "status", "PIPELINE.yaml"),
    }


def _pipeline(told: dict[str, Any], lags: dict[str, Any]) -> dict[str, Any]:
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


async def stop(ask: Ask) -> Done:
    name = ask.fields.need("pipeline")
    ask.fields.confirmed(name, "stop the pipeline")
    if ask.caller.login is not None:
        words = "no ACL says who may stop pipelines: sign in as a user of the console's file"
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, words)
    url = await ask.console.pipelines.stop(ask.watched.settings, name)
    return Done(f"the driver at {url} stops {name}", ask.link("/pipelines"), {"pipeline": name}, name)


async def show_mirrors(ask: Ask) -> dict[str, Any]:
    """Flows are pipelines too: their drivers tell how far they are."""
    drivers = await ask.console.pipelines.of(ask.watched.settings)
    found = await ask.snapshot()
    lags = {row.group: row for row in found.groups}
    flows = [
        {"url": driver.url, **_pipeline(each, lags)}
        for driver in drivers
        for each in driver.pipelines
        if is_mirror(each)
    ]
    return {
        "flows": flows,
        "drivers": len(drivers),
        "failures": [f"{driver.url}: {driver.error}" for driver in drivers if driver.error],
        "_command": line("ottla", "", "mirror", "status", "mirror.yaml"),
    }


def is_mirror(told: dict[str, Any]) -> bool:
    """What its sink says; without a graph, the name that flows are given."""
    for query in told.get("queries", ()):
        graph = query.get("graph") if isinstance(query, dict) else None
        if isinstance(graph, dict):
            return any(str(sink).startswith("mirror") for sink in graph.get("sinks", ()))
    return "->" in str(told.get("pipeline", ""))
