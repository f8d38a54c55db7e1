"""The first page: is all well, how much is going on, who is behind, what changed lately."""

from collections.abc import Sequence
from typing import Any

from ottla.console.asking import Ask
from ottla.console.listeners import Levels
from ottla.console.measured import level_words
from ottla.console.pages.pipelines import drivers_of, known_files
from ottla.console.snapshot import Health

WORST_SHOWN = 8
BUSIEST_SHOWN = 8
EVENTS_SHOWN = 12


async def show(ask: Ask) -> dict[str, Any]:
    found = await ask.snapshot()
    drivers = await drivers_of(ask, known_files(ask))
    levels = await ask.console.listeners.levels(ask.watched.settings.monitors)
    rows = [query for driver in drivers for pipeline in driver.pipelines for query in pipeline.get("queries", ())]
    worst = sorted((row for row in found.groups if row.lag or row.status != "OK"), key=lambda row: -row.lag)
    busiest = sorted((row for row in found.topics if row.per_second), key=lambda row: -(row.per_second or 0.0))
    return {
        "cluster_id": found.cluster_id,
        "taken_ms": found.taken_ms,
        "health": _health(found.health, levels),
        "levels": [row for each in levels for row in each.rows],
        "controller": found.controller_id,
        "brokers": len(found.look.brokers),
        "topics": len(found.topics),
        "partitions": len(found.look.places),
        "groups": len(found.groups),
        "lag": sum(row.lag for row in found.groups),
        "per_second": found.per_second,
        "stored_bytes": sum(row.size_bytes for row in found.brokers) if found.disks.known else None,
        "worst_groups": worst[:WORST_SHOWN],
        "busiest_topics": busiest[:BUSIEST_SHOWN],
        "pipelines": {
            "drivers": len(drivers),
            "away": [driver.url for driver in drivers if driver.error],
            "queries": len(rows),
            "running": sum(row.get("state") == "running" for row in rows),
            "failed": sum(row.get("state") in ("failed", "waiting") for row in rows),
            "dead_letters": sum(int(row.get("dead_letters") or 0) for row in rows),
        },
        "events": list(reversed(ask.watched.events))[:EVENTS_SHOWN],
        "speeds": list(ask.watched.history.speed),
        "lags": list(ask.watched.history.lag),
    }


def _health(health: Health, levels: Sequence[Levels]) -> Health:
    """With what `ottla monitor` says of service levels, where there is one."""
    words = [word for each in levels for word in ([each.error] if each.error else level_words(each.rows))]
    return Health(health.good and not words, (*health.words, *words))
