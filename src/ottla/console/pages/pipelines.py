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
                "pipelines": [pipeline_row(each, lags) for each in driver.pipelines],
            }
            for driver in drivers
        ],
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


async def stop(ask: Ask) -> Done:
    name = ask.fields.need("pipeline")
    ask.fields.confirmed(name, "stop the pipeline")
    refuse_brokers_users(ask, "stop pipelines")
    url = await ask.console.pipelines.stop(ask.watched.settings, name)
    return Done(f"the driver at {url} stops {name}", ask.link("/pipelines"), {"pipeline": name}, name)


def refuse_brokers_users(ask: Ask, what: str) -> None:
    """It would be done with rights that are not theirs."""
    if ask.caller.login is not None:
        words = f"no ACL says who may {what}: sign in as a user of the console's file"
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, words)
